"""What a usual week, month, quarter or year comes to: mean, median, and the mean without those that are far off."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from statistics import mean, median, quantiles

from msgspec import Struct

from analytics.periods import months_later

PERIODS_MIN = 4  # of fewer none is far off
FAR_OFF = 3  # interquartile ranges beyond the quartiles

NEXT: Mapping[str, Callable[[date], date]] = {
    "week": lambda start: start + timedelta(days=7),
    "month": lambda start: months_later(start, 1),
    "quarter": lambda start: months_later(start, 3),
    "year": lambda start: months_later(start, 12),
}
"""By kind of period, the first day of the period after the one that begins on a day."""
_START: Mapping[str, Callable[[date], date]] = {
    "week": lambda day: day - timedelta(days=day.weekday()),
    "month": lambda day: day.replace(day=1),
    "quarter": lambda day: day.replace(month=day.month - (day.month - 1) % 3, day=1),
    "year": lambda day: day.replace(month=1, day=1),
}


class Usual(Struct, frozen=True, kw_only=True):
    """Of one figure: mean and median of the periods, those that are far off (`outliers`, their first days), and the
    mean of the others."""

    mean: Decimal
    median: Decimal
    outliers: Sequence[date]
    mean_of_others: Decimal


def whole_periods(kind: str, first: date, last: date) -> list[date]:
    """The first days of the periods of this kind (of NEXT) that lie wholly between the two days."""
    start, found = _START[kind](first), []
    while (following := NEXT[kind](start)) <= last + timedelta(days=1):
        if start >= first:
            found.append(start)
        start = following
    return found


def usual(figures: Mapping[date, Decimal], periods: Sequence[date]) -> Usual:
    """The usual figure of these periods, at least one, given by their first days; a period that is not among the
    figures has 0."""
    each = {period: figures.get(period, Decimal(0)) for period in periods}
    low, high = _fences([*each.values()])
    far = [period for period, figure in each.items() if not low <= figure <= high]
    others = [figure for period, figure in each.items() if period not in far]
    return Usual(mean=mean(each.values()), median=median(each.values()), outliers=far, mean_of_others=mean(others))


def _fences(figures: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    """Between these lie the figures that are not far off."""
    if len(figures) < PERIODS_MIN:
        return min(figures), max(figures)
    low, _, high = quantiles(figures, n=4, method="inclusive")
    return low - FAR_OFF * (high - low), high + FAR_OFF * (high - low)
