"""What becomes of files that were sent over HTTP, told to the processes that did not take them."""

from dataclasses import dataclass
from datetime import datetime

from storage.database import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedImport:
    """The answer about one file as JSON, and when the process that took it last said that it is at work."""

    answer: str
    is_done: bool
    alive_at: datetime


def begin(session: Session, *, user_id: str, id_: str, answer: str, now: datetime) -> None:
    """A process has taken a file."""
    session.execute(
        "INSERT INTO file_imports (user_id, id, answer, is_done, begun_at, alive_at)"
        " VALUES ($1, $2, $3, FALSE, $4, $4)",
        user_id,
        id_,
        answer,
        now,
    )


def renew(session: Session, *, user_id: str, id_: str, now: datetime) -> None:
    """The process is still at work on it."""
    session.execute("UPDATE file_imports SET alive_at = $3 WHERE user_id = $1 AND id = $2", user_id, id_, now)


def end(session: Session, *, user_id: str, id_: str, answer: str) -> None:
    """This came of it."""
    session.execute(
        "UPDATE file_imports SET answer = $3, is_done = TRUE WHERE user_id = $1 AND id = $2", user_id, id_, answer
    )


def find(session: Session, user_id: str, id_: str) -> SharedImport | None:
    """The user's import of this id, if it was begun lately."""
    rows = session.rows(
        "SELECT answer, is_done, alive_at FROM file_imports WHERE user_id = $1 AND id = $2", user_id, id_
    )
    return SharedImport(**rows[0]) if rows else None


def remove(session: Session, user_id: str, id_: str) -> None:
    """Nothing more is told of it."""
    session.execute("DELETE FROM file_imports WHERE user_id = $1 AND id = $2", user_id, id_)


def forget(session: Session, *, before: datetime) -> None:
    """Leave nothing behind of what was in files that anybody sent before."""
    session.execute("DELETE FROM file_imports WHERE begun_at < $1", before)
