"""What the household's provider says of itself (OpenID Connect Discovery 1.0), and how it is asked."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from analytics.records import Discreet

LOOPBACK = ("127.0.0.1", "localhost")

Claims = Mapping[str, Any]


class ProviderSettings(Discreet, frozen=True, kw_only=True):
    """The operator's decisions about the provider; without `client_secret` the client is a public one. People come in
    who have one of `groups` in the claim `groups_claim`, everybody where that is empty. `takes_new_people` makes users
    of people who are unknown here; with `is_only`, passwords and passkeys let nobody in."""

    issuer: str
    client_id: str
    client_secret: str = ""
    name: str = ""
    groups_claim: str = ""
    groups: frozenset[str] = frozenset()
    takes_new_people: bool = False
    is_only: bool = False


class ProviderQuery(Discreet, frozen=True, kw_only=True):
    """A request to the provider: a POST where there is a `form`, else a GET."""

    address: str
    form: Mapping[str, str] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class ProviderReply(Discreet, frozen=True, kw_only=True):
    """An answer of the provider, neither a redirect nor a fault of its server; the media type without parameters."""

    status: int
    media_type: str
    body: bytes


AskProvider = Callable[[ProviderQuery], ProviderReply]
"""A function that asks the provider, within bounds of time and size. Raises ProviderAway."""


class ProviderAway(Exception):
    """The provider cannot be reached, or says of itself what cannot be used; the reason is for the log."""


class ProviderRefused(Exception):
    """What the provider sent proves nothing, or it refused; the reason is for the log."""


class ProviderMetadata(Struct, frozen=True, kw_only=True):
    """What the provider says of itself (Discovery 1.0 section 3)."""

    issuer: str
    authorization: str
    token: str
    keys: str
    userinfo: str
    end_session: str
    algorithms: frozenset[str]
    scopes: frozenset[str]
    promises_iss: bool  # RFC 9207
    takes_post: bool  # the client's secret in the form, where not by HTTP Basic


def discover(issuer: str, ask: AskProvider) -> ProviderMetadata:
    """The metadata of this issuer, whose name may end with a slash or not. Raises ProviderAway."""
    issuer = issuer.removesuffix("/")
    said = document(ask(ProviderQuery(address=f"{issuer}/.well-known/openid-configuration")), "metadata")
    if not isinstance(said.get("issuer"), str) or said["issuer"].removesuffix("/") != issuer:
        raise ProviderAway("the metadata name another issuer")
    is_loopback = _host(issuer) in LOOPBACK and issuer.startswith("http:")
    addresses = {
        name: _endpoint(said, name, is_loopback=is_loopback)
        for name in (
            "authorization_endpoint",
            "token_endpoint",
            "jwks_uri",
            "userinfo_endpoint",
            "end_session_endpoint",
        )
    }
    if not all(addresses[name] for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")):
        raise ProviderAway("the metadata lack an endpoint, or one is not https")
    methods = _texts(said, "token_endpoint_auth_methods_supported") or {"client_secret_basic"}
    return ProviderMetadata(
        issuer=said["issuer"],
        authorization=addresses["authorization_endpoint"],
        token=addresses["token_endpoint"],
        keys=addresses["jwks_uri"],
        userinfo=addresses["userinfo_endpoint"],
        end_session=addresses["end_session_endpoint"],
        algorithms=_texts(said, "id_token_signing_alg_values_supported") or frozenset({"RS256"}),
        scopes=_texts(said, "scopes_supported"),
        promises_iss=said.get("authorization_response_iss_parameter_supported") is True,
        takes_post="client_secret_post" in methods and "client_secret_basic" not in methods,
    )


def document(reply: ProviderReply, what: str) -> dict[str, Any]:
    """The JSON object of an answer with status 200. Raises ProviderAway."""
    if reply.status != 200:
        raise ProviderAway(f"the {what} came with status {reply.status}")
    try:
        return members(reply, what)
    except ProviderRefused as error:
        raise ProviderAway(str(error)) from error


def members(reply: ProviderReply, what: str) -> dict[str, Any]:
    """The JSON object of an answer. Raises ProviderRefused."""
    is_json = reply.media_type.endswith(("/json", "+json"))
    try:
        said = json.loads(reply.body) if is_json else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise ProviderRefused(f"the {what} is no JSON object")
    return said


def _endpoint(said: Claims, name: str, *, is_loopback: bool) -> str:
    """The address of an endpoint; empty where there is none that may be used: https, or on this machine if the issuer
    is there."""
    address = said.get(name)
    if not isinstance(address, str) or not address.isascii() or not address.isprintable() or " " in address:
        return ""
    try:
        parts = urlsplit(address)
        host = _host(address)
    except ValueError:
        return ""
    is_guarded = parts.scheme == "https" or (parts.scheme == "http" and is_loopback and host in LOOPBACK)
    return address if is_guarded and host and "@" not in parts.netloc and not parts.fragment else ""


def _host(address: str) -> str:
    return urlsplit(address).hostname or ""


def _texts(said: Claims, name: str) -> frozenset[str]:
    listed = said.get(name)
    return frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset()


def word(value: object) -> str:
    """A text of the provider for the log: short, and without anything that could look like another line."""
    return "".join(letter for letter in str(value)[:40] if letter.isalnum() or letter in "_-+./")
