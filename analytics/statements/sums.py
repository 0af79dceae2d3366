"""The comparison of a statement's balances with the bookings of its days.

The day on which a statement opens may belong to the one before it (MT940 names that day), and several statements of one
day share its bookings. So the opening day may be included or not, and adjoining statements of one day count as one.
"""

from datetime import date, timedelta
from decimal import Decimal

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.day_totals import DayTotals
from analytics.ledger_periods import LedgerPeriod
from analytics.statements.gaps import number


class _Whole(Struct, frozen=True, kw_only=True):
    first: date
    last: date
    opening: Decimal
    closing: Decimal


def statement_sums(stated: pl.DataFrame, totals: DayTotals) -> list[LedgerPeriod]:
    """The period of each statement (of analytics.frames.STATED) with both balances, by last day, if its own bookings
    are known to explain its balances or known not to; adjoining statements of one day count as one. Others, such as
    reports that end within a day, are left out."""
    together: list[_Whole] = []
    for one in _whole_statements(stated):
        if together and _hangs_together(together[-1], one):
            before = together.pop()
            together.append(replace(one, first=before.first, opening=before.opening))
        else:
            together.append(one)
    last_days = {one.last for one in together}
    return [_period_of(one, totals, is_shared=one.first in last_days) for one in together]


def _whole_statements(stated: pl.DataFrame) -> list[_Whole]:
    rows = stated.filter(
        (pl.col("opening_date") <= pl.col("closing_date"))
        & pl.col("opening").is_not_null()
        & pl.col("closing").is_not_null()
        & (pl.col("is_authoritative") | ~pl.col("adds_up").fill_null(value=True))
    )
    ordered = sorted(
        rows.iter_rows(named=True), key=lambda row: (row["closing_date"], number(row["sequence"]), row["opening_date"])
    )
    periods = [
        _Whole(first=row["opening_date"], last=row["closing_date"], opening=row["opening"], closing=row["closing"])
        for row in ordered
    ]
    return list(dict.fromkeys(periods))


def _period_of(one: _Whole, totals: DayTotals, *, is_shared: bool) -> LedgerPeriod:
    """The period of a statement: with its opening day, or without it where another statement ends with that day or only
    that adds up."""
    moved = one.closing - one.opening
    bookings = totals.between(one.first, one.last)
    if bookings != moved and one.first < one.last:
        later = totals.between(one.first + timedelta(days=1), one.last)
        bookings = later if is_shared or later == moved else bookings
    return LedgerPeriod(first=one.first, last=one.last, opening=one.opening, bookings=bookings, closing=one.closing)


def _hangs_together(earlier: _Whole, later: _Whole) -> bool:
    is_within_a_day = earlier.first == earlier.last or later.first == later.last
    return is_within_a_day and earlier.last == later.first and earlier.closing == later.opening
