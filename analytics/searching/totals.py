"""What rows add up to: how many, income, expenses, refunds and net, as a whole and by one or two keys."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import polars as pl

from analytics.cashflow import NO_RATE, without_rate
from analytics.currencies import NO_RATES
from analytics.frames import FIGURE
from analytics.refunds import known_category
from analytics.searching.comparison import Shift
from analytics.searching.filters import Query, found, merchant, placed
from analytics.searching.parts import NO_PARTS, apart

Key = Literal["category", "detailedCategory", "merchant", "account", "type", "day", "week", "month", "year"]
KEYS_MAX = 2
OF_TIME: Collection[Key] = ("day", "week", "month", "year")

Named = tuple[str | None, ...]
"""The values of the keys of one group; None where a row has no merchant, no type or no finer
category."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of some rows; all amounts but `net` are positive, and refunds are part of the income."""

    count: int = 0
    income: Decimal = Decimal(0)
    expenses: Decimal = Decimal(0)
    refunds: Decimal = Decimal(0)
    first: date | None = None
    last: date | None = None

    @property
    def net(self) -> Decimal:
        """Income minus expenses."""
        return self.income - self.expenses


NOTHING = Sums()
_WIDTH = len(fields(Sums))
_ZERO = pl.lit(0, dtype=FIGURE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All of it: `left_out` says how many rows did not count, by reason; `unconverted` are the currencies without a
    rate. `groups` are all there are, in no order; merchants in lower case, `spelled` as the newest row has them."""

    spelled: Mapping[str, str]
    groups: Mapping[Named, Sums]
    left_out: Mapping[str, int]
    unconverted: Sequence[str]
    shared: Sequence[Collection[Named]] = ()  # of each booking whose parts are in several groups, which ones

    @property
    def whole(self) -> Sums:
        """The sums of everything that counted."""
        return self.of(self.groups)

    def of(self, some: Iterable[Named]) -> Sums:
        """The sums of these groups; a booking that has parts in several of them is one."""
        names = set(some)
        sums = together(self.groups.get(each, NOTHING) for each in names)
        twice = sum(max(0, len(names & set(groups)) - 1) for groups in self.shared)
        return replace(sums, count=sums.count - twice) if twice else sums


def totals(
    rows: pl.DataFrame,
    query: Query,
    *,
    refunds: pl.Series,
    selection: Collection[str],
    currency: str,
    group_by: Sequence[Key] = (),
    rates: pl.DataFrame = NO_RATES,
    shift: Shift | None = None,
    parts: pl.DataFrame = NO_PARTS,
) -> Totals:
    """What the rows (SEARCHED, all on accounts of `selection`, newest first) add up to in `currency` that the query
    lets through. A row counts as it does in the cashflow (decisions 13 to 15, 19), so that a month has its figures;
    `refunds` are the ids of those of them that are refunds (`analytics.refunds`), which count whole. `shift` moves days
    before they become keys, so that groups of two spans can be compared. Of `parts` (PARTS) those count that the query
    lets through."""
    day = pl.col("booking_date") if shift is None else shift.of(pl.col("booking_date"))
    keys = {f"key_{place}": _KEYS[key](day) for place, key in enumerate(group_by)}
    home, is_expense = pl.col("home_amount"), pl.col("amount") < 0
    whole = found(rows, query, selection=selection, currency=currency, rates=rates, parts=parts)
    is_apart = not parts.is_empty()
    if is_apart:
        whole = apart(whole, parts, currency=currency, may_be_pending=True).filter(*placed(query))
    judged = whole.select(
        *(["booking"] if is_apart else []),
        "currency",
        "booking_date",
        income=pl.when(~is_expense).then(home).otherwise(_ZERO),
        expenses=pl.when(is_expense).then(-home).otherwise(_ZERO),
        refunds=pl.when(pl.col("id").is_in(refunds.implode())).then(home).otherwise(_ZERO),
        spelled=merchant() if "merchant" in group_by else None,
        **keys,
        left_out=pl.when(without_rate()).then(pl.lit(NO_RATE)).otherwise("left_out"),
    ).collect(engine="in-memory")
    counted = judged.filter(pl.col("left_out").is_null())
    if is_apart:
        judged, counted = judged.unique("booking"), _joined(counted, keys)
    of_merchant = (
        counted.lazy()
        .group_by(pl.col("spelled").str.to_lowercase().alias("lower"))
        .agg(pl.first("spelled"))
        .drop_nulls()
    )
    return Totals(
        groups=_grouped(counted, group_by),
        spelled=dict(of_merchant.collect(engine="in-memory").iter_rows()) if "merchant" in group_by else {},
        left_out=dict(sorted(judged["left_out"].drop_nulls().value_counts().iter_rows())),
        unconverted=sorted(judged["currency"].filter(judged["left_out"] == NO_RATE).unique()),
        shared=_shared(counted, group_by) if is_apart and keys else (),
    )


def in_order(groups: Mapping[Named, Sums], group_by: Sequence[Key]) -> list[Named]:
    """The groups by their first key, then by the second: time in its order, everything else by its expenses in all its
    groups, the highest first, then by its income, then by name, what has none last."""
    ranks = [{} if key in OF_TIME else _by_value(groups, place) for place, key in enumerate(group_by)]
    return sorted(groups, key=lambda named: [_rank(value, rank) for value, rank in zip(named, ranks, strict=True)])


def together(parts: Iterable[Sums]) -> Sums:
    """The sums of several groups."""
    each = list(parts)
    days = [part for part in each if part.count]
    return Sums(
        count=sum(part.count for part in each),
        income=sum((part.income for part in each), Decimal(0)),
        expenses=sum((part.expenses for part in each), Decimal(0)),
        refunds=sum((part.refunds for part in each), Decimal(0)),
        first=min((part.first for part in days if part.first), default=None),
        last=max((part.last for part in days if part.last), default=None),
    )


def _by_value(groups: Mapping[Named, Sums], place: int) -> dict[str | None, Sums]:
    parts: dict[str | None, list[Sums]] = {}
    for named, sums in groups.items():
        parts.setdefault(named[place], []).append(sums)
    return {value: together(of_value) for value, of_value in parts.items()}


def _rank(value: str | None, sums: Mapping[str | None, Sums]) -> tuple[Decimal, Decimal, bool, str]:
    of_value = sums.get(value, NOTHING)
    return -of_value.expenses, -of_value.income, value is None, value or ""


def _joined(counted: pl.DataFrame, keys: Iterable[str]) -> pl.DataFrame:
    """The parts of a booking that are in one group as one row."""
    sums = ("income", "expenses", "refunds")
    return counted.group_by("booking", *keys, maintain_order=True).agg(
        pl.first("booking_date", "spelled"), pl.sum(*sums)
    )


def _shared(counted: pl.DataFrame, group_by: Sequence[Key]) -> Sequence[Collection[Named]]:
    several = counted.filter(pl.col("booking").is_duplicated())
    by_booking: dict[int, set[Named]] = {}
    for booking, *row in several.select("booking", *_columns(group_by)).iter_rows():
        by_booking.setdefault(booking, set()).add(_named(row, group_by))
    return list(by_booking.values())


def _columns(group_by: Sequence[Key]) -> list[str]:
    return [f"key_{place}" for place in range(len(group_by))]


def _named(row: Sequence[Any], group_by: Sequence[Key]) -> Named:
    return tuple(_NAMES.get(key, _as_it_is)(value) for key, value in zip(group_by, row, strict=False))


def _grouped(counted: pl.DataFrame, group_by: Sequence[Key]) -> dict[Named, Sums]:
    columns = _columns(group_by)
    rows = (
        counted.lazy()
        .group_by(columns or pl.lit(0).alias("whole"))
        .agg(
            pl.len().alias("count"),
            pl.sum("income", "expenses", "refunds"),
            pl.min("booking_date").alias("first"),
            pl.max("booking_date").alias("last"),
        )
        .collect(engine="in-memory")
    )
    return {_named(row, group_by): Sums(*row[-_WIDTH:]) for row in rows.iter_rows()}


_KEYS: Mapping[Key, Callable[[pl.Expr], pl.Expr]] = {
    "category": lambda _day: known_category(),
    "detailedCategory": lambda _day: pl.col("detailed_category"),
    "merchant": lambda _day: merchant().str.to_lowercase(),
    "account": lambda _day: pl.col("account_id"),
    "type": lambda _day: pl.col("type"),
    "day": lambda day: day,
    "week": lambda day: day.dt.truncate("1w"),
    "month": lambda day: day.dt.month_start(),
    "year": lambda day: day.dt.year(),
}


def _as_it_is(value: Any) -> Any:
    return value


_NAMES: Mapping[Key, Callable[[Any], Any]] = {
    "day": date.isoformat,
    "week": lambda monday: monday.strftime("%G-W%V"),
    "month": lambda first: first.isoformat()[:7],
    "year": "{:04}".format,
}
