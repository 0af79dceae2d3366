"""Takes one step of a job: asks its source to begin, asks whether it is ready, or imports what the source has."""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from analytics.records import InvalidRecord
from connectors import connector as source
from connectors.connector import Connector, SourceError, Waiting
from handlers.clock import Clock
from handlers.sync.concurrency import Closed
from handlers.sync.job_import import JobImport
from handlers.sync.leases import Leases
from handlers.sync.outcomes import INTERNAL, Outcomes
from handlers.sync.source_connections import Secrets, source_connection
from storage import connections, jobs
from storage.boundary import contain
from storage.connections import StoredConnection
from storage.database import Store, StoreError, StoreUnavailable
from storage.jobs import Job, JobEnded

FORESEEN = (JobEnded, Closed, SourceError, StoreError, InvalidRecord)

log = logging.getLogger("bankdata.sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """Takes the next step of a job; whatever goes wrong is stored in the job."""

    store: Store
    connectors: Mapping[str, Connector]
    secrets: Secrets | None
    clock: Clock
    outcomes: Outcomes
    job_import: JobImport
    leases: Leases
    stopped: threading.Event

    def take(self, wanted: Job) -> None:
        """Lease the job and do what it needs next; does nothing if another process holds it."""
        database, holder = self.store.of(wanted.user_id), self.leases.holder
        job = database.atomically(lambda session: jobs.lease(session, wanted, holder=holder, now=self.clock.now()))
        connection = connections.find(database, job.user_id, job.connection_id) if job is not None else None
        if job is None or connection is None:
            return
        try:
            with (
                self.leases.keep(job),
                contain(log, "job %s failed", job.id, is_expected=self.stopped.is_set, passes=FORESEEN),
            ):
                self._advance(job, connection)
                return
            if not self.stopped.is_set():  # else the store was closed during the step
                self.outcomes.fail(job, INTERNAL)
        except JobEnded:
            log.info("job %s was ended by somebody else", job.id)
        except Closed:
            log.info("job %s goes on after the next start", job.id)
        except SourceError as error:
            log.warning("job %s failed: %s %s", job.id, type(error).__name__, error.detail)
            is_local = self.connectors[connection.connector].is_local
            self.outcomes.refuse(job, connection, error, is_local=is_local)
        except StoreUnavailable:
            log.warning("job %s goes on when the database answers and its lease has run out", job.id)
        except (InvalidRecord, StoreError) as error:
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
        self.job_import.run(job, connection, connector, meant, handle)
