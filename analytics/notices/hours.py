"""The days and hours of a person: when it is quiet, and when a digest is due. Moments are UTC without zone."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

DIGEST_AT = time(8)
DAY = timedelta(days=1)


def day_of(moment: datetime, zone: ZoneInfo) -> date:
    """The person's day at this moment."""
    return _local(moment, zone).date()


def counts_of(counted: Mapping[str, Any], day: date) -> dict[str, Any]:
    """What was counted on this day (`on`), or on one of the next two, which another zone had begun: whoever changes
    zones counts on. Of any other day nothing counts any more."""
    is_current = day.isoformat() <= counted.get("on", "") <= (day + 2 * DAY).isoformat()
    return dict(counted) if is_current else {"on": day.isoformat()}


def quiet_until(moment: datetime, zone: ZoneInfo, hours: tuple[str, str] | None) -> datetime | None:
    """The end of the quiet hours (from and until, such as `22:00`, by the wall clock) in which this moment lies; None
    where it lies in none. `until` is not quiet any more."""
    if hours is None:
        return None
    begin, end = (time.fromisoformat(each) for each in hours)
    local = _local(moment, zone)
    now = local.time().replace(tzinfo=None)
    is_quiet = begin <= now < end if begin < end else now >= begin or now < end
    if not is_quiet:
        return None
    return _next(moment, zone, local.date() + (DAY if now >= end else timedelta()), end)


def next_digest(moment: datetime, zone: ZoneInfo, digest: str) -> datetime | None:
    """The first moment after this one at which the digest is due: Mondays or the first of each month, at eight; None
    for `off`."""
    if digest == "off":
        return None
    day = day_of(moment, zone)
    while True:
        is_due = day.weekday() == 0 if digest == "weekly" else day.day == 1
        at = _utc(datetime.combine(day, DIGEST_AT, zone))
        if is_due and at > moment:
            return at
        day += DAY


def digest_period(moment: datetime, zone: ZoneInfo, digest: str) -> tuple[date, date]:
    """The first and last day of the whole week or month before the digest that is due at this moment."""
    day = day_of(moment, zone)
    if digest == "weekly":
        last = day - timedelta(days=day.weekday() + 1)
        return last - 6 * DAY, last
    last = day.replace(day=1) - DAY
    return last.replace(day=1), last


def _next(moment: datetime, zone: ZoneInfo, day: date, at: time) -> datetime:
    """This time of the day, of two when clocks are set back the one that is still to come."""
    first = _utc(datetime.combine(day, at, zone))
    return first if first > moment else _utc(datetime.combine(day, at.replace(fold=1), zone))


def _local(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.replace(tzinfo=UTC).astimezone(zone)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
