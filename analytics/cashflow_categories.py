"""The expenses of the monthly cashflow by category."""

from collections.abc import Collection
from datetime import date
from decimal import Decimal

import polars as pl

from analytics.cashflow import at_border, left_out
from analytics.currencies import NO_RATES, foreign_currencies
from analytics.frames import among, frame_of
from analytics.periods import last_day
from analytics.refunds import NO_CATEGORY
from analytics.searching.parts import NO_PARTS, apart


def monthly_categories(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    months: Collection[date],
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    parts: pl.DataFrame = NO_PARTS,
) -> dict[date, list[tuple[str, Decimal]]]:
    """The expenses of each month (its first day; `months` follow each other) by category: amounts are positive and in
    `currency`, the highest first, then by name; a month without expenses has an empty list.

    Rows count by sign, as in the cashflow, so that the amounts add up to its expenses: those without a rate are left
    out, those without category are OTHER (decisions 13 to 15, 17, 19), and a booking with `parts` (PARTS) counts by
    them, for which the rows need ids.
    """
    found: dict[date, list[tuple[str, Decimal]]] = {month: [] for month in months}
    expenses = bookings.lazy().filter(
        pl.col("account_id").is_in(among(selection)),
        left_out(selection).is_null(),
        pl.col("booking_date").is_between(min(months), last_day(max(months))),
        pl.col("amount") < 0,
    )
    foreign = foreign_currencies(bookings, currency)
    converted = at_border(expenses, selection, currency=currency, foreign=foreign, rates=rates)
    rows = (
        apart(converted, parts, currency=currency)
        .filter(pl.col("home_amount").is_not_null())
        .group_by(pl.col("booking_date").dt.month_start().alias("month"), pl.col("category").fill_null(NO_CATEGORY))
        .agg((-pl.col("home_amount").sum()).alias("amount"))
        .sort("amount", "category", descending=[True, False])
        .pipe(frame_of)
    )
    for month, category, amount in rows.iter_rows():
        found[month].append((category, amount))
    return found
