"""The step that admits requests as the contract says: bearer token, scope, active subscription (decision 29)."""

import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import lru_cache
from types import MappingProxyType
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from auth.errors import InvalidToken
from auth.principal import Principal
from handlers.web import call
from handlers.web.errors import Forbidden, Unauthorized
from handlers.web.framework import AbstractOperation
from handlers.web.routing import Make
from handlers.web.sockets.peers import note_sign_in

logger = logging.getLogger("bankdata.guard")

NOT_EVERYTHING = "This connection does not cover everything, which this needs. Its owner can connect it again"
FIGURES_ONLY = "This connection shows figures only. Its owner can allow transactions by connecting it again"

Authenticate = Callable[[str], Awaitable[Principal]]
"""Gives the principal of an access token; called for every request. Raises InvalidToken."""

HEADERS_REMEMBERED = 512  # each is bounded by the size of a request's head

# "credentials = 'Bearer' 1*SP b64token" RFC 6750 section 2.1
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9\-._~+/]+=*) *", re.ASCII)


class Challenges(Struct, frozen=True):
    """The WWW-Authenticate headers where certain scopes are needed: for no token, a refused one, and one with too
    narrow a scope (RFC 6750 section 3, RFC 9728 section 5.1)."""

    unasked: Mapping[str, str]
    refused: Mapping[str, str]
    too_narrow: Mapping[str, str]


def challenges(scopes: str, metadata: str) -> Challenges:
    """The WWW-Authenticate headers with which a resource refuses requests. They name the scopes it needs (`scopes`,
    separated by spaces) and where its OAuth metadata are (the address `metadata`)."""
    details = f'scope="{scopes}", resource_metadata="{metadata}"'
    return Challenges(
        unasked={"www-authenticate": f"Bearer {details}"},
        refused={"www-authenticate": f'Bearer error="invalid_token", {details}'},
        too_narrow={"www-authenticate": f'Bearer error="insufficient_scope", {details}'},
    )


async def caller_of(scope: Scope, authenticate: Authenticate, challenge: Challenges) -> Principal:
    """The principal of a request's bearer token; notes on its connection that the sender has shown a valid one. Raises
    Unauthorized with a challenge for no token, several Authorization headers, or a token that is refused."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    token = _bearer_token(sent[0]) if len(sent) == 1 else None
    if token is None:
        raise Unauthorized(headers=challenge.unasked if _lacks_credentials(sent) else challenge.refused)
    try:
        caller = await authenticate(token)
    except InvalidToken as error:
        logger.info("token refused: %s", error)
        raise Unauthorized(headers=challenge.refused) from None
    note_sign_in(scope)
    return caller


def person_in_memory(remembered: Callable[[str], Principal | None], scope: Scope) -> str | None:
    """The person in whose browser sessions the token of a request was issued, as far as `remembered` knows the token;
    None for all others, which are told so later."""
    sent = [value for name, value in scope["headers"] if name == b"authorization"]
    token = _bearer_token(sent[0]) if len(sent) == 1 else None
    try:
        caller = remembered(token) if token is not None else None
    except InvalidToken:
        return None
    return caller.user_id if caller is not None and caller.session is not None else None


@lru_cache(maxsize=HEADERS_REMEMBERED)  # matching a token costs more than looking it up
def _bearer_token(header: bytes) -> str | None:
    """The token in an Authorization header; None where there is no well-formed bearer token."""
    credentials = _BEARER.fullmatch(header)
    return credentials[1].decode("ascii") if credentials else None


def check_subscription(caller: Principal, billing_url: str) -> None:
    """Raise Forbidden for a caller without an active subscription. It carries no challenge (WWW-Authenticate): a client
    would answer that by asking for more scopes, forever."""
    if not caller.has_subscription:
        raise Forbidden("Active subscription required. Subscribe at {billing_url}", billing_url=billing_url)


def guard(
    authenticate: Authenticate,
    *,
    public_url: str,
    billing_url: str,
    shows_bookings: Collection[str] = (),
    knows_coverage: Collection[str] | None = None,
    gives_figures: Mapping[str, str] = MappingProxyType({}),
) -> Make:
    """The step that admits requests to each operation that asks for a scope: it puts the caller into the call, or
    raises Unauthorized or Forbidden, with the texts of interface section 7 and the challenges of RFC 6750 and 9728.

    `shows_bookings` are ids of operations closed to a grant of figures only. `knows_coverage` are those open to a grant
    of only some accounts or of figures only; None means all. `gives_figures` says by operation which scope a grant of
    figures only needs instead of the usual one.
    """

    def make_guard(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        scope_name = required_scope(operation)
        if scope_name is None:
            return next_app
        challenge = challenges(scope_name, metadata_url(public_url))
        figures_scope = gives_figures.get(operation.operation_id, scope_name)
        is_hidden = operation.operation_id in shows_bookings
        needs_everything = knows_coverage is not None and operation.operation_id not in knows_coverage

        async def admit(scope: Scope, receive: Receive, send: Send) -> None:
            caller = call.current(scope).caller = await caller_of(scope, authenticate, challenge)
            if is_hidden and caller.figures_only:
                raise Forbidden(FIGURES_ONLY)  # no challenge: no scope would help
            if needs_everything and (not caller.is_whole or caller.figures_only):
                raise Forbidden(NOT_EVERYTHING)
            wanted = figures_scope if caller.figures_only else scope_name
            if wanted not in caller.scopes:
                raise Forbidden("Insufficient scope. Required: {wanted}", wanted=wanted, headers=challenge.too_narrow)
            check_subscription(caller, billing_url)
            await next_app(scope, receive, send)

        return admit

    return make_guard


def required_scope(operation: AbstractOperation) -> str | None:
    """The one scope that the contract asks of an operation; None if everybody may call it. Raises ValueError unless it
    is exactly one."""
    requirements = operation.security or []
    if not requirements:
        return None
    scopes: list[str] = [scope for requirement in requirements for named in requirement.values() for scope in named]
    if len(requirements) != 1 or len(scopes) != 1:
        raise ValueError(f"{operation.operation_id}: the contract must ask for exactly one scope")
    return scopes[0]


def metadata_url(public_url: str, path: str = "/api/v1") -> str:
    """The address of the OAuth metadata of the resource at `public_url` followed by `path`: the well-known part goes
    before the resource's path (RFC 9728 section 3.1)."""
    parts = urlsplit(public_url)
    return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}{path}"


def _lacks_credentials(sent: list[bytes]) -> bool:
    """Whether the request has nothing that could have been meant as a token: `sent`, its Authorization headers, is
    empty, or is one of another scheme than Bearer.

    "If the request lacks any authentication information (e.g., the client ... attempted using an unsupported
    authentication method), the resource server SHOULD NOT include an error code." RFC 6750 section 3.1
    """
    schemes = [header.lower().split(None, 1)[:1] for header in sent]
    return not sent or (len(sent) == 1 and schemes[0] not in ([], [b"bearer"]))
