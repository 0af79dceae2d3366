"""The one place that reads the clock; everything below receives `now` and `today` as arguments."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo


class Clock:
    """Instants in UTC (without zone, as the store keeps them) and calendar days in the configured zone.

    `offset` is how far a demo server lives in the future; a real one lives in the present.
    """

    def __init__(self, zone: ZoneInfo, *, offset: timedelta = timedelta(0)) -> None:
        self.zone = zone
        self.offset = offset
        now = self.now_in_utc()
        self._minute = now, now, now.date()  # from, until, and the day that it is between them: nothing yet

    def now(self) -> datetime:
        """The present instant in UTC, milliseconds at most: what is stored is what is sent."""
        return self.now_in_utc().replace(tzinfo=None)

    def now_in_utc(self) -> datetime:
        """The present moment, with its zone said."""
        moment = datetime.now(UTC) + self.offset
        return moment - timedelta(microseconds=moment.microsecond % 1000)

    def today(self) -> date:
        """The calendar day in the configured zone (decision 10). Days begin on whole minutes, and every request asks:
        so the day is found once a minute."""
        moment = self.now_in_utc()
        since, until, day = self._minute
        if not since <= moment < until:
            since, day = moment.replace(second=0, microsecond=0), moment.astimezone(self.zone).date()
            self._minute = since, since + timedelta(minutes=1), day
        return day

    def in_zone(self, moment: datetime) -> datetime:
        """An instant of the store as the clocks of the configured zone show it."""
        return moment.replace(tzinfo=UTC).astimezone(self.zone)
