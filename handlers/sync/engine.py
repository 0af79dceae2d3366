"""The sync engine: takes a job from pending to its end, whoever asks and however many ask at once.

One caller at a time advances a job, in a thread of `handlers.sync.concurrency`, never in that of a request. A job is
due or not: what its source said of the next attempt is obeyed. Batches are stored one by one, each in a transaction of
its own with its cursor and its part of the count, so that a crash repeats one batch at most (decision 26).
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from starlette.concurrency import run_in_threadpool

from connectors import connector as source
from connectors.connector import UNREADABLE, Connector, SourceError, Waiting, as_sentence
from handlers.clock import Clock
from handlers.sync.concurrency import Closed, ImportLane, SourceCalls
from storage import connections, jobs
from storage.connections import StoredConnection
from storage.database import Conflict, Database, Session, StoreError, Transaction
from storage.importing import runs
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.records import Batch, InvalidRecord, Record
from storage.jobs import Job, JobEnded, RefusedBatch

ANSWER_WITHIN = 8.0  # seconds a reader waits for a step that goes on without it
SOON = 1.0  # seconds; who reads a job that is due so soon waits for it, and does not come again at once
ROUND_PAUSE = 2.0  # seconds between two rounds of the scheduler
READERS_FIRST = timedelta(seconds=5)  # a job that has been due for so long is nobody's but the scheduler's
RETRY_SECONDS_MAX = 60.0  # a source that wants longer pauses ends the job, and may be asked again when it said
NEWS_EVERY = timedelta(seconds=10)  # how often sources are looked at that have news without being asked
STOP_WITHIN = 3.0  # seconds for what is being stored; what takes longer is rolled back by the end of the process
TIMED_OUT = "The sync timed out"
INTERNAL = "The sync failed because of an internal error"
TOO_SLOW = "The bank asked for more time than a sync may take. Try again later."

STATUS_AFTER: Mapping[type[SourceError], connections.Status | None] = {
    source.UserActionRequired: "REAUTH_REQUIRED",
    source.ConsentExpired: "EXPIRED",
    source.ConsentRevoked: "REVOKED",
    source.Misconfigured: "ERROR",
}
"""What a failure means for the connection; every other one leaves it as it is until three in a row (decision 23)."""

NOT_SYNCABLE: Mapping[str, str] = {
    "REAUTH_REQUIRED": str(source.UserActionRequired()),
    "EXPIRED": str(source.ConsentExpired()),
    "REVOKED": str(source.ConsentRevoked()),
    "DISCONNECTED": connections.REMOVED,
}
"""Connections that need their user first, and what the user is told (decision 27)."""

log = logging.getLogger("bankdata.sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What became of the wish to sync one connection: a job, a reason why not, or neither (too recent).

    The job goes on by itself. Read it (`SyncEngine.read`) until it is final; its `refusals` then name every file that
    could not be imported and say why, in a completed job too.
    """

    job: Job | None = None
    error: str | None = None


