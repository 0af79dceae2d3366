"""The period with which a period is compared: the previous one, or that of the previous year, both cut to equal
length."""

from datetime import date, timedelta
from typing import Literal, NamedTuple

import polars as pl

from analytics.periods import last_day, months_later

CompareWith = Literal["previousPeriod", "previousYear"]
MONTHS_OF_A_YEAR = 12


class Span(NamedTuple):
    """The days from `first` to `last`, both included."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """The number of days."""
        return (self.last - self.first).days + 1


class Shift(NamedTuple):
    """The distance from the earlier span to the later one, either in calendar months or in days; the other number is
    0."""

    months: int = 0
    days: int = 0

    def of(self, day: pl.Expr) -> pl.Expr:
        """The day of the later span that corresponds to a day of the earlier one."""
        return day.dt.offset_by(f"{self.months}mo{self.days}d")


class Comparison(NamedTuple):
    """A span, the earlier one with which it is compared, and the distance between them."""

    span: Span
    earlier: Span
    shift: Shift


def whole_months(span: Span) -> int:
    """The number of calendar months that a span consists of; 0 where it does not consist of whole months."""
    if span.first.day != 1 or span.last != last_day(span.last.replace(day=1)):
        return 0
    return (span.last.year - span.first.year) * MONTHS_OF_A_YEAR + span.last.month - span.first.month + 1


def comparison(asked: Span, compare_with: CompareWith, *, today: date, known_from: date | None) -> Comparison | None:
    """The spans to compare: whole calendar months with as many months before, or with the same months of the year
    before; other spans with as many days before, or with the same days of the year before. Days from the first of a
    month until today are months begun, or the year begun. None where nothing is left, or nothing was ever booked.

    Days after `today`, and days before `known_from`, the first booking, are in neither span: both are cut to as many
    days as the shorter one has, at their beginnings by as many days as the earlier one begins before the first booking.
    Whole months that need no cut stay whole, because their figures have to be those of the cashflow.
    """
    if known_from is None:
        return None
    try:
        return _comparison(asked, compare_with, today=today, known_from=known_from)
    except (ValueError, OverflowError):
        return None  # calendars begin with the year 1 and end with 9999


def _comparison(asked: Span, compare_with: CompareWith, *, today: date, known_from: date) -> Comparison | None:
    if asked.last == today and asked.first.day == 1:
        asked = Span(asked.first, _end_begun(asked.first, today))
    months = whole_months(asked)
    if compare_with == "previousYear":
        shift = Shift(months=MONTHS_OF_A_YEAR)
    else:
        shift = Shift(months=months) if months else Shift(days=asked.days)
    first, last = (months_later(day, -shift.months) - timedelta(days=shift.days) for day in asked)
    earlier = Span(first, last_day(last.replace(day=1)) if months else last)
    unknown = max(0, (known_from - earlier.first).days)
    if months and not unknown and asked.last <= today:
        return Comparison(asked, earlier, shift)
    days = min((min(asked.last, today) - asked.first).days + 1, earlier.days) - unknown
    if days < 1:
        return None
    return Comparison(_part(asked, unknown, days), _part(earlier, unknown, days), shift)


def _end_begun(first: date, today: date) -> date:
    """The end of the calendar months that are begun today, or of the year that they have begun."""
    is_year = first.month == 1 < today.month and first.year == today.year
    return today.replace(month=12, day=31) if is_year else last_day(today.replace(day=1))


def _part(span: Span, skipped: int, days: int) -> Span:
    first = span.first + timedelta(days=skipped)
    return Span(first, first + timedelta(days=days - 1))
