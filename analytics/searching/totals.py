"""The totals of rows: number, income, expenses, refunds and net, as a whole and by one or two keys."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import polars as pl
from msgspec import Struct

from analytics.cashflow import NO_RATE, without_rate
from analytics.currencies import NO_RATES
from analytics.frames import FIGURE, among, frame_of
from analytics.refunds import known_category
from analytics.searching.comparison import Shift
from analytics.searching.filters import Query, category_conditions, matching_rows, merchant
from analytics.searching.parts import NO_PARTS, apart

Key = Literal[
    "category", "detailedCategory", "ownCategory", "tag", "merchant", "account", "type",
    "day", "weekday", "week", "month", "quarter", "year",
]  # fmt: skip
Order = Literal["expenses", "change", "-bookingDate", "bookingDate", "-amount", "amount"]  # the last four: expenses
KEYS_MAX = 2
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NO_TAGS = pl.DataFrame(schema={"id": pl.String, "tag": pl.String})
OF_TIME: Collection[Key] = ("day", "weekday", "week", "month", "quarter", "year")

Named = tuple[str | None, ...]
"""The values of a group's keys; None where its rows have no merchant, no type or no finer category."""


class Sums(Struct, frozen=True):
    """The sums of some rows, their number (`count`) and their first and last booking date (None without rows); all
    amounts but `net` are positive, and refunds are part of the income."""

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


_ZERO = pl.lit(0, dtype=FIGURE)
_FIGURES = Sums.__struct_fields__
_DAYS = ["first", "last"]
_ADDED = [name for name in _FIGURES if name not in _DAYS]
_BEFORE = "_before"  # suffix of the same column for the span that is compared


class Totals(Struct, frozen=True, kw_only=True):
    """The totals of a search. `groups` are all groups, in no order, with their keys and the figures of Sums. `left_out`
    is the number of rows that did not count, by reason; `unconverted` are the currencies without a rate. `spelled` has
    the merchant's spelling of each row by its key (None unless grouped by merchant), `shared` the bookings whose parts
    are in several groups (None without parts)."""

    group_by: Sequence[Key]
    groups: pl.DataFrame
    left_out: Mapping[str, int]
    unconverted: Sequence[str]
    spelled: pl.LazyFrame | None = None  # the merchant of each row by its key, which is in lower case, newest first
    shared: pl.DataFrame | None = None  # `booking` with the keys of its groups, if it is in several
    once: Sums | None = None  # of all rows, where groups are by tag: a row with two tags is in both groups

    @property
    def whole(self) -> Sums:
        """The sums of all rows that counted."""
        return self.once or _sum_groups(self.groups, self.shared)


class Group(NamedTuple):
    """The sums of one group, with the values of its keys in `named`, or of all groups that are not listed, with an
    empty `named`; `compared` are the sums for the earlier span, None without one."""

    named: Named
    sums: Sums
    compared: Sums | None


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
    tags: pl.DataFrame = NO_TAGS,
) -> Totals:
    """The totals in `currency` of the rows (SEARCHED, all on accounts of `selection`, newest first) that match the
    query.

    A row counts as in the cashflow (decisions 13 to 15, 19), so that a month has the same figures. `refunds` are the
    ids of refunds among the rows (`analytics.refunds`), which count whole. `shift` moves days before they become keys,
    so that groups of two spans can be compared. Of `parts` (PARTS), those that match the query count. `tags` are those
    of the rows (NO_TAGS), for groups by tag.
    """
    day = pl.col("booking_date") if shift is None else shift.of(pl.col("booking_date"))
    keys = {column: _KEYS[key](day) for column, key in zip(_columns(group_by), group_by, strict=True)}
    whole = matching_rows(rows, query, selection=selection, currency=currency, rates=rates, parts=parts)
    once = None
    is_apart = not parts.is_empty()
    if is_apart:
        of_parts = apart(whole, parts, currency=currency, may_be_pending=True, own_category=query.own_category)
        whole = of_parts.filter(*category_conditions(query))
    if "tag" in group_by:
        given = {"refunds": refunds, "selection": selection, "currency": currency, "rates": rates, "parts": parts}
        once = totals(rows, query, **given).whole  # type: ignore[arg-type]
        numbered = whole if is_apart else whole.with_row_index("booking")
        whole, is_apart = numbered.join(tags.lazy(), on="id", how="left"), True
    judged = _judged(whole, keys, refunds, with_names="merchant" in group_by, is_apart=is_apart)
    counted, shared = judged.lazy().filter(pl.col("left_out").is_null()), None
    if is_apart:
        judged, joined = judged.unique("booking"), _join_parts(counted, keys)
        shared = joined.filter(pl.col("booking").is_duplicated()).select("booking", *keys)
        counted = joined.lazy()
    left_out = dict(sorted(judged["left_out"].drop_nulls().value_counts().iter_rows()))
    is_unconverted = NO_RATE in left_out
    return Totals(
        group_by=group_by,
        groups=_sum_by_group(counted, group_by),
        spelled=counted.select(_of_merchant(group_by), "spelled") if "merchant" in group_by else None,
        left_out=left_out,
        unconverted=sorted(judged["currency"].filter(judged["left_out"] == NO_RATE).unique()) if is_unconverted else [],
        shared=shared,
        once=once,
    )


