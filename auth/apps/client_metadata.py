"""Client metadata (RFC 7591): what an app states when it registers, and the client that the server makes of it."""

import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from auth.apps import redirects
from auth.errors import InvalidClientMetadata, InvalidRedirectUri, InvalidRequest
from auth.scopes import SCOPES, scope_text
from storage.oauth.clients import Client, RegisteredBy

NAME_LENGTH_MAX = 200
NAME_DEFAULT = "Unnamed app"
REDIRECT_URIS_MAX = 20
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)
URI_MEMBERS = ("client_uri", "logo_uri", "policy_uri", "tos_uri")
TEXT_MEMBERS = ("software_id", "software_version")
METHODS = ("none", "client_secret_post", "client_secret_basic")  # each is answered with none
_JOINERS = "\u200c\u200d"  # belong in emoji and several scripts


class ClientMetadata(Struct, frozen=True, kw_only=True):
    """The checked content of a registration request; `optional` are the members kept beyond name and redirect URIs."""

    name: str
    redirect_uris: tuple[str, ...]
    optional: dict[str, str]


def read_registration(document: object) -> ClientMetadata:
    """The metadata in the decoded JSON of a registration request, checked member by member; unknown members are left
    out (RFC 7591 section 2). An app without a name is called `Unnamed app`. Raises InvalidClientMetadata and
    InvalidRedirectUri."""
    if not isinstance(document, dict):
        raise InvalidClientMetadata("The body must be a JSON object.")
    redirect_uris = _redirect_uris(document)
    _refuse_other_kinds(document)
    return ClientMetadata(name=_name(document), redirect_uris=redirect_uris, optional=_optional_members(document))


def _name(document: Mapping[str, Any]) -> str:
    name = document.get("client_name")
    if name is None:
        return NAME_DEFAULT
    return _text("client_name", name).strip() or NAME_DEFAULT


def _redirect_uris(document: Mapping[str, Any]) -> tuple[str, ...]:
    # "clients using flows with redirection MUST register their redirection URI values." RFC 7591 section 2
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) for uri in uris):
        raise InvalidRedirectUri("redirect_uris must be a list with at least one URI.")
    if len(uris) > REDIRECT_URIS_MAX:
        raise InvalidRedirectUri(f"redirect_uris must not have more than {REDIRECT_URIS_MAX} entries.")
    for uri in uris:
        reason = redirects.fault(uri)
        if reason:
            raise InvalidRedirectUri(reason)
    return tuple(uris)


def _refuse_other_kinds(document: Mapping[str, Any]) -> None:
    """Raise InvalidClientMetadata for a client that does not use authorization codes, that wants to authenticate by
    more than a secret, or whose scope is no text. A secret, further grant and response types and foreign scopes are no
    fault: "The authorization server MAY reject or replace any of the client's requested metadata values" (RFC 7591
    section 3.2.1)."""
    _check_supported(document, "grant_types", needed="authorization_code")
    _check_supported(document, "response_types", needed="code")
    method = document.get("token_endpoint_auth_method")
    if method not in (None, "", *METHODS):
        raise InvalidClientMetadata("token_endpoint_auth_method must be none: clients are public and use PKCE.")
    if not isinstance(document.get("scope", ""), str | None):
        raise InvalidClientMetadata("scope must be a text.")


def _check_supported(document: Mapping[str, Any], member: str, *, needed: str) -> None:
    values = document.get(member)
    if values is None:
        return
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidClientMetadata(f"{member} must be a list of texts.")
    if values and needed not in values:
        raise InvalidClientMetadata(f"{member} must contain {needed}.")


def _optional_members(document: Mapping[str, Any]) -> dict[str, str]:
    kept: dict[str, str] = {}
    stated = {member: value for member, value in document.items() if value not in (None, "")}  # empty ones as if absent
    for member in URI_MEMBERS:
        if member in stated:
            kept[member] = _web_address(member, stated[member])
    for member in TEXT_MEMBERS:
        if member in stated:
            kept[member] = _text(member, stated[member])
    kind = stated.get("application_type")
    if kind is not None:
        if kind not in ("web", "native"):
            raise InvalidClientMetadata("application_type must be web or native.")
        kept["application_type"] = kind
    return kept


def _text(member: str, value: object) -> str:
    """The value unchanged, if it is a text that can be shown to a person: at most 200 characters, without control
    characters or marks that change the direction of writing. Raises InvalidClientMetadata."""
    if not isinstance(value, str):
        raise InvalidClientMetadata(f"{member} must be a text.")
    if len(value) > NAME_LENGTH_MAX:
        raise InvalidClientMetadata(f"{member} must not be longer than {NAME_LENGTH_MAX} characters.")
    if any(
        unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
        for letter in value
        if letter not in _JOINERS
    ):
        raise InvalidClientMetadata(f"{member} must not have control characters.")
    return value


def _web_address(member: str, value: object) -> str:
    """The value unchanged, if it is an http or https address without user name; it is repeated in answers and never
    fetched. Raises InvalidClientMetadata."""
    if not isinstance(value, str) or len(value) > redirects.LENGTH_MAX:
        raise InvalidClientMetadata(f"{member} must be a web address.")
    try:
        parts = urlsplit(value)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        usable = False
    if not usable or any(ord(letter) <= 32 or letter in "\\<>\"'`" or ord(letter) >= 127 for letter in value):
        raise InvalidClientMetadata(f"{member} must be a web address.")
    return value


def registration_answer(client: Client) -> dict[str, Any]:
    """The body of the answer to a registration: all registered metadata (RFC 7591 section 3.2.1), without a secret, as
    clients are public.

    Every client is registered for the scopes of SCOPES: the scope of a registration is no ceiling, or step-up would be
    impossible for clients that register with the scope of their first challenge (oauth.md 2.4).
    """
    return {
        "client_id": client.id,
        "client_id_issued_at": int(client.created_at.timestamp()),
        "client_name": client.name,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(GRANT_TYPES),
        "response_types": list(RESPONSE_TYPES),
        "token_endpoint_auth_method": "none",
        "scope": scope_text(SCOPES),
        **client.metadata,
    }


def checked_client(name: str, *, redirect_uris: Sequence[str] | None = None) -> ClientMetadata:
    """The metadata of a client that a command or page adds, checked by the same rules as a registration; without
    `redirect_uris`, it has only a name, which must not be empty. Raises InvalidRequest, InvalidClientMetadata and
    InvalidRedirectUri."""
    if not name.strip():
        raise InvalidRequest("The client needs a name.")
    uris = _redirect_uris({"redirect_uris": list(redirect_uris)}) if redirect_uris is not None else ()
    return ClientMetadata(name=_name({"client_name": name}), redirect_uris=uris, optional={})


def new_client(metadata: ClientMetadata, *, client_id: str, registered_by: RegisteredBy, now: datetime) -> Client:
    """A client with this id and metadata, not stored yet."""
    return Client(
        id=client_id,
        name=metadata.name,
        redirect_uris=metadata.redirect_uris,
        metadata=dict(metadata.optional),
        registered_by=registered_by,
        created_at=now,
    )
