"""The scheduler: advances jobs that nobody reads, starts planned syncs, and looks for news at local sources."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from random import SystemRandom
from time import time as unix_time

from connectors.connector import Connector, HasNews
from handlers.work.clock import Clock
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.plan import last_moment, next_moments
from handlers.work.sync.retries import pause_after
from handlers.work.sync.sorting import Sorting
from handlers.work.sync.source_connections import source_connection
from storage import connections, jobs, users
from storage.boundary import contain
from storage.connections import Due, StoredConnection
from storage.database import Store, StoreUnavailable
from storage.events import consent_notices

ROUND_PAUSE = 2.0  # seconds between two rounds
READERS_FIRST = timedelta(seconds=5)  # a job due for so long has no reader, so the scheduler advances it
NEWS_EVERY = timedelta(seconds=10)  # between looks for news at local sources
PLAN_EVERY = timedelta(minutes=1)
AGAIN = timedelta(minutes=10)  # until another try for a sync that could not start, such as for its used-up quota
NEVER = datetime(9999, 12, 31)  # noqa: DTZ001 - without zone as in the store; for connections without a plan

log = logging.getLogger("bankdata.sync")


class Scheduler:
    """Advances unfinished jobs that nobody reads and starts planned syncs, round by round until the engine stops."""

    def __init__(
        self,
        engine: SyncEngine,
        store: Store,
        connectors: Mapping[str, Connector],
        clock: Clock,
        *,
        on_new_day: Callable[[date], None],
        each_minute: Callable[[], None] = lambda: None,
        each_round: Callable[[], None] = lambda: None,
        is_clock_off: Callable[[], bool] = lambda: False,
        plan: Sequence[time] = (),
    ) -> None:
        """`on_new_day` is called at the start of each day while the scheduler works, `each_minute` every minute, and
        nothing else while `is_clock_off`; `each_round` in each round. `plan` are the times of day, in the configured
        zone, around which live sources are synced."""
        self._engine = engine
        self._store = store
        self._everybody = store.for_everybody()
        self._connectors = connectors
        self._clock = clock
        self._plan = plan
        self._is_clock_off = is_clock_off
        self._looked_at = self._planned_at = clock.steady()
        self._consents_ended_at = -PLAN_EVERY  # a starting server looks at once
        self._looks_after: Due | None = None  # the last connection looked at, of those that are due
        self._order = SystemRandom()
        self._day = clock.today()
        self._on_new_day = on_new_day
        self._each_minute = each_minute
        self._each_round = each_round
        self._in_trouble: set[str] = set()  # jobs and connections whose last turn failed, and was logged
        self._sorting = Sorting(store, engine.import_lane, steady=clock.steady())
        self.last_round_at = unix_time()
        """When the last round ended, for monitors: real Unix time, since a demo moves the clock."""

    def work(self) -> None:
        """Do a round every two seconds until the engine stops, whatever fails in one; runs in a thread of its own."""
        is_waiting = False
        while not self._engine.stopped.wait(ROUND_PAUSE):
            with contain(log, "the scheduler goes on after an error", is_expected=self._engine.stopped.is_set):
                try:
                    self.round()
                    is_waiting = False
                except StoreUnavailable:  # one machine of a cluster is enough; requests of users on the others go on
                    if not is_waiting:
                        log.warning("the scheduler waits for the database")
                    is_waiting = True

    def round(self) -> None:
        """Advance due jobs that nobody reads; and when each is due, begin a new day, look for news at local sources,
        keep the plan, mark consents that have run out and note those that soon will, sort the store."""
        now, steady = self._clock.now(), self._clock.steady()
        is_minute = steady - self._planned_at >= PLAN_EVERY
        if is_minute:
            self._planned_at = steady
            self._each_minute()
        if self._is_clock_off():
            self.last_round_at = unix_time()
            return
        unfinished = jobs.find_unfinished(self._everybody)
        paused = users.paused(self._everybody) if unfinished else ()
        for job in unfinished:
            if job.user_id in paused:
                continue  # its source is asked again, or it is overdue, when its user may go on
            due_since = max(job.created_at, job.next_attempt_at or job.created_at)
            if due_since <= now - READERS_FIRST or job.is_overdue(now):
                with self._isolate_errors(job.id):
                    self._engine.advance(job)
        self._each_round()
        today = self._clock.today()
        if today != self._day:
            self._day = today
            self._on_new_day(today)
        if steady - self._looked_at >= NEWS_EVERY:
            self._looked_at = steady
            self._look_for_news(now)
        if is_minute or self._looks_after is not None:
            self._keep_plan(now)
        if steady - self._consents_ended_at >= PLAN_EVERY:
            self._consents_ended_at = steady
            connections.expire_consents(self._everybody, now=now)
            consent_notices.record(self._everybody, now=now)
        self._sorting.advance(steady)
        self.last_round_at = unix_time()

    def _keep_plan(self, now: datetime) -> None:
        """Look at the next few of the connections that are due; further ones follow in the next round. Each of several
        processes goes through them in another order, and the first to write takes the connection."""
        if not self._plan:
            return
        piece = connections.due(self._everybody, now=now, after=self._looks_after)
        self._looks_after = piece[-1] if len(piece) == connections.PIECE else None
        self._order.shuffle(piece)
        paused = users.paused(self._everybody) if piece else ()
        for each in piece:
            with self._isolate_errors(each.connection.id):
                if each.connection.user_id in paused:
                    self._put_off(each, now + AGAIN)
                else:
                    self._look_at(each, now)

    def _look_at(self, due: Due, now: datetime) -> None:
        """Start the planned sync of a live connection if its moment has come, even while the server was down, or retry
        a failed one with growing pauses until the next moment; and store when to look again. A connection whose source
        or key this process does not have is left to others."""
        connection = due.connection
        connector = self._connectors.get(connection.connector)
        if connector is None:
            return
        if connector.is_local:
            self._put_off(due, NEVER)
            return
        moment = last_moment(connection.id, self._plan, zone=self._clock.zone, now=now)
        if moment is not None and moment <= max(connection.created_at, due.planned_at or connection.created_at):
            moment = None  # the sync of this moment was started, or the moment was before the connection
        wanted_at = self._retry_at(due) if moment is None else due.free_at or now
        until = min([*next_moments(connection.id, self._plan, zone=self._clock.zone, now=now), now + timedelta(days=1)])
        if connection.is_attended_only or wanted_at is None:
            self._put_off(due, until)
        elif wanted_at > now:
            self._put_off(due, min(wanted_at, until))
        elif self._engine.has_key(connection):
            until = min(now + AGAIN, until)
            if moment is None:
                if self._put_off(due, until):
                    self._engine.start(connection, keeps_plan=True)
            elif self._claim(connection, moment, until, now):
                self._engine.start(connection)

    def _retry_at(self, due: Due) -> datetime | None:
        """When to retry the connection after its last sync failed: not before its source has rested and a sync is
        allowed. None if the last sync did not fail."""
        connection = due.connection
        if not connection.failures_in_row:
            return None
        newest = jobs.newest_by_connection(self._store.of(connection.user_id), connection.user_id)
        last = newest.get(connection.id)
        if last is None or last.status != "failed":
            return None
        return max(last.updated_at + pause_after(connection.failures_in_row - 1), due.free_at or last.updated_at)

    def _put_off(self, due: Due, at: datetime) -> bool:
        """Store when to look at the connection again; False, with nothing stored, where another process was first."""
        own = self._store.of(due.connection.user_id)
        return own.atomically(lambda session: connections.look_again(session, due, at=at))

    def _claim(self, connection: StoredConnection, moment: datetime, until: datetime, now: datetime) -> bool:
        """Record that the sync planned for `moment` is begun, and `until` as the time of the next look at the
        connection. False, with nothing stored, where it must not begin: another process was first, or a sync is running
        or not allowed yet."""
        return self._store.of(connection.user_id).atomically(
            lambda session: connections.keep_plan(session, connection, planned_at=moment, due_at=until, now=now)
        )

    def _look_for_news(self, now: datetime) -> None:
        """Start a sync of every connection whose local source has something new, which costs nothing to see. The
        cool-down is meant for banks and is ignored here, except for a connection whose last syncs failed."""
        open_ = {
            name: connector
            for name, connector in self._connectors.items()
            if connector.is_local and isinstance(connector, HasNews)
        }
        local = connections.of_connectors(self._everybody, list(open_))
        paused = users.paused(self._everybody) if local else ()
        for connection in local:
            if connection.user_id in paused:
                continue
            with self._isolate_errors(connection.id):
                if open_[connection.connector].has_news(source_connection(connection, None), now=now):
                    is_well = connection.failures_in_row == 0
                    self._engine.start(connection, cooldown=timedelta(0) if is_well else None, is_forced=is_well)

    @contextmanager
    def _isolate_errors(self, id_: str) -> Iterator[None]:
        """A context in which an error with one job, connection or user is logged once, until things go well again, and
        goes no further; StoreUnavailable is passed on, as it concerns all."""
        with contain(
            log,
            "the scheduler goes on without %s",
            id_,
            is_expected=lambda: id_ in self._in_trouble or self._engine.stopped.is_set(),
            passes=(StoreUnavailable,),
        ):
            yield
            self._in_trouble.discard(id_)
            return
        self._in_trouble.add(id_)
