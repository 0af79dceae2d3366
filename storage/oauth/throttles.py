"""Failed sign-ins, counted by subject: an account, an address or a browser, each as its keyed hash."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from storage.database import Conflict, Session, add_row_unless_there, names_of, set_values, values_of
from storage.oauth.moments import with_moments


class Throttle(Struct, frozen=True, kw_only=True):
    """Failed sign-ins of one subject (an account, an address or a browser): how many, and until when it has to wait."""

    failures: int
    blocked_until: datetime
    updated_at: datetime


def find(session: Session, subject_hash: str) -> Throttle | None:
    """The stored failures of a subject; None where there are none."""
    rows = session.rows(f"SELECT {names_of(Throttle)} FROM oauth_throttles WHERE subject_hash = $1", subject_hash)
    return Throttle(**with_moments(rows[0])) if rows else None


def replace(session: Session, subject_hash: str, known: Throttle | None, throttle: Throttle) -> None:
    """Store a subject's failures if they still are the `known` ones. Raises Conflict otherwise."""
    if known is None:
        written = add_row_unless_there(session, "oauth_throttles", subject_hash=subject_hash, **values_of(throttle))
    else:
        as_read = {"subject_hash": subject_hash, "failures": known.failures, "updated_at": known.updated_at}
        written = set_values(session, "oauth_throttles", as_read, **values_of(throttle))
    if not written:
        raise Conflict("another attempt was counted first")


def take_back(session: Session, subject_hash: str) -> None:
    """Subtract one failure and end the wait, because the attempt that was counted in advance did not fail."""
    session.execute(
        "UPDATE oauth_throttles SET failures = failures - 1, blocked_until = updated_at"
        " WHERE subject_hash = $1 AND failures > 0",
        subject_hash,
    )


def clear(session: Session, subject_hashes: Sequence[str]) -> None:
    """Delete the failures of these subjects, after a success."""
    for subject_hash in subject_hashes:
        session.execute("DELETE FROM oauth_throttles WHERE subject_hash = $1", subject_hash)
