"""Guessing passwords gets slow: per account, per network address, and apart from both for known browsers."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from auth.secret_text import derived
from storage.database import Conflict, Database, Session
from storage.oauth import throttles
from storage.oauth.throttles import Throttle

ACCOUNT_FAILURES = 5  # the first ones are free: people mistype
ADDRESS_FAILURES = 100  # a whole family or office may share one
FIRST_WAIT = timedelta(seconds=15)
WAIT_MAX = timedelta(minutes=15)  # never permanent (oauth.md 3.4)
FORGOTTEN_AFTER = timedelta(hours=1)


class Throttles:
    """Counts failed sign-ins by keyed hash, so that the store names neither accounts nor addresses."""

    def __init__(self, database: Database, key: bytes) -> None:
        self._database = database
        self._key = key
        self._lock = threading.Lock()

    def wait(self, *, name: str, address: str, browser: str | None, now: datetime) -> timedelta:
        """How long this caller has to wait; a browser that knows the account is not stopped by others' guessing."""
        waits = [self._remaining(subject, now) for subject, _ in self._subjects(name, address, browser)]
        return max(waits)

    def failed(self, *, name: str, address: str, browser: str | None, now: datetime) -> None:
        """One more failure: beyond the free ones the wait doubles each time."""
        for subject, free in self._subjects(name, address, browser):
            with self._lock, suppress(Conflict):  # another process counts this moment: one failure of many is lost
                self._database.atomically(_counted(subject, free, now))

    def succeeded(self, *, name: str, browser: str | None) -> None:
        """The right password: the account starts anew, the address does not."""
        subjects = [self._subject("account", name.casefold())]
        if browser:
            subjects.append(self._subject("browser", browser))
        with self._lock, suppress(Conflict):
            self._database.atomically(lambda session: throttles.clear(session, subjects))

    def _subjects(self, name: str, address: str, browser: str | None) -> list[tuple[str, int]]:
        if browser:
            return [(self._subject("browser", browser), ACCOUNT_FAILURES)]
        return [
            (self._subject("account", name.casefold()), ACCOUNT_FAILURES),
            (self._subject("address", address), ADDRESS_FAILURES),
        ]

    def _subject(self, kind: str, value: str) -> str:
        return derived(self._key, f"{kind}:{value}")

    def _remaining(self, subject: str, now: datetime) -> timedelta:
        known = throttles.find(self._database, subject)
        return max(known.blocked_until - now, timedelta()) if known else timedelta()


def _counted(subject: str, free: int, now: datetime) -> Callable[[Session], None]:
    def work(session: Session) -> None:
        known = throttles.find(session, subject)
        is_fresh = known is None or now - known.updated_at > FORGOTTEN_AFTER
        failures = 1 if known is None or is_fresh else known.failures + 1
        wait = min(FIRST_WAIT * 2 ** min(failures - free, 10), WAIT_MAX) if failures >= free else timedelta()
        throttles.keep(session, subject, Throttle(failures=failures, blocked_until=now + wait, updated_at=now))

    return work
