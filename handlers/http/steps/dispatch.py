"""The last step: calls the operation with its arguments and sends its answer."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from anyio import to_thread
from connexion.operations import AbstractOperation
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.http import call
from handlers.http.request import Answer, Json, Request
from handlers.http.steps.turns import Turns


def dispatch(operation: AbstractOperation, _next_app: ASGIApp, *, public_path: str, turns: Turns) -> ASGIApp:
    """The call of one operation; a plain function may take its time with the store, so it runs in a thread.

    `public_path` is what a proxy has taken off the path of the request.
    """

    async def in_turn(request: Request, arguments: dict[str, Any]) -> Answer | Json:
        """What memory did not have: from the store, unless the reader before has brought it to memory."""
        async with turns.of(request.principal.user_id):
            found: Answer | None = at_once(request, **arguments)
            if found is not None:
                return found
            make: Callable[[], Answer | Json] = partial(function, request, **arguments)
            return await to_thread.run_sync(make, limiter=turns.threads)

    function = operation.function
    is_async = inspect.iscoroutinefunction(function)
    at_once: Any = getattr(function, "at_once", None)  # what is in memory needs no thread

    async def dispatched(scope: Scope, _receive: Receive, send: Send) -> None:
        asked = call.current(scope)
        request = Request(
            caller=asked.caller,
            method=scope["method"],
            path=public_path + scope["path"],
            query=scope["query_string"].decode("latin-1"),
            headers=Headers(scope=scope),
            client_address=asked.client_address,
        )
        if is_async:
            result = await function(request, **asked.arguments)
        elif at_once is None:
            result = await run_in_threadpool(function, request, **asked.arguments)
        else:
            result = at_once(request, **asked.arguments) or await in_turn(request, asked.arguments)
        answer = result if isinstance(result, Answer) else Answer(body=result)
        await call.send_answer(send, answer)

    return dispatched
