"""When live sources are synced without being asked to: a few times a day, each connection at moments of its own."""

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

SPREAD = timedelta(minutes=90)  # around each time, so that not everybody asks a provider at once


def last_planned(connection_id: str, times: Sequence[time], *, zone: ZoneInfo, now: datetime) -> datetime | None:
    """The connection's latest moment that has come, in UTC without a zone; None where nothing is planned."""
    part = int.from_bytes(sha256(connection_id.encode()).digest()[:4]) / 2**32
    offset = SPREAD * part - SPREAD / 2
    today = now.replace(tzinfo=UTC).astimezone(zone).date()
    moments = [
        (datetime.combine(today + timedelta(days=days), each, zone).astimezone(UTC) + offset).replace(tzinfo=None)
        for days in (-1, 0, 1)
        for each in times
    ]
    return max((moment for moment in moments if moment <= now), default=None)
