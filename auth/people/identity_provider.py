"""The household's own provider, as a relying party of OpenID Connect Core 1.0 sees it: metadata, keys, tokens.

Two hundred lines over PyJWT, which checks the signature. A client library would bring its own HTTP, sessions and
discovery of keys, and none of them bounds all three.
"""

import base64
import hashlib
import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeGuard
from urllib.parse import quote_plus, urlencode, urlsplit

import jwt

from analytics.records import Discreet
from auth import lifetimes
from auth.instants import Now
from auth.people.provider_metadata import (
    AskProvider,
    Claims,
    ProviderAway,
    ProviderMetadata,
    ProviderQuery,
    ProviderRefused,
    ProviderSettings,
    discover,
    document,
    members,
    word,
)
from auth.security_events import Events

TOKEN_LENGTH_MAX = 16_384
SUBJECT_LENGTH_MAX = 255  # "It MUST NOT exceed 255 ASCII [RFC20] characters in length." Core section 2
KEYS_MAX = 100
KEY_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms whose signatures count, all asymmetric, with the kind of key of each: whoever knows a public key or
the client's secret must not be able to sign."""
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class Answered(Discreet, frozen=True, kw_only=True):
    """The claims of a valid ID token, and a function that gives one more claim, from userinfo where it has not come."""

    claims: Claims
    claim: Callable[[str], Any]


