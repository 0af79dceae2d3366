"""Apps whose client id is the address of a document about them (OAuth Client ID Metadata Documents): which documents
are fetched, how they are checked, and how long they are remembered."""

import re
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec import Struct
from msgspec.structs import replace

from auth import lifetimes
from auth.apps.client_metadata import new_client, read_registration
from auth.errors import InvalidClientMetadata, OAuthError
from auth.instants import Now
from auth.policy import Policy
from auth.security_events import Events
from storage.database import Database, Session
from storage.oauth import clients
from storage.oauth.clients import Client

LENGTH_MAX = 200  # characters of the address, which serves as client id
NO_SECRET = "none"  # noqa: S105 - the name of the method
REMEMBERED_MAX = 1_000
MEDIA_TYPES = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json")
_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?@!$&'()*+,;=%\[\]]+", re.ASCII)
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?([0-9]{1,9})")


class Document(Struct, frozen=True, kw_only=True):
    """The document that was fetched from an address. `cache_control` is the header Cache-Control in lower case."""

    body: bytes
    media_type: str
    cache_control: str


Fetch = Callable[[str], Document]
"""A function that fetches the document at an address. Raises DocumentRefused."""


class DocumentRefused(Exception):
    """The document of an app cannot be fetched or used; the message says why, in a sentence."""


def is_document_address(client_id: str) -> bool:
    """Whether a client id is an address from which a document may be fetched, and at most 200 characters long: "Client
    identifier URLs MUST have an "https" scheme, MUST contain a path component, MUST NOT contain single-dot or
    double-dot path segments, MUST NOT contain a fragment component and MUST NOT contain a username or password"
    (draft-ietf-oauth-client-id-metadata-document section 3)."""
    if not client_id.startswith("https://") or len(client_id) > LENGTH_MAX or not _CHARACTERS.fullmatch(client_id):
        return False
    try:
        parts = urlsplit(client_id)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    segments = re.sub("%2e", ".", parts.path, flags=re.IGNORECASE).split("/")
    return bool(host) and "@" not in parts.netloc and parts.path not in ("", "/") and not {".", ".."} & set(segments)


class ClientDocuments:
    """Fetches the documents by which apps without a registration describe themselves, and stores them as clients."""

    def __init__(self, database: Database, policy: Policy, fetch: Fetch | None, events: Events, now: Now) -> None:
        self._database = database
        self._policy = policy
        self._fetch = fetch
        self._events = events
        self._now = now
        self._lock = threading.Lock()
        self._until: dict[str, datetime] = {}

    def serves(self, client_id: str) -> bool:
        """Whether a document would be fetched for this client id: an address, of a host that the operator allows."""
        return is_document_address(client_id) and self._policy.takes_document_of(urlsplit(client_id).hostname or "")

    def client(self, client_id: str) -> Client:
        """The app as its document describes it, stored as a client: fetched now, or remembered for as long as
        `lifetime` says. The caller knows that this id `serves`. Raises DocumentRefused, which is logged.

        Errors are never remembered. Where the document has changed, open authorization requests of the app are deleted.
        """
        assert self._fetch is not None, "only of those that are served"
        now = self._now()
        known = clients.find(self._database, client_id)
        if known is not None and now < self._until.get(client_id, now):
            return known
        try:
            document = self._fetch(client_id)
            client = client_of_document(client_id, document, now=now)
        except DocumentRefused as refused:
            self._events.alarm("client document refused", client=client_id, reason=str(refused))
            raise
        kept = self._database.atomically(lambda session: _store(session, client))
        with self._lock:
            if len(self._until) >= REMEMBERED_MAX:
                self._until.clear()
            self._until[client_id] = now + lifetime(document.cache_control)
        return kept


def client_of_document(client_id: str, document: Document, *, now: datetime) -> Client:
    """The client that a document describes, not stored. Raises DocumentRefused for a document that is no JSON object,
    is about another client id, holds a secret, or would be refused as a registration."""
    if not MEDIA_TYPES.fullmatch(document.media_type):
        raise DocumentRefused("It is not sent as JSON.")
    try:
        content: Any = orjson.loads(document.body)
    except ValueError:
        raise DocumentRefused("It is not JSON.") from None
    if not isinstance(content, dict):
        raise DocumentRefused("It is not a JSON object.")
    if content.get("client_id") != client_id:
        raise DocumentRefused("It is about another client_id.")
    if any(name.startswith("client_secret") for name in content):
        raise DocumentRefused("It holds a secret, which everybody could read.")
    if "token_endpoint_auth_method" in content and content["token_endpoint_auth_method"] != NO_SECRET:
        raise DocumentRefused("token_endpoint_auth_method must be none.")
    try:
        metadata = read_registration(content)
    except (InvalidClientMetadata, OAuthError) as error:
        raise DocumentRefused(error.description) from None
    return new_client(metadata, client_id=client_id, registered_by="document", now=now)


def lifetime(cache_control: str) -> timedelta:
    """How long a document with this Cache-Control header is remembered: its max-age, but at least five minutes and at
    most a day; five minutes if the header says nothing, no-store or no-cache."""
    stated = _MAX_AGE.search(cache_control)
    if stated is None or "no-store" in cache_control or "no-cache" in cache_control:
        return lifetimes.CLIENT_DOCUMENT_MIN
    return min(max(timedelta(seconds=int(stated[1])), lifetimes.CLIENT_DOCUMENT_MIN), lifetimes.CLIENT_DOCUMENT_MAX)


def _store(session: Session, client: Client) -> Client:
    known = clients.find(session, client.id)
    if known is None:
        clients.add(session, client)
        return client
    changed = replace(known, name=client.name, redirect_uris=client.redirect_uris, metadata=client.metadata)
    if changed != known:
        clients.describe_anew(session, changed)
    return changed
