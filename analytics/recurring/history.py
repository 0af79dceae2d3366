"""The history of one recurring payment, from its charges: rhythm, prices, missed and coming charges."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Literal

from msgspec import Struct

from analytics.minor_digits import in_digits
from analytics.periods import last_day
from analytics.recurring.frequencies import CHARGES_A_YEAR, GRACE_DAYS, RHYTHMS, Unit

COMING_DAYS = 30  # how far ahead charges are predicted
RECENT_CHARGES = 12  # the place in the calendar is that of the latest ones, because a contract may move to another day


class Charge(Struct, frozen=True, kw_only=True):
    """One charge of a stream; the amount is positive."""

    id: str
    day: date
    amount: Decimal


class Cadence(Struct, frozen=True, kw_only=True):
    """A rhythm: a charge every so many units, with its place in the unit: the ISO weekday, the day of the month (31:
    the last one), and the month of a yearly charge. A rhythm of 28 or 30 days has no place in the calendar."""

    every: int
    unit: Unit
    weekday: int | None = None
    day_of_month: int | None = None
    month: int | None = None


class Price(Struct, frozen=True, kw_only=True):
    """Consecutive charges of one amount; `change` is the difference to the price before, None for the first."""

    since: date
    until: date
    amount: Decimal
    charges: int
    change: Decimal | None


class History(Struct, frozen=True, kw_only=True):
    """The history of a recurring payment. `overdue` are the due days after the latest charge that passed longer ago
    than a charge may be late; `missed` are these and, before them, the due days between charges that had none.
    `next_expected` is the first due day after the overdue ones, and may be some days ago. `coming` are the due days
    from that one to the end of the time asked for. Nine of ten charges are at most `deviation` days early or late.
    `yearly_cost` is the latest price times the number of charges in a year."""

    cadence: Cadence
    first_charged: date
    next_expected: date
    deviation: int
    missed: list[date]
    overdue: list[date]
    coming: list[date]
    prices: list[Price]
    yearly_cost: Decimal


class Outlook(Struct, frozen=True, kw_only=True):
    """The outlook of a stream: whether it is active (no charge was missed since the latest one), paused or ended;
    between which days nine of ten next charges come (None when ended); and the due day since which a charge is awaited,
    even if it does not count as missed yet (None where that day is not before today, or when ended)."""

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
    """The history of a stream of at least one charge, given in any order; amounts are in the digits of the currency.

    `first_due` is the first due day of a payment that was never charged, else None. The caller then gives one made-up
    charge a period before it; the place in the calendar comes from `first_due`, because the charge may be on the last
    day of February and would put every due day at the end of a month.
    """
    ordered = sorted(charges, key=lambda charge: (charge.day, charge.id))
    days = [charge.day for charge in ordered]
    cadence = _cadence([first_due] if first_due else days, frequency)
    overdue, next_expected = _overdue_and_next(days[-1], cadence, today - timedelta(days=GRACE_DAYS[frequency]))
    prices = _prices(ordered, currency)
    return History(
        cadence=cadence,
        first_charged=days[0],
        next_expected=next_expected,
        deviation=_usual_deviation(days, cadence, frequency),
        missed=[*_missed_between(days, cadence), *overdue],
        overdue=overdue,
        coming=_coming_days(days[-1], cadence, steps=len(overdue), until=today + timedelta(days=coming_days)),
        prices=prices,
        yearly_cost=prices[-1].amount * CHARGES_A_YEAR[frequency],
    )


def due_days(
    days: Sequence[date], *, frequency: str, today: date, until: date, first_due: date | None = None
) -> list[date]:
    """The due days from today up to `until` of a stream that was charged on these days; `first_due` as in `history`."""
    charged = sorted(days)
    cadence = _cadence([first_due] if first_due else charged, frequency)
    overdue, _ = _overdue_and_next(charged[-1], cadence, today)
    return _coming_days(charged[-1], cadence, steps=len(overdue), until=until)


def period_before(day: date, frequency: str) -> date:
    """The day one period before a day."""
    return _due_after(day, _cadence([day], frequency), -1)


def outlook_of(past: History, *, is_over: bool, today: date) -> Outlook:
    """The outlook of the stream with this history; `is_over` says that more than two periods and a day have passed
    since the latest charge (`analytics.recurring.report`)."""
    if is_over:
        return Outlook(status="ended", expected_from=None, expected_until=None, overdue_since=None)
    around = timedelta(days=past.deviation)
    awaited = [*past.overdue, past.next_expected]
    return Outlook(
        status="paused" if past.overdue else "active",
        expected_from=past.next_expected - around,
        expected_until=past.next_expected + around,
        overdue_since=awaited[0] if awaited[0] < today else None,
    )


def _cadence(days: Sequence[date], frequency: str) -> Cadence:
    """The rhythm of this frequency that the charges keep best; of equally good ones the first."""
    recent = days[-RECENT_CHARGES:]
    candidates = [_place_in_calendar(recent, every, unit) for every, unit in RHYTHMS[frequency]]
    return min(candidates, key=lambda cadence: sum(_deviations(recent, cadence)))


def _place_in_calendar(days: Sequence[date], every: int, unit: Unit) -> Cadence:
    if unit == "day":
        return Cadence(every=every, unit=unit)
    if unit == "week":
        return Cadence(every=every, unit=unit, weekday=_commonest([day.isoweekday() for day in days]))
    is_yearly = every == 12
    return Cadence(
        every=every,
        unit=unit,
        day_of_month=_commonest([31 if day == last_day(day.replace(day=1)) else day.day for day in days]),
        month=_commonest([day.month for day in days]) if is_yearly else None,
    )


def _commonest(places: Sequence[int]) -> int:
    """The commonest place; of equally common ones the last."""
    counted = Counter(places)
    return max(reversed(places), key=counted.__getitem__)


def _usual_deviation(days: Sequence[date], cadence: Cadence, frequency: str) -> int:
    """The number of days by which at least nine of ten charges are early or late at most; at least one, and never so
    many that a charge counts as missed."""
    deviations = sorted(_deviations(days, cadence))
    usual = deviations[-(-9 * len(deviations) // 10) - 1] if deviations else 0
    return min(max(usual, 1), GRACE_DAYS[frequency])


def _deviations(days: Sequence[date], cadence: Cadence) -> list[int]:
    """By how many days each charge differs from the day implied by the charge before."""
    return [
        abs((later - _due_after(earlier, cadence, max(1, _steps(earlier, later, cadence)))).days)
        for earlier, later in pairwise(days)
    ]


def _steps(earlier: date, later: date, cadence: Cadence) -> int:
    """The number of periods between two charges, rounded."""
    if cadence.unit == "month":
        return round((_months(later) - _months(earlier)) / cadence.every)
    return round((later - earlier).days / (cadence.every * (7 if cadence.unit == "week" else 1)))


def _months(day: date) -> float:
    """The day in months, with the elapsed share of the month, so that the 28th, 30th and 31st coincide at its end."""
    return day.year * 12 + day.month + (day.day - 1) / last_day(day.replace(day=1)).day


def _due_after(day: date, cadence: Cadence, steps: int) -> date:
    """The due day so many periods after the charge on `day`, at its usual place in the week or month."""
    if cadence.unit == "day":
        return day + timedelta(days=cadence.every * steps)
    if cadence.unit == "week":
        assert cadence.weekday is not None
        shift = (cadence.weekday - day.isoweekday() + 3) % 7 - 3
        return day + timedelta(days=7 * cadence.every * steps + shift)
    assert cadence.day_of_month is not None
    # A charge of the 31st may be posted on the 1st, and one of the 1st on the 31st; it belongs to the nearest month
    place = round(_months(day) - (cadence.day_of_month - 1) / 31) + cadence.every * steps
    month = date((place - 1) // 12, (place - 1) % 12 + 1, 1)
    return month.replace(day=min(cadence.day_of_month, last_day(month).day))


def _missed_between(days: Sequence[date], cadence: Cadence) -> list[date]:
    return [
        _due_after(earlier, cadence, step)
        for earlier, later in pairwise(days)
        for step in range(1, _steps(earlier, later, cadence))
    ]


def _overdue_and_next(last: date, cadence: Cadence, given_up_before: date) -> tuple[list[date], date]:
    """The due days after the charge on `last` and before `given_up_before`, and the first due day from then on."""
    overdue: list[date] = []
    while (due := _due_after(last, cadence, len(overdue) + 1)) < given_up_before:
        overdue.append(due)
    return overdue, due


def _coming_days(last: date, cadence: Cadence, *, steps: int, until: date) -> list[date]:
    """The due days after the charge on `last` up to `until`, without the first `steps` of them."""
    days: list[date] = []
    while (due := _due_after(last, cadence, steps + len(days) + 1)) <= until:
        days.append(due)
    return days


def _prices(ordered: Sequence[Charge], currency: str) -> list[Price]:
    prices: list[Price] = []
    for amount, group in groupby(ordered, key=lambda charge: in_digits(charge.amount, currency)):
        same = list(group)
        change = amount - prices[-1].amount if prices else None
        prices.append(Price(since=same[0].day, until=same[-1].day, amount=amount, charges=len(same), change=change))
    return prices
