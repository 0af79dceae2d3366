"""The outermost application: every failure becomes an error body, every answer its headers (oauth.md 2.11)."""

import logging
import secrets
from collections.abc import Sequence
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from handlers.http import call
from handlers.http.addresses import Addresses
from handlers.http.errors import Refusal, TooManyRequests, error_answer
from handlers.http.hosts import Hosts

logger = logging.getLogger("bankdata.errors")

PREFLIGHT_SECONDS = 7200  # the longest that Chromium remembers

_NOSNIFF = (b"x-content-type-options", b"nosniff")
_SHARED = (
    _NOSNIFF,
    (b"access-control-allow-origin", b"*"),  # never with credentials: there are no cookies on these paths
    (
        b"access-control-expose-headers",
        b"WWW-Authenticate, Retry-After, RateLimit, RateLimit-Policy, Link, Location, ETag, X-Request-Id,"
        b" Unconverted-Currencies",
    ),
)
_PREFLIGHT = (
    (b"access-control-allow-methods", b"GET, HEAD, POST"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, If-None-Match, MCP-Protocol-Version, *",
    ),  # * leaves Authorization out
    (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
)


class Edge:
    """What stands between the server and the contract's application."""

    def __init__(
        self, app: ASGIApp, *, addresses: Addresses, shared_paths: Sequence[str], hosts: Hosts | None = None
    ) -> None:
        """`shared_paths`: beginnings of the paths that scripts of other origins may read; `hosts` None answers for any
        host."""
        self._app = app
        self._hosts = hosts
        self._addresses = addresses
        self._shared_paths = tuple(shared_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = call.begin(scope, self._addresses.client(scope))
        is_shared = scope["path"].removeprefix(scope.get("root_path", "")).startswith(self._shared_paths)
        is_head = scope["method"] == "HEAD"
        has_started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*message["headers"], *asked.headers, *(_SHARED if is_shared else (_NOSNIFF,))]
            elif is_head:
                # "The server MUST NOT send content in the response" RFC 9110 9.3.2; its headers are those of the GET
                message["body"] = b""
            await send(message)

        try:
            if self._hosts is not None:
                self._hosts.check(scope)
        except Refusal as refusal:
            await call.send_answer(send_with_headers, error_answer(refusal))
            return
        if is_shared and _is_preflight(scope):
            asked.headers.extend(_PREFLIGHT)
            await send_with_headers({"type": "http.response.start", "status": 204, "headers": []})
            await send_with_headers({"type": "http.response.body", "body": b""})
            return
        try:
            await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            return
        except Exception as error:
            if has_started:
                raise
            answer = error_answer(_refusal(error, asked))
            await call.send_answer(send_with_headers, answer)


def _refusal(error: Exception, asked: call.Call) -> Refusal:
    if isinstance(error, TooManyRequests):
        error.retry_after = max(error.retry_after, asked.retry_not_before)
    if isinstance(error, Refusal):
        return error
    if isinstance(error, HTTPException) and error.status_code < 500:
        refusal = Refusal(HTTPStatus(error.status_code).phrase.capitalize(), headers=error.headers)
        refusal.status = error.status_code
        return refusal
    request_id = secrets.token_hex(8)
    logger.error("request %s failed", request_id, exc_info=error)
    return Refusal("Internal error", headers={"x-request-id": request_id})


def _is_preflight(scope: Scope) -> bool:
    if scope["method"] != "OPTIONS":
        return False
    names = {name for name, _ in scope["headers"]}
    return {b"origin", b"access-control-request-method"} <= names
