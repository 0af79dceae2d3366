"""Access tokens: signed JWTs of RFC 9068, issued here and accepted only when every rule below holds."""

import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from jwt.utils import base64url_decode, base64url_encode
from msgspec import Struct

from auth import lifetimes
from auth.errors import InvalidToken
from auth.scopes import ALL_SCOPES, scope_set, scope_text
from auth.tokens.keys import KeyRing
from storage.oauth.moments import aware

LENGTH_MAX = 4096  # ours have about 900 characters
GRANT_CLAIM = "grant_id"
CLAIMS = frozenset({"iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti", GRANT_CLAIM})

Payload = Mapping[str, object]

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)


class Claims(Struct, frozen=True, kw_only=True):
    """The claims of a valid token; whether its grant and user still exist is checked in `access_check`."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    grant_id: str
    issued_at: datetime
    expires_at: datetime
    token_id: str
    key_id: str
    audience: str


class AccessTokens:
    """Issues and verifies the access tokens of one issuer; `audience` is the resource unless another is named."""

    def __init__(
        self,
        ring: KeyRing,
        *,
        issuer: str,
        audience: str,
        other_audiences: Iterable[str] = (),
    ) -> None:
        self._ring = ring
        self.issuer = issuer
        self.audience = audience
        self._audiences = frozenset({audience, *other_audiences})

    def issue(
        self,
        *,
        user_id: str,
        client_id: str,
        scopes: Iterable[str],
        grant_id: str,
        now: datetime,
        lifetime: timedelta = lifetimes.ACCESS_TOKEN,
        audience: str | None = None,
    ) -> str:
        """A signed token (RFC 9068 sections 2.1 and 2.2), without personal data; not stored. Without `audience`,
        that of the constructor holds."""
        issued_at = int(aware(now).timestamp())
        key = self._ring.signing_key()
        claims = {
            "iss": self.issuer,
            "aud": audience or self.audience,
            "sub": user_id,
            "client_id": client_id,
            "scope": scope_text(scopes),
            "iat": issued_at,
            "exp": issued_at + int(lifetime.total_seconds()),
            "jti": secrets.token_urlsafe(16),
            GRANT_CLAIM: grant_id,
        }
        return jwt.encode(claims, key.private, algorithm="RS256", headers={"typ": "at+jwt", "kid": key.kid})

    def verify(self, token: str, now: datetime) -> Claims:
        """The claims of a token that we signed, for one of our resources, and that is neither expired nor of the
        future. Raises InvalidToken. Whether its grant is live is not checked."""
        if len(token) > LENGTH_MAX or not _is_canonical(token):
            raise InvalidToken("not a JWT in its one compact spelling")
        header = _header(token)
        for check_header in HEADER_CHECKS:
            check_header(header)
        key = self._ring.public_key(header["kid"], now=now)
        if key is None:
            raise InvalidToken("kid is unknown")
        try:
            # "The issuer identifier for the authorization server (which is typically obtained during discovery) MUST
            # exactly match the value of the 'iss' claim." RFC 9068 section 4
            # "The resource server MUST validate that the 'aud' claim contains a resource indicator value corresponding
            # to an identifier the resource server expects for itself." RFC 9068 section 4; ours name exactly one, and
            # which one has to be asked for each request
            payload = jwt.decode(token, key, algorithms=["RS256"], issuer=self.issuer, options=_OPTIONS)
        except (jwt.PyJWTError, RecursionError) as error:
            raise InvalidToken(f"refused by PyJWT: {type(error).__name__}") from error
        if _text(payload, "aud") not in self._audiences:
            raise InvalidToken("of another resource")
        for check_claims in CLAIM_CHECKS:
            check_claims(payload, int(aware(now).timestamp()))
        return _claims(payload, key_id=header["kid"])

    def still_holds(self, claims: Claims, now: datetime) -> bool:
        """Whether a token that `verify` accepted before has not expired, and its signing key is still accepted."""
        return now < claims.expires_at and self._ring.is_in_use(claims.key_id, now=now)


def key_is_chosen_by_us(header: Payload) -> None:
    """Raise InvalidToken unless the header's members are alg, typ and kid; with jwk, jku, x5u, x5c or crit others would
    choose the key (RFC 8725 sections 3.1 and 3.10)."""
    if header.keys() != {"alg", "typ", "kid"}:
        raise InvalidToken("header has other members than alg, typ and kid")


def type_is_access_token(header: Payload) -> None:
    """Raise InvalidToken for another type: "The resource server MUST verify that the 'typ' header value is 'at+jwt' or
    'application/at+jwt' and reject tokens carrying any other value." RFC 9068 section 4"""
    if header["typ"] not in ("at+jwt", "application/at+jwt"):
        raise InvalidToken("typ is not at+jwt")


