"""Access for apps that use SimpleFIN: a setup token, exchanged once for a lasting user part and password."""

import base64
import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Lock
from urllib.parse import urlsplit

from auth import lifetimes
from auth.apps.client_metadata import NAME_LENGTH_MAX, checked_client, new_client
from auth.errors import InvalidGrant, InvalidRequest, InvalidToken
from auth.instants import Now
from auth.people.throttle import Throttles
from auth.policy import Policy
from auth.principal import Principal
from auth.record import Deed
from auth.scopes import READ_ACCOUNTS, READ_TRANSACTIONS, scope_text
from auth.secret_text import is_same, new_client_id, new_letters, stored_hash
from auth.security_events import Events
from auth.tokens.access_check import AccessCheck, principal_of
from auth.tokens.grants import Grants
from storage.database import Conflict, Database, Session
from storage.oauth import clients, grants, simplefin
from storage.oauth.grants import Grant, Terms
from storage.oauth.simplefin import Credentials

USER_CHARACTERS = 16
SECRET_CHARACTERS = 43  # as many random bits as `new_secret`
CACHED_MAX = 4096

_USER_PART = re.compile(rf"[A-Za-z0-9]{{{USER_CHARACTERS}}}")


class WrongPassword(InvalidToken):
    """A wrong guess: the user part is unknown, or the password is not its own."""


