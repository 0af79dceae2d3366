"""The scheduler: advances the jobs that nobody reads, and looks where there is news without being asked."""

import logging
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta

from connectors.connector import Connector
from handlers.clock import Clock
from handlers.sync.engine import SyncEngine
from handlers.sync.job_import import as_source
from handlers.sync.sorting import Sorting
from storage import connections, jobs
from storage.database import Database

ROUND_PAUSE = 2.0  # seconds between two rounds
READERS_FIRST = timedelta(seconds=5)  # a job that has been due for so long is nobody's but the scheduler's
NEWS_EVERY = timedelta(seconds=10)  # how often sources are looked at that have news without being asked

log = logging.getLogger("bankdata.sync")


class Scheduler:
    """Rounds over all unfinished jobs, until the engine stops."""

    def __init__(
        self,
        engine: SyncEngine,
        database: Database,
        connectors: Mapping[str, Connector],
        clock: Clock,
        *,
        on_new_day: Callable[[date], None],
    ) -> None:
        """`on_new_day` is called once with each day that begins while this works."""
        self._engine = engine
        self._database = database
        self._connectors = connectors
        self._clock = clock
        self._looked_at = clock.now()
        self._day = clock.today()
        self._on_new_day = on_new_day
        self._sorting = Sorting(database, engine.import_lane, now=clock.now())

    def work(self) -> None:
        """Advance until the engine stops what nobody reads, and end what got stuck: for a thread of its own."""
        while not self._engine.stopped.wait(ROUND_PAUSE):
            try:
                self.round()
            except Exception:
                if not self._engine.is_stopping:
                    log.exception("the scheduler goes on after an error")

    def round(self) -> None:
        """End consents that have run out, advance what is due and read by nobody, begin a new day, look for news, keep
        the store sorted."""
        now = self._clock.now()
        self._database.atomically(lambda session: connections.expire_consents(session, now=now))
        for job in jobs.unfinished(self._database):
            due_since = max(job.created_at, job.next_attempt_at or job.created_at)
            if due_since <= now - READERS_FIRST or job.is_overdue(now):
                self._engine.advance(job)
        today = self._clock.today()
        if today != self._day:
            self._day = today
            self._on_new_day(today)
        if now - self._looked_at >= NEWS_EVERY:
            self._looked_at = now
            self._look_for_news(now)
        self._sorting.advance(now)

    def _look_for_news(self, now: datetime) -> None:
        """Start a sync of every connection at whose source a free look shows something new. The 30 minutes are there
        for banks; they hold here too for a connection whose last syncs failed."""
        local = [name for name, connector in self._connectors.items() if connector.is_local]
        for connection in connections.of_connectors(self._database, local):
            if self._connectors[connection.connector].has_news(as_source(connection), now=now):
                is_well = connection.failures_in_row == 0
                self._engine.start(connection, cooldown=timedelta(0) if is_well else None, is_forced=is_well)
