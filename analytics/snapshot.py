"""The financial snapshot: balances of the selected accounts, and the costs of the last 30 days by category."""

from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.cashflow import NO_RATE, at_border, counted_amount, left_out, without_rate
from analytics.currencies import NO_RATES, convert, foreign_currencies
from analytics.frames import COUNTED, FIGURE, among, columns, frame_of
from analytics.periods import last_30_days
from analytics.refunds import RENT, by_counterpart, known_category, refund_places
from analytics.searching.parts import NO_PARTS, apart

TOP_CATEGORIES_MAX = 5  # decision 17
NAMELESS = "Account"  # decision 20

RECENT_MAX = 1_000  # bookings in first answers
_PARTIES = ("counterpart_name", "counterpart_iban", "merchant_name")

_ZERO = pl.lit(0, dtype=FIGURE)
_LISTED = columns("name, bank, balance, currency, day")


class Snapshot(Struct, frozen=True, kw_only=True):
    """The snapshot; all amounts but those in `accounts` are in `currency`. `accounts` are those with a balance,
    `top_categories` the at most five with the highest costs and their percentage of all, and `unconverted` the
    currencies that neither balance nor expenses include, because they have no rate."""

    currency: str
    total_balance: Decimal
    accounts: pl.DataFrame  # name, bank, balance, currency: in the account's own currency, those with a balance
    total_expenses: Decimal
    top_categories: pl.DataFrame  # category, amount (FIGURE), percentage (whole number)
    unconverted: list[str]  # currencies without a rate, left out of the balance and the expenses (decision 19)


def snapshot(
    accounts: pl.DataFrame,
    bookings: pl.DataFrame,
    *,
    today: date,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    parts: pl.DataFrame = NO_PARTS,
) -> Snapshot:
    """The snapshot of these accounts (BALANCES; they are the selection) and all their bookings (COUNTED, because a
    refund of today may belong to a payment of last year; with ids where there are `parts`). Balances are converted at
    today's rate."""
    listed = _listed_accounts(accounts, today=today, currency=currency, rates=rates)
    balances = listed.drop_in_place("home_amount")
    selection = accounts["id"].to_list()
    foreign = foreign_currencies(bookings, currency)
    judged = _judge_rows(
        bookings, selection=selection, today=today, currency=currency, rates=rates, foreign=foreign, parts=parts
    )
    costs = _costs(judged, foreign)
    amounts = costs["amount"].to_list()
    total = sum(amounts, start=Decimal(0))
    # The dearest come first
    top = costs[["category", "amount"]].head(min(sum(amount > 0 for amount in amounts), TOP_CATEGORIES_MAX))
    percentages = [percentage(amount, total) for amount in top["amount"]]
    unconverted = {listed["currency"][place] for place, amount in enumerate(balances) if amount is None}
    if foreign:
        unconverted.update(costs["unconverted"].explode().drop_nulls())
    return Snapshot(
        currency=currency,
        total_balance=_sum(balances),
        accounts=listed,
        total_expenses=total,
        top_categories=top.insert_column(2, pl.Series("percentage", percentages, dtype=pl.Int64())),
        unconverted=sorted(unconverted),
    )


def recent_bookings(bookings: pl.DataFrame, since: date) -> pl.DataFrame | None:
    """The bookings (COUNTED) from the day `since` on, and of those before it one for the first payments to everybody
    who has sent money since then, which decide whether that is a refund (analytics.refunds). None where these are very
    many."""
    is_recent = pl.col("booking_date") >= since
    recent = bookings.filter(is_recent).sort(*COUNTED)
    if recent.height > RECENT_MAX:
        return None
    credited = by_counterpart(recent.lazy().filter(pl.col("amount") > 0), "amount").pipe(frame_of)["counterpart"]
    if credited.is_empty():
        return recent
    alike = ("account_id", *_PARTIES, "is_adjusting_entry", "transfer_account_id")
    differing = [
        pl.when(pl.col("category") == RENT).then("category").alias("category"),
        *(pl.col(name).is_not_null().alias(f"has_{name}") for name in ("transfer_id", "transfer_fee")),
    ]
    first_paid = (
        bookings.lazy()
        .filter(~is_recent, pl.col("amount") < 0)
        .group_by(*alike, *differing)
        .agg(pl.col(name).min() for name in COUNTED if name not in (*alike, "category"))
        .select(*COUNTED)
        .sort(*COUNTED)
        .pipe(frame_of)
        .with_row_index("place")
    )
    theirs = by_counterpart(first_paid.lazy(), "place").filter(pl.col("counterpart").is_in(among(credited)))
    places = theirs.select("place").pipe(frame_of)["place"]
    return pl.concat([recent, first_paid[places.unique().sort()].drop("place")])


