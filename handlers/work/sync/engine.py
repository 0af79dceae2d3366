"""The sync engine: takes each job from pending to its end, whoever asks and however many ask at once.

One caller at a time advances a job, in a thread of `handlers.work.sync.concurrency`, never in that of a request. A job
is only advanced when it is due: a source may have said when to ask again.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from datetime import datetime, time, timedelta
from functools import partial
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import asdict
from starlette.concurrency import run_in_threadpool

from connectors.connector import PSD2_SYNCS_MAX, Connector, Person
from handlers.work.clock import Clock
from handlers.work.sync.concurrency import ImportLane, SourceCalls
from handlers.work.sync.job_step import JobStep
from handlers.work.sync.leases import Leases
from handlers.work.sync.outcomes import NOT_SYNCABLE, ONLY_ATTENDED, TIMED_OUT, KeptForPlan, Outcomes, QuotaUsed
from handlers.work.sync.plan import leaves_room, next_moments
from handlers.work.sync.source_connections import Secrets
from handlers.work.sync.stored_secrets import KEY_MISSING
from storage import connections, jobs
from storage.bank_access import source_calls
from storage.bank_access.source_calls import SyncQuota
from storage.boundary import contain
from storage.connections import StoredConnection
from storage.database import Session, Store, StoreFull
from storage.jobs import Job

ANSWER_WITHIN = 8.0  # seconds a reader waits for a step, which then goes on without the reader
LEFT_TO_OTHERS = timedelta(minutes=1)  # how long a missing folder may be on another machine
SOON = 1.0  # seconds; the reader of a job due within them waits, instead of having to ask again at once
STOP_WITHIN = 3.0  # seconds for imports to be stored; a longer one is rolled back when the process ends

log = logging.getLogger("bankdata.sync")


class Started(Struct, frozen=True, kw_only=True):
    """The outcome of a wish to sync one connection: a job, a reason why there is none, or neither (synced too recently,
    being synced, or the source still wants a pause). `is_too_soon` says of a reason that it is the source's allowance,
    and passes by itself.

    A pending job goes on when it is read (`SyncEngine.read`) or advanced. Once it is final, its `refusals` name every
    file that could not be imported and say why, even if the job is completed.
    """

    job: Job | None = None
    error: str | None = None
    is_too_soon: bool = False


class SyncEngine:
    """Starts and advances sync jobs, each step in a thread of its own."""

    def __init__(
        self,
        store: Store,
        connectors: Mapping[str, Connector],
        clock: Clock,
        *,
        cooldown: timedelta,
        after_import: Callable[[str], None],
        secrets: Secrets | None = None,
        plan: Sequence[time] = (),
        stopped: threading.Event | None = None,
    ) -> None:
        """`after_import` is called with the user's id once an import is committed; `plan` are the times of day around
        which live sources are synced, for which a part of each source's quota is reserved."""
        self.import_lane = ImportLane()
        self._store = store
        self._clock = clock
        self._connectors = connectors
        self._secrets = secrets
        self._cooldown = cooldown
        self._plan = plan
        self._calls = SourceCalls()
        self._lock = threading.Lock()
        # By job id; a future is done when the step is, with the full disk that kept it from being stored, or when the
        # engine stops
        self._steps: dict[str, Future[StoreFull | None]] = {}
        self.stopped = stopped or threading.Event()  # set: this process advances no more jobs
        self.leases = Leases(store, clock, self.stopped)
        self._outcomes = Outcomes(store, clock)
        self._step = JobStep(
            store=store,
            connectors=connectors,
            secrets=secrets,
            clock=clock,
            outcomes=self._outcomes,
            lane=self.import_lane,
            leases=self.leases,
            stopped=self.stopped,
            after_import=after_import,
        )

    @property
    def source_calls(self) -> int:
        """The number of steps of sync jobs now running in threads. A step calls a source and also stores what it
        got."""
        return self._calls.running

    def start(
        self,
        connection: StoredConnection,
        *,
        cooldown: timedelta | None = None,
        job_id: str | None = None,
        is_first: bool = False,
        is_forced: bool = False,
        keeps_plan: bool = False,
        attended: Person | None = None,
    ) -> Started:
        """Start a job for the connection, if its state, an earlier job's cool-down and the source's quota allow one; it
        is stored, and not advanced yet. It begins a cool-down until the next job: `cooldown`, or without it the
        engine's. A job of the connection that made no progress for too long is ended first, and a consent that has run
        out is marked.

        `is_forced`, for the operator and for news at a local source, ignores our own cool-down, never the limits of the
        source. `attended` is the person who is certainly present and asks for this: then the quota that the law sets
        for their absence (PSD2_SYNCS_MAX) does not count. With `keeps_plan`, the part of the quota that planned syncs
        need is left to them. `is_first` is the sync that belongs to connecting or renewing: it begins no cool-down
        (decision 25), and its user has just been present.
        """
        now, user_id = self._clock.now(), connection.user_id
        database = self._store.of(user_id)
        if (refusal := self._refusal(connection, now=now, is_first=is_first)) is not None:
            return Started(error=refusal)
        running = jobs.find_running(database, user_id, connection.id)
        if running is not None:
            self._end_if_overdue(running)

        def begin(session: Session) -> Job | None:
            quota = self.quota(session, connection, now=now)
            job = jobs.start(
                session,
                user_id=user_id,
                connection_id=connection.id,
                cooldown=timedelta(0) if is_first else self._cooldown if cooldown is None else cooldown,
                now=now,
                job_id=job_id,
                is_forced=is_forced,
                attended=asdict(attended) if attended is not None else None,
            )
            if job is None or quota is None or (attended is not None and quota.limit <= PSD2_SYNCS_MAX):
                return job
            if not quota.remaining:
                raise QuotaUsed(quota.limit, self._clock.in_zone(quota.resets_at(now)))
            planned = next_moments(connection.id, self._plan, zone=self._clock.zone, now=now)
            if keeps_plan and not leaves_room(quota.calls, planned, limit=quota.limit):
                raise KeptForPlan(quota.limit, self._clock.in_zone(planned[0]))
            source_calls.record(session, user_id, connection.id, job_id=job.id, now=now)
            return job

        try:
            return Started(job=database.atomically(begin))
        except (QuotaUsed, KeptForPlan) as used:  # the transaction is rolled back, with the job
            return Started(error=str(used), is_too_soon=True)

    def _refusal(self, connection: StoredConnection, *, now: datetime, is_first: bool) -> str | None:
        """Why the connection cannot be synced before its user does something; marks a consent that has run out."""
        if not self.has_key(connection):
            return KEY_MISSING
        if connection.status in NOT_SYNCABLE:
            return NOT_SYNCABLE[connection.status]
        # A person's presence is not enough: the PIN comes with a renewal
        if connection.is_attended_only and not is_first:
            return ONLY_ATTENDED
        if connection.is_past_consent(now):
            user_id = connection.user_id
            self._store.of(user_id).atomically(
                lambda session: connections.expire_consents_of(session, user_id, now=now)
            )
            return NOT_SYNCABLE["EXPIRED"]
        return None

    def has_key(self, connection: StoredConnection) -> bool:
        """Whether this machine has the keys of the connection's secrets; True where it has none."""
        return self._secrets is None or self._secrets.can_read(connection)

    def quota(self, session: Session, connection: StoredConnection, *, now: datetime) -> SyncQuota | None:
        """How many syncs without a person present the connection's source allows in 24 hours, and when past ones were;
        None if the source has no limit or is unknown to this program."""
        connector = self._connectors.get(connection.connector)
        limit = connector.unattended_syncs_max if connector is not None else None
        if limit is None:
            return None
        return source_calls.quota(session, connection.user_id, connection.id, limit=limit, now=now)

    def sync_now(
        self, connection: StoredConnection, attended: Person | None = None, *, is_first: bool = False
    ) -> Started:
        """Start a job for the connection as `start` does, and begin its first step in a thread: for a person who looks
        at the page, or `is_first`, as part of connecting. Waits for nothing; the job goes on even if nobody reads
        it."""
        started = self.start(connection, is_first=is_first, attended=attended)
        if started.job is not None:
            self.advance(started.job)
        return started

    def read(self, user_id: str, job_id: str) -> Job | None:
        """The user's job after its next step, for commands; None where there is none. Blocks the calling thread for up
        to 8 seconds, after which the job is returned as it is. Raises StoreFull."""
        database = self._store.of(user_id)
        job = jobs.find(database, user_id, job_id)
        step = self.advance(job) if job is not None else None
        for done in wait([step], timeout=ANSWER_WITHIN).done if step is not None else ():
            if (full := done.result()) is not None:
                raise full
        return jobs.find(database, user_id, job_id)

    async def wait_for(self, user_id: str, job_id: str) -> Job | None:
        """The user's job after its next step, for requests; None where there is none. Waits up to about 8 seconds and
        holds no thread meanwhile, so that any number of readers of slow banks delay nobody. A job that is not due
        within a second is only read. Unlike `read`, raises no StoreFull."""
        database = self._store.of(user_id)
        job = await run_in_threadpool(jobs.find, database, user_id, job_id)
        if job is None or job.is_final:
            return job
        pause = self.seconds_until_due(job)
        if 0 < pause <= SOON:
            await asyncio.sleep(pause)
        step = await run_in_threadpool(self.advance, job)
        if step is not None:
            await asyncio.wait([asyncio.wrap_future(step)], timeout=ANSWER_WITHIN)
        return await run_in_threadpool(jobs.find, database, user_id, job_id)

    def seconds_until_due(self, job: Job) -> float:
        """The seconds until the job's source may be asked again; 0 for a job that is due or final."""
        if job.is_final or job.next_attempt_at is None:
            return 0.0
        return max(0.0, (job.next_attempt_at - self._clock.now()).total_seconds())

    def advance(self, job: Job) -> Future[StoreFull | None] | None:
        """Have the next step of the job done in a thread if it is due, and return a future that is done when the step
        is, or when the engine stops; its result is the StoreFull that kept the step from being stored, else None.
        Returns None itself if there is no step to wait for: the job is not due, has ended, is ended now for want of
        progress, or is for another machine."""
        if job.is_final or self._end_if_overdue(job):
            return None
        connection = connections.find(self._store.of(job.user_id), job.user_id, job.connection_id)
        if connection is None:  # its user was removed a moment ago
            return None
        if self._is_for_others(job, connection):
            return None
        with self._lock:
            if job.id in self._steps:
                return self._steps[job.id]
            if self.stopped.is_set() or not job.is_due(self._clock.now()):
                return None
            step = self._steps[job.id] = Future()
        self._calls.submit(partial(self._run, job), provider=connection.connector, user_id=job.user_id)
        return step

    def _is_for_others(self, job: Job, connection: StoredConnection) -> bool:
        """Whether only another machine of a shared store can advance the job, because this one lacks its folder (after
        a minute the folder counts as missing, and the job fails with that) or the key of its connection's secrets."""
        if not self._store.is_shared:
            return False
        if not self.has_key(connection):
            return True
        folder = connection.settings.get("folder")
        is_young = self._clock.now() - job.created_at < LEFT_TO_OTHERS
        return folder is not None and is_young and not Path(folder).is_dir()

    def stop(self) -> None:
        """Begin nothing more, and release everybody who waits for a job. Jobs that are cut off go on elsewhere, or
        after the next start."""
        self.stopped.set()
        self.import_lane.close()
        with self._lock:
            for step in self._steps.values():
                if not step.done():
                    step.set_result(None)

    def close(self, imports: Collection[Future[None]] = ()) -> bool:
        """Stop, wait up to three seconds for these imports and for steps that are running, whatever the sources do, and
        return whether all have ended. Any process may go on at once with what has not."""
        self.stop()
        until = monotonic() + STOP_WITHIN
        has_imported = not wait(imports, timeout=STOP_WITHIN).not_done
        has_ended = self._calls.close(within=max(0.0, until - monotonic()))
        self.leases.give_back_held()
        return has_imported and has_ended

    def _run(self, job: Job) -> None:
        full: StoreFull | None = None
        with contain(log, "job %s could not be advanced", job.id, is_expected=self.stopped.is_set):
            try:
                self._step.take(job)
            except StoreFull as error:  # has been logged; the job goes on when there is room again
                full = error
        with self._lock:
            step = self._steps.pop(job.id)
            if not step.done():
                step.set_result(full)

    def _end_if_overdue(self, job: Job) -> bool:
        """Fail the job if it made no progress for 15 minutes (decision 26), unless it waits for a turn to import or
        another process works at it; returns whether it was failed."""
        if not job.is_overdue(self._clock.now()):
            return False
        if self.import_lane.holds(job.id):  # the job waits for us, not for its source
            return False
        database = self._store.of(job.user_id)
        # Its holder knows better
        if jobs.is_held_elsewhere(database, job, holder=self.leases.holder, now=self._clock.now()):
            return False
        self._outcomes.fail(job, TIMED_OUT)
        return True
