"""Browser sessions: a secret id in a cookie, its hash in the store, a new id at sign-in (oauth.md 3.2)."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct

from analytics.records import Discreet
from auth import lifetimes
from auth.instants import Now
from auth.secret_text import is_same, keyed_hash, new_secret, stored_hash
from storage.database import Conflict, Database, Session, without_zone
from storage.notices.ways import ending
from storage.oauth import browsers, pending
from storage.oauth.browsers import BrowserSession

NOBODYS_MAX = 10_000  # sessions before sign-in, in all; a client without cookies gets a new one for each request


class Via(Struct, frozen=True, kw_only=True):
    """By which identity, and in which session, at the household's provider somebody signed in, as hashes; `is_proven`
    says that they showed there who they are within the last minutes."""

    identity_hash: str
    provider_session: str | None = None
    is_proven: bool = True


class Browser(Discreet, frozen=True, kw_only=True):
    """A browser with a session, in which somebody may be signed in (`user_id`). `secret` is the content of its cookie,
    stored only as `id_hash`. `awaits_user_id` is a user whose password was right and whose second factor is still
    missing. `via` is how they signed in at the household's provider, None for another way in."""

    secret: str
    id_hash: str
    user_id: str | None
    awaits_user_id: str | None = None
    agent: str | None = None  # the browser's name as people know it
    via: Via | None = None


