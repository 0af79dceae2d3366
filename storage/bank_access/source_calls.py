"""How often a source that counts has been asked: syncs of the last 24 hours, while their user was absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.database import Session, add_row

PERIOD = timedelta(hours=24)  # rolling, as PSD2 counts (Delegated Regulation (EU) 2018/389, Article 36(5)(b))


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncQuota:
    """How many syncs of one connection its source allows in 24 hours, and when it was asked, oldest first."""

    limit: int
    calls: Sequence[datetime]

    @property
    def used(self) -> int:
        """How many of them are used up."""
        return min(len(self.calls), self.limit)

    @property
    def remaining(self) -> int:
        """How many are left."""
        return self.limit - self.used

    def resets_at(self, now: datetime) -> datetime:
        """The moment at which one more call is free: now, unless some are used."""
        return self.calls[-self.used] + PERIOD if self.used else now


def quota(session: Session, user_id: str, connection_id: str, *, limit: int, now: datetime) -> SyncQuota:
    """What is left of the last 24 hours."""
    rows = session.rows(
        "SELECT called_at FROM source_calls WHERE user_id = $1 AND connection_id = $2 AND called_at > $3"
        " ORDER BY called_at",
        *(user_id, connection_id, now - PERIOD),
    )
    return SyncQuota(limit=limit, calls=[row["called_at"] for row in rows])


def count(session: Session, user_id: str, connection_id: str, *, job_id: str, now: datetime) -> None:
    """Remember that the source is asked for this job; what is older than the period is forgotten."""
    session.execute("DELETE FROM source_calls WHERE user_id = $1 AND called_at <= $2", user_id, now - PERIOD)
    call = {"user_id": user_id, "job_id": job_id, "connection_id": connection_id, "called_at": now}
    add_row(session, "source_calls", **call)
