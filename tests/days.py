"""Days for tests with servers of the real clock: a run may begin before midnight and end after it."""

import time
from datetime import UTC, date, datetime, timedelta, tzinfo

LEFT_MIN = timedelta(minutes=2)


def today() -> date:
    """The day in UTC. It is asked in a test, not where its file is read."""
    return datetime.now(UTC).date()


def days_ago(number: int) -> date:
    """A day before today."""
    return today() - timedelta(days=number)


def whole_day(zone: tzinfo = UTC) -> date:
    """Today, if enough of it is left for a test; else tomorrow, as soon as it has come."""
    while (now := datetime.now(zone)).date() != (now + LEFT_MIN).date():
        time.sleep(1)
    return now.date()
