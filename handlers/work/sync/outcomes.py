"""The outcomes of a job's step: it waits, is complete or fails, and what that means for its connection."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from analytics.messages import Saying
from connectors import connector as source
from connectors.connector import SourceError, as_sentence
from handlers.work.clock import Clock
from handlers.work.sync import retries
from storage import connections, jobs
from storage.bank_access import sync_time_limits
from storage.connections import StoredConnection
from storage.database import Database, Session, Store
from storage.importing import runs
from storage.jobs import Job, JobEnded

TIMED_OUT = "The sync timed out"
INTERNAL = "The sync failed because of an internal error"
ONLY_ATTENDED = "Nothing is fetched from this bank by itself, for the PIN is not stored. Renew the connection to fetch."
TOO_SLOW = "The bank asked for more time than a sync may take. Try again later."

STATUS_AFTER: Mapping[type[SourceError], connections.Status | None] = {
    source.UserActionRequired: "REAUTH_REQUIRED",
    source.ConsentExpired: "EXPIRED",
    source.ConsentRevoked: "REVOKED",
    source.Misconfigured: "ERROR",
}
"""The connection's status after a failure; other failures change it only after three in a row (decision 23)."""

NOT_SYNCABLE: Mapping[str, str] = {
    "REAUTH_REQUIRED": str(source.UserActionRequired()),
    "EXPIRED": str(source.ConsentExpired()),
    "REVOKED": str(source.ConsentRevoked()),
    "DISCONNECTED": connections.REMOVED,
}
"""By status of a connection that needs its user before a sync: the sentence for the user (decision 27)."""

HICCUPS = (source.ProviderUnavailable, source.RateLimited)


class QuotaUsed(Saying):
    """The source of a connection may not be asked before `free_at`, in local time, unless its user is present."""

    def __init__(self, limit: int, free_at: datetime) -> None:
        super().__init__(
            "The bank allows {limit} syncs in 24 hours while you are away, and they are used up. The next one is"
            " possible on {day} at {time} ({zone}).",
            limit=limit,
            **_moment(free_at),
        )


class KeptForPlan(Saying):
    """What is left of the source's quota is reserved for its planned syncs, the next of which is at `planned_at`, in
    local time."""

    def __init__(self, limit: int, planned_at: datetime) -> None:
        super().__init__(
            "The bank allows {limit} syncs in 24 hours while you are away, and the rest is kept for the planned ones."
            " The next one is on {day} at {time} ({zone}).",
            limit=limit,
            **_moment(planned_at),
        )


class Outcomes:
    """Stores how jobs go on or end, and what that means for their connections."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def wait(self, job: Job, handle: dict[str, object], seconds: float) -> None:
        """Store the source's `handle`, and put the job off for so many seconds, as the source, not ready yet, asked;
        fail the job now if these are 15 minutes or more, which no job may go without progress."""
        now = self._clock.now()
        until = now + timedelta(seconds=seconds)
        if seconds >= sync_time_limits.PROGRESS_MAX.total_seconds():
            self.fail(job, TOO_SLOW, retry_at=until)
            return
        jobs.progress(self._of(job), job, status="syncing", handle=handle, now=now)
        jobs.put_off(self._of(job), job, until=until)

    def complete(self, job: Job) -> None:
        """Complete the job. Refused batches do not fail it, unless there were some and nothing at all was imported:
        then it fails with the reason of the last one."""
        now = self._clock.now()
        # Read again, with what earlier steps of the job have stored
        found = jobs.find(self._of(job), job.user_id, job.id)
        if found is not None and found.new_transactions is None and found.refusals:
            self.fail(job, found.refusals[-1].reason)
        else:
            self._of(job).atomically(lambda session: runs.complete(session, job, now=now))

    def refuse(self, job: Job, connection: StoredConnection, error: SourceError, *, is_local: bool) -> None:
        """Put the job off if the source asks for a pause of at most a minute; else fail it with the error as its
        reason, and give the connection the status that STATUS_AFTER has for the error. A source that is not local,
        could not be reached and names no time rests longer after each failure."""
        now, pause = self._clock.now(), error.retry_after
        if pause is not None and pause <= retries.IN_JOB_MAX.seconds:
            with suppress(JobEnded):
                jobs.put_off(self._of(job), job, until=now + timedelta(seconds=pause))
            return
        if pause is None and isinstance(error, HICCUPS) and not is_local:
            pause = retries.pause_after(connection.failures_in_row).total_seconds()
        retry_at = now + timedelta(seconds=pause) if pause is not None else None
        status = next((status for kind, status in STATUS_AFTER.items() if isinstance(error, kind)), None)
        self.fail(job, as_sentence(error), status, retry_at=retry_at)

    def fail(
        self, job: Job, error: str, status: connections.Status | None = None, *, retry_at: datetime | None = None
    ) -> None:
        """Fail the job, and record the failure for its connection, which gets `status` if there is one; `retry_at` is
        when the source may be asked again. Does nothing where the job has ended."""

        def work(session: Session) -> None:
            if jobs.fail(session, job, error=error, now=self._clock.now(), retry_at=retry_at):
                connections.record_failure(session, job.user_id, job.connection_id, status=status)

        self._of(job).atomically(work)

    def _of(self, job: Job) -> Database:
        return self._store.of(job.user_id)


def _moment(at: datetime) -> dict[str, object]:
    return {"day": at.date(), "time": f"{at:%H:%M}", "zone": str(at.tzinfo)}
