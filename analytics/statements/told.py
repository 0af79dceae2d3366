"""Which bookings each statement told, and whether they explain its balances.

A statement is proven by the bookings that it told itself, if all of them are in the ledger. The days on which they were
booked say nothing, nor does what else was booked on its first or last day: it may have been taken at noon. One whose
bookings have changed since is no evidence any more, because whoever changed them knew more.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.statements.ledger_periods import LedgerPeriod

DAY = timedelta(days=1)
SAME_STATEMENT = ("opening", "opening_date", "closing_date", "sequence")
_NUMBER = re.compile(r"\d+")


class Told(Struct, frozen=True, kw_only=True, eq=False):
    """A statement from the day `first`, on which it opens, to the day `last`, on which it closes, with the places of
    its bookings in MOVED and their sum. `arrived` orders statements by their import; `former` are the closing balances
    of issues of this statement that came before."""

    sequence: str | None
    opening: Decimal
    first: date
    closing: Decimal
    last: date
    arrived: tuple[datetime, int]
    places: frozenset[int]
    bookings: Decimal
    former: frozenset[Decimal] = frozenset()

    def period(self, further: Decimal = Decimal(0)) -> LedgerPeriod:
        """The period of the statement, with `further` bookings that have no room in it."""
        return LedgerPeriod(
            first=self.first,
            last=self.last,
            opening=self.opening,
            bookings=self.bookings + further,
            closing=self.closing,
        )


def number(sequence: str | None) -> tuple[tuple[int, ...], str]:
    """A sort key for statement numbers: 9 before 10, page 12/10 before 13/1, and a missing number before all others."""
    return tuple(int(digits) for digits in _NUMBER.findall(sequence or "")), sequence or ""


def told_statements(stated: pl.DataFrame, moved: pl.DataFrame) -> list[Told]:
    """The statements (analytics.frames.STATED) of one account with both balances that prove something of its bookings
    (MOVED) or contradict them; those that reports state within a day, and those whose bookings have changed since, are
    left out.

    Where it is not known what a statement told, because an older version has stored it, and where it does not add up,
    the bookings of its days explain it, if they can; else those count that it told, or that no other one told.
    """
    both = (
        stated.filter(
            pl.all_horizontal(pl.col("opening", "opening_date", "closing", "closing_date").is_not_null())
            & (pl.col("is_authoritative") | ~pl.col("adds_up").fill_null(value=True))
        )
        .with_columns(  # bookings may be dated ahead or back
            opening_date=pl.min_horizontal("opening_date", "closing_date"),
            closing_date=pl.max_horizontal("opening_date", "closing_date"),
        )
        .with_row_index("statement")
    )
    moved = moved.with_row_index("place")
    both = both.with_columns(issues=pl.struct("received_at", "position", "closing").implode().over(*SAME_STATEMENT))
    named = both.select("statement", id=pl.col("told").str.split(" ")).explode("id").join(moved, on="id")
    places = dict(named.group_by("statement").agg(pl.col("place").unique()).iter_rows())
    found, differing = [], []
    for one in _with_days_joined(both):
        rows = moved[places.get(one["statement"], [])]
        if one["told"] is None or not one["is_authoritative"]:
            explained = _explained_by_days(one, rows, moved)
            if explained is None:
                differing.append((one, rows))
            else:
                found.append(_told(one, explained))
        elif one["told"].count(" ") + bool(one["told"]) == rows.height and sum_of(rows) == _change(one):
            found.append(_told(one, rows))
    elsewhere = pl.Series([place for one in found for place in one.places], dtype=pl.UInt32).implode()
    for one, rows in differing:
        rest = _of_days(one, moved).filter(~pl.col("place").is_in(elsewhere))
        found.append(_told(one, rows if one["told"] is not None else rest))
    return found


def _told(one: dict[str, Any], rows: pl.DataFrame) -> Told:
    return Told(
        sequence=one["sequence"],
        opening=one["opening"],
        first=one["opening_date"],
        closing=one["closing"],
        last=one["closing_date"],
        arrived=_arrived(one),
        places=frozenset(rows["place"].to_list()),
        bookings=sum_of(rows),
        former=frozenset(each["closing"] for each in one["issues"] if _arrived(each) < _arrived(one)),
    )


def _arrived(one: dict[str, Any]) -> tuple[datetime, int]:
    return one["received_at"], one["position"]


def sum_of(rows: pl.DataFrame) -> Decimal:
    """The sum of the amounts."""
    return Decimal(rows["amount"].sum() or 0)


def _change(one: dict[str, Any]) -> Decimal:
    change: Decimal = one["closing"] - one["opening"]
    return change


def _of_days(one: dict[str, Any], moved: pl.DataFrame) -> pl.DataFrame:
    return moved.filter(pl.col("booking_date").is_between(one["opening_date"], one["closing_date"]))


def _explained_by_days(one: dict[str, Any], told: pl.DataFrame, moved: pl.DataFrame) -> pl.DataFrame | None:
    """The bookings of the statement's days, with what it `told`, if they explain its balances: all, else those that
    were known when it came; with its opening day, or without it, which may belong to the statement before it."""
    of_days = _of_days(one, moved).join(told, on="place", how="anti")
    for rows in (of_days, of_days.filter(pl.col("created_at") <= one["received_at"])):
        for choice in (rows, rows.filter(pl.col("booking_date") > one["opening_date"])):
            if sum_of(choice) + sum_of(told) == _change(one):
                return pl.concat([choice, told])
    return None


def _with_days_joined(both: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The statements by day and number; adjoining ones of one day as one if it is not known what each told."""
    rows = sorted(
        both.iter_rows(named=True), key=lambda row: (row["closing_date"], number(row["sequence"]), row["opening_date"])
    )
    before: dict[str, Any] | None = None
    for row in rows:
        if before is not None and _hangs_together(before, row):
            row |= {name: before[name] for name in ("opening", "opening_date")}
        elif before is not None:
            yield before
        before = row
    if before is not None:
        yield before


def _hangs_together(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    is_within_a_day = any(one["opening_date"] == one["closing_date"] for one in (earlier, later))
    is_next = earlier["closing_date"] == later["opening_date"] and earlier["closing"] == later["opening"]
    return is_within_a_day and is_next and earlier["told"] is later["told"] is None
