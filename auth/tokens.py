"""Access tokens: signed JWTs of RFC 9068, issued here and believed only when every rule below holds."""

import base64
import binascii
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt

from auth.errors import InvalidToken
from auth.keys import KeyRing
from auth.scopes import scope_set, scope_text

LIFETIME = timedelta(hours=1)  # interface 5
LEEWAY_SECONDS = 5  # oauth.md 2.5: clocks of two machines
LENGTH_MAX = 4096  # ours have about 900 characters
GRANT_CLAIM = "grant_id"
CLAIMS = frozenset({"iss", "aud", "sub", "client_id", "scope", "iat", "exp", "jti", GRANT_CLAIM})

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What a good token says; whether its grant and user still stand is another question (`auth.access`)."""

    user_id: str
    client_id: str
    scopes: frozenset[str]
    grant_id: str
    issued_at: datetime
    expires_at: datetime
    token_id: str
    key_id: str


class AccessTokens:
    """Issues and verifies the access tokens of one issuer for one resource."""

    def __init__(self, ring: KeyRing, *, issuer: str, audience: str, lifetime: timedelta = LIFETIME) -> None:
        self._ring = ring
        self.issuer = issuer
        self.audience = audience
        self.lifetime = lifetime

    def issue(
        self,
        *,
        user_id: str,
        client_id: str,
        scopes: Iterable[str],
        grant_id: str,
        now: datetime,
        lifetime: timedelta | None = None,
    ) -> str:
        """A signed token (RFC 9068 sections 2.1 and 2.2); it carries no personal data."""
        issued_at = int(_utc(now).timestamp())
        key = self._ring.active()
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": user_id,
            "client_id": client_id,
            "scope": scope_text(scopes),
            "iat": issued_at,
            "exp": issued_at + int((lifetime or self.lifetime).total_seconds()),
            "jti": secrets.token_urlsafe(16),
            GRANT_CLAIM: grant_id,
        }
        return jwt.encode(claims, key.private, algorithm="RS256", headers={"typ": "at+jwt", "kid": key.kid})

    def verify(self, token: str, now: datetime) -> Claims:
        """The claims of a token that is ours, for us and in its time; raises InvalidToken."""
        header, payload = _parts(token)
        if header.keys() != {"alg", "typ", "kid"}:
            # No jwk, jku, x5u, x5c, crit: "the key is chosen by us alone" (RFC 8725 sections 3.1 and 3.10)
            raise InvalidToken("header has other members than alg, typ and kid")
        if header["alg"] != "RS256":
            raise InvalidToken("alg is not RS256")
        # "The resource server MUST verify that the 'typ' header value is 'at+jwt' or 'application/at+jwt'."
        # RFC 9068 section 4
        if header["typ"] not in ("at+jwt", "application/at+jwt"):
            raise InvalidToken("typ is not at+jwt")
        kid = header["kid"]
        key = self._ring.public_key(kid, now=now) if isinstance(kid, str) else None
        if key is None:
            raise InvalidToken("kid is unknown")
        try:
            # Times are compared below, with the caller's clock
            jwt.decode(token, key, algorithms=["RS256"], options=_SIGNATURE_ONLY)
        except jwt.PyJWTError as error:
            raise InvalidToken("signature is wrong") from error
        return self._claims(payload, int(_utc(now).timestamp()), key_id=str(kid))

    def still_holds(self, claims: Claims, now: datetime) -> bool:
        """Whether a token that was good once is still in its time and its key still in use."""
        return now < claims.expires_at and self._ring.public_key(claims.key_id, now=now) is not None

    def _claims(self, payload: dict[str, object], now: int, *, key_id: str) -> Claims:
        missing = CLAIMS - payload.keys()
        if missing:
            raise InvalidToken("claims are missing: " + ", ".join(sorted(missing)))
        # "The issuer identifier ... MUST exactly match the value of the 'iss' claim." RFC 9068 section 4
        if payload["iss"] != self.issuer:
            raise InvalidToken("iss is another issuer")
        # "The resource server MUST validate that the 'aud' claim contains a resource indicator value corresponding
        # to an identifier the resource server expects for itself." RFC 9068 section 4; ours name exactly one
        if payload["aud"] != self.audience:
            raise InvalidToken("aud is another resource")
        issued_at, expires_at = _seconds(payload, "iat"), _seconds(payload, "exp")
        # "The current time MUST be before the time represented by the 'exp' claim." RFC 9068 section 4
        if now >= expires_at:
            raise InvalidToken("expired")
        if issued_at > now + LEEWAY_SECONDS or ("nbf" in payload and _seconds(payload, "nbf") > now + LEEWAY_SECONDS):
            raise InvalidToken("not valid yet")
        scopes = scope_set(_text(payload, "scope"))
        if scopes is None:
            raise InvalidToken("scope is not ours")
        return Claims(
            user_id=_text(payload, "sub"),
            client_id=_text(payload, "client_id"),
            scopes=scopes,
            grant_id=_text(payload, GRANT_CLAIM),
            issued_at=datetime.fromtimestamp(issued_at, UTC),
            expires_at=datetime.fromtimestamp(expires_at, UTC),
            token_id=_text(payload, "jti"),
            key_id=key_id,
        )


_SIGNATURE_ONLY: "jwt.types.Options" = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
    "require": [],
}


def _parts(token: str) -> tuple[dict[str, object], dict[str, object]]:
    """Header and payload of a token in its one canonical spelling (no padding, no stray bits, no odd characters)."""
    if len(token) > LENGTH_MAX or not _COMPACT.fullmatch(token):
        raise InvalidToken("not a JWT in compact form")
    decoded = []
    for segment in token.split("."):
        try:
            raw = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
        except (ValueError, binascii.Error) as error:
            raise InvalidToken("not base64url") from error
        if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != segment:
            raise InvalidToken("not canonical base64url")
        decoded.append(raw)
    return _json_object(decoded[0]), _json_object(decoded[1])


def _json_object(raw: bytes) -> dict[str, object]:
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidToken("not JSON") from error
    if not isinstance(value, dict):
        raise InvalidToken("not a JSON object")
    return value


def _seconds(payload: dict[str, object], name: str) -> int:
    value = payload[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 36:
        raise InvalidToken(f"{name} is not a time")
    return value


def _text(payload: dict[str, object], name: str) -> str:
    value = payload[name]
    if not isinstance(value, str) or not value:
        raise InvalidToken(f"{name} is not a text")
    return value


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