@dataclass(eq=False)
class SimpleFinAccess:
    """Makes setup tokens, exchanges them for passwords, and finds the principal of each request's password.

    `_claiming` spares this process the conflicts; between processes the store decides. `_credentials` are remembered by
    user part; their grants are checked each time.
    """

    _database: Database
    _grants: Grants
    _access: AccessCheck
    _throttles: Throttles
    _policy: Policy
    _events: Events
    _now: Now
    _claiming: Lock = field(default_factory=Lock, init=False)
    _credentials: dict[str, Credentials] = field(default_factory=dict, init=False)

    def setup_token(
        self, user_id: str, name: str, *, terms: Terms, lifetime: timedelta | None = None, deed: Deed = "giveConsent"
    ) -> str:
        """Make a setup token, valid for 24 hours, with a client and a grant for an app that its user calls `name`. The
        token is the base64 of an address, and the user pastes it into the app. Logs it, and records it as `deed`.
        Raises InvalidRequest for a wrong name or lifetime."""
        if lifetime is not None and not timedelta() < lifetime <= lifetimes.GRANT:
            raise InvalidRequest(f"An access lasts from 1 to {lifetimes.GRANT.days} days.")
        now, code = self._now(), new_letters(SECRET_CHARACTERS)
        app = new_client(checked_client(name), client_id=new_client_id(), registered_by="simplefin", now=now)

        def work(session: Session) -> Grant:
            clients.add(session, app)
            grant = self._grants.add(
                session,
                user_id=user_id,
                client_id=app.id,
                scope=scope_text(_scopes(terms)),
                resource="simplefin",
                terms=terms,
                lifetime=lifetime,
            )
            simplefin.add(
                session,
                grant_id=grant.id,
                code_hash=stored_hash(code),
                expires_at=min(now + lifetimes.SETUP_TOKEN, grant.expires_at),
            )
            if deed == "giveConsent":
                self._events.tell(session, user_id, deed, name=app.name)
            return grant

        grant = self._database.atomically(work)
        self._events.info("setup token made", user=user_id, client=app.id, grant=grant.id)
        self._events.did(user_id, deed, client_id=app.id, grant_id=grant.id)
        return base64.b64encode(f"{self._policy.address_of('simplefin')}/claim/{code}".encode()).decode()

    def claim(self, code: str, *, agent: str, address: str) -> str:
        """Exchange the code of a setup token for the address, with user part and password in it, that the app asks from
        now on; only the first caller gets it. Raises InvalidGrant for all others, and records for its user that a used
        one came again.

        `agent` is the name that the app sends, which is stored without unprintable characters; `address` is logged.
        """
        code_hash, user_part, password = (
            stored_hash(code),
            new_letters(USER_CHARACTERS),
            new_letters(SECRET_CHARACTERS),
        )

        def work(session: Session) -> Grant | None:
            now = self._now()
            grant_id = simplefin.claim(
                session,
                code_hash,
                user_part=user_part,
                password_hash=stored_hash(password),
                claimed_by="".join(filter(str.isprintable, agent))[:NAME_LENGTH_MAX],
                now=now,
            )
            if grant_id is None:
                return None
            grant = self._grants.find_live(session, grant_id)
            grants.redeem(session, grant.id, now=now)
            clients.mark_used(session, grant.client_id, now=now, unless_since=now)
            app = clients.find(session, grant.client_id)
            self._events.tell(session, grant.user_id, "claimSimpleFin", name=app.name if app is not None else "")
            return grant

        grant: Grant | None = None
        with self._claiming, suppress(Conflict):  # another process exchanges the same token this moment: it wins
            grant = self._database.atomically(work)
        if grant is None:
            self._note_reuse(code_hash, address)
            raise InvalidGrant(reason="unknown, over or used")
        self._events.info("setup token exchanged", user=grant.user_id, client=grant.client_id, grant=grant.id)
        self._events.did(grant.user_id, "claimSimpleFin", client_id=grant.client_id, grant_id=grant.id)
        parts = urlsplit(self._policy.address_of("simplefin"))
        return f"{parts.scheme}://{user_part}:{password}@{parts.netloc}{parts.path}"

    def _note_reuse(self, code_hash: str, address: str) -> None:
        """Record that a used setup token was sent again, so that its user sees it: somebody else may have it. Nothing
        is ended, because some apps repeat the request by themselves."""
        grant_id: str | None = None
        with self._claiming, suppress(Conflict):  # another process records the same request
            grant_id = self._database.atomically(
                lambda session: simplefin.try_again(session, code_hash, now=self._now())
            )
        grant = grants.find(self._database, grant_id) if grant_id is not None else None
        if grant is None:
            self._events.info("setup token refused", address=address)
            return
        self._events.alarm("setup token used twice", address=address, client=grant.client_id, grant=grant.id)
        self._events.did(grant.user_id, "claimSimpleFin", client_id=grant.client_id, grant_id=grant.id, is_refused=True)

    def principal(self, user_part: str, password: str) -> Principal:
        """The principal of a user part and password, read from the store where it is not in memory, and remembered.
        Raises InvalidToken where the grant has ended, and WrongPassword."""
        held = self._credentials.get(user_part)
        if held is None:
            held = simplefin.credentials(self._database, user_part) if _USER_PART.fullmatch(user_part) else None
            if held is None:
                raise WrongPassword("unknown")
            if len(self._credentials) >= CACHED_MAX:
                self._credentials.clear()
            self._credentials[user_part] = held
        if not is_same(stored_hash(password), held.password_hash):
            raise WrongPassword("wrong")
        standing = self._access.check(held.grant_id, held.user_id)
        scopes = _scopes(standing.terms)
        return principal_of(standing, client_id=held.client_id, scopes=scopes, grant_id=held.grant_id)

    def wait_after_guess(self, user_part: str, *, address: str) -> timedelta | None:
        """Count a wrong guess at the password of this user part, and return how long this address has to wait before
        the next one; None for no wait, or a text that is no user part. The right password is always accepted, so the
        app itself never waits."""
        if not _USER_PART.fullmatch(user_part):
            return None  # no user part has this form
        wait = self._throttles.reserve(
            name=user_part, address=address, browser=f"{user_part} {address}", now=self._now(), of="simplefin"
        )
        return wait if isinstance(wait, timedelta) else None


def _scopes(terms: Terms) -> frozenset[str]:
    return frozenset({READ_ACCOUNTS} if terms.figures_only else {READ_ACCOUNTS, READ_TRANSACTIONS})