def _judged(
    rows: pl.LazyFrame, keys: Mapping[str, pl.Expr], refunds: pl.Series, *, with_names: bool, is_apart: bool
) -> pl.DataFrame:
    """Each row with its keys and with what it counts as, or why it does not."""
    home, is_expense = pl.col("home_amount"), pl.col("amount") < 0
    return rows.select(
        *(["booking"] if is_apart else []),
        "currency",
        "booking_date",
        income=pl.when(~is_expense).then(home).otherwise(_ZERO),
        expenses=pl.when(is_expense).then(-home).otherwise(_ZERO),
        refunds=pl.when(pl.col("id").is_in(among(refunds))).then(home).otherwise(_ZERO),
        spelled=merchant() if with_names else None,
        **keys,
        left_out=pl.when(without_rate()).then(pl.lit(NO_RATE)).otherwise("left_out"),
    ).pipe(frame_of)


def expenses_by_place(
    rows: pl.DataFrame,
    *,
    selection: Collection[str],
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    parts: pl.DataFrame = NO_PARTS,
) -> pl.DataFrame:
    """The expenses (positive) for each `place`, which is a category, a finer one or an own one, and the currencies
    without a rate among its rows (`unconverted`, a list). A row, or each of its parts, counts as in `totals` and at
    each of its places; the place null has what lacks one. The rows are SEARCHED with `own_category_id`."""
    whole = matching_rows(rows, Query(), selection=selection, currency=currency, rates=rates, parts=parts)
    each = apart(whole, parts, currency=currency, may_be_pending=True)
    is_spent = (pl.col("amount") < 0) & pl.col("left_out").is_null()
    return (
        each.with_columns(place=pl.concat_list("category", "detailed_category", "own_category_id"))
        .explode("place")
        .group_by("place")
        .agg(
            expenses=-pl.col("home_amount").filter(is_spent).sum(),
            unconverted=pl.col("currency").filter(without_rate()).unique(),
        )
        .pipe(frame_of)
    )


def top_groups(
    now: Totals, before: Totals | None, *, limit: int, least: int = 1, order: Order = "expenses"
) -> tuple[list[Group], Group]:
    """At most `limit` groups, sorted by their first key, then by the second, and the sums of the rest.

    Groups with fewer than `least` rows in a span in which they have any belong to the rest; so do the smallest others
    until the rest has that many rows, or none.

    Periods are in order of time, the earliest first, and the latest are listed. Other keys are sorted by their expenses
    in all their groups, the highest first, then by income, then by name, with the nameless last; with `order` "change"
    by how much expenses and income together differ between the spans. A group that is in only one of the two spans is a
    group of both.
    """
    groups = now.groups if before is None else _side_by_side(now.groups, before.groups, now.group_by)
    groups = groups.with_row_index("place")
    figures = ["expenses", "income"]
    if before is not None and order == "change":
        changes = [(pl.col(figure) - pl.col(figure + _BEFORE)).abs() for figure in figures]
        groups, figures = groups.with_columns(change=pl.sum_horizontal(changes)), ["change", *figures]
    counts = ["count"] if before is None else ["count", "count" + _BEFORE]
    is_small = pl.any_horizontal(pl.col(counts).is_between(1, least - 1))
    shown = _first_groups(groups.filter(~is_small) if least > 1 else groups, now.group_by, limit, figures)
    while True:
        is_all = shown.height == groups.height
        left = groups.clear() if is_all else groups.filter(~pl.col("place").is_in(among(shown["place"])))
        rest = _sum_groups(left, now.shared)
        compared = None if before is None else _sum_groups(left, before.shared, _BEFORE)
        is_rest_small = any(each is not None and 0 < each.count < least for each in (rest, compared))
        if not is_rest_small or shown.is_empty():
            break
        smallest = shown["place"][shown["count"].arg_min()]
        shown = shown.filter(pl.col("place") != smallest)
    names: Mapping[Key, Callable[[Any], Any]] = {**_NAMES, "merchant": _merchant_spellings(shown, now, before).get}
    spellings = [names.get(key, lambda value: value) for key in now.group_by]
    keys = shown[_columns(now.group_by)].rows()
    named = [tuple(name(value) for name, value in zip(spellings, row, strict=True)) for row in keys]
    sums_now = _sums_of_each(shown, "")
    sums_before = [None] * len(named) if before is None else _sums_of_each(shown, _BEFORE)
    return [*map(Group, named, sums_now, sums_before)], Group((), rest, compared)


def key_name(key: Key, start: date) -> str:
    """What a period is called that begins on this day."""
    name: str = _NAMES[key](start.year if key == "year" else start)
    return name


