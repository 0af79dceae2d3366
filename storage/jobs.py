"""Sync jobs: pending, syncing, importing, completed, failed; each step is one atomic statement (interface 3)."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Any, Literal, Protocol

from msgspec import Struct

from analytics.messages import pack, unpack
from storage.bank_access.sync_time_limits import COOLDOWN_MAX, FAILED_COOLDOWN, LEASE, LEASE_MAX, PROGRESS_MAX
from storage.database import Row, Session, add_row, as_json, names_of, set_values

Status = Literal["pending", "syncing", "importing", "completed", "failed"]

FINAL: frozenset[Status] = frozenset({"completed", "failed"})
KEPT_FOR = timedelta(days=7)  # a job without new transactions
LONG_AGO = "TIMESTAMP '1970-01-01 00:00:00'"
UNFINISHED = "status IN ('pending', 'syncing', 'importing')"


class JobEnded(Exception):
    """The job was ended by somebody else while it was being worked on."""


class RefusedBatch(Struct, frozen=True, kw_only=True):
    """A file, or another batch, that a sync could not import: its name for the user, and the reason in a sentence."""

    name: str
    reason: str


class Job(Struct, frozen=True, kw_only=True):
    """One sync of one connection, or one import of files. `handle` is what the source gave with its first answer and
    gets back with later requests. `new_transactions` counts the transactions stored so far, None before the first
    batch; clients see it once the job is completed. `error` is set only for a failed job. `refusals` name what was left
    out, also of a completed job. `attended` is what the source may be told of the user who asked while present (such as
    an address); it is erased when the job ends."""

    id: str
    user_id: str
    connection_id: str
    status: Status
    handle: dict[str, Any] | None
    new_transactions: int | None
    error: str | None
    refusals: Sequence[RefusedBatch]
    attended: dict[str, str] | None
    next_attempt_at: datetime | None
    asked_at: datetime | None
    created_at: datetime
    updated_at: datetime

    @property
    def is_final(self) -> bool:
        """Whether the job is completed or failed, and so never changes again."""
        return self.status in FINAL

    def is_due(self, now: datetime) -> bool:
        """Whether the source may be asked now."""
        return self.next_attempt_at is None or self.next_attempt_at <= now

    def is_overdue(self, now: datetime) -> bool:
        """Whether there has been no progress for too long since the source was first asked (decision 26)."""
        return (
            not self.is_final
            and self.asked_at is not None
            and now - max(self.asked_at, self.updated_at) >= PROGRESS_MAX
        )


COLUMNS = names_of(Job)


class Leased(Protocol):
    """Work that one process at a time does for a user: a job, or an uploaded file."""

    @property
    def id(self) -> str: ...

    @property
    def user_id(self) -> str: ...


def start(
    session: Session,
    *,
    user_id: str,
    connection_id: str,
    cooldown: timedelta,
    now: datetime,
    job_id: str | None = None,
    is_forced: bool = False,
    attended: Mapping[str, str] | None = None,
) -> Job | None:
    """Store a new pending job and return it, which begins the minimum interval (`cooldown`) until the next one; None
    when the connection is being synced, was synced too recently (decision 25), or its source allows no request yet.
    Whether the connection's status allows a sync is checked by the caller.

    `is_forced` ignores our own minimum interval, never the source's.
    """
    job_id = job_id or f"syn_{token_hex(16)}"
    accepted = session.execute(
        "UPDATE connections SET running_job_id = $3, next_sync_at = $4 WHERE user_id = $1 AND id = $2"
        " AND running_job_id IS NULL AND ($6 OR next_sync_at IS NULL OR next_sync_at <= $5)"
        " AND (source_retry_at IS NULL OR source_retry_at <= $5)",
        *(user_id, connection_id, job_id, now + cooldown, now, is_forced),
    )
    if not accepted:
        return None
    present = as_json(dict(attended)) if attended is not None else None
    state = {"status": "pending", "created_at": now, "updated_at": now, "attended": present, "is_told": False}
    add_row(session, "jobs", id=job_id, user_id=user_id, connection_id=connection_id, **state)
    return find(session, user_id, job_id)


def next_sync_at(session: Session, user_id: str, connection_ids: list[str]) -> datetime | None:
    """The earliest of the times until which these connections were told to wait before the next sync, which may be
    past; None where none of them was."""
    rows = session.rows(
        "SELECT min(greatest(next_sync_at, source_retry_at)) AS at FROM connections"
        " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        *(user_id, connection_ids),
    )
    at = rows[0]["at"]
    return at if isinstance(at, datetime) else None


def find(session: Session, user_id: str, job_id: str) -> Job | None:
    """The user's job with this id; None for other users' jobs, too (decision 28)."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE user_id = $1 AND id = $2", user_id, job_id)
    return _job(rows[0]) if rows else None


