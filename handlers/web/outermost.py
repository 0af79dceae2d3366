"""The outermost application: turns every failure into an error body, and gives every answer its headers (oauth.md
2.11)."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handlers.web import call, request_id
from handlers.web.addresses import Addresses
from handlers.web.errors import Refusal, TooManyRequests, Unavailable, error_answer
from handlers.web.hosts import Hosts
from handlers.web.request import Answer
from handlers.web.response_headers import PREFLIGHT, response_headers
from handlers.web.steps.request_headers import weights

logger = logging.getLogger("bankdata.errors")

IsFailure = Callable[[BaseException], bool]
UnknownPage = Callable[[Headers], ASGIApp]
"""Gives the page for an address that does not exist, in the language that these headers ask for."""


class Outermost(Struct, frozen=True, kw_only=True):
    """The ASGI application around the contract's: gives each request its id and its `Call`, checks its host, answers
    preflights and failures, and adds the headers that every answer gets.

    `shared_paths` are beginnings of the paths that scripts of other origins may read. `hosts` None accepts any host.
    Without `unknown_page`, people get the same 404 as programs. `unavailable` are the failures after which trying again
    later helps (503), each with its refusal, the first one that fits; `is_failure` is False for orders to end the
    process, which are raised on.
    """

    app: ASGIApp
    addresses: Addresses
    shared_paths: tuple[str, ...]
    is_failure: IsFailure
    hosts: Hosts | None
    unknown_page: UnknownPage | None
    unavailable: Mapping[type[Exception], type[Unavailable]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id.begin(scope["headers"])
        asked = call.begin(scope, self.addresses.client(scope))
        is_shared = scope["path"].removeprefix(scope.get("root_path", "")).startswith(self.shared_paths)
        is_head = scope["method"] == "HEAD"
        has_started = False
        added = response_headers(is_shared=is_shared)

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*message["headers"], *asked.headers, *added]
            elif is_head:
                # "The server MUST NOT send content in the response" RFC 9110 9.3.2; its headers are those of the GET
                message["body"] = b""
            await send(message)

        try:
            if self.hosts is not None:
                self.hosts.check(scope)
        except Refusal as refusal:
            await call.send_answer(send_with_headers, error_answer(refusal))
            return
        if is_shared and _is_preflight(scope):
            asked.headers.extend(PREFLIGHT)
            await send_with_headers({"type": "http.response.start", "status": 204, "headers": []})
            await send_with_headers({"type": "http.response.body", "body": b""})
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except ClientDisconnect:
            return
        except asyncio.CancelledError:
            # Only a server that stops cancels requests, those that took too long to end: it is no failure of theirs
            if not has_started:
                await call.send_answer(send_with_headers, error_answer(Unavailable()))
        except BaseException as error:
            if has_started or not self.is_failure(error):
                raise
            if self.unknown_page is not None and not is_shared and _is_person_lost(scope, error):
                page = self.unknown_page(Headers(scope=scope))
                await page(scope, receive, send_with_headers)
                return
            await call.send_answer(send_with_headers, self._answer(error, asked), call.language_of(scope))

    def _answer(self, error: BaseException, asked: call.Call) -> Answer:
        own = asked.failure_answer(error)
        if own is not None:
            return own
        passing = (refusal() for failure, refusal in self.unavailable.items() if isinstance(error, failure))
        refusal = next(passing, None) or _refusal(error, asked)
        return asked.failure_answer(refusal) or error_answer(refusal)


def _refusal(error: BaseException, asked: call.Call) -> Refusal:
    if isinstance(error, TooManyRequests):
        error.retry_after = max(error.retry_after, asked.retry_not_before)
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException) and error.status_code < 500:
        refusal = Refusal(HTTPStatus(error.status_code).phrase.capitalize(), headers=error.headers)
        refusal.status = error.status_code
        return refusal
    logger.error("request %s failed", request_id.current(), exc_info=error)
    return Refusal("Internal error", headers={"x-request-id": request_id.current()})


def _is_person_lost(scope: Scope, error: BaseException) -> bool:
    """Whether the error is the 404 of an address that does not exist, for a person in a browser: for a GET or HEAD that
    prefers HTML to JSON."""
    is_unknown = isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND
    return is_unknown and scope["method"] in ("GET", "HEAD") and prefers_html(Headers(scope=scope).get("accept", ""))


def prefers_html(accept: str) -> bool:
    """Whether an Accept header names text/html, with a higher weight than application/json (RFC 9110 12.5.1); wildcards
    are not looked at."""
    named = {kind: 1.0 if weight is None else weight for kind, weight in weights(accept).items()}
    return named.get("text/html", 0.0) > named.get("application/json", 0.0)


def _is_preflight(scope: Scope) -> bool:
    if scope["method"] != "OPTIONS":
        return False
    names = {name for name, _ in scope["headers"]}
    return {b"origin", b"access-control-request-method"} <= names
