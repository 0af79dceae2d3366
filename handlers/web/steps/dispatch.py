"""The last step: calls the operation with its arguments and sends its answer."""

import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

from anyio import to_thread
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.names import Json
from handlers.web import call
from handlers.web.framework import AbstractOperation
from handlers.web.request import EVENT_STREAM, Answer, Operation, Request
from handlers.web.sockets.peers import note_listening
from handlers.web.steps.turns import Turns

Calling = Callable[[Request, dict[str, Any]], Awaitable[Answer]]
"""Calls one operation with the arguments of its contract."""


def calling(function: Operation, turns: Turns) -> Calling:
    """A coroutine function that calls the operation and gives its result as an Answer. A plain function runs in a
    thread, since it may wait for the store, and one that changes something in the line of the user's changes. If it has
    an attribute `at_once`, a coroutine function that answers from memory or gives None, that is asked first, and the
    thread is awaited in the line of the user."""
    is_async = inspect.iscoroutinefunction(function)
    at_once: Any = getattr(function, "at_once", None)  # answers from memory, which needs no thread
    operation: Any = function

    async def in_turn(request: Request, arguments: dict[str, Any]) -> Answer | Json:
        """The answer that was not in memory: from memory, if the reader before has brought the data meanwhile, else
        from the store."""
        async with turns.of(request.principal.user_id):
            found: Answer | None = await at_once(request, **arguments)
            if found is not None:
                return found
            make: Callable[[], Answer | Json] = partial(operation, request, **arguments)
            return await to_thread.run_sync(make, limiter=turns.threads)

    async def call_operation(request: Request, arguments: dict[str, Any]) -> Answer:
        result: Answer | Json
        if is_async:
            result = await operation(request, **arguments)
        elif at_once is None and (request.caller is None or request.method in ("GET", "HEAD")):
            result = await run_in_threadpool(operation, request, **arguments)
        elif at_once is None:
            async with turns.to_change(request.principal.user_id):
                result = await run_in_threadpool(operation, request, **arguments)
        else:
            result = await at_once(request, **arguments) or await in_turn(request, arguments)
        return result if isinstance(result, Answer) else Answer(body=result)

    return call_operation


def dispatch(operation: AbstractOperation, _next_app: ASGIApp, *, public_path: str, turns: Turns) -> ASGIApp:
    """The last step of an operation's requests, which calls it and sends its answer; `public_path` is what a proxy has
    removed from the beginning of the path."""
    call_operation = calling(operation.function, turns)

    async def dispatch_request(scope: Scope, receive: Receive, send: Send) -> None:
        asked = call.current(scope)
        request = Request(
            caller=asked.caller,
            method=scope["method"],
            path=public_path + scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=Headers(raw=scope["headers"]),
            client_address=asked.client_address,
            is_gone=receive,
            language=call.language_of(scope),
        )
        with turns.answering(asked.caller.user_id) if asked.caller is not None else nullcontext():
            answer = await call_operation(request, asked.arguments)
        if answer.headers.get("content-type") == EVENT_STREAM:
            note_listening(scope)
        await call.send_answer(send, answer, request.language)

    return dispatch_request