class SyncEngine:
    """Starts and advances sync jobs."""

    def __init__(
        self,
        database: Database,
        connectors: Mapping[str, Connector],
        clock: Clock,
        *,
        cooldown: timedelta,
        after_import: Callable[[str], None],
    ) -> None:
        """`after_import` is called with the user's id once an import is committed."""
        self.import_lane = ImportLane()
        self._database = database
        self._connectors = connectors
        self._clock = clock
        self._cooldown = cooldown
        self._after_import = after_import
        self._calls = SourceCalls()
        self._lock = threading.Lock()
        self._steps: dict[str, Future[None]] = {}  # by job id; done when the step is, or when the engine stops
        self._importing: set[str] = set()  # ids of jobs that wait for the lane or are being stored: our own time
        self._stopped = threading.Event()
        self._looked_at = clock.now()

    @property
    def is_stopping(self) -> bool:
        """Whether no job goes on in this process any more."""
        return self._stopped.is_set()

    @property
    def source_calls(self) -> int:
        """How many requests to sources are under way."""
        return self._calls.running

    def start(
        self,
        connection: StoredConnection,
        *,
        cooldown: timedelta | None = None,
        job_id: str | None = None,
        is_forced: bool = False,
    ) -> Started:
        """A job for the connection, if its state and the rate rule allow one; `is_forced`, for the operator alone,
        goes past our own rule, never past what the source has said of itself."""
        now = self._clock.now()
        if connection.status in NOT_SYNCABLE:
            return Started(error=NOT_SYNCABLE[connection.status])
        if _is_past_consent(connection, now):
            self._database.atomically(lambda session: connections.expire_consents(session, now=now))
            return Started(error=NOT_SYNCABLE["EXPIRED"])
        running = jobs.running(self._database, connection.id)
        if running is not None:
            self._end_if_overdue(running)
        job = self._database.atomically(
            lambda session: jobs.start(
                session,
                user_id=connection.user_id,
                connection_id=connection.id,
                cooldown=self._cooldown if cooldown is None else cooldown,
                now=now,
                job_id=job_id,
                is_forced=is_forced,
            )
        )
        return Started(job=job)

    def read(self, user_id: str, job_id: str) -> Job | None:
        """The user's job after its next step, for commands: the calling thread waits for it for 8 seconds at most."""
        job = jobs.find(self._database, user_id, job_id)
        step = self.advance(job) if job is not None else None
        if step is not None:
            wait([step], timeout=ANSWER_WITHIN)
        return jobs.find(self._database, user_id, job_id)

    async def awaited(self, user_id: str, job_id: str) -> Job | None:
        """The user's job after its next step, for requests: whoever waits keeps no thread meanwhile, so that any number
        of readers of slow banks hold up nobody. A job that is not due, nor soon, is only read."""
        job = await run_in_threadpool(jobs.find, self._database, user_id, job_id)
        if job is None or job.is_final:
            return job
        pause = self.seconds_until_due(job)
        if 0 < pause <= SOON:
            await asyncio.sleep(pause)
        step = await run_in_threadpool(self.advance, job)
        if step is not None:
            await asyncio.wait([asyncio.wrap_future(step)], timeout=ANSWER_WITHIN)
        return await run_in_threadpool(jobs.find, self._database, user_id, job_id)

    def seconds_until_due(self, job: Job) -> float:
        """How long asking again is pointless; 0 for a job that is due or final."""
        if job.is_final or job.next_attempt_at is None:
            return 0.0
        return max(0.0, (job.next_attempt_at - self._clock.now()).total_seconds())

    def advance(self, job: Job) -> Future[None] | None:
        """Have the next step of the job done if it is due. The future is done when the step is; None when there is
        none to wait for. This never waits for a source."""
        if job.is_final or self._end_if_overdue(job):
            return None
        with self._lock:
            if job.id in self._steps:
                return self._steps[job.id]
        connection = connections.find(self._database, job.user_id, job.connection_id)
        if connection is None:  # its user has been removed a moment ago
            return None
        with self._lock:
            if job.id in self._steps:
                return self._steps[job.id]
            if self._stopped.is_set() or not job.is_due(self._clock.now()):
                return None
            step = self._steps[job.id] = Future()
        self._calls.submit(partial(self._run, job.id), provider=connection.connector, user_id=job.user_id)
        return step

    def work(self) -> None:
        """Advance until `close` what nobody reads, and end what got stuck: for a thread of its own."""
        while not self._stopped.wait(ROUND_PAUSE):
            try:
                self._round()
            except Exception:
                if not self._stopped.is_set():
                    log.exception("the scheduler goes on after an error")

    def stop(self) -> None:
        """Begin nothing more, and let everybody go who waits for a job. Jobs that are cut off go on after the next
        start."""
        self._stopped.set()
        self.import_lane.close()
        with self._lock:
            for step in self._steps.values():
                if not step.done():
                    step.set_result(None)

    def close(self) -> bool:
        """Stop, within seconds whatever sources do; whether nothing runs any more."""
        self.stop()
        return self._calls.close(within=STOP_WITHIN)

    def _round(self) -> None:
        now = self._clock.now()
        self._database.atomically(lambda session: connections.expire_consents(session, now=now))
        for job in jobs.unfinished(self._database):
            due_since = max(job.created_at, job.next_attempt_at or job.created_at)
            if due_since <= now - READERS_FIRST or job.is_overdue(now):
                self.advance(job)
        if now - self._looked_at >= NEWS_EVERY:
            self._looked_at = now
            self._look_for_news(now)

    def _look_for_news(self, now: datetime) -> None:
        """Start a sync of every connection at whose source a free look shows something new. The 30 minutes are there
        for banks; they hold here too for a connection whose last syncs failed."""
        local = [name for name, connector in self._connectors.items() if connector.is_local]
        for connection in connections.of_connectors(self._database, local):
            if self._connectors[connection.connector].has_news(_as_source(connection), now=now):
                is_well = connection.failures_in_row == 0
                self.start(connection, cooldown=timedelta(0) if is_well else None, is_forced=is_well)

    def _run(self, job_id: str) -> None:
        try:
            self._step(job_id)
        except Exception:
            if not self._stopped.is_set():
                log.exception("job %s could not be advanced", job_id)
        finally:
            with self._lock:
                step = self._steps.pop(job_id)
                if not step.done():
                    step.set_result(None)

    def _step(self, job_id: str) -> None:
        try:
            job = self._database.atomically(lambda session: jobs.lease(session, job_id, now=self._clock.now()))
        except Conflict:
            return
        connection = connections.find(self._database, job.user_id, job.connection_id) if job is not None else None
        if job is None or connection is None:
            return
        try:
            self._take_step(job, connection)
        except JobEnded:
            log.info("job %s was ended by somebody else", job.id)
        except Closed:
            log.info("job %s goes on after the next start", job.id)
        except SourceError as error:
            log.warning("job %s failed: %s %s", job.id, type(error).__name__, error.detail)
            self._refused(job, error)
        except (InvalidRecord, StoreError) as error:
            self._fail(job, str(error))
        except Exception:
            if self._stopped.is_set():  # the store has been closed under it
                return
            log.exception("job %s failed", job.id)
            self._fail(job, INTERNAL)

    def _take_step(self, job: Job, connection: StoredConnection) -> None:
        now = self._clock.now()
        if _is_past_consent(connection, now):
            raise source.ConsentExpired
        connector, asked = self._connectors[connection.connector], _as_source(connection)
        handle = job.handle
        if handle is None:
            handle = dict(connector.start_refresh(asked, now=now))
            jobs.progress(self._database, job.id, status="syncing", handle=handle, now=self._clock.now())
        if job.status != "importing":
            outcome = connector.poll_refresh(asked, handle, now=now)
            handle = dict(outcome.handle) if outcome.handle is not None else handle
            if isinstance(outcome, Waiting):
                self._wait(job, handle, outcome.seconds)
                return
            if outcome.consent_expires_at is not None:
                connections.keep_consent(self._database, connection.id, expires_at=outcome.consent_expires_at)
            jobs.progress(self._database, job.id, status="importing", handle=handle, now=self._clock.now())
        self._import(job, connection, connector, handle)

    def _wait(self, job: Job, handle: dict[str, object], seconds: float) -> None:
        """The source is not ready and said when to ask again; beyond the job's own time that is a failure now."""
        now = self._clock.now()
        until = now + timedelta(seconds=seconds)
        if seconds >= jobs.PROGRESS_MAX.total_seconds():
            self._fail(job, TOO_SLOW, retry_at=until)
            return
        jobs.progress(self._database, job.id, status="syncing", handle=handle, now=now)
        jobs.put_off(self._database, job.id, until=until)

    def _import(self, job: Job, connection: StoredConnection, connector: Connector, handle: source.Json) -> None:
        asked = _as_source(connection)
        batches = connector.fetch(asked, handle, cursor=connection.cursor, today=self._clock.today())
        try:
            while (done := self._import_next(job, connection, connector.is_local, batches)) is not None:
                batch, refusal = done
                try:
                    connector.settle(asked, handle, batch=batch, refusal=refusal)
                except Exception:  # what is stored stays, whatever becomes of the file
                    log.exception("job %s could not tidy up after a batch", job.id)
            self._complete(job)
        finally:
            self._after(job)

    def _import_next(
        self, job: Job, connection: StoredConnection, is_local: bool, batches: Iterator[Batch]
    ) -> tuple[Batch, str | None] | None:
        """Read and store the next batch, whole or not at all: it, and why it was refused; None after the last one.

        What is read on this machine keeps the import lane while it is read; a network's answer takes its time, so it
        is read before.
        """
        with self._turn(job) if is_local else nullcontext():
            batch = next(batches, None)
            if batch is None:
                return None
            try:
                read = read_batch(replace(batch, records=self._until_stopped(batch.records)), today=self._clock.today())
                with nullcontext() if is_local else self._turn(job):
                    self._store(job, connection, read, batch.cursor)
            except (*UNREADABLE, InvalidRecord) as error:
                log.warning("job %s refused a batch: %s", job.id, type(error).__name__)
                refusal = RefusedBatch(name=batch.name or batch.id, reason=as_sentence(error))
                self._database.atomically(lambda session: jobs.refuse(session, job.id, refusal))
                return batch, refusal.reason
            return batch, None

    def _store(self, job: Job, connection: StoredConnection, read: ReadBatch, cursor: source.Json | None) -> None:
        def store(session: Transaction) -> None:
            runs.store_batch(session, job, connection, read, now=self._clock.now(), cursor=cursor)

        self._database.atomically(store)

    @contextmanager
    def _turn(self, job: Job) -> Iterator[None]:
        """The job's turn in the import lane; neither the waiting for it nor the import is the source's time."""
        with self._lock:
            self._importing.add(job.id)
        try:
            with self.import_lane.turn():
                yield
        finally:
            with self._lock:
                self._importing.discard(job.id)

    def _until_stopped(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if self._stopped.is_set():
                raise Closed
            yield record

    def _complete(self, job: Job) -> None:
        """A bad file does not keep good ones out; only when nothing could be read is that a failure of the sync."""
        now = self._clock.now()
        found = jobs.find(self._database, job.user_id, job.id)  # with what earlier steps of it have stored
        if found is not None and found.new_transactions is None and found.refusals:
            self._fail(job, found.refusals[-1].reason)
        else:
            self._database.atomically(lambda session: runs.complete(session, job, now=now))

    def _after(self, job: Job) -> None:
        found = jobs.find(self._database, job.user_id, job.id)
        if found is not None and found.new_transactions is not None and not self._stopped.is_set():
            self._after_import(job.user_id)

    def _refused(self, job: Job, error: SourceError) -> None:
        """A short pause that the source asks for leaves the job as it is; everything else ends it."""
        now, pause = self._clock.now(), error.retry_after
        if pause is not None and pause <= RETRY_SECONDS_MAX:
            with suppress(JobEnded):
                jobs.put_off(self._database, job.id, until=now + timedelta(seconds=pause))
            return
        retry_at = now + timedelta(seconds=pause) if pause is not None else None
        self._fail(job, as_sentence(error), STATUS_AFTER.get(type(error)), retry_at=retry_at)

    def _fail(
        self, job: Job, error: str, status: connections.Status | None = None, *, retry_at: datetime | None = None
    ) -> None:
        def work(session: Session) -> None:
            if jobs.fail(session, job, error=error, now=self._clock.now(), retry_at=retry_at):
                connections.record_failure(session, job.connection_id, status=status)

        self._database.atomically(work)

    def _end_if_overdue(self, job: Job) -> bool:
        """Whether the job made no progress for too long, and has been ended for it (decision 26)."""
        if not job.is_overdue(self._clock.now()):
            return False
        with self._lock:
            if job.id in self._importing:
                return False
        self._fail(job, TIMED_OUT)
        return True


def _is_past_consent(connection: StoredConnection, now: datetime) -> bool:
    return connection.consent_expires_at is not None and connection.consent_expires_at <= now


def _as_source(connection: StoredConnection) -> source.Connection:
    return source.Connection(
        id=connection.id,
        user_id=connection.user_id,
        bank_name=connection.bank_name,
        settings=connection.settings,
    )
