"""The last step: calls the operation with its arguments and sends its answer."""

import inspect

from connexion.operations import AbstractOperation
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.http import call
from handlers.http.request import Answer, Request


def dispatch(operation: AbstractOperation, _next_app: ASGIApp, *, public_path: str) -> ASGIApp:
    """The call of one operation; a plain function may take its time with the store, so it runs in a thread.

    `public_path` is what a proxy has taken off the path of the request.
    """
    function = operation.function
    is_async = inspect.iscoroutinefunction(function)
    at_once = getattr(function, "at_once", None)  # what is in memory needs no thread

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
        else:
            result = at_once(request, **asked.arguments) if at_once is not None else None
            if result is None:
                result = await run_in_threadpool(function, request, **asked.arguments)
        answer = result if isinstance(result, Answer) else Answer(body=result)
        await call.send_answer(send, answer)

    return dispatched
