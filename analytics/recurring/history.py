"""The story of one recurring payment, told from its charges: rhythm, prices, what was missed, what comes next."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import groupby, pairwise
from typing import Literal

from analytics.currencies import minor_digits
from analytics.periods import last_day
from analytics.recurring.frequencies import CHARGES_A_YEAR, GRACE_DAYS, RHYTHMS, Unit

COMING_DAYS = 30  # how far ahead charges are foretold
RECENT_CHARGES = 12  # the phase is that of the latest ones: a contract that moved to another day has moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """One charge of a stream; the amount is positive."""

    id: str
    day: date
    amount: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """A charge every so many units, and where in the unit: the ISO weekday, the day of the month (31: its last), and
    the month of a yearly charge. A rhythm of 28 or 30 days has no place in a calendar."""

    every: int
    unit: Unit
    weekday: int | None = None
    day_of_month: int | None = None
    month: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Consecutive charges of one amount; `change` is the difference to the price before, None for the first."""

    since: date
    until: date
    amount: Decimal
    charges: int
    change: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`missed` are the days on which a charge was due between the first one and today and none came near, `overdue`
    those of them after the latest one; `coming` are
    those of the next 30 days, after the one that is overdue but not yet missed, each at most `deviation` days early or
    late nine times out of ten."""

    cadence: Cadence
    first_charged: date
    next_expected: date
    deviation: int
    missed: list[date]
    overdue: list[date]
    coming: list[date]
    prices: list[Price]
    yearly_cost: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIsExpected:
    """Whether a stream goes on (nothing was missed since the latest charge), pauses or has ended; between which days
    nine of ten next charges come; and since when a charge is awaited that has not come."""

    status: Literal["active", "paused", "ended"]
    expected_from: date | None
    expected_until: date | None
    overdue_since: date | None


def history(
    charges: Sequence[Charge],
    *,
    frequency: str,
    currency: str,
    today: date,
    coming_days: int = COMING_DAYS,
    first_due: date | None = None,
) -> History:
    """The history of a stream of at least one charge, in any order; amounts as they are listed, in the digits of the
    currency. `first_due` has the place in the calendar where nothing was charged yet: the charge is one period before
    it, and the end of February would be the last day of every month."""
    ordered = sorted(charges, key=lambda charge: (charge.day, charge.id))
    days = [charge.day for charge in ordered]
    cadence = _cadence([first_due] if first_due else days, frequency)
    overdue, next_expected = _ahead(days[-1], cadence, today - timedelta(days=GRACE_DAYS[frequency]))
    prices = _prices(ordered, currency)
    return History(
        cadence=cadence,
        first_charged=days[0],
        next_expected=next_expected,
        deviation=_usual_deviation(days, cadence, frequency),
        missed=[*_between(days, cadence), *overdue],
        overdue=overdue,
        coming=_due(days[-1], cadence, steps=len(overdue), until=today + timedelta(days=coming_days)),
        prices=prices,
        yearly_cost=prices[-1].amount * CHARGES_A_YEAR[frequency],
    )


def due_days(
    days: Sequence[date], *, frequency: str, today: date, until: date, first_due: date | None = None
) -> list[date]:
    """The days from today up to `until` on which a stream that was charged on these days is due; `first_due` as
    `history` has it."""
    charged = sorted(days)
    cadence = _cadence([first_due] if first_due else charged, frequency)
    overdue, _ = _ahead(charged[-1], cadence, today)
    return _due(charged[-1], cadence, steps=len(overdue), until=until)


def day_before(day: date, frequency: str) -> date:
    """One period before a day."""
    return _after(day, _cadence([day], frequency), -1)


def standing(told: History, *, is_over: bool, today: date) -> WhatIsExpected:
    """How the stream of this history stands; `is_over` as `analytics.recurring.report` says it."""
    if is_over:
        return WhatIsExpected(status="ended", expected_from=None, expected_until=None, overdue_since=None)
    around = timedelta(days=told.deviation)
    awaited = [*told.overdue, told.next_expected]
    return WhatIsExpected(
        status="paused" if told.overdue else "active",
        expected_from=told.next_expected - around,
        expected_until=told.next_expected + around,
        overdue_since=awaited[0] if awaited[0] < today else None,
    )


def listed(amount: Decimal, currency: str) -> Decimal:
    """An amount in the digits of its currency, as answers list it."""
    return amount.quantize(Decimal(1).scaleb(-minor_digits(currency)), rounding=ROUND_HALF_EVEN)


def _cadence(days: Sequence[date], frequency: str) -> Cadence:
    """The rhythm of this frequency that the charges keep best; of equally good ones the first."""
    candidates = [_placed(days[-RECENT_CHARGES:], every, unit) for every, unit in RHYTHMS[frequency]]
    return min(candidates, key=lambda cadence: _unrest(days[-RECENT_CHARGES:], cadence))


def _placed(days: Sequence[date], every: int, unit: Unit) -> Cadence:
    if unit == "day":
        return Cadence(every=every, unit=unit)
    if unit == "week":
        return Cadence(every=every, unit=unit, weekday=_usual([day.isoweekday() for day in days]))
    is_yearly = every == 12
    return Cadence(
        every=every,
        unit=unit,
        day_of_month=_usual([31 if day == last_day(day.replace(day=1)) else day.day for day in days]),
        month=_usual([day.month for day in days]) if is_yearly else None,
    )


def _usual(places: Sequence[int]) -> int:
    """The commonest; of equally common ones the latest."""
    counted = Counter(places)
    return max(reversed(places), key=counted.__getitem__)


def _unrest(days: Sequence[date], cadence: Cadence) -> int:
    """How many days all charges together lie away from where the one before says they should."""
    return sum(_deviations(days, cadence))


def _usual_deviation(days: Sequence[date], cadence: Cadence, frequency: str) -> int:
    """How many days nine out of ten charges lie away at most; one at least, and no more than makes a charge missed."""
    found = sorted(_deviations(days, cadence))
    usual = found[-(-9 * len(found) // 10) - 1] if found else 0
    return min(max(usual, 1), GRACE_DAYS[frequency])


def _deviations(days: Sequence[date], cadence: Cadence) -> list[int]:
    return [
        abs((later - _after(earlier, cadence, max(1, _steps(earlier, later, cadence)))).days)
        for earlier, later in pairwise(days)
    ]


def _steps(earlier: date, later: date, cadence: Cadence) -> int:
    """How many periods lie between two charges, to the nearest."""
    if cadence.unit == "month":
        return round((_months(later) - _months(earlier)) / cadence.every)
    return round((later - earlier).days / (cadence.every * (7 if cadence.unit == "week" else 1)))


def _months(day: date) -> float:
    """Months with the share of the month that has passed, so that the 28th, 30th and 31st coincide at its end."""
    return day.year * 12 + day.month + (day.day - 1) / last_day(day.replace(day=1)).day


def _after(day: date, cadence: Cadence, steps: int) -> date:
    """The day on which a charge is due so many periods after the one on `day`, at its usual place in the week or
    month."""
    if cadence.unit == "day":
        return day + timedelta(days=cadence.every * steps)
    if cadence.unit == "week":
        assert cadence.weekday is not None
        shift = (cadence.weekday - day.isoweekday() + 3) % 7 - 3
        return day + timedelta(days=7 * cadence.every * steps + shift)
    assert cadence.day_of_month is not None
    # A charge of the 31st may be posted on the 1st, and one of the 1st on the 31st: the nearest month is its own
    place = round(_months(day) - (cadence.day_of_month - 1) / 31) + cadence.every * steps
    month = date((place - 1) // 12, (place - 1) % 12 + 1, 1)
    return month.replace(day=min(cadence.day_of_month, last_day(month).day))


def _between(days: Sequence[date], cadence: Cadence) -> list[date]:
    return [
        _after(earlier, cadence, step)
        for earlier, later in pairwise(days)
        for step in range(1, _steps(earlier, later, cadence))
    ]


def _ahead(last: date, cadence: Cadence, given_up_before: date) -> tuple[list[date], date]:
    """The days that passed without the charge that was due, and the first one that is still to come."""
    overdue: list[date] = []
    while (due := _after(last, cadence, len(overdue) + 1)) < given_up_before:
        overdue.append(due)
    return overdue, due


def _due(last: date, cadence: Cadence, *, steps: int, until: date) -> list[date]:
    """The days up to `until` on which charges are due, after so many that were."""
    days: list[date] = []
    while (due := _after(last, cadence, steps + len(days) + 1)) <= until:
        days.append(due)
    return days


def _prices(ordered: Sequence[Charge], currency: str) -> list[Price]:
    prices: list[Price] = []
    for amount, group in groupby(ordered, key=lambda charge: listed(charge.amount, currency)):
        same = list(group)
        change = amount - prices[-1].amount if prices else None
        prices.append(Price(since=same[0].day, until=same[-1].day, amount=amount, charges=len(same), change=change))
    return prices
