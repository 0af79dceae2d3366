"""The import of a job: batches of its source are stored one by one, each in a transaction of its own (decision 26).

Cursor and part of the count go with each batch, so that a crash repeats one batch at most. A refused batch leaves the
cursor where it was, for those after it too: the next sync is told it again.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace

from connectors import connector as source
from connectors.connector import UNREADABLE, Connector, LeftOut, as_sentence
from handlers.clock import Clock
from handlers.sync.concurrency import Closed, ImportLane
from handlers.sync.outcomes import Outcomes
from storage import jobs
from storage.connections import StoredConnection
from storage.database import Database, Transaction
from storage.importing import runs
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.records import Batch, InvalidRecord, Record
from storage.jobs import Job, RefusedBatch

log = logging.getLogger("bankdata.sync")


class JobImport:
    """Imports what sources have ready."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        lane: ImportLane,
        outcomes: Outcomes,
        stopped: threading.Event,
        after_import: Callable[[str], None],
    ) -> None:
        """`after_import` is called with the user's id once an import is committed; `stopped` ends the reading."""
        self._database = database
        self._clock = clock
        self._lane = lane
        self._outcomes = outcomes
        self._stopped = stopped
        self._after_import = after_import

    def run(
        self,
        job: Job,
        connection: StoredConnection,
        connector: Connector,
        asked: source.Connection,
        handle: source.Json,
    ) -> None:
        """Fetch and store batch by batch, then end the job; raises what the source or the store raises."""
        batches = connector.fetch(asked, handle, cursor=connection.cursor, today=self._clock.today())
        is_whole = True  # a cursor that lies behind a refused batch would leave its bookings out for ever
        try:
            while (done := self._next(job, connection, connector.is_local, batches, keeps_cursor=is_whole)) is not None:
                batch, refusal = done
                if isinstance(batch, LeftOut):
                    continue
                is_whole = is_whole and refusal is None
                try:
                    connector.settle(asked, handle, batch=batch, refusal=refusal)
                except Exception:  # what is stored stays, whatever becomes of the file
                    log.exception("job %s could not tidy up after a batch", job.id)
            self._outcomes.complete(job)
        finally:
            self._after(job)

    def _next(
        self,
        job: Job,
        connection: StoredConnection,
        is_local: bool,
        batches: Iterator[Batch | LeftOut],
        *,
        keeps_cursor: bool,
    ) -> tuple[Batch | LeftOut, str | None] | None:
        """Read and store the next batch, whole or not at all: it, and why it was refused; None after the last one.

        What is read on this machine keeps the import lane while it is read; a network's answer takes its time, so it
        is read before.
        """
        with self._lane.turn(job.id) if is_local else nullcontext():
            batch = next(batches, None)
            if batch is None:
                return None
            if isinstance(batch, LeftOut):
                self._refuse(job, RefusedBatch(name=batch.name, reason=batch.reason))
                return batch, batch.reason
            try:
                read = read_batch(replace(batch, records=self._until_stopped(batch.records)), today=self._clock.today())
                with nullcontext() if is_local else self._lane.turn(job.id):
                    self._store(job, connection, read, batch.cursor if keeps_cursor else None)
            except (*UNREADABLE, InvalidRecord) as error:
                log.warning("job %s refused a batch: %s", job.id, type(error).__name__)
                refusal = RefusedBatch(name=batch.name or batch.id, reason=as_sentence(error))
                self._refuse(job, refusal)
                return batch, refusal.reason
            return batch, None

    def _refuse(self, job: Job, refusal: RefusedBatch) -> None:
        self._database.atomically(lambda session: jobs.refuse(session, job, refusal))

    def _store(self, job: Job, connection: StoredConnection, read: ReadBatch, cursor: source.Json | None) -> None:
        def store(session: Transaction) -> None:
            runs.store_batch(
                session,
                job,
                connection,
                read,
                now=self._clock.now(),
                cursor=cursor,
                unnamed=connection.settings.get("account"),
            )

        self._database.atomically(store)

    def _until_stopped(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if self._stopped.is_set():
                raise Closed
            yield record

    def _after(self, job: Job) -> None:
        found = jobs.find(self._database, job.user_id, job.id)
        if found is not None and found.new_transactions is not None and not self._stopped.is_set():
            self._after_import(job.user_id)
