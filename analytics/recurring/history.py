"""The history of one recurring payment, from its charges: rhythm, prices, missed and coming charges."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from analytics.bank_days import bank_day_by, bank_day_from
from analytics.minor_digits import in_digits
from analytics.periods import last_day
from analytics.recurring.frequencies import CHARGES_A_YEAR, GRACE_DAYS, RHYTHMS, TWICE_MONTHLY, Unit

COMING_DAYS = 30  # how far ahead charges are predicted
RECENT_CHARGES = 12  # the place in the calendar is that of the latest ones, because a contract may move to another day
PLACES_APART_DAYS = 8  # the two days of what is charged twice a month are at least as far apart
Posted = Literal["then", "before", "after"]
POSTED: Sequence[Posted] = ("then", "after", "before")  # payments due on a Sunday: then, or on the next bank day
POSTED_INCOMING: Sequence[Posted] = ("before", "after", "then")  # pay that would come on a Sunday comes on the Friday


class Charge(Struct, frozen=True, kw_only=True):
    """One charge of a stream; the amount is positive."""

    id: str
    day: date
    amount: Decimal


class Cadence(Struct, frozen=True, kw_only=True):
    """A rhythm: a charge every so many units, with its place in the unit: the ISO weekday, the day of the month (31:
    the last one), the second one of what is charged twice a month, and the month of a yearly charge. A rhythm of 28 or
    30 days has no place in the calendar. `posted`: what is due on a day that is no bank day comes then, or on the last
    one before or the first one after it."""

    every: int
    unit: Unit
    weekday: int | None = None
    day_of_month: int | None = None
    second_day_of_month: int | None = None
    month: int | None = None
    posted: Posted = "then"

    @property
    def interval_months(self) -> float | None:
        """The number of months between two charges, a half where there are two in each; None unless it is months."""
        return None if self.unit != "month" else self.every / self.places

    @property
    def places(self) -> int:
        """The number of charges in each unit: two a month, else one."""
        return 1 if self.second_day_of_month is None else 2


class Price(Struct, frozen=True, kw_only=True):
    """Consecutive charges of one amount; `change` is the difference to the price before, None for the first."""

    since: date
    until: date
    amount: Decimal
    charges: int
    change: Decimal | None


class History(Struct, frozen=True, kw_only=True):
    """The history of a recurring payment. `overdue` are the due days after the latest charge for which the account was
    asked later than a charge may be late; `missed` are these and, before them, the due days between charges that had
    none. `unknown` are the other due days before today, but for one that is `awaited`: the account was asked after it,
    and a charge may still be that late. `coming` are the awaited day and those from today to the end of the time asked
    for, `next_expected` is the first of them, however far ahead. Nine of ten charges are at most `deviation` days early
    or late. `yearly_cost` is the latest price times the number of charges in a year."""

    cadence: Cadence
    first_charged: date
    next_expected: date
    deviation: int
    missed: list[date]
    overdue: list[date]
    unknown: list[date]
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
    incoming: bool = False,
    asked: date | None = None,
    coming_days: int = COMING_DAYS,
    first_due: date | None = None,
) -> History:
    """The history of a stream of at least one charge, given in any order; amounts are in the digits of the currency.
    `asked` is the day until which the bookings of its account are known (None: today); `incoming` money comes before a
    weekend if nothing shows otherwise.

    `first_due` is the first due day of a payment that was never charged, else None. The caller then gives one made-up
    charge a period before it; the place in the calendar comes from `first_due`, because the charge may be on the last
    day of February and would put every due day at the end of a month.
    """
    ordered = sorted(charges, key=lambda charge: (charge.day, charge.id))
    days = [charge.day for charge in ordered]
    cadence = _cadence((first_due,) if first_due else _recent(days), frequency, incoming=incoming)
    asked, grace = min(asked or today, today), timedelta(days=GRACE_DAYS[frequency])
    past, first_ahead = _past_and_next(days[-1], cadence, today)
    overdue = [due for due in past if due + grace < asked]
    awaited = [due for due in past if due < asked <= due + grace and today <= due + grace]
    coming = _coming_days(days[-1], cadence, steps=len(past), until=today + timedelta(days=coming_days))
    prices = _prices(ordered, currency)
    return History(
        cadence=cadence,
        first_charged=days[0],
        next_expected=[*awaited, first_ahead][0],
        deviation=_usual_deviation(tuple(days), cadence, frequency),
        missed=[*_missed_between(days, cadence), *overdue],
        overdue=overdue,
        unknown=[due for due in past if due not in overdue and due not in awaited],
        coming=[*awaited, *coming],
        prices=prices,
        yearly_cost=prices[-1].amount * CHARGES_A_YEAR[frequency],
    )


def due_days(
    days: Sequence[date], *, frequency: str, today: date, until: date, first_due: date | None = None
) -> list[date]:
    """The due days from today up to `until` of a stream that was charged on these days; `first_due` as in `history`."""
    charged = sorted(days)
    cadence = _cadence((first_due,) if first_due else _recent(charged), frequency)
    past, _ = _past_and_next(charged[-1], cadence, today)
    return _coming_days(charged[-1], cadence, steps=len(past), until=until)


def period_before(day: date, frequency: str) -> date:
    """The day one period before a day."""
    return _due_after(day, _cadence((day,), frequency), -1)


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


def _recent(days: Sequence[date]) -> tuple[date, ...]:
    return tuple(days[-RECENT_CHARGES:])


@lru_cache(maxsize=4096)  # asked for the same charges by each look, list and forecast
def _cadence(recent: tuple[date, ...], frequency: str, *, incoming: bool = False) -> Cadence:
    """The rhythm of this frequency, and the way it goes about days that are no bank days, that the charges keep best;
    of equally good ones the first. A charge that was far off says no more than any other: pay that came late once is
    still that of its month."""
    rhythms = [
        _place_in_calendar(recent, every, unit, is_twice=frequency == TWICE_MONTHLY)
        for every, unit in RHYTHMS[frequency]
    ]
    if len(recent) == 1:
        return rhythms[0]
    ways = POSTED_INCOMING if incoming else POSTED
    candidates = [replace(rhythm, posted=way) for rhythm in rhythms for way in ways]
    candidates += [
        replace(each, day_of_month=(min if each.posted == "after" else max)(map(_place, recent)))
        for each in candidates
        if each.day_of_month is not None and each.second_day_of_month is None and each.posted != "then"
    ]  # rent that is due on the first comes on the second or third nearly as often
    most = 2 * GRACE_DAYS[frequency]
    return min(candidates, key=lambda cadence: sum(min(each, most) for each in _deviations(recent, cadence)))


def _place_in_calendar(days: Sequence[date], every: int, unit: Unit, *, is_twice: bool) -> Cadence:
    if unit == "day":
        return Cadence(every=every, unit=unit)
    if unit == "week":
        return Cadence(every=every, unit=unit, weekday=_commonest([day.isoweekday() for day in days]))
    places = list(map(_place, days))
    usual = [_commonest(places)]
    if is_twice:
        apart = [place for place in places if PLACES_APART_DAYS <= abs(place - usual[0]) <= 31 - PLACES_APART_DAYS]
        usual = sorted([*usual, _commonest(apart or [(usual[0] + 14) % 31 + 1])])
    return Cadence(
        every=every,
        unit=unit,
        day_of_month=usual[0],
        second_day_of_month=usual[1] if is_twice else None,
        month=_commonest([day.month for day in days]) if every == 12 else None,
    )


def _place(day: date) -> int:
    """The day of the month; 31 for its last one."""
    return 31 if day == last_day(day.replace(day=1)) else day.day


def _commonest(places: Sequence[int]) -> int:
    """The commonest place; of equally common ones the last."""
    counted = Counter(places)
    return max(reversed(places), key=counted.__getitem__)


@lru_cache(maxsize=4096)
def _usual_deviation(days: tuple[date, ...], cadence: Cadence, frequency: str) -> int:
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
        return round((_months(later) - _months(earlier)) * cadence.places / cadence.every)
    return round((later - earlier).days / (cadence.every * (7 if cadence.unit == "week" else 1)))


def _months(day: date) -> float:
    """The day in months, with the elapsed share of the month, so that the 28th, 30th and 31st coincide at its end."""
    return day.year * 12 + day.month + (day.day - 1) / last_day(day.replace(day=1)).day


def _due_after(day: date, cadence: Cadence, steps: int) -> date:
    """The day on which the payment comes that is due so many periods after the charge on `day`."""
    due = _place_after(day, cadence, steps)
    return due if cadence.posted == "then" else bank_day_by(due) if cadence.posted == "before" else bank_day_from(due)


def _place_after(day: date, cadence: Cadence, steps: int) -> date:
    """The due day so many periods after the charge on `day`, at its usual place in the week or month."""
    if cadence.unit == "day":
        return day + timedelta(days=cadence.every * steps)
    if cadence.unit == "week":
        assert cadence.weekday is not None
        shift = (cadence.weekday - day.isoweekday() + 3) % 7 - 3
        return day + timedelta(days=7 * cadence.every * steps + shift)
    places = [place for place in (cadence.day_of_month, cadence.second_day_of_month) if place is not None]
    # A charge of the 31st may be posted on the 1st, and one of the 1st on the 31st; it belongs to the nearest place
    since = [_months(day) - (place - 1) / 31 for place in places]
    nearest = min(range(len(places)), key=lambda number: abs(since[number] - round(since[number])))
    months, number = divmod(len(places) * round(since[nearest]) + nearest + cadence.every * steps, len(places))
    month = date((months - 1) // 12, (months - 1) % 12 + 1, 1)
    return month.replace(day=min(places[number], last_day(month).day))


def _missed_between(days: Sequence[date], cadence: Cadence) -> list[date]:
    return [
        _due_after(earlier, cadence, step)
        for earlier, later in pairwise(days)
        for step in range(1, _steps(earlier, later, cadence))
    ]


def _past_and_next(last: date, cadence: Cadence, today: date) -> tuple[list[date], date]:
    """The due days after the charge on `last` and before `today`, and the first one from then on."""
    past: list[date] = []
    while (due := _due_after(last, cadence, len(past) + 1)) < today:
        past.append(due)
    return past, due


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
