"""Failed sign-ins, counted by subject: an account, an address or a browser, each as its keyed hash."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from storage.database import Session
from storage.oauth.moments import in_utc, with_moments


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """Failed sign-ins of one subject."""

    failures: int
    blocked_until: datetime
    updated_at: datetime


def find(session: Session, subject_hash: str) -> Throttle | None:
    """What is known of a subject's failures."""
    rows = session.rows(
        "SELECT failures, blocked_until, updated_at FROM oauth_throttles WHERE subject_hash = $1", subject_hash
    )
    return Throttle(**with_moments(rows[0], "blocked_until", "updated_at")) if rows else None


def keep(session: Session, subject_hash: str, throttle: Throttle) -> None:
    """Remember a subject's failures."""
    session.execute(
        "INSERT INTO oauth_throttles (subject_hash, failures, blocked_until, updated_at) VALUES ($1, $2, $3, $4)"
        " ON CONFLICT (subject_hash) DO UPDATE SET failures = excluded.failures,"
        " blocked_until = excluded.blocked_until, updated_at = excluded.updated_at",
        subject_hash,
        throttle.failures,
        in_utc(throttle.blocked_until),
        in_utc(throttle.updated_at),
    )


def clear(session: Session, subject_hashes: Sequence[str]) -> None:
    """Forget failures after a success."""
    for subject_hash in subject_hashes:
        session.execute("DELETE FROM oauth_throttles WHERE subject_hash = $1", subject_hash)