def find_running(session: Session, user_id: str, connection_id: str) -> Job | None:
    """The unfinished job of the user's connection, of which there is at most one; None where there is none."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM jobs WHERE user_id = $1 AND connection_id = $2 AND {UNFINISHED}", user_id, connection_id
    )
    return _job(rows[0]) if rows else None


def end_running(session: Session, user_id: str, connection_id: str, *, error: str, now: datetime) -> None:
    """Fail the unfinished job of the user's connection, if there is one: what it began with is past."""
    running = find_running(session, user_id, connection_id)
    if running is not None:
        fail(session, running, error=error, now=now)


def newest_by_connection(session: Session, user_id: str) -> dict[str, Job]:
    """The newest job of each of the user's connections, by the connection's id."""
    rows = session.rows(
        f"SELECT {COLUMNS} FROM (SELECT {COLUMNS}, row_number() OVER (PARTITION BY connection_id"
        " ORDER BY created_at DESC, id DESC) AS place FROM jobs WHERE user_id = $1) AS numbered WHERE place = 1",
        user_id,
    )
    return {row["connection_id"]: _job(row) for row in rows}


def find_unfinished(session: Session) -> list[Job]:
    """The unfinished jobs of all users, oldest first."""
    rows = session.rows(f"SELECT {COLUMNS} FROM jobs WHERE {UNFINISHED} ORDER BY created_at, id")
    return [_job(row) for row in rows]


def lease(session: Session, job: Job, *, holder: str, now: datetime) -> Job | None:
    """Take the lease of the job and return the job, which the caller alone may then advance; None where the lease is
    taken or the job has ended.

    Its 15 minutes begin with the first lease: waiting in our own queue is not the source's fault (decision 26).
    """
    rows = take(session, job, holder=holder, now=now) and session.rows(
        f"UPDATE jobs SET asked_at = coalesce(asked_at, $3) WHERE user_id = $1 AND id = $2 AND {UNFINISHED}"
        f" RETURNING {COLUMNS}",
        *(job.user_id, job.id, now),
    )
    return _job(rows[0]) if rows else None


def take(session: Session, work: Leased, *, holder: str, now: datetime) -> bool:
    """Take the lease of the work, for LEASE from `now`; False while anybody has it, `holder` included.

    Leases have a table of their own: renewing one on the job's row would conflict with the end of every long import.
    """
    taken = session.rows(
        "INSERT INTO job_leases (user_id, job_id, holder, until) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (user_id, job_id) DO UPDATE SET holder = excluded.holder, until = excluded.until"
        " WHERE job_leases.until <= $5 OR job_leases.until > $6 RETURNING job_id",
        *(work.user_id, work.id, holder, now + LEASE, now, now + LEASE_MAX),
    )
    return bool(taken)


def renew(session: Session, work: Leased, *, holder: str, now: datetime) -> bool:
    """Extend the lease of a holder who is still at work; False where the lease has gone to another one or was
    deleted."""
    own = {"user_id": work.user_id, "job_id": work.id, "holder": holder}
    return set_values(session, "job_leases", own, until=now + LEASE)


def give_back(session: Session, work: Leased, *, holder: str, now: datetime) -> None:
    """End the lease of this holder, so that the next caller can go on with the work."""
    set_values(session, "job_leases", {"user_id": work.user_id, "job_id": work.id, "holder": holder}, until=now)


def is_held_elsewhere(session: Session, job: Job, *, holder: str, now: datetime) -> bool:
    """Whether another holder has the job's lease."""
    return bool(
        session.rows(
            "SELECT job_id FROM job_leases WHERE user_id = $1 AND job_id = $2 AND holder <> $3 AND until > $4"
            " AND until <= $5",
            *(job.user_id, job.id, holder, now, now + LEASE_MAX),
        )
    )


