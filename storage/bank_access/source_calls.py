"""Counts of syncs in the last 24 hours, for sources that limit them. A sync that its user asks for while present counts
only where the source allows more than PSD2 does (`PSD2_SYNCS_MAX`)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from storage.database import Session, add_row

PERIOD = timedelta(hours=24)  # rolling, as PSD2 counts (Delegated Regulation (EU) 2018/389, Article 36(5)(b))


class SyncQuota(Struct, frozen=True, kw_only=True):
    """The number of syncs of one connection that its source allows in 24 hours (`limit`), and the times of the counted
    ones in the last 24 hours (`calls`), oldest first."""

    limit: int
    calls: Sequence[datetime]

    @property
    def used(self) -> int:
        """The number of syncs of the last 24 hours, no more than the limit."""
        return min(len(self.calls), self.limit)

    @property
    def remaining(self) -> int:
        """The number of syncs that the limit leaves at present."""
        return self.limit - self.used

    def resets_at(self, now: datetime) -> datetime:
        """The time at which the oldest counted sync is 24 hours old, so that one more is free; `now` where none is
        counted."""
        return self.calls[-self.used] + PERIOD if self.used else now


def quota(session: Session, user_id: str, connection_id: str, *, limit: int, now: datetime) -> SyncQuota:
    """The connection's quota, with the syncs of the last 24 hours."""
    rows = session.rows(
        "SELECT called_at FROM source_calls WHERE user_id = $1 AND connection_id = $2 AND called_at > $3"
        " ORDER BY called_at",
        *(user_id, connection_id, now - PERIOD),
    )
    return SyncQuota(limit=limit, calls=[row["called_at"] for row in rows])


def record(session: Session, user_id: str, connection_id: str, *, job_id: str, now: datetime) -> None:
    """Record that the source is asked for this job, and delete the user's records older than 24 hours. The caller
    leaves out syncs that do not count, such as one that a present user asks for under the limit of PSD2."""
    session.execute("DELETE FROM source_calls WHERE user_id = $1 AND called_at <= $2", user_id, now - PERIOD)
    call = {"user_id": user_id, "job_id": job_id, "connection_id": connection_id, "called_at": now}
    add_row(session, "source_calls", **call)
