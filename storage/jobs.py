"""Sync jobs: pending, syncing, importing, completed, failed; each step is one atomic statement (interface 3)."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal

from storage.database import Row, Session, as_json

Status = Literal["pending", "syncing", "importing", "completed", "failed"]

FINAL: frozenset[Status] = frozenset({"completed", "failed"})
FAILED_COOLDOWN = timedelta(minutes=2)  # decision 25
PROGRESS_MAX = timedelta(minutes=15)  # decision 26
LEASE = timedelta(seconds=60)
COLUMNS = "id, user_id, connection_id, status, handle, new_transactions, error, created_at, updated_at"
UNFINISHED = "status IN ('pending', 'syncing', 'importing')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One sync of one connection; `new_transactions` only when completed, `error` only when failed."""

    id: str
    user_id: str
    connection_id: str
    status: Status
    handle: dict[str, Any] | None
    new_transactions: int | None
    error: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_final(self) -> bool:
        """Completed and failed never change again."""
        return self.status in FINAL


def start(
    session: Session, *, user_id: str, connection_id: str, cooldown: timedelta, now: datetime, job_id: str | None = None
) -> Job | None:
    """A new pending job, or None when the connection is being synced or was synced too recently (decision 25)."""
    job_id = job_id or f"syn_{token_hex(16)}"
    accepted = session.rows(
        "UPDATE connections SET running_job_id = $3, next_sync_at = $4 WHERE user_id = $1 AND id = $2"
        " AND running_job_id IS NULL AND (next_sync_at IS NULL OR next_sync_at <= $5) RETURNING id",
        user_id,
        connection_id,
        job_id,
        now + cooldown,
        now,
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
        "SELECT min(next_sync_at) AS at FROM connections WHERE user_id = $1 AND id = ANY($2::TEXT[])",
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


def unfinished(session: Session) -> list[Job]:
    """Jobs that are not final, oldest first."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE {UNFINISHED} ORDER BY created_at, id")
    return [_job(row) for row in rows]


def overdue(session: Session, *, connection_ids: list[str], now: datetime) -> list[Job]:
    """Jobs of these connections that have made no progress for too long."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE {UNFINISHED} AND connection_id = ANY($1::TEXT[]) AND updated_at <= $2",
        connection_ids,
        now - PROGRESS_MAX,
    )
    return [_job(row) for row in rows]


def lease(session: Session, job_id: str, *, now: datetime) -> Job | None:
    """The job for the one caller who may advance it now, None for everybody else."""
    rows = session.rows(
        f"UPDATE jobs SET leased_until = $2 WHERE id = $1 AND {UNFINISHED}"
        f" AND (leased_until IS NULL OR leased_until <= $3) RETURNING {COLUMNS}",
        job_id,
        now + LEASE,
        now,
    )
    return _job(rows[0]) if rows else None


def release(session: Session, job_id: str) -> None:
    """Let the next caller advance the job."""
    session.execute("UPDATE jobs SET leased_until = NULL WHERE id = $1", job_id)


def release_all(session: Session) -> None:
    """Forget the leases of a process that has ended; only for a store that one process opens."""
    session.execute(f"UPDATE jobs SET leased_until = NULL WHERE {UNFINISHED}")


def progress(session: Session, job_id: str, *, status: Status, handle: dict[str, Any] | None, now: datetime) -> None:
    """Keep what the source said; the status only moves forward. Waiting on in one state is no progress (decision 26):
    a source that is never ready would otherwise keep its job alive for as long as somebody asks."""
    session.execute(
        "UPDATE jobs SET handle = $3, updated_at = CASE WHEN status = $2 THEN updated_at ELSE $4 END, status = $2"
        f" WHERE id = $1 AND {UNFINISHED}",
        job_id,
        status,
        as_json(handle) if handle is not None else None,
        now,
    )


def complete(session: Session, job: Job, *, new_transactions: int, now: datetime) -> bool:
    """The end of an import, inside its transaction; False when somebody else has ended the job already."""
    return _end(session, job, "completed", new_transactions, None, now, None)


def fail(session: Session, job: Job, *, error: str, now: datetime) -> bool:
    """End the job with a reason for its user; the connection may be tried again after two minutes, and never later
    than it could be had the job been completed (decision 25)."""
    return _end(session, job, "failed", None, error, now, now + FAILED_COOLDOWN)


def _end(
    session: Session,
    job: Job,
    status: Status,
    new_transactions: int | None,
    error: str | None,
    now: datetime,
    next_sync: datetime | None,
) -> bool:
    ended = session.rows(
        "UPDATE jobs SET status = $2, new_transactions = $3, error = $4, updated_at = $5, leased_until = NULL,"
        f" handle = NULL WHERE id = $1 AND {UNFINISHED} RETURNING id",
        job.id,
        status,
        new_transactions,
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


def _job(row: Row) -> Job:
    handle = row.pop("handle")
    return Job(handle=json.loads(handle) if handle else None, **row)