def by_status(session: Session, *, since: datetime) -> dict[Status, int]:
    """The number of jobs of all users in each status: unfinished ones, and those that have ended since a moment."""
    rows = session.rows(
        f"SELECT status, count(*) AS jobs FROM jobs WHERE {UNFINISHED}"
        " OR (status IN ('completed', 'failed') AND updated_at >= $1) GROUP BY status",
        since,
    )
    return {row["status"]: row["jobs"] for row in rows}


def release(session: Session, job: Job) -> None:
    """End the lease of the job, whoever holds it, so that the next caller can advance the job."""
    session.execute(f"UPDATE job_leases SET until = {LONG_AGO} WHERE user_id = $1 AND job_id = $2", job.user_id, job.id)


def drop(session: Session, user_id: str, job_id: str) -> None:
    """Delete the lease, whoever holds it, because the work is finished."""
    session.execute("DELETE FROM job_leases WHERE user_id = $1 AND job_id = $2", user_id, job_id)


def release_all(session: Session) -> None:
    """End all leases, which a previous process has left; only for a store that a single process opens."""
    session.execute(f"UPDATE job_leases SET until = {LONG_AGO}")


def forget_impossible_pauses(session: Session, *, now: datetime, cooldown: timedelta) -> None:
    """Undo waits that are too long to be meant, because a clock was ahead: a connection whose minimum interval ends
    later than `cooldown` from `now` may be synced, a schedule to be checked more than a day later is due, and an
    unfinished job dated a minute later goes on. `now` is by the clock of the store, so that of several processes one
    with a wrong clock forgets nothing."""
    latest_possible = now + COOLDOWN_MAX
    longest = now + max(cooldown, FAILED_COOLDOWN) + LEASE
    session.execute("UPDATE connections SET next_sync_at = NULL WHERE next_sync_at > $1", longest)
    session.execute(
        "UPDATE connections SET due_at = $2, planned_at = least(planned_at, $2) WHERE due_at > $1", latest_possible, now
    )
    session.execute(
        "UPDATE jobs SET next_attempt_at = NULL, asked_at = NULL, created_at = $2, updated_at = $2"
        f" WHERE {UNFINISHED} AND created_at > $1",
        *(now + LEASE, now),
    )


def progress(session: Session, job: Job, *, status: Status, handle: dict[str, Any] | None, now: datetime) -> None:
    """Store the job's status and the source's handle (None: no handle any more). Raises JobEnded.

    Staying in one status is no progress (decision 26), or a source that is never ready would keep its job alive for as
    long as somebody asks.
    """
    _update_unfinished(
        session,
        job,
        "handle = $3, updated_at = CASE WHEN status = $4 THEN updated_at ELSE $5 END, status = $4",
        as_json(handle) if handle is not None else None,
        status,
        now,
    )


def put_off(session: Session, job: Job, *, until: datetime) -> None:
    """Ask the source no more before `until`, as it wants, and end the lease; the job keeps its status. Raises
    JobEnded."""
    _update_unfinished(session, job, "next_attempt_at = $3", until)
    release(session, job)


def refuse(session: Session, job: Job, refusal: RefusedBatch) -> None:
    """Store that a batch could not be imported: once, however often the source sends it. Raises JobEnded."""
    kept = session.rows("SELECT refusals FROM jobs WHERE user_id = $1 AND id = $2", job.user_id, job.id)
    refusals = json.loads(kept[0]["refusals"] or "[]") if kept else []
    packed = {"name": refusal.name, "reason": pack(refusal.reason)}
    if packed not in refusals:
        _update_unfinished(session, job, "refusals = $3", as_json([*refusals, packed]))


def check_running(session: Session, job: Job) -> None:
    """Raise JobEnded when the job has been ended; call it first in a batch's transaction, before the work."""
    if not session.rows(f"SELECT id FROM jobs WHERE user_id = $1 AND id = $2 AND {UNFINISHED}", job.user_id, job.id):
        raise JobEnded


def add_stored(session: Session, job: Job, *, new_transactions: int, now: datetime) -> None:
    """Add a stored batch to the job's count, in the batch's transaction; this is progress. Raises JobEnded."""
    _update_unfinished(
        session, job, "new_transactions = coalesce(new_transactions, 0) + $3, updated_at = $4", new_transactions, now
    )


