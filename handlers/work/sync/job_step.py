"""Takes one step of a job: asks its source to begin, asks whether it is ready, or imports what the source has.

The batches of a source are stored one by one, each in its own transaction (decision 26). Cursor and a part of the count
are stored with each batch, so that a crash repeats one batch at most. A refused batch leaves the cursor unchanged, for
later batches too, so that the next sync gets it again.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import Batch, InvalidRecord, Record
from connectors import connector as source
from connectors.connector import UNREADABLE, Connector, LeftOut, SourceError, Waiting, as_sentence
from handlers.work.clock import Clock
from handlers.work.sync.concurrency import Closed, ImportLane
from handlers.work.sync.leases import Leases
from handlers.work.sync.outcomes import INTERNAL, Outcomes
from handlers.work.sync.source_connections import Secrets, source_connection
from storage import accounts, connections, integrity, jobs
from storage.boundary import contain
from storage.connections import StoredConnection
from storage.database import Database, Session, Store, StoreFull, StoreUnavailable, Transaction
from storage.importing import runs
from storage.importing.batches import ReadBatch, read_batch
from storage.jobs import Job, JobEnded, RefusedBatch

FORESEEN = (JobEnded, Closed, SourceError, StoreFull, StoreUnavailable, InvalidRecord)
SILENT = "The bank reported no transaction of this account, not even those of the last days. The next sync asks again."
NOT_REPORTED = "The bank no longer reports this account. Hide it if it is closed."
BOOKING_BYTES = 500  # of a file, about
REPORTED_AGAIN_DAYS = 30  # even the bank with the shortest memory reports bookings of these days again

log = logging.getLogger("bankdata.sync")


class JobStep(Struct, frozen=True, kw_only=True):
    """Takes the next step of a sync job. What goes wrong at its source ends the job with a reason, or puts it off; a
    store that does not answer or the end of the process leaves it as it is. `after_import` is called with the user's id
    once an import is committed; `stopped` ends the reading."""

    store: Store
    connectors: Mapping[str, Connector]
    secrets: Secrets | None
    clock: Clock
    outcomes: Outcomes
    lane: ImportLane
    leases: Leases
    stopped: threading.Event
    after_import: Callable[[str], None]

    def take(self, wanted: Job) -> None:
        """Lease the job, do what it needs next (begin at the source, ask whether it is ready, or import) and store the
        outcome, be it a failure. Does nothing if another process has the lease, or no connection is left."""
        database, holder = self.store.of(wanted.user_id), self.leases.holder
        try:
            job = database.atomically(lambda session: jobs.lease(session, wanted, holder=holder, now=self.clock.now()))
            connection = connections.find(database, job.user_id, job.connection_id) if job is not None else None
            if job is not None and connection is not None:
                with self.leases.keep(job):
                    self._take_leased(job, connection)
        except Closed:
            log.info("job %s goes on elsewhere, or after the next start", wanted.id)
            self.leases.give_back(wanted)
        except StoreUnavailable:
            log.warning("job %s goes on when the database answers", wanted.id)
            self.leases.end_later(wanted)

    def _take_leased(self, job: Job, connection: StoredConnection) -> None:
        try:
            with contain(log, "job %s failed", job.id, is_expected=self.stopped.is_set, passes=FORESEEN):
                self._advance(job, connection)
                return
            if not self.stopped.is_set():  # else the store was closed during the step
                self.outcomes.fail(job, INTERNAL)
        except JobEnded:
            log.info("job %s was ended by somebody else", job.id)
        except SourceError as error:
            log.warning("job %s failed: %s %s", job.id, type(error).__name__, error.detail)
            is_local = self.connectors[connection.connector].is_local
            self.outcomes.refuse(job, connection, error, is_local=is_local)
        except (Closed, StoreUnavailable):
            raise
        except (InvalidRecord, StoreFull) as error:
            self.outcomes.fail(job, str(error))

    def _advance(self, job: Job, connection: StoredConnection) -> None:
        database, now = self.store.of(job.user_id), self.clock.now()
        if connection.is_past_consent(now):
            raise source.ConsentExpired
        connector, meant = (
            self.connectors[connection.connector],
            source_connection(connection, self.secrets, job.attended),
        )
        handle = job.handle
        if handle is None:
            handle = dict(connector.start_refresh(meant, now=now))
            jobs.progress(database, job, status="syncing", handle=handle, now=self.clock.now())
        if job.status != "importing":
            outcome = connector.poll_refresh(meant, handle, now=now)
            handle = dict(outcome.handle) if outcome.handle is not None else handle
            if isinstance(outcome, Waiting):
                self.outcomes.wait(job, handle, outcome.seconds)
                return
            if outcome.consent_expires_at is not None:
                connections.keep_consent(database, job.user_id, connection.id, expires_at=outcome.consent_expires_at)
            jobs.progress(database, job, status="importing", handle=handle, now=self.clock.now())
        self._import(job, connection, connector, meant, handle)

    def _import(
        self,
        job: Job,
        connection: StoredConnection,
        connector: Connector,
        asked: source.Connection,
        handle: source.Json,
    ) -> None:
        """Fetch and store batch by batch, then complete the job; raises what the source or the store raises. Even then
        `after_import` is called if the job has stored any batch, unless the process is about to end."""
        batches = connector.fetch(asked, handle, cursor=connection.cursor, today=self.clock.today())
        reported: set[str] = set()
        is_whole = True  # a cursor past a refused batch would skip that batch's bookings forever
        try:
            while (done := self._next(job, connection, connector.is_local, batches, keeps_cursor=is_whole)) is not None:
                batch, refusal, account_ids = done
                reported.update(account_ids)
                if isinstance(batch, LeftOut):
                    continue
                is_whole = is_whole and refusal is None
                # The batch stays stored, whatever happens to its file
                with contain(log, "job %s could not tidy up after a batch", job.id):
                    connector.settle(asked, handle, batch=batch, refusal=refusal)
            if not connector.is_local:
                self._see_to_missing_accounts(job, connection, reported)
            self.outcomes.complete(job)
        finally:
            self._follow_up(job)

    def _next(
        self,
        job: Job,
        connection: StoredConnection,
        is_local: bool,
        batches: Iterator[Batch | LeftOut],
        *,
        keeps_cursor: bool,
    ) -> tuple[Batch | LeftOut, str | None, Sequence[str]] | None:
        """Read and store the next batch, whole or not at all; a refusal is stored in the job, and so are warnings about
        a local batch. The batch's cursor is stored only if `keeps_cursor`. Returns the batch, why it was refused or is
        incomplete (else None), and the ids of the accounts it is about; None after the last one.

        A local source keeps its turn in the import lane while it is read; an answer over a network takes long, so it is
        read before the turn begins.
        """
        with self.lane.turn(job.user_id, job_id=job.id) if is_local else nullcontext():
            batch = next(batches, None)
            if batch is None:
                return None
            if isinstance(batch, LeftOut):
                self._refuse(job, RefusedBatch(name=batch.name, reason=batch.reason))
                return batch, batch.reason, ()
            try:
                read = read_batch(replace(batch, records=self._until_stopped(batch.records)), today=self.clock.today())
                size = len(read.spool) * BOOKING_BYTES
                with nullcontext() if is_local else self.lane.turn(job.user_id, size=size, job_id=job.id):
                    cursor = batch.cursor if keeps_cursor else None
                    account_ids, is_silent = self._keep(job, connection, read, cursor, may_be_empty=is_local)
            except (*UNREADABLE, InvalidRecord) as error:
                log.warning("job %s refused a batch: %s", job.id, type(error).__name__)
                refusal = RefusedBatch(name=batch.name or batch.id, reason=as_sentence(error))
                self._refuse(job, refusal)
                return batch, refusal.reason, ()
            for warning in batch.warnings if is_local else ():
                self._refuse(job, RefusedBatch(name=batch.name or batch.id, reason=warning))
            if is_silent:
                self._refuse(job, RefusedBatch(name=batch.name or batch.id, reason=SILENT))
            return batch, SILENT if is_silent else None, account_ids

    def _refuse(self, job: Job, refusal: RefusedBatch) -> None:
        self._of(job).atomically(lambda session: jobs.refuse(session, job, refusal))

    def _see_to_missing_accounts(self, job: Job, connection: StoredConnection, reported: Collection[str]) -> None:
        """Add a refusal to the job for each account that the connection brought before and the source now leaves out,
        unless a refusal names it already: the sync is not complete for it. If a new account seems to be it under
        another id, the user is asked instead."""
        database = self._of(job)
        brought = connections.account_ids(database, job.user_id, job.connection_id)
        found = jobs.find(database, job.user_id, job.id)
        assert found is not None, "a job vanished"
        excused = {refusal.name for refusal in found.refusals}
        missing = {
            each.id: each.label
            for each in accounts.of_user(database, job.user_id)
            if each.id in brought and each.id not in reported and each.label not in excused
        }
        if not missing:
            return
        database.atomically(
            lambda session: runs.ask_about_missing(
                session, job, connection, reported=reported, missing=missing.keys(), now=self.clock.now()
            )
        )
        in_question = {each.same_as for each in accounts.every(database, job.user_id)}
        for id_, label in missing.items():
            if id_ not in in_question:
                self._refuse(job, RefusedBatch(name=label, reason=NOT_REPORTED))

    def _keep(
        self,
        job: Job,
        connection: StoredConnection,
        read: ReadBatch,
        cursor: source.Json | None,
        *,
        may_be_empty: bool,
    ) -> tuple[Sequence[str], bool]:
        """Store the batch, and the cursor if there is one. Returns the ids of the accounts it is about, and whether the
        source was silent: it reported no booking, not even those it must report again. Then the cursor is not stored.
        `may_be_empty` says that silence is no fault."""

        def store(session: Transaction) -> tuple[Sequence[str], bool]:
            reports = runs.store_batch(session, job, connection, read, now=self.clock.now())
            ids = [each.account_id for each in reports]
            is_empty = not any(each.new or each.known for each in reports)
            is_silent = is_empty and not may_be_empty and _are_bookings_stored(session, job.user_id, ids, read)
            if cursor is not None and not is_silent:
                connections.keep_cursor(session, job.user_id, connection.id, cursor)
            return ids, is_silent

        return self._of(job).atomically(store)

    def _until_stopped(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if self.stopped.is_set():
                raise Closed
            yield record

    def _follow_up(self, job: Job) -> None:
        found = jobs.find(self._of(job), job.user_id, job.id)
        if found is not None and found.new_transactions is not None and not self.stopped.is_set():
            self.after_import(job.user_id)

    def _of(self, job: Job) -> Database:
        return self.store.of(job.user_id)


def _are_bookings_stored(session: Session, user_id: str, account_ids: Sequence[str], read: ReadBatch) -> bool:
    """Whether bookings are stored for days that the source claims to have reported, of the last 30; the first and last
    day do not count, as they may be reported in part."""
    day = timedelta(days=1)
    for statement in (each.statement for each in read.statements):
        if statement.told_from is not None and statement.told_until is not None:
            first = max(statement.told_from, statement.told_until - timedelta(days=REPORTED_AGAIN_DAYS)) + day
            last = statement.told_until - day
            if integrity.is_any_booked(session, user_id, account_ids, first=first, last=last):
                return True
    return False