def _first_groups(groups: pl.DataFrame, group_by: Sequence[Key], limit: int, figures: Sequence[str]) -> pl.DataFrame:
    """The groups that come first, in order, by the sums of these figures. Each value of the first key has at least one
    group, so only groups of the first `limit` values have to be sorted."""
    cut = pl.LazyFrame.tail if group_by[0] in OF_TIME else pl.LazyFrame.head
    shown, order = groups.lazy(), list[pl.Expr]()
    for key, column in zip(group_by, _columns(group_by), strict=True):
        sums = {} if key in OF_TIME else {f"{figure}_of_{column}": pl.sum(figure) for figure in figures}
        by = [*(-pl.col(name) for name in sums), pl.col(column)]
        values = groups.lazy().group_by(column).agg(**sums)
        if not order:
            values = cut(values.sort(by, nulls_last=True), limit)
        if sums or not order:
            shown = shown.join(values, on=column, nulls_equal=True)
        order += by
    return cut(shown.sort(order, nulls_last=True), limit).pipe(frame_of)


def _merchant_spellings(shown: pl.DataFrame, now: Totals, before: Totals | None) -> dict[str | None, str | None]:
    """The spelling of each listed merchant in its newest row; of two spans, in the later one that has the merchant."""
    spellings = [each.spelled for each in (now, before) if each is not None and each.spelled is not None]
    if not spellings:
        return {}
    key = _of_merchant(now.group_by)
    seen = pl.concat(spellings).filter(pl.col(key).is_in(among(shown[key])))
    newest = seen.unique(key, keep="first", maintain_order=True).pipe(frame_of)
    return dict(newest.iter_rows())


def _sums_of_each(groups: pl.DataFrame, suffix: str) -> list[Sums]:
    return [Sums(*row) for row in groups[[figure + suffix for figure in _FIGURES]].rows()]


def _sum_groups(groups: pl.DataFrame, shared: pl.DataFrame | None, suffix: str = "") -> Sums:
    """The sums of several groups together; a booking with parts in several of them is counted once."""
    added = {figure: groups[figure + suffix].sum() for figure in _ADDED}
    if shared is not None and not shared.is_empty():
        keys = shared.columns[1:]
        bookings = shared.join(groups.select(keys), on=keys, how="semi", nulls_equal=True)["booking"]
        added["count"] -= bookings.len() - bookings.n_unique()
    first, last = groups[f"first{suffix}"].min(), groups[f"last{suffix}"].max()
    return Sums(**added, first=first, last=last)  # type: ignore[arg-type]


def _columns(group_by: Sequence[Key]) -> list[str]:
    return [f"key_{place}" for place in range(len(group_by))]


def _join_parts(counted: pl.LazyFrame, keys: Iterable[str]) -> pl.DataFrame:
    """The counted rows, with the parts of a booking that are in the same group summed up in one row."""
    sums = pl.sum("income", "expenses", "refunds")
    rows = counted.group_by("booking", *keys, maintain_order=True).agg(pl.first("booking_date", "spelled"), sums)
    return rows.pipe(frame_of)


def _sum_by_group(counted: pl.LazyFrame, group_by: Sequence[Key]) -> pl.DataFrame:
    return (
        counted.group_by(_columns(group_by) or pl.lit(0).alias("whole"))
        .agg(
            pl.len().alias("count"),
            pl.sum("income", "expenses", "refunds"),
            pl.min("booking_date").alias("first"),
            pl.max("booking_date").alias("last"),
        )
        .pipe(frame_of)
    )


def _side_by_side(now: pl.DataFrame, before: pl.DataFrame, group_by: Sequence[Key]) -> pl.DataFrame:
    """Each group of either span, with its figures in both, 0 where it is in only one."""
    both = now.join(before, on=_columns(group_by), how="full", nulls_equal=True, coalesce=True, suffix=_BEFORE)
    return both.with_columns(pl.col(*_ADDED, *(name + _BEFORE for name in _ADDED)).fill_null(0))


def _of_merchant(group_by: Sequence[Key]) -> str:
    return _columns(group_by)[group_by.index("merchant")]


_KEYS: Mapping[Key, Callable[[pl.Expr], pl.Expr]] = {
    "category": lambda _day: known_category(),
    "detailedCategory": lambda _day: pl.col("detailed_category"),
    "ownCategory": lambda _day: pl.col("own_category_id"),
    "tag": lambda _day: pl.col("tag"),
    "merchant": lambda _day: merchant().str.to_lowercase(),
    "account": lambda _day: pl.col("account_id"),
    "type": lambda _day: pl.col("type"),
    "day": lambda day: day,
    "weekday": lambda _day: pl.col("booking_date").dt.weekday(),
    "week": lambda day: day.dt.truncate("1w"),
    "month": lambda day: day.dt.month_start(),
    "quarter": lambda day: day.dt.truncate("1q"),
    "year": lambda day: day.dt.year(),
}


_NAMES: Mapping[Key, Callable[[Any], Any]] = {
    "day": date.isoformat,
    "week": lambda monday: "{:04}-W{:02}".format(*monday.isocalendar()),
    "weekday": lambda number: WEEKDAYS[number - 1],
    "month": lambda first: first.isoformat()[:7],
    "quarter": lambda first: f"{first.year:04}-Q{(first.month + 2) // 3}",
    "year": "{:04}".format,
}
