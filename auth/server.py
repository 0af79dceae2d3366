"""The authorization server as one object: rules and store behind the endpoints, the pages and the command line."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from auth import metadata
from auth.access import AccessCheck
from auth.clients import checked_client, new_client, read_registration
from auth.errors import InvalidRequest, RegistrationClosed, RegistrationTokenWrong, TooManyRequests
from auth.grants import Grants, TokenAnswer
from auth.keys import KeyRing
from auth.passwords import Passwords, Weakness, weakness
from auth.principal import Principal
from auth.scopes import SCOPES
from auth.secret_text import derived, is_same, new_client_id, new_secret, stored_hash
from auth.sessions import IDLE, LIFETIME, Browser, Sessions
from auth.settings import AuthSettings
from auth.throttle import Throttles
from auth.tokens import LEEWAY_SECONDS, AccessTokens
from storage import users
from storage.database import Conflict, Database, Session
from storage.oauth import browsers, clients, expiry, grants, pending
from storage.oauth.clients import Client
from storage.oauth.grants import Connected
from storage.oauth.pending import PendingRequest
from storage.users import User

BUILTIN_CLIENT = "bankdata-command-line"
CLIENTS_MAX = 10_000  # self-registered ones in all; unused ones end after a day
REQUEST_LIFETIME = timedelta(minutes=15)
REQUESTS_MAX = 20  # open at once in one browser
SWEEP_EVERY = timedelta(minutes=10)
OTHER_PROCESSES_SEEN_WITHIN = timedelta(seconds=5)


class ClientUnknown(Exception):
    """There is no client with this id."""


class UserUnknown(Exception):
    """There is no user with this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """What came of a name and a password: a browser that is signed in, or how long to wait, or neither (wrong)."""

    browser: Browser | None = None
    known_browser: str | None = None
    wait: timedelta | None = None


