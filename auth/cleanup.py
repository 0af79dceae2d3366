"""The cleanup of the authorization server's data: every ten minutes by one process, and never as part of a request."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from auth import lifetimes
from auth.apps.clients import BUILTIN
from auth.instants import Now
from storage import store_facts
from storage.database import Conflict, Database, Session, without_zone
from storage.oauth import access_record, cleanup

SWEPT_AT = "what the authorization server forgets was swept at"


class Cleanup:
    """Deletes data of the authorization server that can never matter again, and old entries of the access record."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now

    def sweep_when_due(self) -> None:
        """Do `sweep`, unless a process of this store has done so within ten minutes."""
        now = without_zone(self._now())
        if self._sweep(lambda session: store_facts.take_turn(session, SWEPT_AT, now=now, every=lifetimes.SWEEP_EVERY)):
            self.sweep()

    def sweep(self) -> None:
        """Delete what has expired, and entries of the access record older than 13 months. What another transaction
        keeps from being deleted, because it changes the same rows, is left for the next sweep."""
        now = self._now()
        self._sweep(
            lambda session: cleanup.sweep(
                session,
                now=now,
                hour_ago=now - timedelta(hours=1),
                day_ago=now - timedelta(days=1),
                session_seen=now - lifetimes.SESSION_IDLE,
                session_born=now - lifetimes.SESSION,
                year_ago=now - lifetimes.CLIENT_UNUSED,
                lasting_client=BUILTIN,
            )
        )
        # Apart from the rest: where users are on several machines, one that is away must stop only the part about its
        # users
        self._sweep(lambda session: access_record.remove_before(session, now - lifetimes.ACCESS_RECORD))

    def _sweep(self, work: Callable[[Session], bool | None]) -> bool | None:
        with suppress(Conflict):  # another process sweeps, or somebody changes a row: the next sweep finds it
            return self._database.atomically(work)
        return None
