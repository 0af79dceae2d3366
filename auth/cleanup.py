"""What the authorization server forgets: swept along with its work, at most every ten minutes."""

from contextlib import suppress
from datetime import datetime, timedelta

from auth.apps.clients import BUILTIN
from auth.instants import Now
from auth.people.sessions import IDLE, LIFETIME
from auth.record import KEPT_FOR
from storage.database import Conflict, Database, Session
from storage.oauth import access_record, cleanup

SWEEP_EVERY = timedelta(minutes=10)
CLIENT_KEPT = timedelta(days=365)  # after its last use: an app whose access has ended can ask again


class Cleanup:
    """Deletes what can never matter again."""

    def __init__(self, database: Database, now: Now) -> None:
        self._database = database
        self._now = now
        self._swept_at: datetime | None = None

    def sweep(self) -> None:
        """Delete what has expired, unless that was done a moment ago."""
        now = self._now()
        if self._swept_at is not None and timedelta() <= now - self._swept_at < SWEEP_EVERY:
            return
        self._swept_at = now

        def work(session: Session) -> None:
            cleanup.sweep(
                session,
                now=now,
                hour_ago=now - timedelta(hours=1),
                day_ago=now - timedelta(days=1),
                session_seen=now - IDLE,
                session_born=now - LIFETIME,
                year_ago=now - CLIENT_KEPT,
                lasting_client=BUILTIN,
            )
            access_record.remove_before(session, now - KEPT_FOR)

        with suppress(Conflict):  # another process sweeps, or somebody changes a row: the next sweep finds it
            self._database.atomically(work)