def token_is_not_expired(payload: Payload, now: int) -> None:
    """Raise InvalidToken once the token's end has come: "The current time MUST be before the time represented by the
    'exp' claim." RFC 9068 section 4"""
    if now >= _seconds(payload, "exp"):
        raise InvalidToken("expired")


def token_is_valid_already(payload: Payload, now: int) -> None:
    """Raise InvalidToken where `iat`, or `nbf` if there is one, is more than `lifetimes.LEEWAY` ahead, by which the
    clocks of two machines may differ. Our own tokens have no `nbf`."""
    if max(_seconds(payload, name) for name in ("iat", "nbf") if name in payload) > now + lifetimes.LEEWAY.seconds:
        raise InvalidToken("not valid yet")


def scope_is_ours(payload: Payload, _now: int) -> None:
    """Raise InvalidToken for a scope that this server does not know, or none: nobody can have granted it."""
    scope = _text(payload, "scope")
    if scope_set(scope) is None or not {"", *ALL_SCOPES}.issuperset(scope.split(" ")):
        raise InvalidToken("scope is not ours")


HEADER_CHECKS: tuple[Callable[[Payload], None], ...] = (key_is_chosen_by_us, type_is_access_token)
CLAIM_CHECKS: tuple[Callable[[Payload, int], None], ...] = (
    token_is_not_expired,
    token_is_valid_already,
    scope_is_ours,
)


def _claims(payload: Payload, *, key_id: str) -> Claims:
    return Claims(
        user_id=_text(payload, "sub"),
        client_id=_text(payload, "client_id"),
        scopes=scope_set(_text(payload, "scope")) or frozenset(),
        grant_id=_text(payload, GRANT_CLAIM),
        issued_at=datetime.fromtimestamp(_seconds(payload, "iat"), UTC),
        expires_at=datetime.fromtimestamp(_seconds(payload, "exp"), UTC),
        token_id=_text(payload, "jti"),
        key_id=key_id,
        audience=_text(payload, "aud"),
    )


# Times are compared above, with the caller's clock, and the audience with our own
_OPTIONS: "jwt.types.Options" = {
    "require": sorted(CLAIMS),
    "verify_aud": False,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}


def _is_canonical(token: str) -> bool:
    """Whether the token is in its only canonical spelling: no padding, no stray bits, no odd characters."""
    try:
        return _COMPACT.fullmatch(token) is not None and all(
            base64url_encode(base64url_decode(segment)).decode() == segment for segment in token.split(".")
        )
    except ValueError:
        return False


def _header(token: str) -> dict[str, Any]:
    """The header of a token, before anything in it is trusted, read without PyJWT, which would parse the whole token
    here and again to verify it. Raises InvalidToken."""
    try:
        header = json.loads(base64url_decode(token.partition(".")[0]))
    except (ValueError, RecursionError) as error:
        raise InvalidToken("header is unreadable") from error
    if not isinstance(header, dict) or not isinstance(header.get("kid", ""), str):
        raise InvalidToken("header is unreadable")
    return header


def _seconds(payload: Payload, name: str) -> int:
    value = payload[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 36:
        raise InvalidToken(f"{name} is not a time")
    return value


def _text(payload: Payload, name: str) -> str:
    value = payload[name]
    if not isinstance(value, str) or not value:
        raise InvalidToken(f"{name} is not a text")
    return value
