"""The record: who read what of whom, and what a person did to the account; counted in memory, written together.

What is counted is an operation of the contract, a tool, or one of the words below. Moments are those at which counts
are written, so that a request does not even ask for the time.
"""

import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Literal, get_args

from auth.instants import Now
from storage.database import Database
from storage.oauth import access_record
from storage.oauth.access_record import Count, Counted, Entry

WRITE_EVERY = 5.0  # seconds
WAITING_MAX = 20_000  # sums in memory; some 5 MB
KEPT_FOR = timedelta(days=396)  # 13 months: the last one can be compared with the same one a year ago

Deed = Literal[
    "signIn",
    "changePassword",
    "giveConsent",
    "denyConsent",
    "narrowGrant",
    "widenGrant",
    "revokeGrant",
    "issueToken",
    "claimSimpleFin",
    "makeCalendarLink",
    "endCalendarLink",
    "readCalendar",
    "endSession",
    "turnOnSecondFactor",
    "turnOffSecondFactor",
    "useRecoveryCode",
    "addPasskey",
    "removePasskey",
    "connectBank",
    "renewBank",
    "disconnectBank",
    "mergeAccount",
    "separateAccount",
    "deleteAccount",
]
"""What is done to an account itself, besides what apps read of it; what an operation does too has the operation's name,
so that it is one line whoever did it."""

DEEDS = frozenset(get_args(Deed))

log = logging.getLogger("bankdata.record")


class Record:
    """Counts; safe from any thread."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now
        self._lock = threading.Lock()
        self._counted: dict[Counted, Count] = {}
        self._writing = threading.Lock()
        self._stopped = threading.Event()
        self._is_waiting = False  # for the store, and that was logged

    def note(
        self, user_id: str, operation: str, *, grant_id: str = "", client_id: str = "", is_refused: bool = False
    ) -> None:
        """Count one more call."""
        key = (user_id, grant_id, client_id, operation)
        with self._lock:
            count = self._counted.get(key)
            if count is None:
                if len(self._counted) >= WAITING_MAX:
                    return
                count = self._counted[key] = Count()
            count.calls += 1
            if is_refused:
                count.refusals += 1

    def keep_writing(self) -> None:
        """Write every few seconds until `close`: for a thread of its own."""
        while not self._stopped.wait(WRITE_EVERY):
            self.write()

    def write(self) -> None:
        """Write what has been counted. Where the store cannot, it is counted on, and written next time."""
        with self._writing:
            with self._lock:
                counted, self._counted = self._counted, {}
            if not counted:
                return
            try:
                access_record.add(self._database, counted, now=self._now())
                self._is_waiting = False
            except Exception as error:  # whatever it is: the next time comes, and nothing counted is lost
                if not self._is_waiting:
                    log.warning("the record could not be written yet: %s", type(error).__name__)
                self._is_waiting = True
                self._put_back(counted)

    def close(self) -> None:
        """Write the last, and no more."""
        self._stopped.set()
        self.write()

    def hours(self, user_id: str, *, since: datetime | None = None) -> Iterator[list[Entry]]:
        """What happened to a user's data, by hour, the newest first; everything there is, unless since a moment. Read
        piece by piece, of which the first may be empty."""
        self.write()
        return access_record.hours(self._database, user_id, since=since or self._now() - KEPT_FOR)

    def overview(self, user_id: str, *, within: timedelta) -> list[Entry]:
        """What happened within this time, summed over its hours, the latest first."""
        self.write()
        return access_record.overview(self._database, user_id, since=self._now() - within)

    def _put_back(self, counted: dict[Counted, Count]) -> None:
        with self._lock:
            for key, count in counted.items():
                later = self._counted.get(key)
                if later is not None:
                    later.calls += count.calls
                    later.refusals += count.refusals
                elif len(self._counted) < WAITING_MAX:
                    self._counted[key] = count
