"""Reports on the imports of uploaded files, stored so that every process has them, also after a restart."""

import json
from datetime import datetime, timedelta

from msgspec import Struct

from storage import jobs
from storage.database import Session, add_row
from storage.jobs import Leased

KEPT_FOR = timedelta(hours=1)
KEPT_MAX = 50  # of a user; the oldest go first


class StoredReport(Struct, frozen=True, kw_only=True):
    """The report on one file, as JSON of the contract (`answer`). `is_done` says that it is the final one, `is_held`
    that a process is at work on the file."""

    answer: str
    is_done: bool
    is_held: bool

    @property
    def is_dry_run(self) -> bool:
        """Whether the import is only a preview."""
        return bool(json.loads(self.answer)["isDryRun"])


def begin(session: Session, work: Leased, *, holder: str, answer: str, now: datetime) -> None:
    """Store that the holder has begun with a file, and take its lease; the user's finished reports that are older than
    KEPT_FOR, or beyond the newest KEPT_MAX, are deleted."""
    session.execute(
        "DELETE FROM file_imports WHERE user_id = $1 AND is_done AND (begun_at < $2 OR id IN ("
        "SELECT id FROM file_imports WHERE user_id = $1 ORDER BY begun_at DESC, id OFFSET $3::BIGINT))",
        *(work.user_id, now - KEPT_FOR, KEPT_MAX - 1),
    )
    begun = {"begun_at": now, "alive_at": now}  # alive_at is read by programs before decision 124
    add_row(session, "file_imports", user_id=work.user_id, id=work.id, answer=answer, is_done=False, **begun)
    jobs.take(session, work, holder=holder, now=now)


def end(session: Session, work: Leased, *, answer: str) -> None:
    """Store the final report on a file, and release its lease."""
    session.execute(
        "UPDATE file_imports SET answer = $3, is_done = TRUE WHERE user_id = $1 AND id = $2",
        *(work.user_id, work.id, answer),
    )
    jobs.drop(session, work.user_id, work.id)


def find(session: Session, user_id: str, id_: str, *, now: datetime) -> StoredReport | None:
    """The report on the user's import with this id; None where there is none, or it has been deleted since (`begin`,
    `forget`)."""
    rows = session.rows(
        "SELECT f.answer, f.is_done, coalesce(l.until > $3, FALSE) AS is_held FROM file_imports AS f"
        " LEFT JOIN job_leases AS l ON l.user_id = f.user_id AND l.job_id = f.id AND l.user_id = $1"
        " WHERE f.user_id = $1 AND f.id = $2",
        *(user_id, id_, now),
    )
    return StoredReport(**rows[0]) if rows else None


def remove(session: Session, user_id: str, id_: str) -> None:
    """Delete the report, and the lease of whoever is at work on the file."""
    session.execute("DELETE FROM file_imports WHERE user_id = $1 AND id = $2", user_id, id_)
    jobs.drop(session, user_id, id_)


def forget(session: Session, *, before: datetime) -> None:
    """Delete everybody's reports begun before this moment, finished or not, and the leases that had run out by then."""
    session.execute("DELETE FROM file_imports WHERE begun_at < $1", before)
    session.execute("DELETE FROM job_leases WHERE until < $1", before)  # of processes that have died
