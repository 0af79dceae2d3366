"""Calendar periods of analyses: months, the last 30 days, the six months of subscriptions."""

import re
from calendar import monthrange
from datetime import date, timedelta
from functools import lru_cache

LAST_DAYS = 30  # interface 4.6; today and the 29 days before it (decision 10)
SUBSCRIPTION_MONTHS = 6  # interface 4.7
HISTORY_MONTHS_MIN = 120  # decision 3: so many months are always listed

_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")


class InvalidMonth(ValueError):
    """month: must be a calendar month written YYYY-MM."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


def month_of(text: str) -> date:
    """The first day of the month that `text` ("2026-01") names. Raises InvalidMonth."""
    match = _MONTH.fullmatch(text)
    if match is None or match[1] == "0000":
        raise InvalidMonth
    return date(int(match[1]), int(match[2]), 1)


def months_back(today: date, count: int) -> list[date]:
    """The first days of `count` months, oldest first, the month of `today` last."""
    current = _index(today)
    return [_month(index) for index in range(current - count + 1, current + 1)]


def shown_months(today: date, count: int, *, first_booking: date | None) -> list[date]:
    """The months that a cashflow of `count` months lists, oldest first: exactly `count` of them, but beyond 120 none
    before the first booked transaction (decision 3)."""
    since_first = 0 if first_booking is None else _index(today) - _index(first_booking) + 1
    return months_back(today, min(count, max(HISTORY_MONTHS_MIN, since_first)))


@lru_cache(maxsize=1_000)  # histories ask some ten thousand times for the same few months
def last_day(month: date) -> date:
    """The last day of the month that begins on `month`."""
    return month.replace(day=monthrange(month.year, month.month)[1])


def last_30_days(today: date) -> tuple[date, date]:
    """The first and last of the last 30 days, both included: today and the 29 days before it (decision 10)."""
    return today - timedelta(days=LAST_DAYS - 1), today


def six_months_before(today: date) -> date:
    """The day six months before `today`, as `months_later` counts."""
    return months_later(today, -SUBSCRIPTION_MONTHS)


def last_of_twelve_months(today: date) -> date:
    """The last day of the twelve months that begin today: the day before the same day next year."""
    return months_later(today, 12) - timedelta(days=1)


def months_later(day: date, months: int) -> date:
    """The same day of the month so many months later (negative: earlier), or the last one of a shorter month (decision
    10). Raises ValueError beyond the years 1 to 9999."""
    month = _month(_index(day) + months)
    return month.replace(day=min(day.day, last_day(month).day))


def _index(day: date) -> int:
    return day.year * 12 + day.month - 1


def _month(index: int) -> date:
    return date(index // 12, index % 12 + 1, 1)
