"""A provider of OpenID Connect that a test may make lie, and what a person's browser does at it."""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from auth.people.provider_metadata import ProviderQuery, ProviderReply, ProviderSettings
from storage.oauth.moments import aware
from tests.oauth.conftest import Browser, Clock, World, parameters

ISSUER = "https://id.example/home"
CLIENT = "bankdata"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SETTINGS: dict[str, Any] = {"issuer": ISSUER, "client_id": CLIENT, "client_secret": "s3cret", "name": "Authelia"}


def jwk(key: rsa.RSAPrivateKey, kid: str, **more: Any) -> dict[str, Any]:
    numbers = key.public_key().public_numbers()
    n, e = (
        base64.urlsafe_b64encode(number.to_bytes((number.bit_length() + 7) // 8, "big")).rstrip(b"=").decode()
        for number in (numbers.n, numbers.e)
    )
    made = {"kty": "RSA", "n": n, "e": e}
    return {**made, "kid": kid, "use": "sig", **more}


def as_json(content: Any, status: int = 200) -> ProviderReply:
    return ProviderReply(status=status, media_type="application/json", body=json.dumps(content).encode())


@dataclass
class Provider:
    """What a test changes here is what the provider says; `lies` gets the claims of a token before it is signed."""

    clock: Clock = field(default_factory=Clock)
    subject: str = "248289761001"
    claims: dict[str, Any] = field(default_factory=lambda: {"preferred_username": "eva"})
    userinfo: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [jwk(KEY, "k1")])
    lies: Callable[[dict[str, Any]], Any] = lambda _claims: None
    sign: Callable[[dict[str, Any]], str] = lambda claims: signed(claims)
    replies: dict[str, Any] = field(default_factory=dict)
    asked: list[ProviderQuery] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    signed_in_at: int | None = None

    def __call__(self, query: ProviderQuery) -> ProviderReply:
        self.asked.append(query)
        name = urlsplit(query.address).path.removeprefix("/home/")
        if name in self.replies:
            reply = self.replies[name]
            if isinstance(reply, Exception):
                raise reply
            return reply if isinstance(reply, ProviderReply) else as_json(reply)
        answers: dict[str, Callable[[], Any]] = {
            ".well-known/openid-configuration": self._metadata,
            "keys": lambda: {"keys": self.keys},
        }
        if name == "token":
            return self._token(query)
        if name == "me":
            return as_json({"sub": self.subject, **self.userinfo})
        return as_json(answers[name]())

    def sends_back(self, address: str) -> dict[str, str]:
        """The parameters with which the browser comes back from this address, whose person signed in."""
        asked = parameters(address)
        code = f"c{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"], "iss": ISSUER}

    def logout_token(self, **changed: Any) -> str:
        now = self._now()
        claims = {
            "iss": ISSUER,
            "aud": CLIENT,
            "iat": now,
            "exp": now + 120,
            "jti": "j1",
            "sub": self.subject,
            "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
        }
        return signed({name: value for name, value in {**claims, **changed}.items() if value is not None})

    def _metadata(self) -> dict[str, Any]:
        said = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/auth",
            "token_endpoint": f"{ISSUER}/token",
            "jwks_uri": f"{ISSUER}/keys",
            "userinfo_endpoint": f"{ISSUER}/me",
            "end_session_endpoint": f"{ISSUER}/end",
            "authorization_response_iss_parameter_supported": True,
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
            "scopes_supported": ["openid", "profile", "groups"],
        }
        return {name: value for name, value in {**said, **self.metadata}.items() if value is not None}

    def _token(self, query: ProviderQuery) -> ProviderReply:
        form = dict(query.form or {})
        asked = self.codes.pop(form["code"], None)
        if asked is None:
            return as_json({"error": "invalid_grant"}, 400)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if (challenge, form["redirect_uri"]) != (asked["code_challenge"], asked["redirect_uri"]):
            return as_json({"error": "invalid_grant"}, 400)
        now = self._now()
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": CLIENT,
            "sub": self.subject,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            "sid": "there-1",
            "auth_time": now if self.signed_in_at is None else self.signed_in_at,
            **self.claims,
        }
        self.lies(claims)
        return as_json({"id_token": self.sign(claims), "access_token": "at", "token_type": "Bearer"})

    def _now(self) -> int:
        return int(aware(self.clock()).timestamp())


def signed(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", **header: Any) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers={"kid": "k1", **header})


def to_provider(browser: Browser, **more: str) -> str:
    """The address to which the button of the sign-in page sends this browser."""
    answer = browser.client.get("/oauth/oidc", params=more)
    assert answer.status_code == 303, answer.text
    address: str = answer.headers["location"]
    return address


def comes_back(browser: Browser, provider: Provider, address: str, **changed: str | None) -> Any:
    """What the browser gets that comes back from this address; a value of None leaves a parameter out."""
    sent = {**provider.sends_back(address), **changed}
    query = urlencode({name: value for name, value in sent.items() if value is not None})
    return browser.client.get(f"/oauth/oidc/callback?{query}")


def signs_in(world: World, provider: Provider, **changed: str | None) -> tuple[Browser, Any]:
    """A new browser that has signed in at the provider, and what it got."""
    browser = world.browser()
    return browser, comes_back(browser, provider, to_provider(browser), **changed)


def is_in(browser: Browser) -> bool:
    return bool(browser.client.get("/account").status_code == 200)


def linked(world: World, provider: Provider) -> None:
    """Alice is linked to whom the provider says is signed in."""
    assert world.server.provider is not None
    assert world.server.provider.link_subject(world.user.id, provider.subject) is None


def settings(**changed: Any) -> ProviderSettings:
    return ProviderSettings(**{**SETTINGS, **changed})
