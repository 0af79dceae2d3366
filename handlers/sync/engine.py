"""The sync engine: takes a job from pending to its end, whoever asks and however many ask at once.

One caller at a time holds a job's lease; the import and the end of the job are one transaction, so that any number of
readers import once and a crash leaves either everything or nothing (decision 26).
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from connectors import connector as source
from connectors.connector import Connector, Ready, SourceError, Waiting, as_sentence
from handlers.clock import Clock
from storage import accounts, connections, jobs, users
from storage.connections import StoredConnection
from storage.database import Conflict, Database, Session, StoreError, Transaction
from storage.importing import ingest
from storage.importing.ingest import InvalidRecord, ReadBatch
from storage.importing.records import Batch
from storage.jobs import Job

ANSWER_WITHIN = 8.0  # seconds a reader waits for an import that goes on without it
WORKER_PAUSE = 2.0  # seconds between two rounds of the background worker
ABANDONED = timedelta(seconds=5)  # a job that nobody has read for so long is the worker's
TIMED_OUT = "The sync timed out"
INTERNAL = "The sync failed because of an internal error"

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
}
"""Connections that need their user first, and what the user is told (decision 27)."""

log = logging.getLogger("bankdata.sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What became of the wish to sync one connection: a job, a reason why not, or neither (too recent)."""

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
        self._database = database
        self._connectors = connectors
        self._clock = clock
        self._cooldown = cooldown
        self._after_import = after_import
        self._importers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="import")
        self._running: dict[str, Future[None]] = {}
        self._advanced_at: dict[str, datetime] = {}
        self._running_lock = threading.Lock()
        self._stop = threading.Event()

    def start(
        self, connection: StoredConnection, *, cooldown: timedelta | None = None, job_id: str | None = None
    ) -> Started:
        """A job for the connection, if its state and the rate rule allow one."""
        if connection.status in NOT_SYNCABLE:
            return Started(error=NOT_SYNCABLE[connection.status])
        self._end_overdue(connection)
        job = self._database.atomically(
            lambda session: jobs.start(
                session,
                user_id=connection.user_id,
                connection_id=connection.id,
                cooldown=self._cooldown if cooldown is None else cooldown,
                now=self._clock.now(),
                job_id=job_id,
            )
        )
        return Started(job=job)

    def read(self, user_id: str, job_id: str) -> Job | None:
        """The user's job after advancing it by as much as its source allows right now."""
        job = jobs.find(self._database, user_id, job_id)
        if job is None or job.is_final:
            return job
        self.advance(job)
        return jobs.find(self._database, user_id, job_id)

    def advance(self, job: Job, *, within: float = ANSWER_WITHIN) -> None:
        """One step of the job in a thread of its own. Who began it waits for at most `within` seconds; who comes
        meanwhile does not, so that many readers of one job hold up nobody else."""
        with self._running_lock:
            if job.id in self._running:
                return
            future = self._running[job.id] = self._importers.submit(self._step, job)
            self._advanced_at[job.id] = self._clock.now()
        future.add_done_callback(lambda _done: self._forget(job.id))
        try:
            future.result(timeout=within)
        except StillRunning:
            log.info("job %s goes on in the background", job.id)

    def work(self) -> None:
        """Advance abandoned jobs until `close`: for a thread of its own; reading a job works without it."""
        while not self._stop.wait(WORKER_PAUSE):
            try:
                for job in self._abandoned():
                    if self._stop.is_set():
                        return
                    self.advance(job)
            except Exception:
                if self._stop.is_set():
                    return
                log.exception("the background worker goes on after an error")

    def close(self) -> None:
        """Finish what is being imported and stop."""
        self._stop.set()
        self._importers.shutdown(wait=True)

    def _abandoned(self) -> list[Job]:
        """Jobs that nobody has advanced for a while."""
        unfinished = jobs.unfinished(self._database)
        last = {job.id: self._advanced_at.get(job.id, job.created_at) for job in unfinished}
        self._advanced_at = {id_: at for id_, at in last.items() if id_ in self._advanced_at}
        now = self._clock.now()
        return [job for job in unfinished if now - last[job.id] >= ABANDONED]

    def _forget(self, job_id: str) -> None:
        with self._running_lock:
            self._running.pop(job_id, None)

    def _step(self, job: Job) -> None:
        try:
            leased = self._database.atomically(lambda session: jobs.lease(session, job.id, now=self._clock.now()))
        except Conflict:
            return
        if leased is None:
            return
        connection = connections.find(self._database, job.user_id, job.connection_id)
        if connection is None:  # its user has been removed a moment ago
            return
        try:
            self._take_step(leased, connection)
        except SourceError as error:
            log.warning("job %s failed: %s %s", job.id, type(error).__name__, error.detail)
            self._fail(leased, connection, as_sentence(error), STATUS_AFTER.get(type(error)))
        except (InvalidRecord, StoreError) as error:
            self._fail(leased, connection, str(error), None)
        except Exception:
            log.exception("job %s failed", job.id)
            self._fail(leased, connection, INTERNAL, None)

    def _take_step(self, job: Job, connection: StoredConnection) -> None:
        now = self._clock.now()
        if now - job.updated_at >= jobs.PROGRESS_MAX:
            self._fail(job, connection, TIMED_OUT, None)
            return
        connector = self._connectors[connection.connector]
        asked = _as_source(connection)
        handle = dict(connector.start_refresh(asked, now=now)) if job.status == "pending" else job.handle or {}
        outcome = connector.poll_refresh(asked, handle, now=now) if job.status != "importing" else Ready()
        handle = dict(outcome.handle) if outcome.handle is not None else handle
        if isinstance(outcome, Waiting):
            jobs.progress(self._database, job.id, status="syncing", handle=handle, now=now)
            jobs.release(self._database, job.id)
            return
        jobs.progress(self._database, job.id, status="importing", handle=handle, now=now)
        self._import(job, connection, connector, handle)

    def _import(self, job: Job, connection: StoredConnection, connector: Connector, handle: source.Json) -> None:
        today = self._clock.today()
        asked = _as_source(connection)
        batches, outcomes, refusal = _read_all(
            connector.fetch(asked, handle, cursor=connection.cursor, today=today), today=today
        )
        if refusal is not None and not batches:
            status = STATUS_AFTER.get(type(refusal)) if isinstance(refusal, SourceError) else None
            self._fail(job, connection, as_sentence(refusal), status)
            connector.finish(asked, handle, outcomes=outcomes)  # or the same files would fail every sync to come
            return
        cursor = dict(connector.next_cursor(asked, handle, today=today))
        self._database.atomically(lambda session: self._store(session, job, connection, batches, cursor))
        connector.finish(asked, handle, outcomes=outcomes)
        self._after_import(job.user_id)

    def _store(
        self,
        session: Transaction,
        job: Job,
        connection: StoredConnection,
        batches: list[ReadBatch],
        cursor: dict[str, object],
    ) -> None:
        now = self._clock.now()
        user = users.find(session, job.user_id)
        assert user is not None, "a job outlived its user"
        report = ingest.store(
            session,
            user=user,
            connection=connection,
            job_id=job.id,
            batches=batches,
            now=now,
        )
        if not jobs.complete(session, job, new_transactions=report.new_transactions, now=now):
            raise Conflict("the job has been ended by somebody else")
        connections.record_success(session, connection.id, cursor=cursor)
        accounts.mark_synced(session, user_id=user.id, connection_id=connection.id, now=now)

    def _fail(self, job: Job, connection: StoredConnection, error: str, status: connections.Status | None) -> None:
        def work(session: Session) -> None:
            if jobs.fail(session, job, error=error, now=self._clock.now()):
                connections.record_failure(session, connection.id, status=status)

        self._database.atomically(work)

    def _end_overdue(self, connection: StoredConnection) -> None:
        for job in jobs.overdue(self._database, connection_ids=[connection.id], now=self._clock.now()):
            self._fail(job, connection, TIMED_OUT, None)


Refusal = SourceError | InvalidRecord


def _read_all(
    batches: Iterable[Batch], *, today: date
) -> tuple[list[ReadBatch], dict[str, str | None], Refusal | None]:
    """The batches that can be read whole, for every batch None or why it was refused, and the last refusal.

    A bad file does not keep good ones out; only when nothing can be read is that a failure of the sync.
    """
    read: list[ReadBatch] = []
    outcomes: dict[str, str | None] = {}
    refusal: Refusal | None = None
    for batch in batches:
        try:
            read.append(ingest.read(batch, today=today))
            outcomes[batch.id] = None
        except (SourceError, InvalidRecord) as error:
            outcomes[batch.id], refusal = as_sentence(error), error
    return read, outcomes, refusal


def _as_source(connection: StoredConnection) -> source.Connection:
    return source.Connection(
        id=connection.id,
        user_id=connection.user_id,
        bank_name=connection.bank_name,
        settings=connection.settings,
    )