def new_transactions_of(session: Session, job: Job, account_ids: Sequence[str]) -> int:
    """The number of bookings of these accounts that the job has added, according to the journal, and that are still
    there; adjusting entries do not count."""
    rows = session.rows(
        "SELECT count(*) AS added FROM journal AS j JOIN transactions AS t ON t.user_id = j.user_id"
        " AND t.id = j.transaction_id WHERE j.user_id = $1 AND t.user_id = $1 AND j.job_id = $2 AND j.change = 'added'"
        " AND NOT t.is_adjusting_entry AND t.account_id = ANY($3::TEXT[])",  # adjusting entries are no news from a bank
        *(job.user_id, job.id, list(account_ids)),
    )
    return int(rows[0]["added"])


def complete(session: Session, job: Job, *, now: datetime) -> bool:
    """Complete a job whose batches are all stored, and free its connection for the next one; False when the job had
    ended already. Older jobs without news are deleted."""
    return _end(session, job, "completed", None, now, None)


def fail(session: Session, job: Job, *, error: str, now: datetime, retry_at: datetime | None = None) -> bool:
    """End the job with a reason for its user, and free its connection; False when the job had ended already. Older jobs
    without news are deleted.

    The connection may be synced again after two minutes, never later than after a completed job (decision 25), and not
    before `retry_at` if the source named a time.
    """
    ended = _end(session, job, "failed", error, now, now + FAILED_COOLDOWN)
    if ended and retry_at is not None:
        set_values(session, "connections", {"user_id": job.user_id, "id": job.connection_id}, source_retry_at=retry_at)
    return ended


def _end(
    session: Session, job: Job, status: Status, error: str | None, now: datetime, next_sync: datetime | None
) -> bool:
    ended = session.rows(
        "UPDATE jobs SET status = $3, error = $4, updated_at = $5, handle = NULL, next_attempt_at = NULL,"
        " attended = NULL,"
        " new_transactions = CASE WHEN $3 = 'completed' THEN coalesce(new_transactions, 0) ELSE new_transactions END"
        f" WHERE user_id = $1 AND id = $2 AND {UNFINISHED} RETURNING id",
        *(job.user_id, job.id, status, pack(error) if error is not None else None, now),
    )
    if ended:
        _forget_old(session, job, now)
        if job.asked_at is not None:  # the job of an uploaded file has no lease; the upload has, and renews it
            drop(session, job.user_id, job.id)
        session.execute(
            "UPDATE connections SET running_job_id = NULL, next_sync_at = least(next_sync_at, $4)"
            " WHERE user_id = $1 AND id = $2 AND running_job_id = $3",
            *(job.user_id, job.connection_id, job.id, next_sync),
        )
    return bool(ended)


def _forget_old(session: Session, job: Job, now: datetime) -> None:
    """Delete earlier jobs of the connection that brought nothing and ended more than KEPT_FOR ago, except those that
    were undone or can be undone."""
    session.execute(
        "DELETE FROM jobs WHERE user_id = $1 AND connection_id = $2 AND id <> $3 AND updated_at < $4"
        " AND status IN ('completed', 'failed') AND coalesce(new_transactions, 0) = 0 AND undone_at IS NULL"
        " AND id NOT IN (SELECT job_id FROM contributions WHERE user_id = $1)",
        *(job.user_id, job.connection_id, job.id, now - KEPT_FOR),
    )


def _update_unfinished(session: Session, job: Job, changes: str, *values: Any) -> None:
    """Update columns of an unfinished job; `values` are the parameters from $3 on. Raises JobEnded."""
    if not session.execute(
        f"UPDATE jobs SET {changes} WHERE user_id = $1 AND id = $2 AND {UNFINISHED}", job.user_id, job.id, *values
    ):
        raise JobEnded


def _job(row: Row) -> Job:
    handle, refusals, attended = row.pop("handle"), row.pop("refusals"), row.pop("attended")
    error = row.pop("error")
    return Job(
        handle=json.loads(handle) if handle else None,
        refusals=tuple(
            RefusedBatch(name=each["name"], reason=unpack(each["reason"])) for each in json.loads(refusals or "[]")
        ),
        attended=json.loads(attended) if attended else None,
        error=unpack(error) if error is not None else None,
        **row,
    )
