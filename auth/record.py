"""The record of who read what of whom, and what a person did to their account; counted in memory, written in batches.

Counted are operations of the contract, tools, and the deeds below. The time of an entry is when its count was written,
so that a request does not even have to ask for the time.
"""

import logging
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, get_args

from auth import lifetimes
from auth.instants import Now
from storage.boundary import contain
from storage.database import Database, Session, without_zone
from storage.notices import of_access
from storage.oauth import access_record
from storage.oauth.access_record import Count, Counted, Entry
from storage.oauth.moments import aware

WRITE_EVERY = 5.0  # seconds
WAITING_MAX = 20_000  # sums in memory; some 5 MB

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
    "linkProvider",
    "unlinkProvider",
    "addPasskey",
    "removePasskey",
    "connectBank",
    "renewBank",
    "disconnectBank",
    "changeSubscription",
    "changeAccount",
    "mergeAccount",
    "separateAccount",
    "deleteAccount",
    "undoImport",
    "becomeUser",
    "inviteUser",
    "revokeInvitation",
    "makePasswordLink",
    "setPasswordByLink",
    "makeSignInLink",
    "signInByLink",
    "giveOperator",
    "endOperator",
    "pauseUser",
    "unpauseUser",
    "removeUser",
    "offerShare",
    "getOffer",
    "acceptShare",
    "narrowShare",
    "widenShare",
    "endShare",
    "leaveShare",
    "resumeShare",
    "handOverShare",
]
"""Deeds on an account itself, besides what apps read. A deed that is also an operation has the operation's name, so
that it is one entry whoever did it."""

DEEDS = frozenset(get_args(Deed))

log = logging.getLogger("bankdata.record")


class AccessRecord:
    """Counts apps' calls and people's deeds in memory, and writes the counts to the store; safe from any thread."""

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
        """Count one more call of an operation or tool, or one more deed, in memory. One that is not among those already
        counted is dropped where 20,000 different ones wait to be written."""
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
        """Write the counts every five seconds until `close`; for a thread of its own."""
        while not self._stopped.wait(WRITE_EVERY):
            self.write()

    def write(self) -> None:
        """Write the counts to the store. A failure is logged, and the counts are kept for the next time."""
        with self._writing:
            with self._lock:
                counted, self._counted = self._counted, {}
            if not counted:
                return
            was_waiting, self._is_waiting = self._is_waiting, True
            # Whatever it is: there is a next time, and no count is lost
            with contain(log, "the record could not be written yet", is_expected=lambda: was_waiting):
                now = self._now()
                access_record.add(self._database, counted, now=now)
                self._is_waiting = False
                self._tell_offers(counted, without_zone(now))
                return
            self._put_back(counted)

    def tell(self, session: Session, user_id: str, deed: Deed, *, name: str = "") -> None:
        """Tell the user of a deed, in the transaction that does it; `name` is that of the app that it concerns."""
        of_access.tell_of(session, user_id, deed, now=without_zone(self._now()), name=name)

    def _tell_offers(self, counted: Mapping[Counted, Count], now: datetime) -> None:
        for user_id in {user_id for user_id, _, _, deed in counted if deed == of_access.OFFERED}:
            with contain(log, "a notice of an offer could not be written"):
                self._database.atomically(partial(of_access.tell_offers, user_id=user_id, now=now))

    def close(self) -> None:
        """Stop `keep_writing`, and write the remaining counts."""
        self._stopped.set()
        self.write()

    def hours(self, user_id: str, *, since: datetime | None = None) -> Iterator[list[Entry]]:
        """The entries of a user by hour, the latest hour first, since a time or in all the 13 months that are kept; in
        lists of which the last may be empty. Writes waiting counts first."""
        self.write()
        return access_record.hours(self._database, user_id, since=since or self._now() - lifetimes.ACCESS_RECORD)

    def last_of(self, user_id: str, deed: Deed) -> datetime | None:
        """When the user last did this; None where that is longer ago than the record goes."""
        self.write()
        moment = access_record.last_of(self._database, user_id, deed)
        return aware(moment) if moment is not None else None

    def overview(self, user_id: str, *, within: timedelta) -> list[Entry]:
        """The entries of a user within the last `within`, each the sum of one grant's and app's calls of one operation,
        the one called last first. Writes waiting counts first."""
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