class Sessions:
    """Starts, resumes, renews and ends browser sessions, and makes form tokens, which only a session's own pages carry.

    `ended` is called after each step that may have ended a session with a signed-in user, because grants end with it.
    Signing out ends what is pushed to that browser, too; a session that runs out does not.
    """

    def __init__(self, database: Database, key: bytes, now: Now, *, ended: Callable[[], None]) -> None:
        self._database = database
        self._key = key
        self._now = now
        self._ended = ended

    def resume(self, secret: str | None) -> Browser | None:
        """The browser of a session cookie, whether or not somebody is signed in; None where the session is unknown,
        older than seven days, of one day for who came by the provider, or unused for twelve hours. Notes in the store
        that the session was seen, at most every five minutes."""
        now = self._now()
        if not secret or len(secret) > 100:
            return None
        row = browsers.find(self._database, stored_hash(secret))
        if row is None or _is_over(row, now):
            return None
        if abs(now - row.seen_at) >= lifetimes.SESSION_SEEN_EVERY:
            with suppress(Conflict):  # another tab was seen at the same moment
                self._database.atomically(lambda session: browsers.see(session, row.id_hash, now=now))
        is_awaiting = row.awaits_until is not None and now < row.awaits_until
        return Browser(
            secret=secret,
            id_hash=row.id_hash,
            user_id=row.user_id,
            awaits_user_id=row.awaits_user_id if is_awaiting else None,
            agent=row.agent,
            via=_via(row),
        )

    def over(self, secret: str, agent: str | None) -> Browser:
        """The browser of a cookie whose session is stored no more; its form for signing in still carries its token."""
        return Browser(secret=secret, id_hash=stored_hash(secret), user_id=None, agent=agent)

    def start(self, agent: str | None = None) -> Browser:
        """Start and store a session in which nobody is signed in; it holds authorization requests and protects the
        sign-in form. Of such sessions of all browsers, the 10,000 seen last are kept."""

        def work(session: Session) -> Browser:
            browser = self._add(session, None, agent=agent)
            browsers.remove_oldest_nobodys(session, but=NOBODYS_MAX)
            return browser

        return self._database.atomically(work)

    def sign_in(self, before: Browser | None, user_id: str, *, via: Via | None = None) -> Browser:
        """Sign a user in under a new session id (against fixation), in place of the session `before`, whose open
        authorization requests are kept; `via` the provider, if that was the way."""
        was_half = before is not None and before.awaits_user_id == user_id
        return self._in_place_of(before, user_id, via=before.via if before is not None and was_half else via)

    def await_second_factor(self, before: Browser | None, user_id: str, *, via: Via | None = None) -> Browser:
        """Give a browser a new session id, because a user has entered the right password in it, or signed in at the
        provider; nobody is signed in until their second factor has come, within five minutes."""
        return self._in_place_of(before, None, awaits=user_id, via=via)

    def prove(self, browser: Browser) -> None:
        """Note that the person who is signed in has just shown who they are."""
        self._database.atomically(lambda session: browsers.prove(session, browser.id_hash, now=self._now()))

    def is_proven_lately(self, id_hash: str | None) -> bool:
        """Whether the person signed in in the session of this hash has shown who they are within five minutes."""
        row = browsers.find(self._database, id_hash or "")
        return row is not None and timedelta() <= self._now() - (row.proven_at or row.created_at) < lifetimes.LATELY

    def of_user(self, user_id: str) -> list[BrowserSession]:
        """The live sessions in which the user is signed in, the most recently seen first."""
        now = self._now()
        return [row for row in browsers.of_user(self._database, user_id) if not _is_over(row, now)]

    def sign_out(self, user_id: str, id_hash: str) -> bool:
        """Sign a user out of the browser whose session is stored under this hash; False, with nothing done, where the
        user is not signed in there."""

        def work(session: Session) -> bool:
            self._end_targets(session, user_id, lambda each: each == id_hash)
            return browsers.remove_of_user(session, user_id, id_hash)

        was_there = self._database.atomically(work)
        self._ended()
        return was_there

    def sign_out_for_another(self, browser: Browser) -> Browser:
        """Replace the session by one in which nobody is signed in and which keeps its open authorization requests, so
        that another person can answer them."""
        return self._in_place_of(browser, None)

    def end(self, id_hash: str) -> None:
        """End the session that is stored under this hash, whether or not somebody is signed in; its open authorization
        requests go with it. Does nothing where there is none."""

        def work(session: Session) -> None:
            known = browsers.find(session, id_hash)
            if known is not None and known.user_id is not None:
                self._end_targets(session, known.user_id, lambda each: each == id_hash)
            browsers.remove(session, id_hash)

        self._database.atomically(work)
        self._ended()

    def end_all(self, user_id: str, *, but: Browser | None = None) -> None:
        """End all sessions in which a user is signed in or whose second factor is awaited, except the one of `but`."""
        self._database.atomically(lambda session: self.end_in(session, user_id, but=but))
        self._ended()

    def end_in(self, session: Session, user_id: str, *, but: Browser | None) -> None:
        """The same in the caller's transaction; `end_all` has to follow."""
        kept = but.id_hash if but else ""
        self._end_targets(session, user_id, lambda each: each != kept)
        browsers.remove_all(session, user_id, but=kept)

    def form_token(self, browser: Browser, purpose: str) -> str:
        """The token that a form of this session and purpose must carry: an HMAC of both, always the same."""
        return keyed_hash(self._key, f"form:{purpose}:{browser.secret}")

    def is_form_token(self, browser: Browser, purpose: str, token: str) -> bool:
        """Whether the token was made for a form of this session and purpose."""
        return is_same(self.form_token(browser, purpose), token)

    def known_browser(self, user_id: str) -> str:
        """The value for a cookie that shows that this user has signed in with this browser before. It grants nothing;
        it only keeps strangers' guesses from blocking the user's own browser (oauth.md 3.4)."""
        nonce, day = new_secret()[:16], self._today()
        return f"{nonce}.{day}.{keyed_hash(self._key, f'known:{user_id}:{nonce}.{day}')}"

    def knows(self, cookie: str | None, user_id: str | None) -> str | None:
        """The random part of a cookie that `known_browser` made for this user, by which the browser's guesses are
        counted; None where there is no such cookie, or it is 180 days old."""
        parts = (cookie or "").split(".")
        if user_id is None or len(parts) != 3 or len(cookie or "") > 200 or not parts[1].isascii():
            return None
        nonce, day, seal = parts
        if not is_same(seal, keyed_hash(self._key, f"known:{user_id}:{nonce}.{day}")):
            return None
        return nonce if self._today() - int(day) < lifetimes.KNOWN_BROWSER.days else None

    def _today(self) -> int:
        return int(self._now().timestamp()) // 86400

    def _in_place_of(
        self, before: Browser | None, user_id: str | None, *, awaits: str | None = None, via: Via | None = None
    ) -> Browser:
        """Replace a session by one with its open authorization requests. Whoever presses twice gets the same one,
        whichever answer the browser takes."""

        def work(session: Session) -> Browser:
            agent, after = (before.agent, before.secret) if before is not None else (None, None)
            browser = self._add(session, user_id, agent=agent, awaits=awaits, after=after, via=via)
            if before is not None:
                pending.move(session, from_session=before.id_hash, to_session=browser.id_hash)
                if owner := user_id or awaits:
                    ending.follow_session(session, owner, before.id_hash, browser.id_hash)
                if before.user_id not in (None, owner):
                    self._end_targets(session, before.user_id, lambda each: each == before.id_hash)
                browsers.remove(session, before.id_hash)
            return browser

        browser = self._database.atomically(work)
        if before is not None and before.user_id is not None:
            self._ended()
        return browser

    def _end_targets(self, session: Session, user_id: str, is_ended: Callable[[str], bool]) -> None:
        ending.end_of_sessions(session, user_id, is_ended, now=without_zone(self._now()))

    def _add(
        self,
        session: Session,
        user_id: str | None,
        *,
        agent: str | None,
        awaits: str | None = None,
        after: str | None = None,
        via: Via | None = None,
    ) -> Browser:
        """Store a session; `after` another secret always under the same one, which only this server can make of it."""
        now = self._now()
        secret = new_secret() if after is None else keyed_hash(self._key, f"session:{user_id}:{awaits}:{after}")
        browser = Browser(
            secret=secret, id_hash=stored_hash(secret), user_id=user_id, awaits_user_id=awaits, agent=agent, via=via
        )
        stored = BrowserSession(
            id_hash=browser.id_hash,
            user_id=user_id,
            created_at=now,
            seen_at=now,
            agent=agent,
            awaits_user_id=awaits,
            awaits_until=now + lifetimes.SECOND_STEP if awaits is not None else None,
            identity_hash=via.identity_hash if via is not None else None,
            provider_session=via.provider_session if via is not None else None,
            proven_at=now - lifetimes.LATELY if via is not None and not via.is_proven else None,
        )
        browsers.add(session, stored)
        return browser


def _via(row: BrowserSession) -> Via | None:
    if row.identity_hash is None:
        return None
    return Via(identity_hash=row.identity_hash, provider_session=row.provider_session, is_proven=row.proven_at is None)


def _is_over(row: BrowserSession, now: datetime) -> bool:
    """Whether a session has ended, or begins so far ahead that a wrong clock made it and its end would not come."""
    age, most = now - row.created_at, lifetimes.of_session(is_by_provider=row.identity_hash is not None)
    return now - row.seen_at >= lifetimes.SESSION_IDLE or not -lifetimes.SESSION_SEEN_EVERY < age < most