def category_transactions(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    category: str,
    today: date,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    pending: pl.DataFrame | None = None,
    parts: pl.DataFrame = NO_PARTS,
) -> pl.DataFrame:
    """The rows of the last 30 days behind one category, booking date and id descending, with three more columns:
    counted_as (expenses, refund, null), left_out (transfer, adjusting_entry, income, pending, no_rate, null) and
    counted_amount (FIGURE, signed, in `currency`; 0 when left out).

    The counted amounts always add up to minus the category's amount: a refund counts only as far as there are expenses
    left to reduce, the oldest first (decision 16). A booking with parts is one row, in which the part in the category
    counts.
    """
    foreign = foreign_currencies(bookings, currency)
    rows = _judge_rows(
        bookings, selection=selection, today=today, currency=currency, rates=rates, foreign=foreign, parts=parts
    )
    if not parts.is_empty():
        rows = rows.group_by("booking", known_category(), maintain_order=True).agg(
            pl.sum("home_amount"), pl.exclude("booking", "category", "home_amount").first()
        )
        rows = rows.drop("booking")
    if pending is not None:
        waiting = _last_30_days(pending, selection=selection, today=today)
        rows = pl.concat(
            [rows, waiting.with_columns(pl.lit("pending").alias("left_out"), _ZERO.alias("home_amount"))],
            how="diagonal",
        )
    return (
        rows.filter(known_category() == category)
        .sort("booking_date", "id")
        .with_columns(_counted_amount().alias("counted_amount"))
        .drop("home_amount", "place")
        .reverse()
        .pipe(frame_of)
    )


def percentage(part: Decimal, whole: Decimal) -> int:
    """The percentage part / whole * 100, halves rounded up; 0 when the whole is 0 (decision 17)."""
    return floor(100 * Fraction(part) / Fraction(whole) + Fraction(1, 2)) if whole else 0


def _listed_accounts(accounts: pl.DataFrame, *, today: date, currency: str, rates: pl.DataFrame) -> pl.DataFrame:
    """The accounts with a balance: name (else IBAN, else kind), bank, balance and currency, and the balance converted
    at today's rate as `home_amount`, null without a rate."""
    rows = [
        (_name(row), row["bank_name"], row["balance"], row["currency"], today)
        for row in accounts.iter_rows(named=True)
        if row["balance"] is not None
    ]
    listed = pl.DataFrame(rows, schema=_LISTED, orient="row")
    foreign = foreign_currencies(listed, currency)
    balance = pl.col("balance")
    converted = convert(listed.lazy(), currency=currency, foreign=foreign, rates=rates, amount=balance, day="day")
    return converted.drop("day").pipe(frame_of)


def _name(account: Mapping[str, Any]) -> str:
    """The account's name, else its IBAN, else its type (decision 20)."""
    said = (account[column] for column in ("name", "iban", "kind"))
    return next((each for each in said if each and each.strip()), NAMELESS)


def _costs(judged: pl.LazyFrame, foreign: Collection[str]) -> pl.DataFrame:
    """The cost of each category in the last 30 days, the highest first, then by name: columns category and amount
    (FIGURE; 0 where refunds exceed it), and where there are foreign currencies unconverted (those of rows without a
    rate)."""
    home = pl.col("home_amount").filter(pl.col("counted_as").is_not_null())
    sums = {"amount": pl.max_horizontal(-home.sum(), _ZERO)}
    if foreign:
        sums["unconverted"] = pl.col("currency").filter(pl.col("left_out") == NO_RATE).unique()
    return (
        judged.group_by(known_category())
        .agg(**sums)
        .sort("amount", "category", descending=[True, False])
        .pipe(frame_of)
    )


def _judge_rows(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    today: date,
    currency: str,
    rates: pl.DataFrame,
    foreign: Collection[str],
    parts: pl.DataFrame,
) -> pl.LazyFrame:
    """The selection's rows of the last 30 days with counted_as and left_out (as in `category_transactions`),
    home_amount (null without a rate), and their number among these rows as `place`; bookings with `parts` are replaced
    by one row per part."""
    within = _last_30_days(bookings, selection=selection, today=today)
    recent = within.with_columns(left_out=left_out(selection)).pipe(frame_of).with_row_index("place")
    refunds = refund_places(recent, bookings, selection=selection)
    counted_as = (
        pl.when((pl.col("amount") < 0) & pl.col("left_out").is_null())
        .then(pl.lit("expenses"))
        .when(pl.col("place").is_in(among(refunds)))
        .then(pl.lit("refund"))
    )
    reason = pl.coalesce("left_out", pl.lit("income"))
    told = recent.lazy().with_columns(counted_as=counted_as)
    rows = at_border(told, selection, currency=currency, foreign=foreign, rates=rates).with_columns(
        left_out=pl.when(pl.col("counted_as").is_null()).then(reason)
    )
    rows = apart(rows, parts, currency=currency)
    if not foreign:
        return rows
    return rows.with_columns(left_out=pl.when(without_rate()).then(pl.lit(NO_RATE)).otherwise("left_out")).with_columns(
        counted_as=pl.when(pl.col("left_out").is_null()).then("counted_as")
    )


def _last_30_days(rows: pl.DataFrame, *, selection: Collection[str], today: date) -> pl.LazyFrame:
    return rows.lazy().filter(
        pl.col("booking_date").is_between(*last_30_days(today)), pl.col("account_id").is_in(among(selection))
    )


def _counted_amount() -> pl.Expr:
    """The counted amount of each row of one category, oldest first: an expense whole, a refund as far as expenses are
    left, and nothing for rows that are left out."""
    is_refund = pl.col("counted_as") == "refund"
    expenses = -pl.col("home_amount").filter(pl.col("counted_as") == "expenses").sum()
    refund = pl.when(is_refund).then(pl.col("home_amount")).otherwise(_ZERO)
    refunded_before = refund.cum_sum() - refund
    usable = pl.min_horizontal(refund, pl.max_horizontal(expenses - refunded_before, _ZERO))
    return pl.when(is_refund).then(usable).otherwise(counted_amount())


def _sum(amounts: pl.Series) -> Decimal:
    total = amounts.sum()
    assert isinstance(total, Decimal)
    return total
