"""The days on which banks book payments: those of the euro's payment system, TARGET."""

from datetime import date, timedelta
from functools import lru_cache

DAY = timedelta(days=1)
SATURDAY = 5
HOLIDAYS = {(1, 1), (5, 1), (12, 25), (12, 26)}  # month and day; Good Friday and Easter Monday move
GOOD_FRIDAY, EASTER_MONDAY = -2, 1  # days from Easter Sunday


def is_bank_day(day: date) -> bool:
    """Whether banks book payments in euros on this day: no weekend and no holiday of TARGET."""
    easter = easter_sunday(day.year).toordinal()
    is_holiday = (day.month, day.day) in HOLIDAYS or day.toordinal() - easter in (GOOD_FRIDAY, EASTER_MONDAY)
    return day.weekday() < SATURDAY and not is_holiday


def bank_day_by(day: date) -> date:
    """The day, or the last bank day before it if it is none."""
    while not is_bank_day(day):
        day -= DAY
    return day


def bank_day_from(day: date) -> date:
    """The day, or the first bank day after it if it is none."""
    while not is_bank_day(day):
        day += DAY
    return day


@lru_cache(maxsize=100)
def easter_sunday(year: int) -> date:
    """Easter Sunday in the Gregorian calendar (the algorithm of Meeus, Jones and Butcher)."""
    golden, century, rest = year % 19, year // 100, year % 100
    correction = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - century // 4 - correction + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)
