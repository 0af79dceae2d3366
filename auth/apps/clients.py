"""The registered apps: who may register one, how many, and those of the operator and of this server (RFC 7591)."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import IPv6Network, ip_network

from msgspec.structs import replace

from auth.apps.client_metadata import checked_client, new_client, read_registration
from auth.errors import OAuthError, RegistrationClosed, RegistrationTokenWrong, TemporarilyUnavailable
from auth.instants import Now
from auth.policy import Policy
from auth.principal import PAGE as PAGE
from auth.secret_text import is_same, keyed_hash, new_client_id
from auth.security_events import Events
from auth.tokens.grants import Grants
from storage.database import Database, Session
from storage.oauth import clients
from storage.oauth.clients import Client

SELF_REGISTERED_MAX = 10_000  # at the limit a client without a grant goes, preferably one that nobody ever allowed
NETWORK_PREFIX_BITS = 48  # what a provider gives one customer: 65,536 times the /64 that counts as one address
NETWORK_SHARE = 5  # a network may register as many clients as five addresses
BUILTIN = "bankdata-command-line"
DOCUMENTATION = "bankdata-documentation"
DOCUMENTATION_REDIRECT = "/docs/oauth2-redirect.html"  # below the public address
PAGE_REDIRECT = "/signed-in"  # below the public address


class ClientUnknown(Exception):
    """There is no client with this id."""


class Clients:
    """Registers, finds and removes the clients of the authorization server."""

    def __init__(
        self,
        database: Database,
        grants: Grants,
        policy: Policy,
        events: Events,
        secret: Callable[[str], bytes],
        now: Now,
    ) -> None:
        self._database = database
        self._grants = grants
        self._policy = policy
        self._events = events
        self._addresses_key = secret("addresses")
        self._registration_key = secret("registration")
        self._now = now
        self._registering = threading.Lock()  # counting and adding are one step in this process

    def register(self, document: object, *, address: str, bearer: str | None) -> Client:
        """Register a client by its own request (RFC 7591 section 3), and return it; logs that, or the refusal. Raises
        OAuthError where registration is closed, `bearer` is not the required token, the document is not acceptable, or
        the address or its network has registered too many clients.

        Where SELF_REGISTERED_MAX clients have registered themselves, the idlest one without a grant is removed to make
        room; if each has a grant, OAuthError is raised, too.
        """
        try:
            client = self._register(document, address, bearer)
        except OAuthError as error:
            self._events.alarm("registration refused", address=address, reason=error.code)
            raise
        self._events.info("client registered", address=address, client=client.id)
        return client

    def initial_token(self) -> str:
        """The lasting initial access token that `register` requires in the mode `token` (RFC 7591 section 3)."""
        return keyed_hash(self._registration_key, "initial access token")

    def find(self, client_id: str) -> Client | None:
        """The client with this id; None where it is not registered, also for a text that cannot be an id."""
        return clients.find(self._database, client_id) if is_storable(client_id) else None

    def all(self) -> list[Client]:
        """All registered clients, the first registered first."""
        return clients.list_all(self._database)

    def add(self, name: str, redirect_uris: tuple[str, ...]) -> Client:
        """Register a client for the operator, which no cleanup removes, and return it. Raises OAuthError for a name or
        a redirect URI that cannot be used."""
        metadata = checked_client(name, redirect_uris=redirect_uris)
        client = new_client(metadata, client_id=new_client_id(), registered_by="operator", now=self._now())
        self._database.atomically(lambda session: clients.add(session, client))
        return client

    def remove(self, client_id: str) -> int:
        """Delete a client with its waiting requests, and end its grants; returns how many grants were ended that had
        not been revoked before. Raises ClientUnknown."""
        if self.find(client_id) is None:
            raise ClientUnknown(ClientUnknown.__doc__)
        ended = self._grants.revoke_all(because="ended: client removed", client_id=client_id)
        self._database.atomically(lambda session: clients.remove(session, client_id))
        return ended

    def ensure_builtin(self) -> str:
        """Store the built-in client for tokens from the command line, unless it is there, and return its id."""
        return self._ensure(BUILTIN, "bankdata token", ())

    def ensure_documentation(self) -> str:
        """Store the built-in client for our documentation page, or its new redirect URI if the public address has
        changed, and return its id."""
        return self._ensure(
            DOCUMENTATION, "Interface documentation", (self._policy.public_url + DOCUMENTATION_REDIRECT,)
        )

    def ensure_page(self) -> str:
        """Store the built-in client for our own page, or its new redirect URI if the public address has changed, and
        return its id. The redirect URI is on this server, so its identity is certain and nobody is asked for
        consent."""
        return self._ensure(PAGE, "This website", (self._policy.public_url + PAGE_REDIRECT,))

    def _ensure(self, client_id: str, name: str, redirect_uris: tuple[str, ...]) -> str:
        now = self._now()
        builtin = Client(
            id=client_id,
            name=name,
            redirect_uris=redirect_uris,
            registered_by="builtin",
            created_at=now,
            used_at=now,
        )

        def work(session: Session) -> None:
            known = clients.find(session, client_id)
            if known is None:
                clients.add(session, builtin)
            elif known.redirect_uris != redirect_uris:
                clients.set_redirect_uris(session, client_id, redirect_uris)

        self._database.atomically(work)
        return client_id

    def _register(self, document: object, address: str, bearer: str | None) -> Client:
        if self._policy.registration == "off":
            raise RegistrationClosed()
        if self._policy.registration == "token" and not is_same(bearer or "", self.initial_token()):
            raise RegistrationTokenWrong(headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        metadata = read_registration(document)
        now = self._now()
        client = replace(
            new_client(metadata, client_id=new_client_id(), registered_by="self", now=now),
            address_hash=keyed_hash(self._addresses_key, address),
            network_hash=keyed_hash(self._addresses_key, _network(address)),
        )

        def work(session: Session) -> None:
            self._refuse_floods(session, client, now)
            clients.add(session, client)

        with self._registering:
            self._database.atomically(work)
        return client

    def _refuse_floods(self, session: Session, client: Client, now: datetime) -> None:
        allowed, window = self._policy.registration_limit
        since = now - window
        _refuse_beyond(allowed, clients.unused_of_address(session, client.address_hash, since=since), window, now)
        of_network = clients.unused_of_network(session, client.network_hash, since=since)
        _refuse_beyond(allowed * NETWORK_SHARE, of_network, window, now)
        is_full = clients.count_self_registered(session) >= SELF_REGISTERED_MAX
        if is_full and not clients.remove_idlest(session):
            raise TemporarilyUnavailable(3600, "Too many clients are registered here. Try again later.")


def _refuse_beyond(allowed: int, unused: list[datetime], window: timedelta, now: datetime) -> None:
    if len(unused) >= allowed:
        free_at = unused[len(unused) - allowed] + window
        wait = max(1, int((free_at - now).total_seconds()) + 1)
        raise TemporarilyUnavailable(wait, "Too many clients were registered from this address. Try again later.")


def _network(address: str) -> str:
    """The network to which an address belongs: for IPv6 its /48, for IPv4 the address itself; a text that is no address
    is returned as it is."""
    try:
        network = ip_network(address)
    except ValueError:
        return address  # the key of a client without an address, such as one on a Unix socket
    if isinstance(network, IPv6Network) and network.prefixlen > NETWORK_PREFIX_BITS:
        return str(network.supernet(new_prefix=NETWORK_PREFIX_BITS))
    return str(network)


def is_storable(text: str) -> bool:
    """Whether a text from outside may be looked up in the store: not empty, at most 200 characters, and without NUL,
    which PostgreSQL's TEXT cannot hold."""
    return 0 < len(text) <= 200 and "\0" not in text
