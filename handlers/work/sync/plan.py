"""The plan of syncs that nobody asks for: live sources are synced a few times a day, each connection at its own
moments."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

from storage.bank_access.source_calls import PERIOD

SPREAD = timedelta(minutes=90)  # around each planned time, so that not everybody asks a provider at once
LATE_MAX = timedelta(minutes=10)  # a planned sync may be this late: by then, yesterday's call is out of the 24 hours


def last_moment(connection_id: str, times: Sequence[time], *, zone: ZoneInfo, now: datetime) -> datetime | None:
    """The connection's latest planned moment that has come, in UTC without a zone; None if nothing is planned."""
    return max((each for each in _moments(connection_id, times, zone=zone, now=now) if each <= now), default=None)


def next_moments(connection_id: str, times: Sequence[time], *, zone: ZoneInfo, now: datetime) -> Sequence[datetime]:
    """The connection's planned moments of the next 24 hours, the next first, in UTC without a zone."""
    moments = _moments(connection_id, times, zone=zone, now=now)
    return sorted(each for each in moments if now < each <= now + timedelta(days=1))


def leaves_room(calls: Sequence[datetime], planned: Sequence[datetime], *, limit: int) -> bool:
    """Whether one more call now leaves room for each planned one among the `limit` calls in any 24 hours; `calls` are
    the times of earlier ones."""
    return all(
        sum(each > moment - PERIOD + LATE_MAX for each in calls) + 1 + number <= limit
        for number, moment in enumerate(planned, 1)
    )


def _moments(connection_id: str, times: Sequence[time], *, zone: ZoneInfo, now: datetime) -> Sequence[datetime]:
    """The connection's planned moments of yesterday, today and tomorrow, in UTC without a zone: the planned times in
    `zone`, all shifted by up to 45 minutes either way, by a hash of the connection's id."""
    part = int.from_bytes(sha256(connection_id.encode()).digest()[:4]) / 2**32
    offset = SPREAD * part - SPREAD / 2
    today = now.replace(tzinfo=UTC).astimezone(zone).date()
    return [
        (datetime.combine(today + timedelta(days=days), each, zone).astimezone(UTC) + offset).replace(tzinfo=None)
        for days in (-1, 0, 1)
        for each in times
    ]
