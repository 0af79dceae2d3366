"""The one place that reads the clock; everything below receives `now` and `today` as arguments.

A machine's clock may be wrong for a while and is then set. So what waits inside this process waits by `steady`; a
moment in the store that is further ahead than anything waits counts as none; and `handlers.work.clock_watch` says
whether the clock is known to be wrong, which keeps this machine from housekeeping and from telling news.
"""

import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first goes on while the machine sleeps


class Clock:
    """Gives instants in UTC (without zone, as the store keeps them) and calendar days in the configured zone.

    `offset` is how far a demo server lives in the future; a real one lives in the present.
    """

    def __init__(self, zone: ZoneInfo) -> None:
        self.zone = zone
        self.offset = timedelta(0)

    def now(self) -> datetime:
        """The present instant in UTC, without zone, cut to milliseconds: as precise as it is stored and sent."""
        return self.now_in_utc().replace(tzinfo=None)

    def now_in_utc(self) -> datetime:
        """The present instant with UTC as its zone, cut to milliseconds."""
        moment = datetime.now(UTC) + self.offset
        return moment - timedelta(microseconds=moment.microsecond % 1000)

    def steady(self) -> timedelta:
        """The time since some moment, which passes evenly whenever the machine's clock is set: for waits inside this
        process."""
        return timedelta(seconds=time.clock_gettime(STEADY)) + self.offset

    def today(self) -> date:
        """Today's calendar day in the configured zone (decision 10)."""
        return self.now_in_utc().astimezone(self.zone).date()

    def in_zone(self, moment: datetime) -> datetime:
        """An instant of the store (UTC, without zone), converted to the configured zone."""
        return moment.replace(tzinfo=UTC).astimezone(self.zone)
