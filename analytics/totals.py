"""What bookings add up to: how many, income, expenses and net, as a whole and by category or month."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import polars as pl

from analytics.cashflow import NO_RATE, left_out, without_rate
from analytics.currencies import NO_RATES, convert, foreign_currencies

GroupBy = Literal["category", "month"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """The sums of one group of rows: a category, a month written YYYY-MM, or everything, whose key is empty."""

    key: str
    count: int
    income: Decimal
    expenses: Decimal

    @property
    def net(self) -> Decimal:
        """Income minus expenses."""
        return self.income - self.expenses


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All of it: `left_out` says how many rows did not count, by reason; `unconverted` are the currencies without a
    rate."""

    whole: Sums
    groups: Sequence[Sums]
    left_out: Mapping[str, int]
    unconverted: Sequence[str]


def totals(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    currency: str,
    group_by: GroupBy | None = None,
    rates: pl.DataFrame = NO_RATES,
) -> Totals:
    """What BOOKINGS add up to in `currency`; all of them lie on accounts of `selection`. A row counts as it does in the
    cashflow (decisions 13 to 15, 19), so that a month has its figures; one without category belongs to OTHER, as in the
    snapshot. Categories come by expenses, the highest first, then by name; months in their order."""
    foreign = foreign_currencies(bookings, currency)
    judged = (
        convert(
            bookings.lazy().with_columns(left_out(selection).alias("left_out")),
            currency=currency,
            foreign=foreign,
            rates=rates,
        )
        .select(
            "amount",
            "currency",
            "home_amount",
            pl.when(without_rate()).then(pl.lit(NO_RATE)).otherwise("left_out").alias("left_out"),
            _KEYS[group_by].alias("key"),
        )
        .collect(engine="in-memory")
    )
    counted = judged.filter(pl.col("left_out").is_null())
    groups = _sums(counted.group_by("key", maintain_order=True)) if group_by is not None else []
    return Totals(
        whole=next(iter(_sums(counted.group_by(pl.lit("").alias("key")))), _NOTHING),
        groups=sorted(groups, key=lambda each: (-each.expenses if group_by == "category" else 0, each.key)),
        left_out=dict(sorted(judged["left_out"].drop_nulls().value_counts().iter_rows())),
        unconverted=sorted(judged["currency"].filter(judged["left_out"] == NO_RATE).unique()),
    )


_NOTHING = Sums(key="", count=0, income=Decimal(0), expenses=Decimal(0))
_KEYS: Mapping[GroupBy | None, pl.Expr] = {
    None: pl.lit(""),
    "category": pl.col("category").fill_null("OTHER"),
    "month": pl.col("booking_date").dt.strftime("%Y-%m"),
}


def _sums(groups: Any) -> list[Sums]:  # of frames grouped by `key`; Polars keeps the name of the type to itself
    home, is_expense = pl.col("home_amount"), pl.col("amount") < 0
    rows: pl.DataFrame = groups.agg(
        count=pl.len(), income=home.filter(~is_expense).sum(), expenses=-home.filter(is_expense).sum()
    )
    return [Sums(**row) for row in rows.iter_rows(named=True)]
