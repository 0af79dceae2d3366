"""Decides who may use the address of assistants: whoever has a token for it, and no web page of a stranger."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from auth.policy import origin_of
from auth.scopes import SCOPES
from handlers.loopback import is_loopback
from handlers.settings import Settings
from handlers.web import call
from handlers.web.errors import Forbidden, Unauthorized
from handlers.web.framework import AbstractOperation
from handlers.web.routing import Make
from handlers.web.steps.guard import (
    Authenticate,
    Challenges,
    caller_of,
    challenges,
    check_subscription,
    metadata_url,
)
from handlers.web.steps.rate_limit import Limiter

PATH = "/mcp"
FOREIGN_PAGE = "This page may not speak to the service."


def scope_challenge(public_url: str, scopes: Iterable[str]) -> Challenges:
    """The WWW-Authenticate challenges that ask a client of assistants for those of `scopes` that are in SCOPES, in
    their order."""
    wanted = set(scopes)
    return challenges(" ".join(scope for scope in SCOPES if scope in wanted), metadata_url(public_url, PATH))


def admission(authenticate: Authenticate, settings: Settings, limiter: Limiter) -> Make:
    """The step that checks origin, token and subscription, in this order, and raises Unauthorized or Forbidden, or sets
    the request's caller. Its challenge names all three of SCOPES, so that one consent is enough.

    Refusals for wrong tokens are limited per network address (TooManyRequests). Calls with a valid token are limited by
    grant instead, in `Endpoint`, because all users of a hosted assistant come from few addresses.
    """
    own = {origin_of(address) for address in (settings.public_url, settings.auth_url)}
    challenge = scope_challenge(settings.public_url, SCOPES)

    def make_guard(_operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        async def admit(scope: Scope, receive: Receive, send: Send) -> None:
            # "Servers MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks"
            if any(name == b"origin" and not _is_ours(value, own) for name, value in scope["headers"]):
                raise Forbidden(FOREIGN_PAGE)
            asked = call.current(scope)
            try:
                caller = await caller_of(scope, authenticate, challenge)
            except Unauthorized:
                await limiter.spend("mcp refused", asked.client_address)
                raise
            check_subscription(caller, settings.billing_url)
            asked.caller = caller
            await next_app(scope, receive, send)

        return admit

    return make_guard


def _is_ours(header: bytes, own: set[str]) -> bool:
    origin = header.decode("latin-1").strip().lower()
    try:
        parts = urlsplit(origin)
        return origin in own or (parts.scheme in ("http", "https") and is_loopback(parts.hostname or ""))
    except ValueError:
        return False
