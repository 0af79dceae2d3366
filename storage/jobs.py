"""Sync jobs: pending, syncing, importing, completed, failed; each step is one atomic statement (interface 3)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal

from storage.database import Row, Session, as_json

Status = Literal["pending", "syncing", "importing", "completed", "failed"]

FINAL: frozenset[Status] = frozenset({"completed", "failed"})
FAILED_COOLDOWN = timedelta(minutes=2)  # decision 25
PROGRESS_MAX = timedelta(minutes=15)  # decision 26
LEASE = timedelta(seconds=60)
COLUMNS = (
    "id, user_id, connection_id, status, handle, new_transactions, error, refusals, next_attempt_at, asked_at,"
    " created_at, updated_at"
)
UNFINISHED = "status IN ('pending', 'syncing', 'importing')"


class JobEnded(Exception):
    """The job was ended by somebody else while it was being worked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedBatch:
    """A file, or another batch, that a sync could not import: its name for the user, and the reason in a sentence."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One sync of one connection. `new_transactions` counts what has been stored so far, None before the first batch;
    clients are told once the job is completed. `error` is set only when it failed. `refusals` name what was left out
    of a job, a completed one too."""

    id: str
    user_id: str
    connection_id: str
    status: Status
    handle: dict[str, Any] | None
    new_transactions: int | None
    error: str | None
    refusals: Sequence[RefusedBatch]
    next_attempt_at: datetime | None
    asked_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_final(self) -> bool:
        """Completed and failed never change again."""
        return self.status in FINAL

    def is_due(self, now: datetime) -> bool:
        """Whether asking the source makes sense now."""
        return self.next_attempt_at is None or self.next_attempt_at <= now

    def is_overdue(self, now: datetime) -> bool:
        """Whether there has been no progress for too long since the source was first asked (decision 26)."""
        return (
            not self.is_final
            and self.asked_at is not None
            and now - max(self.asked_at, self.updated_at) >= PROGRESS_MAX
        )


def start(
    session: Session,
    *,
    user_id: str,
    connection_id: str,
    cooldown: timedelta,
    now: datetime,
    job_id: str | None = None,
    is_forced: bool = False,
) -> Job | None:
    """A new pending job, or None when the connection is being synced, was synced too recently (decision 25), or its
    source wants no request yet; `is_forced` forgets our own rule, never the source's."""
    job_id = job_id or f"syn_{token_hex(16)}"
    accepted = session.rows(
        "UPDATE connections SET running_job_id = $3, next_sync_at = $4 WHERE user_id = $1 AND id = $2"
        " AND running_job_id IS NULL AND ($6 OR next_sync_at IS NULL OR next_sync_at <= $5)"
        " AND (source_retry_at IS NULL OR source_retry_at <= $5) RETURNING id",
        user_id,
        connection_id,
        job_id,
        now + cooldown,
        now,
        is_forced,
    )
    if not accepted:
        return None
    session.execute(
        "INSERT INTO jobs (id, user_id, connection_id, status, created_at, updated_at)"
        " VALUES ($1, $2, $3, 'pending', $4, $4)",
        job_id,
        user_id,
        connection_id,
        now,
    )
    return find(session, user_id, job_id)


def next_sync_at(session: Session, user_id: str, connection_ids: list[str]) -> datetime | None:
    """The first moment at which one of these connections may be synced again."""
    rows = session.rows(
        "SELECT min(greatest(next_sync_at, source_retry_at)) AS at FROM connections"
        " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        user_id,
        connection_ids,
    )
    at = rows[0]["at"]
    return at if isinstance(at, datetime) else None


def find(session: Session, user_id: str, job_id: str) -> Job | None:
    """The user's job of this id; somebody else's is unknown (decision 28)."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE user_id = $1 AND id = $2", user_id, job_id)
    return _job(rows[0]) if rows else None


def running(session: Session, connection_id: str) -> Job | None:
    """The one job of the connection that is not final."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE connection_id = $1 AND {UNFINISHED}", connection_id)
    return _job(rows[0]) if rows else None


def latest(session: Session, user_id: str) -> dict[str, Job]:
    """The newest job of each of the user's connections, by the connection's id."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM (SELECT {COLUMNS}, row_number() OVER (PARTITION BY connection_id"
        " ORDER BY created_at DESC, id DESC) AS place FROM jobs WHERE user_id = $1) AS numbered WHERE place = 1",
        user_id,
    )
    return {row["connection_id"]: _job(row) for row in rows}


def unfinished(session: Session) -> list[Job]:
    """Jobs that are not final, oldest first."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE {UNFINISHED} ORDER BY created_at, id")
    return [_job(row) for row in rows]


