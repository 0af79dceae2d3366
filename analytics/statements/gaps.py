"""Gaps between the statements of an account, where money moved without a statement that shows it."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, groupby

from msgspec import Struct

from analytics.day_totals import DayTotals

DAY = timedelta(days=1)
OF_ONE_DAY_MAX = 100  # banks report hourly at most; each statement is compared with all of its day

_NUMBER = re.compile(r"\d+")


class Stated(Struct, frozen=True, kw_only=True):
    """A statement that proves its balances: opening and closing balance with their days."""

    sequence: str | None
    opening: Decimal
    opening_date: date
    closing: Decimal
    closing_date: date


def gaps(statements: Sequence[Stated]) -> Iterator[tuple[Stated, Stated]]:
    """Each statement that does not open with the closing balance of the one before, as a pair: the one before, and this
    one.

    Statements of any length may overlap: days and months, the intraday report and the statement of a day. Where the
    order of two statements of one day is unknown, no gap is claimed, and neither is one before a statement of a day
    that has more than a hundred.
    """
    ordered = sorted(statements, key=lambda one: (one.closing_date, number(one.sequence), one.opening_date))
    groups = [_Day(list(group)) for _, group in groupby(ordered, key=lambda one: one.closing_date)]
    days = [group.day for group in groups]
    earliest = list(accumulate(reversed([group.first_opening for group in groups]), min, initial=date.max))[::-1]
    seen = set()
    for later in ordered:
        beginning = (later.opening_date, later.opening)
        place = bisect_right(days, later.opening_date)
        if beginning in seen or earliest[place] < later.opening_date:
            continue  # another statement begins the same way, or a longer one covers the beginning
        seen.add(beginning)
        earlier = _statement_before(groups[max(place - 2, 0) : place], later)
        if earlier is not None:
            yield earlier, later


def missing_amount(closing: Decimal, day: date, later: Stated, totals: DayTotals) -> Decimal | None:
    """The amount that moved between the closing balance of `day` and the opening balance of a later statement and is
    not among the bookings of the days between. None where nothing is missing, because the later statement opens on
    `day` itself, before that day's bookings."""
    amount = later.opening - closing - totals.between(day + DAY, later.opening_date - DAY)
    return None if day == later.opening_date and totals.between(day, day) == -amount else amount


def number(sequence: str | None) -> tuple[tuple[int, ...], str]:
    """A sort key for statement numbers: 9 before 10, page 12/10 before 13/1, and a missing number before all others."""
    return tuple(int(digits) for digits in _NUMBER.findall(sequence or "")), sequence or ""


class _Day:
    """The statements that close on one day, in order."""

    def __init__(self, statements: list[Stated]) -> None:
        self.statements = statements
        self.day = statements[0].closing_date
        self.first_opening = min(one.opening_date for one in statements)
        self.closings = {one.closing for one in statements}


def _statement_before(days: Sequence[_Day], later: Stated) -> Stated | None:
    """The statement before `later`, if there is a gap between them; None where there is none or it is unknown."""
    for group in reversed(days):
        if group.day != later.closing_date:
            return None if later.opening in group.closings else group.statements[-1]
        if len(group.statements) > OF_ONE_DAY_MAX or not _is_order_clear(group.statements, later):
            return None
        preceding = [one for one in group.statements if one is not later and _precedes(one, later)]
        if preceding:
            return None if any(one.closing == later.opening for one in preceding) else preceding[-1]
    return None


def _is_order_clear(of_the_day: Sequence[Stated], later: Stated) -> bool:
    """Whether each of the day's other statements clearly comes before this one, or after it without being the end of a
    longer one."""
    for one in of_the_day:
        if one is later or _precedes(one, later):
            continue
        is_tail = one.closing == later.closing and one.opening_date < later.opening_date
        if is_tail or not _precedes(later, one):
            return False
    return True


def _precedes(one: Stated, other: Stated) -> bool:
    """Whether the first of two statements that close on one day comes before the second, by their balances or by their
    numbers; False also where neither says so."""
    first, second = number(one.sequence)[0], number(other.sequence)[0]
    return one.closing == other.opening or bool(first and second and first < second and other.closing != one.opening)