class IdentityProvider:
    """Asks the provider, and believes what is proven; safe from any thread."""

    def __init__(
        self, settings: ProviderSettings, ask: AskProvider, *, redirect_uri: str, events: Events, now: Now
    ) -> None:
        self.settings = settings
        self._ask = ask
        self._redirect_uri = redirect_uri
        self._events = events
        self._now = now
        self._lock = threading.Lock()
        self._metadata: tuple[ProviderMetadata, datetime] | None = None
        self._keys: tuple[list[Claims], datetime] | None = None
        self._away_at: datetime | None = None

    def metadata(self) -> ProviderMetadata:
        """What the provider says of itself, asked for when first needed and once an hour. Raises ProviderAway."""
        with self._lock:
            if self._metadata is None or not self._is_young(self._metadata[1]):
                self._check_there()
                try:
                    self._metadata = (discover(self.settings.issuer, self._ask), self._now())
                except ProviderAway:
                    self._away_at = self._now()
                    raise
            return self._metadata[0]

    def _check_there(self) -> None:
        if self._away_at is not None and abs(self._now() - self._away_at) < lifetimes.PROVIDER_PAUSE:
            raise ProviderAway("it was away a moment ago")  # else all who sign in would wait, one by one

    def address(self, *, state: str, nonce: str, verifier: str, is_proof: bool) -> str:
        """Where to send a browser so that its person signs in (Core section 3.1.2.1, RFC 7636), anew if it `is_proof`.
        Raises ProviderAway."""
        about = self.metadata()
        wanted = ["openid", "profile", *({self.settings.groups_claim} & about.scopes)]
        parameters = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self._redirect_uri,
            "scope": " ".join(wanted),
            "state": state,
            "nonce": nonce,
            "code_challenge": _base64(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
            **({"prompt": "login", "max_age": "0"} if is_proof else {}),
        }
        return with_query(about.authorization, parameters)

    def check_response(self, iss: str | None) -> None:
        """Raise ProviderRefused for a response of another issuer, or of none where the provider promises to name itself
        (RFC 9207 section 2.4)."""
        about = self.metadata()
        if iss != about.issuer if iss is not None else about.promises_iss:
            raise ProviderRefused("the response is of another issuer")

    def redeem(self, code: str, *, nonce: str, verifier: str) -> Answered:
        """What the ID token says for which the provider exchanges a code. Raises ProviderRefused and ProviderAway."""
        settings, about = self.settings, self.metadata()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._redirect_uri,
            "code_verifier": verifier,
        }
        headers = {}
        if settings.client_secret and not about.takes_post:
            pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"  # RFC 6749 section 2.3.1
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = settings.client_id
            if settings.client_secret:
                form["client_secret"] = settings.client_secret
        reply = self._ask(ProviderQuery(address=about.token, form=form, headers=headers))
        answer = members(reply, "token answer")
        if reply.status != 200:
            raise ProviderRefused(f"the token endpoint said {reply.status} {word(answer.get('error'))}")
        claims = self.verify_id_token(answer.get("id_token"), nonce=nonce)
        access, told = answer.get("access_token"), dict[str, Any]()

        def claim(name: str) -> Any:
            if name not in claims and not told and about.userinfo and isinstance(access, str):
                told.update(self._userinfo(about.userinfo, access, claims["sub"]))
            return claims.get(name, told.get(name))

        return Answered(claims=claims, claim=claim)

    def verify_id_token(self, token: object, *, nonce: str) -> Claims:
        """The claims of an ID token for this client and this sign-in (Core section 3.1.3.7). Raises ProviderRefused and
        ProviderAway."""
        claims = self._verified(token, kinds=("jwt",))
        self._check_times(claims, must_end=True)
        if claims.get("nonce") != nonce:
            raise ProviderRefused("the nonce is another one")
        _subject(claims)
        return claims

    def verify_logout_token(self, token: object) -> Claims:
        """The claims of a logout token for this client (Back-Channel Logout 1.0 section 2.6); whether it came before,
        its `jti` tells the caller. Raises ProviderRefused and ProviderAway."""
        claims = self._verified(token, kinds=("jwt", "logout+jwt"))
        self._check_times(claims, must_end=False)
        if self._now().timestamp() - claims["iat"] > (lifetimes.ERRAND + lifetimes.PROVIDER_LEEWAY).total_seconds():
            raise ProviderRefused("a logout token of long ago")
        events = claims.get("events")
        if not isinstance(events, dict) or not isinstance(events.get(LOGOUT_EVENT), dict) or "nonce" in claims:
            raise ProviderRefused("no logout token")
        if not isinstance(claims.get("jti"), str) or not ("sid" in claims or "sub" in claims):
            raise ProviderRefused("a logout token without jti, or of nobody")
        for name in ("sub", "sid"):
            if name in claims and not isinstance(claims[name], str):
                raise ProviderRefused(f"{name} is no text")
        return claims

    def _verified(self, token: object, *, kinds: tuple[str, ...]) -> Claims:
        """The claims of a token that the provider has signed for this client; its times are not checked yet."""
        if not isinstance(token, str) or len(token) > TOKEN_LENGTH_MAX:
            raise ProviderRefused("no token, or too long a one")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, RecursionError, ValueError) as error:
            raise ProviderRefused("no JWT") from error
        algorithm, kind = header.get("alg"), str(header.get("typ", "JWT")).lower()
        if algorithm not in KEY_KINDS or algorithm not in self.metadata().algorithms:
            raise ProviderRefused(f"signed by {word(algorithm)}")
        if "crit" in header or kind.removeprefix("application/") not in kinds:
            raise ProviderRefused(f"a token of kind {word(kind)}")
        key = self._key(header.get("kid"), algorithm)
        try:
            claims: Claims = _SIGNATURES.decode(token, key, algorithms=[algorithm], options=_SIGNATURE_ALONE)
        except (jwt.PyJWTError, RecursionError, ValueError) as error:
            raise ProviderRefused(f"refused by PyJWT: {type(error).__name__}") from error
        if claims.get("iss") != self.metadata().issuer:
            raise ProviderRefused("of another issuer")
        client, audiences = self.settings.client_id, claims.get("aud")
        audiences = [audiences] if isinstance(audiences, str) else audiences
        if not isinstance(audiences, list) or client not in audiences:
            raise ProviderRefused("for another client")
        if claims.get("azp", client if len(audiences) == 1 else None) != client:
            raise ProviderRefused("for several clients, or asked for by another one")
        return claims

    def _check_times(self, claims: Claims, *, must_end: bool) -> None:
        now, leeway = self._now().timestamp(), lifetimes.PROVIDER_LEEWAY.total_seconds()
        issued, ends, begins = (claims.get(name) for name in ("iat", "exp", "nbf"))
        if not _is_number(issued) or not (_is_number(ends) or (ends is None and not must_end)):
            raise ProviderRefused("no times")
        if issued - now > leeway or (begins is not None and not (_is_number(begins) and begins - now <= leeway)):
            self._events.alarm("the clock of the provider is ahead of ours", seconds=str(int(issued - now)))
            raise ProviderRefused("of the future")
        if ends is not None and now - ends >= leeway:
            self._events.alarm(
                "what the provider sent had expired, or our clock is ahead", seconds=str(int(now - ends))
            )
            raise ProviderRefused("expired")

    def _key(self, kid: object, algorithm: str) -> jwt.PyJWK:
        """The key of this id that may have signed by this algorithm; without an id, the only one. An unknown one makes
        the provider be asked for its keys anew, once a minute."""
        for is_anew in (False, True):
            found = [
                each
                for each in self._jwks(is_anew=is_anew)
                if each.get("kty") == KEY_KINDS[algorithm]
                and each.get("use", "sig") == "sig"
                and each.get("alg", algorithm) == algorithm
                and (kid is None or each.get("kid") == kid)
            ]
            if found:
                break
        if len(found) != 1:
            raise ProviderRefused("the key is unknown" if not found else "which of the keys is not said")
        try:
            return jwt.PyJWK(dict(found[0]), algorithm=algorithm)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise ProviderRefused(f"the key cannot be used: {type(error).__name__}") from error

    def _jwks(self, *, is_anew: bool) -> list[Claims]:
        address = self.metadata().keys
        with self._lock:
            if self._keys is not None and self._is_young(self._keys[1]):
                age = self._now() - self._keys[1]
                if not is_anew or age < lifetimes.PROVIDER_KEYS_EVERY:
                    return self._keys[0]
            self._check_there()
            try:
                keys = document(self._ask(ProviderQuery(address=address)), "key set").get("keys")
                if not isinstance(keys, list) or len(keys) > KEYS_MAX:
                    raise ProviderAway("the key set has no keys, or too many")
            except ProviderAway:
                self._away_at = self._now()
                raise
            self._keys = ([each for each in keys if isinstance(each, dict)], self._now())
            return self._keys[0]

    def _userinfo(self, address: str, access_token: str, subject: str) -> Claims:
        """What userinfo says of this subject: "The sub Claim in the UserInfo Response MUST be verified to exactly match
        the sub Claim in the ID Token; if they do not match, the UserInfo Response values MUST NOT be used." Core
        section 5.3.2"""
        if not access_token.isascii() or not access_token.isprintable():
            raise ProviderRefused("no access token")
        reply = self._ask(ProviderQuery(address=address, headers={"Authorization": f"Bearer {access_token}"}))
        said = members(reply, "userinfo")
        if reply.status != 200 or said.get("sub") != subject:
            raise ProviderRefused("userinfo is of somebody else, or refused")
        return said

    def _is_young(self, since: datetime) -> bool:
        return abs(self._now() - since) < lifetimes.PROVIDER_DOCUMENTS


_SIGNATURES = jwt.PyJWT(options={"enforce_minimum_key_length": True})
_SIGNATURE_ALONE: Any = {
    "verify_signature": True,
    **{f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")},
    "require": [],
}


def with_query(address: str, parameters: Mapping[str, str]) -> str:
    """The address with these parameters added to its query."""
    return f"{address}{'&' if urlsplit(address).query else '?'}{urlencode(parameters)}"


def _subject(claims: Claims) -> str:
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= SUBJECT_LENGTH_MAX or not subject.isprintable():
        raise ProviderRefused("no subject")
    return subject


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