class AuthorizationServer:
    """Registers clients, signs users in, asks them, issues tokens, and says of each request whom it speaks for."""

    def __init__(
        self,
        database: Database,
        keys_folder: Path,
        settings: AuthSettings,
        now: Callable[[], datetime],
        *,
        has_other_processes: bool = False,
        passwords: Passwords | None = None,
    ) -> None:
        """Make the keys at the first start; raises KeysUnusable. `has_other_processes`: several servers, one store."""
        self.database = database
        self.settings = settings
        self._clock = now
        leeway = timedelta(seconds=LEEWAY_SECONDS)
        self.keys = KeyRing(keys_folder, now=self.now(), retired_for=settings.access_lifetime + leeway)
        self.tokens = AccessTokens(
            self.keys, issuer=settings.issuer, audience=settings.resource, lifetime=settings.access_lifetime
        )
        recheck = OTHER_PROCESSES_SEEN_WITHIN if has_other_processes else None
        self.access = AccessCheck(database, self.tokens, recheck=recheck)
        self.grants = Grants(database, self.tokens, self.access, settings, self.keys.secret("refresh successors"))
        self.sessions = Sessions(database, self.keys.secret("sessions"))
        self.throttles = Throttles(database, self.keys.secret("throttles"))
        self.passwords = passwords or Passwords()
        self._addresses_key = self.keys.secret("addresses")
        self._swept_at: datetime | None = None

    def now(self) -> datetime:
        """The present instant. The store and the service's clock keep UTC without a zone; rules compare with one."""
        moment = self._clock()
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    # The data interface

    def principal(self, token: str) -> Principal:
        """Whom a bearer token speaks for; raises InvalidToken."""
        return self.access.principal(token, self.now())

    def user_changed(self) -> None:
        """A user was removed or the subscription changed elsewhere in this process: it counts from now on."""
        self.access.forget()

    # Registration

    def register(self, document: object, *, address: str, bearer: str | None) -> Client:
        """A new client (RFC 7591 section 3); raises OAuthError."""
        now = self.now()
        if self.settings.registration == "off":
            raise RegistrationClosed()
        if self.settings.registration == "token" and not is_same(bearer or "", self.registration_token()):
            raise RegistrationTokenWrong(headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
        asked = read_registration(document)
        self.sweep()
        address_hash = derived(self._addresses_key, address)
        self._refuse_floods(address_hash, now)
        client = new_client(asked, client_id=new_client_id(), registered_by="self", address_hash=address_hash, now=now)
        self.database.atomically(lambda session: clients.add(session, client))
        return client

    def registration_token(self) -> str:
        """The initial access token that registration asks for in the mode `token` (RFC 7591 section 3)."""
        return derived(self.keys.secret("registration"), "initial access token")

    def _refuse_floods(self, address_hash: str, now: datetime) -> None:
        limit = self.settings.registrations_allowed
        if limit is not None:
            allowed, window = limit
            unused = clients.unused(self.database, address_hash=address_hash, since=now - window)
            if len(unused) >= allowed:
                free_at = unused[len(unused) - allowed] + window
                wait = max(1, int((free_at - now).total_seconds()) + 1)
                raise TooManyRequests(wait, "Too many clients were registered from this address. Try again later.")
        if clients.count_self_registered(self.database) >= CLIENTS_MAX:
            raise TooManyRequests(3600, "Too many clients are registered here. Try again later.")

    # Sign-in and consent

    def keep_request(
        self, browser: Browser, *, client: Client, redirect_uri: str, scope: str, state: str | None, challenge: str
    ) -> str:
        """Remember a valid authorization request for this browser; the id that the pages carry."""
        now, secret = self.now(), new_secret()
        if pending.count(self.database, browser.id_hash, now=now) >= REQUESTS_MAX:
            raise TooManyRequests(60, "Too many sign-ins are open in this browser.")
        request = PendingRequest(
            id_hash=stored_hash(secret),
            session_hash=browser.id_hash,
            client_id=client.id,
            redirect_uri=redirect_uri,
            scope=scope,
            state=state,
            code_challenge=challenge,
            created_at=now,
            expires_at=now + REQUEST_LIFETIME,
            used_at=None,
        )
        self.database.atomically(lambda session: pending.add(session, request))
        return secret

    def open_request(self, browser: Browser, secret: str) -> tuple[PendingRequest, Client] | None:
        """The request behind an id, if it is this browser's and still open."""
        request = pending.find(self.database, stored_hash(secret), session_hash=browser.id_hash, now=self.now())
        client = clients.find(self.database, request.client_id) if request else None
        return (request, client) if request and client else None

    def decide(self, browser: Browser, secret: str, *, is_allowed: bool) -> tuple[PendingRequest, str | None] | None:
        """The user's answer, taken once: the request and, when allowed, the code."""
        user_id, now = browser.user_id, self.now()
        assert user_id is not None, "only a signed-in browser decides"

        def work(session: Session) -> tuple[PendingRequest, str | None] | None:
            request = pending.use(session, stored_hash(secret), session_hash=browser.id_hash, now=now)
            if request is None or clients.find(session, request.client_id) is None:
                return None
            if not is_allowed:
                return request, None
            return request, self.grants.allow(session, request, user_id=user_id, now=now)

        try:
            return self.database.atomically(work)
        except Conflict:
            return None  # the same form, sent twice at once: the other one counts

    def sign_in(
        self, name: str, password: str, *, before: Browser | None, address: str, known_browser: str | None
    ) -> SignIn:
        """Check a name and a password; the same effort whether the user exists or not. Raises Busy."""
        now = self.now()
        user = users.find_by_name(self.database, name) if _is_name(name) else None
        browser_name = self.sessions.knows(known_browser, user.id if user else None, now=now)
        wait = self.throttles.wait(name=name, address=address, browser=browser_name, now=now)
        if wait:
            return SignIn(wait=wait)
        stored = user.password_hash if user else None
        if not self.passwords.is_right(password, stored) or user is None or stored is None:
            self.throttles.failed(name=name, address=address, browser=browser_name, now=now)
            return SignIn()
        self.throttles.succeeded(name=name, browser=browser_name)
        if self.passwords.is_outdated(stored):
            users.set_password_hash(self.database, user.id, self.passwords.hash(password))
        self.sweep()
        return SignIn(
            browser=self.sessions.sign_in(before, user.id, now=now),
            known_browser=self.sessions.known_browser(user.id, now=now),
        )

    def user_of(self, browser: Browser | None) -> User | None:
        """The user who is signed in."""
        return users.find(self.database, browser.user_id) if browser and browser.user_id else None

    def change_password(
        self, user: User, browser: Browser, *, current: str, new: str, address: str
    ) -> Weakness | SignIn:
        """Replace the password and sign out all other browsers; what is wrong with the new one, or the outcome of
        checking the current one (`browser` set when it was right). Raises Busy."""
        now = self.now()
        name = browser.id_hash  # this browser's own guesses count, strangers' do not
        wait = self.throttles.wait(name=user.name, address=address, browser=name, now=now)
        if wait:
            return SignIn(wait=wait)
        if not self.passwords.is_right(current, user.password_hash):
            self.throttles.failed(name=user.name, address=address, browser=name, now=now)
            return SignIn()
        fault = weakness(new, user_name=user.name)
        if fault:
            return fault
        users.set_password_hash(self.database, user.id, self.passwords.hash(new))
        renewed = self.sessions.sign_in(browser, user.id, now=now)  # a new id after every proof of who it is
        self.sessions.end_others(user.id, but=renewed)
        return SignIn(browser=renewed)

    # Tokens

    def redeem(self, code: str, *, client_id: str, redirect_uri: str | None, verifier: str | None) -> TokenAnswer:
        """RFC 6749 section 4.1.3; raises OAuthError."""
        return self.grants.redeem_code(
            code, client_id=client_id, redirect_uri=redirect_uri, verifier=verifier, now=self.now()
        )

    def refresh(self, token: str, *, client_id: str, scope: str | None) -> TokenAnswer:
        """RFC 6749 section 6; raises OAuthError."""
        self.sweep()
        return self.grants.refresh(token, client_id=client_id, scope=scope, now=self.now())

    def revoke_token(self, token: str, *, client_id: str) -> None:
        """RFC 7009."""
        self.grants.revoke_token(token, client_id=client_id, now=self.now())

    def find_client(self, client_id: str) -> Client | None:
        """The client, if it is registered."""
        return clients.find(self.database, client_id) if _is_name(client_id) else None

    # Documents

    def jwks(self) -> dict[str, list[dict[str, str]]]:
        """The public keys."""
        return self.keys.jwks(now=self.now())

    def server_metadata(self) -> dict[str, object]:
        """RFC 8414."""
        return metadata.server_metadata(self.settings)

    def resource_metadata(self) -> dict[str, object]:
        """RFC 9728."""
        return metadata.resource_metadata(self.settings)

    # The account page and the command line

    def connections(self, user_id: str | None = None) -> list[Connected]:
        """The apps connected to a user, or to everybody, newest first."""
        return grants.connected(self.database, now=self.now(), user_id=user_id)

    def revoke_grant(self, grant_id: str) -> bool:
        """End one grant; False when there is no live one of this id."""
        return self.grants.revoke(grant_id, because="revoked by the operator", now=self.now())

    def disconnect(self, user_id: str, client_id: str) -> int:
        """End what a user allowed an app; how many grants."""
        if not _is_name(client_id):
            return 0
        return self.grants.revoke_all(
            because="revoked by the user", now=self.now(), user_id=user_id, client_id=client_id
        )

    def issue_token(self, user_id: str, scopes: frozenset[str], lifetime: timedelta) -> str:
        """An access token for the operator's own use, listed and revocable like every other; raises UserUnknown."""
        if not scopes or not scopes <= frozenset(SCOPES):
            raise InvalidRequest("The scopes are read:accounts, read:transactions, read:cashflow.")
        if not timedelta() < lifetime <= self.settings.grant_lifetime:
            raise InvalidRequest(
                f"The lifetime must lie between 1 second and {self.settings.grant_lifetime.days} days."
            )
        if users.find(self.database, user_id) is None:
            raise UserUnknown(UserUnknown.__doc__)
        self.database.atomically(self._ensure_builtin_client)
        return self.grants.issue_alone(
            user_id=user_id, client_id=BUILTIN_CLIENT, scopes=scopes, lifetime=lifetime, now=self.now()
        )

    def clients(self) -> list[Client]:
        """All registered clients, oldest first."""
        return clients.list_all(self.database)

    def add_client(self, name: str, redirect_uris: tuple[str, ...]) -> Client:
        """A client of the operator's, which never expires; raises OAuthError with the reason."""
        client = new_client(
            checked_client(name=name, redirect_uris=redirect_uris),
            client_id=new_client_id(),
            registered_by="operator",
            address_hash=None,
            now=self.now(),
        )
        self.database.atomically(lambda session: clients.add(session, client))
        return client

    def remove_client(self, client_id: str) -> int:
        """Delete a client and end its grants; how many. Raises ClientUnknown."""
        if clients.find(self.database, client_id) is None:
            raise ClientUnknown(ClientUnknown.__doc__)
        ended = self.grants.revoke_all(because="client removed", now=self.now(), client_id=client_id)
        self.database.atomically(lambda session: clients.remove(session, client_id))
        return ended

    def remove_user(self, user_id: str) -> None:
        """Delete all that the authorization server knows of a user; tokens are refused from now on."""

        def work(session: Session) -> None:
            grants.remove_all(session, user_id)
            browsers.remove_all(session, user_id)

        self.database.atomically(work)
        self.access.forget()

    def password_was_set(self, user_id: str) -> None:
        """The operator set a new password: the user's browsers are signed out."""
        self.sessions.end_others(user_id, but=None)

    def rotate_keys(self) -> str:
        """A new signing key; the kid. Tokens of the old one live out their hour."""
        return self.keys.rotate(now=self.now())

    def sweep(self) -> None:
        """Delete what has expired, at most every ten minutes."""
        now = self.now()
        if self._swept_at is not None and timedelta() <= now - self._swept_at < SWEEP_EVERY:
            return
        self._swept_at = now
        with suppress(Conflict):  # another process sweeps, or somebody changes a row: the next sweep finds it
            self.database.atomically(
                lambda session: expiry.sweep(
                    session,
                    now=now,
                    hour_ago=now - timedelta(hours=1),
                    day_ago=now - timedelta(days=1),
                    session_seen=now - IDLE,
                    session_born=now - LIFETIME,
                )
            )

    def _ensure_builtin_client(self, session: Session) -> None:
        if clients.find(session, BUILTIN_CLIENT) is None:
            clients.add(
                session,
                Client(
                    id=BUILTIN_CLIENT,
                    name="bankdata token",
                    redirect_uris=(),
                    metadata={},
                    registered_by="builtin",
                    address_hash=None,
                    created_at=self.now(),
                    used_at=self.now(),
                ),
            )


def _is_name(text: str) -> bool:
    """Whether a text from outside can name anything in the store (PostgreSQL's TEXT has no NUL)."""
    return 0 < len(text) <= 200 and "\0" not in text
