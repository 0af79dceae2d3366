"""Consent: an authorization request waits for its user's answer, which is taken once."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from auth import lifetimes
from auth.apps.clients import PAGE
from auth.errors import TemporarilyUnavailable
from auth.instants import Now
from auth.people.sessions import Browser
from auth.scopes import TICKED_SCOPES, scope_text, scope_without_bookings
from auth.secret_text import keyed_hash, new_secret, stored_hash
from auth.security_events import Events
from auth.tokens.codes import AuthorizationCodes
from storage.database import Conflict, Database, Session, values_of
from storage.oauth import clients, pending
from storage.oauth.clients import Client
from storage.oauth.grants import EVERYTHING, Terms
from storage.oauth.pending import AccessRequest, PendingRequest

OPEN_MAX = 20  # waiting requests in one browser
KEPT_MAX = 10_000  # waiting requests in all; beyond it the oldest are deleted


class Consent:
    """Stores authorization requests until people have answered them, and turns an answer into a code or a refusal."""

    def __init__(self, database: Database, key: bytes, codes: AuthorizationCodes, events: Events, now: Now) -> None:
        self._database = database
        self._key = key
        self._codes = codes
        self._events = events
        self._now = now

    def keep(self, browser: Browser, asked: AccessRequest) -> str:
        """Store a valid authorization request for this browser, and return the secret id that its pages carry. Raises
        TemporarilyUnavailable where 20 wait in this browser already. Of all browsers' requests, the 10,000 newest are
        kept."""
        now, secret = self._now(), new_secret()
        if pending.count(self._database, browser.id_hash, now=now) >= OPEN_MAX:
            raise TemporarilyUnavailable(60, "Too many sign-ins are open in this browser.")
        request = _waiting(asked, secret, browser, now)

        def work(session: Session) -> None:
            pending.add(session, request)
            pending.remove_oldest(session, but=KEPT_MAX)

        self._database.atomically(work)
        return secret

    def allow_at_once(self, browser: Browser, asked: AccessRequest) -> str:
        """Make a grant without asking, and return its code. The caller knows that the request is from the page of this
        server, and that somebody is signed in with the browser."""
        user_id = browser.user_id
        assert user_id is not None, "only a signed-in browser gets a code"
        request = _waiting(replace(asked, details=None), new_secret(), browser, self._now())
        return self._database.atomically(
            lambda session: self._codes.issue(session, request, new_secret(), user_id=user_id, scope=asked.scope)
        )

    def waiting_request(self, browser: Browser, secret: str) -> tuple[PendingRequest, Client] | None:
        """The unanswered request with this secret id, and its client; None where it is over or of another browser."""
        request = pending.find(self._database, stored_hash(secret), session_hash=browser.id_hash, now=self._now())
        client = clients.find(self._database, request.client_id) if request else None
        return (request, client) if request and client else None

    def was_of_page(self, browser: Browser, secret: str) -> bool:
        """Whether this server's own page asked in the request with this secret id, which this browser has answered."""
        answered = pending.answered(self._database, stored_hash(secret), session_hash=browser.id_hash)
        return answered is not None and answered.client_id == PAGE

    def decide(
        self,
        browser: Browser,
        secret: str,
        *,
        is_allowed: bool,
        ticked: frozenset[str] = frozenset(),
        terms: Terms = EVERYTHING,
        lifetime: timedelta | None = None,
    ) -> tuple[PendingRequest, str | None] | None:
        """Take the user's answer to a waiting request, once. Returns the request, and the code of the new grant, or
        None in its place where access was refused; None alone where the request is over, of another browser or
        answered, or its client is gone. Logs and records the answer. Whoever allows the same once more, because they
        pressed twice, gets the same code, until it is used or too old.

        Of TICKED_SCOPES, only those in `ticked` are granted, and none about single bookings if `terms` show only
        figures; where no scope is left, access is refused. `terms` limit what the grant covers, and `lifetime` how long
        it lasts (None: as long as an access can).
        """
        user_id, now = browser.user_id, self._now()
        assert user_id is not None, "only a signed-in browser decides"
        # Made of the whole answer: with one box less ticked it is another code
        code = keyed_hash(self._key, f"{secret} {sorted(ticked)} {terms} {lifetime}")

        def work(session: Session) -> tuple[PendingRequest, str | None] | None:
            request = pending.use(session, stored_hash(secret), session_hash=browser.id_hash, now=now)
            client = clients.find(session, request.client_id) if request is not None else None
            if request is None or client is None:
                return None
            scope = granted_scope(request.scope, ticked)
            if terms.figures_only:
                scope = scope_without_bookings(scope)
            if not is_allowed or not scope:
                return request, None
            self._events.tell(session, user_id, "giveConsent", name=client.name)
            return request, self._codes.issue(
                session, request, code, user_id=user_id, scope=scope, terms=terms, lifetime=lifetime
            )

        try:
            decided = self._database.atomically(work)
        except Conflict:
            decided = None  # the form was sent twice at once, and the other one was taken
        if decided is None and is_allowed and self._codes.is_open(code):
            answered = pending.answered(self._database, stored_hash(secret), session_hash=browser.id_hash)
            return (answered, code) if answered is not None else None
        if decided is not None:
            answer = "consent given" if decided[1] is not None else "consent denied"
            self._events.info(answer, user=user_id, client=decided[0].client_id)
            is_given = decided[1] is not None
            self._events.did(user_id, "giveConsent" if is_given else "denyConsent", client_id=decided[0].client_id)
        return decided


def _waiting(asked: AccessRequest, secret: str, browser: Browser, now: datetime) -> PendingRequest:
    """The request in the form in which it waits for its user, identified by the hash of this secret."""
    return PendingRequest(
        **values_of(asked),
        id_hash=stored_hash(secret),
        session_hash=browser.id_hash,
        created_at=now,
        expires_at=now + lifetimes.CONSENT_REQUEST,
    )


def granted_scope(asked: str, ticked: frozenset[str]) -> str:
    """The granted part of the requested scopes `asked`: those in `ticked`, and all that are not TICKED_SCOPES."""
    return scope_text(name for name in asked.split() if name not in TICKED_SCOPES or name in ticked)
