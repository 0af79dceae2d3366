"""Limits on guessing passwords: per account, per network address, and apart from both for known browsers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from auth import lifetimes
from auth.people.password_hashing import Busy
from auth.secret_text import keyed_hash
from storage.database import Conflict, Database, Session
from storage.oauth import throttles
from storage.oauth.throttles import Throttle

ACCOUNT_FAILURES = 5  # the first failures cost no wait, because people mistype
ADDRESS_FAILURES = 100  # a whole family or office may share one
WAITING_MAX = 20  # for their turn, at all accounts: each holds a thread that the data interface needs, too
LOCKS = 64

Guessed = Literal["password", "second factor", "recovery code", "first code", "simplefin"]


class Reserved(Struct, frozen=True, kw_only=True):
    """An attempt that counts as failed until `note_success` or `withdraw` is called for it."""

    account: str
    counted: tuple[str, ...]  # hashes of account and address, or of the known browser; the own one comes first


class Throttles:
    """Counts failed attempts by keyed hashes, so that the store names neither accounts nor addresses.

    A failure is counted before the secret is checked: of forty simultaneous guesses, only as many as are free are
    checked.
    """

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = key
        self._lock = threading.Lock()  # spares this process the conflicts; between processes the store decides
        self._turns = [threading.Lock() for _ in range(LOCKS)]
        self._waiting = threading.BoundedSemaphore(WAITING_MAX)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """A context in which the attempts on one account in this process follow each other, so that simultaneous right
        passwords are not held up by each other's reservations. Raises Busy where 20 attempts, on whatever accounts,
        hold or await a turn."""
        if not self._waiting.acquire(blocking=False):
            raise Busy(Busy.__doc__)
        try:
            with self._turns[hash(name.casefold()) % LOCKS]:
                yield
        finally:
            self._waiting.release()

    def reserve(
        self, *, name: str, address: str, browser: str | None, now: datetime, of: Guessed = "password"
    ) -> Reserved | timedelta:
        """Count one attempt as a failure in advance, or return how long to wait before it, uncounted. Raises Busy under
        constant conflicts.

        Attempts are counted for the account (waits from the 5th failure on) and the network address (from the 100th),
        or, where `browser` names one, for this browser alone, which strangers' guesses do not hold up. Each kind of
        secret (`of`) is counted apart, because a right password must not allow more guesses of the second factor.
        """
        before = "" if of == "password" else f"{of} "
        account = self._subject(f"{before}account", name.casefold())
        if browser:
            subjects = {self._subject(f"{before}browser", browser): ACCOUNT_FAILURES}
        else:
            subjects = {account: ACCOUNT_FAILURES, self._subject("address", address): ADDRESS_FAILURES}

        def work(session: Session) -> timedelta:
            known = {subject: throttles.find(session, subject) for subject in subjects}
            wait = max(_remaining(each, now) for each in known.values())
            if wait <= timedelta():
                for subject, free in subjects.items():
                    throttles.replace(session, subject, known[subject], _one_more(known[subject], free, now))
            return wait

        try:
            with self._lock:
                wait = self._database.atomically(work)
        except Conflict as error:
            raise Busy(Busy.__doc__) from error
        return wait if wait > timedelta() else Reserved(account=account, counted=tuple(subjects))

    def note_success(self, reserved: Reserved) -> None:
        """Note a success: the counts of account and browser are deleted, that of the address is reduced by one."""
        self._take_back(reserved, {reserved.account, reserved.counted[0]})

    def withdraw(self, reserved: Reserved) -> None:
        """Undo a reservation whose secret was not checked after all: each of its counts is reduced by one."""
        self._take_back(reserved, set())

    def _take_back(self, reserved: Reserved, cleared: set[str]) -> None:
        def work(session: Session) -> None:
            throttles.clear(session, sorted(cleared))
            for subject in reserved.counted:
                if subject not in cleared:
                    throttles.take_back(session, subject)

        with self._lock:
            self._database.atomically(work)

    def _subject(self, kind: str, value: str) -> str:
        return keyed_hash(self._key, f"{kind}:{value}")


def _remaining(known: Throttle | None, now: datetime) -> timedelta:
    """The rest of a wait; zero where none was set, negative where it is over. Whether one was set is told by the stored
    times alone, because the clocks of two processes differ; one longer than any is of a clock that was ahead."""
    is_blocked = known is not None and known.blocked_until > known.updated_at
    left = known.blocked_until - now if known is not None and is_blocked else timedelta()
    return left if left <= lifetimes.WAIT_MAX else timedelta()


def _one_more(known: Throttle | None, free: int, now: datetime) -> Throttle:
    """The throttle after one more failure: from the `free`-th on there is a wait of 15 seconds, which doubles with each
    further failure up to 15 minutes. After an hour without failures the count begins anew."""
    is_fresh = known is None or abs(now - known.updated_at) > lifetimes.FAILURES_FORGOTTEN
    failures = 1 if known is None or is_fresh else known.failures + 1
    doubled = lifetimes.WAIT_FIRST * 2 ** min(failures - free, 10)
    wait = min(doubled, lifetimes.WAIT_MAX) if failures >= free else timedelta()
    return Throttle(failures=failures, blocked_until=now + wait, updated_at=now)
