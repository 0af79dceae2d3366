"""The cleanup of the authorization server's data: every ten minutes by one process, and never as part of a request."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from auth.apps.clients import BUILTIN
from auth.instants import Now
from auth.people.sessions import IDLE, LIFETIME
from auth.record import KEPT_FOR
from storage import store_facts
from storage.database import Conflict, Database, Session
from storage.oauth import access_record, cleanup
from storage.oauth.moments import in_utc

SWEEP_EVERY = timedelta(minutes=10)
SWEPT_AT = "what the authorization server forgets was swept at"
CLIENT_KEPT = timedelta(days=365)  # after the last use, so that an app whose access has ended can ask again


class Cleanup:
    """Deletes data of the authorization server that can never matter again."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now

    def sweep_when_due(self) -> None:
        """Run the cleanup, unless another process of this store has done so within ten minutes."""
        now = in_utc(self._now())
        assert now is not None
        if self._sweep(lambda session: store_facts.take_turn(session, SWEPT_AT, now=now, every=SWEEP_EVERY)):
            self.sweep()

    def sweep(self) -> None:
        """Delete what has expired."""
        now = self._now()
        self._sweep(
            lambda session: cleanup.sweep(
                session,
                now=now,
                hour_ago=now - timedelta(hours=1),
                day_ago=now - timedelta(days=1),
                session_seen=now - IDLE,
                session_born=now - LIFETIME,
                year_ago=now - CLIENT_KEPT,
                lasting_client=BUILTIN,
            )
        )
        # Apart from the rest: where users are on several machines, one that is away must stop only the part about its
        # users
        self._sweep(lambda session: access_record.remove_before(session, now - KEPT_FOR))

    def _sweep(self, work: Callable[[Session], bool | None]) -> bool | None:
        with suppress(Conflict):  # another process sweeps, or somebody changes a row: the next sweep finds it
            return self._database.atomically(work)
        return None