def lease(session: Session, job_id: str, *, now: datetime) -> Job | None:
    """The job for the one caller who may advance it now, None for everybody else. Its 15 minutes begin with the first
    lease: how long it waited in our own queue is not the source's fault (decision 26)."""
    rows = session.rows(
        f"UPDATE jobs SET leased_until = $2, asked_at = coalesce(asked_at, $3) WHERE id = $1 AND {UNFINISHED}"
        f" AND (leased_until IS NULL OR leased_until <= $3) RETURNING {COLUMNS}",
        job_id,
        now + LEASE,
        now,
    )
    return _job(rows[0]) if rows else None


def by_status(session: Session) -> dict[Status, int]:
    """How many jobs of all users stand where."""
    return {
        row["status"]: row["jobs"] for row in session.rows("SELECT status, count(*) AS jobs FROM jobs GROUP BY status")
    }


def release(session: Session, job_id: str) -> None:
    """Let the next caller advance the job."""
    session.execute("UPDATE jobs SET leased_until = NULL WHERE id = $1", job_id)


def release_all(session: Session) -> None:
    """Forget the leases of a process that has ended; only for a store that one process opens."""
    session.execute(f"UPDATE jobs SET leased_until = NULL WHERE {UNFINISHED}")


def progress(session: Session, job_id: str, *, status: Status, handle: dict[str, Any] | None, now: datetime) -> None:
    """Keep what the source said; the status only moves forward. Waiting on in one state is no progress (decision 26):
    a source that is never ready would otherwise keep its job alive for as long as somebody asks. Raises JobEnded."""
    _unfinished(
        session,
        job_id,
        "handle = $2, updated_at = CASE WHEN status = $3 THEN updated_at ELSE $4 END, status = $3",
        as_json(handle) if handle is not None else None,
        status,
        now,
    )


def put_off(session: Session, job_id: str, *, until: datetime) -> None:
    """The source wants to be left alone until then; the job keeps its state. Raises JobEnded."""
    _unfinished(session, job_id, "next_attempt_at = $2, leased_until = NULL", until)


def refuse(session: Session, job_id: str, refusal: RefusedBatch) -> None:
    """Keep what the job could not import. Raises JobEnded."""
    kept = session.rows("SELECT refusals FROM jobs WHERE id = $1", job_id)
    refusals = json.loads(kept[0]["refusals"] or "[]") if kept else []
    _unfinished(session, job_id, "refusals = $2", as_json([*refusals, asdict(refusal)]))


def check_running(session: Session, job_id: str) -> None:
    """Raises JobEnded when somebody has ended the job: the beginning of a batch's transaction, before its work."""
    if not session.rows(f"SELECT id FROM jobs WHERE id = $1 AND {UNFINISHED}", job_id):
        raise JobEnded


def add_stored(session: Session, job_id: str, *, new_transactions: int, now: datetime) -> None:
    """Count a batch, inside its transaction: that is progress. Raises JobEnded."""
    _unfinished(
        session, job_id, "new_transactions = coalesce(new_transactions, 0) + $2, updated_at = $3", new_transactions, now
    )


def complete(session: Session, job: Job, *, now: datetime) -> bool:
    """The end of a job whose batches are stored; False when somebody else has ended it already."""
    return _end(session, job, "completed", None, now, None)


def fail(session: Session, job: Job, *, error: str, now: datetime, retry_at: datetime | None = None) -> bool:
    """End the job with a reason for its user; the connection may be tried again after two minutes, never later than
    it could be had the job been completed (decision 25), and not before `retry_at`, if its source named a time."""
    ended = _end(session, job, "failed", error, now, now + FAILED_COOLDOWN)
    if ended and retry_at is not None:
        session.execute("UPDATE connections SET source_retry_at = $2 WHERE id = $1", job.connection_id, retry_at)
    return ended


def _end(
    session: Session, job: Job, status: Status, error: str | None, now: datetime, next_sync: datetime | None
) -> bool:
    ended = session.rows(
        "UPDATE jobs SET status = $2, error = $3, updated_at = $4, leased_until = NULL, handle = NULL,"
        " next_attempt_at = NULL,"
        " new_transactions = CASE WHEN $2 = 'completed' THEN coalesce(new_transactions, 0) ELSE new_transactions END"
        f" WHERE id = $1 AND {UNFINISHED} RETURNING id",
        job.id,
        status,
        error,
        now,
    )
    if ended:
        session.execute(
            "UPDATE connections SET running_job_id = NULL, next_sync_at = least(next_sync_at, $3)"
            " WHERE id = $1 AND running_job_id = $2",
            job.connection_id,
            job.id,
            next_sync,
        )
    return bool(ended)


def _unfinished(session: Session, job_id: str, changes: str, *values: Any) -> None:
    """Change a job that is not final."""
    if not session.execute(f"UPDATE jobs SET {changes} WHERE id = $1 AND {UNFINISHED}", job_id, *values):
        raise JobEnded


def _job(row: Row) -> Job:
    handle, refusals = row.pop("handle"), row.pop("refusals")
    return Job(
        handle=json.loads(handle) if handle else None,
        refusals=tuple(RefusedBatch(**each) for each in json.loads(refusals or "[]")),
        **row,
    )
