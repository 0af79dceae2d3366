"""Rhythms by calendar day, bank working days, and prices that change with time."""

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

from connectors.sources.demo.chance import Dice

Rhythm = Callable[[date, Dice], bool]
Price = Callable[[date], Decimal]

FIXED_HOLIDAYS = {(1, 1), (5, 1), (10, 3), (12, 25), (12, 26)}
ANCHOR = date(2024, 1, 1)  # a Monday, from which weekly rhythms count


def monthly(day_of_month: int, *pause: int) -> Rhythm:
    """A rhythm of the demo bank: every month but the paused ones (1 to 12); day 31 is the last day of shorter
    months."""
    return lambda day, _: day.day == _within_month(day, day_of_month) and day.month not in pause


def quarterly(day_of_month: int, first_month: int = 1) -> Rhythm:
    """A rhythm of the demo bank: every third month, `first_month` among them; day 31 is the last day of shorter
    months."""
    return lambda day, _: day.day == _within_month(day, day_of_month) and (day.month - first_month) % 3 == 0


def yearly(month: int, day_of_month: int) -> Rhythm:
    """A rhythm of the demo bank: once a year, on this day."""
    return lambda day, _: (day.month, day.day) == (month, day_of_month)


def twice_a_year(month: int, day_of_month: int) -> Rhythm:
    """A rhythm of the demo bank: twice a year, on this day of this month and of the one six months later."""
    return lambda day, _: day.day == day_of_month and (day.month - month) % 6 == 0


def every(days: int, offset: int = 0) -> Rhythm:
    """A rhythm of the demo bank: every so many days, one of which is `offset` days after Monday, 1 January 2024."""
    return lambda day, _: (day - ANCHOR).days % days == offset


def some_days(percent: int) -> Rhythm:
    """A rhythm of the demo bank: random days, this percentage of all."""
    return lambda _, dice: dice.happens(percent)


def steady(amount: str) -> Price:
    """A price of the demo source that is the same on every day; `amount` is a decimal number such as "9.99"."""
    fixed = Decimal(amount)
    return lambda _: fixed


def between(low: str, high: str) -> Price:
    """A price of the demo source that varies from day to day between two decimal numbers, both included; always the
    same on the same day."""
    first, last = Decimal(low), Decimal(high)
    steps = int((last - first) * 100) + 1
    return lambda day: first + Decimal(day.toordinal() * 7919 % steps).scaleb(-2)


def rising(amount: str, by: str, month: int = 1) -> Price:
    """A price of the demo source that is `amount` up to 2024 and rises by `by` each later year, on the first of
    `month`."""
    first, step = Decimal(amount), Decimal(by)

    def price(day: date) -> Decimal:
        years = day.year - ANCHOR.year - (day.month < month)
        return first + step * max(years, 0)

    return price


def changing(first: str, *changes: tuple[date, str]) -> Price:
    """A price of the demo source that changes to the given amounts on their days, listed oldest first; until the first
    of these days, it is `first`."""

    def price(day: date) -> Decimal:
        return Decimal(next((amount for since, amount in reversed(changes) if day >= since), first))

    return price


def working_day(day: date) -> date:
    """The day itself, or the next one on which the demo bank books: not on weekends and five German holidays."""
    while day.weekday() >= 5 or (day.month, day.day) in FIXED_HOLIDAYS:
        day += timedelta(days=1)
    return day


def working_days_later(day: date, count: int) -> date:
    """The day so many working days of the demo bank after this day; this day itself for 0, whatever it is."""
    for _ in range(count):
        day = working_day(day + timedelta(days=1))
    return day


def _within_month(day: date, day_of_month: int) -> int:
    return min(day_of_month, monthrange(day.year, day.month)[1])
