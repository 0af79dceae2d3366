"""Sums of the bookings of one account between any two days."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate

import polars as pl

from analytics.frames import FORMER

ZERO = Decimal(0)
NO_FORMER = pl.DataFrame(schema=FORMER)
Moved = tuple[Decimal, datetime]
"""A booking's amount, and when it became known."""
Former = tuple[date, Decimal, datetime]
"""A former booking's day and amount, and when it became known."""


class DayTotals:
    """Sums of the bookings of one account (analytics.frames.MOVED) by days, and the former amounts of those that were
    corrected or taken back (FORMER). Both frames have to be those of this account."""

    def __init__(self, moved: pl.DataFrame, former: pl.DataFrame = NO_FORMER) -> None:
        days = moved.group_by("booking_date").agg(pl.col("amount").sum(), pl.len()).sort("booking_date")
        self._moved = moved.sort("booking_date").select("amount", "created_at")
        self._days: list[date] = days["booking_date"].to_list()
        self._starts = list(accumulate(days["len"].to_list(), initial=0))
        self._totals = list(accumulate(days["amount"].to_list(), initial=ZERO))
        former = former.sort("ended_at")
        self._former: list[Former] = former.select("booking_date", "amount", "created_at").rows()
        self._ended: list[datetime] = former["ended_at"].to_list()

    @property
    def is_any(self) -> bool:
        """Whether there is any booking."""
        return bool(self._days)

    def before(self, day: date) -> Decimal:
        """The sum of all bookings before this day."""
        total: Decimal = self._totals[bisect_left(self._days, day)]
        return total

    def between(self, first: date, last: date) -> Decimal:
        """The sum of all bookings from `first` to `last`, both included; zero where `last` is before `first`."""
        begin, end = bisect_left(self._days, first), bisect_right(self._days, last)
        total: Decimal = self._totals[max(begin, end)] - self._totals[begin]
        return total

    def of_day(self, day: date) -> Sequence[Moved]:
        """The bookings of a day, each as its amount and when it became known, in no particular order."""
        place = bisect_left(self._days, day)
        if place == len(self._days) or self._days[place] != day:
            return ()
        first, end = self._starts[place : place + 2]
        return self._moved.slice(first, end - first).rows()

    def former_at(self, moment: datetime) -> Sequence[Former]:
        """The rows of FORMER that ended after this moment, the earliest end first. Added to the present bookings, they
        give those that counted at that moment; the caller leaves out what was not known yet then."""
        return self._former[bisect_right(self._ended, moment) :]

    def is_any_known_since(self, moment: datetime, first: date, last: date) -> bool:
        """Whether a booking from `first` to `last`, both included, became known at this moment or later."""
        days = self._days[bisect_left(self._days, first) : bisect_right(self._days, last)]
        return any(known_at >= moment for day in days for _, known_at in self.of_day(day))
