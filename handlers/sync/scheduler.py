"""The scheduler: advances the jobs that nobody reads, and looks where there is news without being asked."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta

from connectors.connector import Connector
from handlers.clock import Clock
from handlers.sync.asked_connections import asked
from handlers.sync.engine import SyncEngine
from handlers.sync.outcomes import pause_after
from handlers.sync.plan import last_planned
from handlers.sync.sorting import Sorting
from storage import connections, jobs
from storage.connections import StoredConnection
from storage.database import Database, StoreUnavailable

ROUND_PAUSE = 2.0  # seconds between two rounds
READERS_FIRST = timedelta(seconds=5)  # a job that has been due for so long is nobody's but the scheduler's
NEWS_EVERY = timedelta(seconds=10)  # how often sources are looked at that have news without being asked
PLAN_EVERY = timedelta(minutes=1)

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
        each_minute: Callable[[], None] = lambda: None,
        plan: Sequence[time] = (),
    ) -> None:
        """`on_new_day` is called once with each day that begins while this works, `each_minute` that often; `plan` are
        the times of the day, in the configured zone, about which live sources are synced."""
        self._engine = engine
        self._database = database
        self._connectors = connectors
        self._clock = clock
        self._plan = plan
        self._looked_at = self._planned_at = clock.now()
        self._day = clock.today()
        self._on_new_day = on_new_day
        self._each_minute = each_minute
        self._in_trouble: set[str] = set()  # jobs and connections whose last turn failed, and was logged
        self._sorting = Sorting(database, engine.import_lane, now=clock.now())

    def work(self) -> None:
        """Advance until the engine stops what nobody reads, and end what got stuck: for a thread of its own."""
        is_waiting = False
        while not self._engine.stopped.wait(ROUND_PAUSE):
            try:
                self.round()
                is_waiting = False
            except StoreUnavailable:  # of many machines one is enough: requests of whose users lie elsewhere go on
                if not is_waiting:
                    log.warning("the scheduler waits for the database")
                is_waiting = True
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
                with self._each_for_itself(job.id):
                    self._engine.advance(job)
        today = self._clock.today()
        if today != self._day:
            self._day = today
            self._on_new_day(today)
        if now - self._looked_at >= NEWS_EVERY:
            self._looked_at = now
            self._look_for_news(now)
        if now - self._planned_at >= PLAN_EVERY:
            self._planned_at = now
            self._each_minute()
            self._keep_plan(now)
        self._sorting.advance(now)

    def _keep_plan(self, now: datetime) -> None:
        """Start the planned sync of every connection to another machine whose moment has come, though the server was
        down then, and one that failed again, with growing pauses, until the next moment."""
        live = [name for name, connector in self._connectors.items() if not connector.is_local]
        for connection in connections.of_connectors(self._database, live) if self._plan else ():
            moment = last_planned(connection.id, self._plan, zone=self._clock.zone, now=now)
            if moment is None or connection.is_attended_only:
                continue
            with self._each_for_itself(connection.id):
                if not self._engine.has_key(connection):
                    continue
                if self._takes(connection, moment, now):
                    self._engine.start(connection)
                elif self._is_tried_again(connection, now):
                    self._engine.start(connection, keeps_plan=True)

    def _is_tried_again(self, connection: StoredConnection, now: datetime) -> bool:
        """Whether the last sync failed and the source has rested for long enough."""
        if not connection.failures_in_row:
            return False
        last = jobs.latest(self._database, connection.user_id).get(connection.id)
        rested = pause_after(connection.failures_in_row - 1)
        return last is not None and last.status == "failed" and now - last.updated_at >= rested

    def _takes(self, connection: StoredConnection, moment: datetime, now: datetime) -> bool:
        """Whether it is this process that starts the planned sync."""
        return self._database.atomically(
            lambda session: connections.keep_plan(session, connection, planned_at=moment, now=now)
        )

    def _look_for_news(self, now: datetime) -> None:
        """Start a sync of every connection at whose source a free look shows something new. The 30 minutes are there
        for banks; they hold here too for a connection whose last syncs failed."""
        local = [name for name, connector in self._connectors.items() if connector.is_local]
        for connection in connections.of_connectors(self._database, local):
            with self._each_for_itself(connection.id):
                if self._connectors[connection.connector].has_news(asked(connection, None), now=now):
                    is_well = connection.failures_in_row == 0
                    self._engine.start(connection, cooldown=timedelta(0) if is_well else None, is_forced=is_well)

    @contextmanager
    def _each_for_itself(self, id_: str) -> Iterator[None]:
        """What goes wrong with one job or connection is logged once, until it goes well again, and holds up no other;
        a store that is away is everybody's."""
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception:
            if id_ not in self._in_trouble and not self._engine.is_stopping:
                log.exception("the scheduler goes on without %s", id_)
            self._in_trouble.add(id_)
        else:
            self._in_trouble.discard(id_)
