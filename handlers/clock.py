"""The one place that reads the clock; everything below receives `now` and `today` as arguments."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo


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

    def today(self) -> date:
        """Today's calendar day in the configured zone (decision 10)."""
        return self.now_in_utc().astimezone(self.zone).date()

    def in_zone(self, moment: datetime) -> datetime:
        """An instant of the store (UTC, without zone), converted to the configured zone."""
        return moment.replace(tzinfo=UTC).astimezone(self.zone)
