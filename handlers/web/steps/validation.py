"""The step that checks requests against the contract and leaves typed arguments behind."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.web import call
from handlers.web.framework import AbstractOperation
from handlers.web.steps.bodies import Body
from handlers.web.steps.parameters import Parameters
from handlers.web.steps.uploads import FILE, Upload


def validation(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
    """The step that checks requests of one operation and leaves the arguments in the call, compiled once (decision 54:
    Connexion's own is rebuilt for each request). Raises TypeError now if the function does not accept them."""
    parameters = Parameters(operation.parameters, not_found=not_found_sentence(operation.responses))
    body = _body(operation.request_body) if operation.request_body else None
    _check_signature(operation.function, parameters.names | ({"body"} if body else set()))

    async def validate(scope: Scope, receive: Receive, send: Send) -> None:
        arguments = parameters.read(scope["path_params"], scope["query_string"])
        if body is not None:
            arguments["body"] = await body.read(scope, receive)
        call.current(scope).arguments = arguments
        await next_app(scope, receive, send)

    return validate


def _body(described: Mapping[str, Any]) -> Body | Upload:
    return Upload(described) if FILE in described["content"] else Body(described)


def not_found_sentence(responses: Mapping[str, Any]) -> str:
    """The message of an operation's 404: the contract's example (interface section 7), "Not found" if it has none."""
    content = responses.get("404", {}).get("content", {}).get("application/json", {})
    example: str = content.get("example", {}).get("error", "Not found")
    return example


def _check_signature(function: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise TypeError at the start for a function that does not accept the arguments of its contract."""
    try:
        inspect.signature(function).bind(None, **dict.fromkeys(names))
    except TypeError as error:
        raise TypeError(f"{function.__qualname__} does not fit its operation: {error}") from None
