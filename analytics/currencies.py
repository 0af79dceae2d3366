"""Conversion to one currency, for selections with several: at the reference rate of the booking's day, exact, rounded
once.

A row is converted as amount * rate(to) / rate(from), both in units for one euro, in integers of 128 bits: an amount has
at most 22 digits (CONVERTED_END) and a rate at most 14, so no step can overflow, nor the sum of many rows.
"""

from collections.abc import Collection, Iterable
from decimal import Decimal

import polars as pl

from analytics.frames import FIGURE, RATES
from analytics.minor_digits import minor_digits

EURO = "EUR"
NO_RATES = pl.DataFrame(schema=RATES)
AMOUNT = pl.col("amount")
CONVERTED_END = Decimal(10) ** 17
"""Larger than any booking, and than any balance that is no mistake."""

_MONEY_SCALE = 5  # digits after the point in MONEY and FIGURE
_EURO_RATE = 10**6  # the rate of the euro itself, in the unit of RATES


def reporting_currency(account_currencies: Iterable[str], *, home: str) -> str:
    """The currency of a selection's figures: the only one of its accounts, else the user's home currency (decision
    19)."""
    distinct = set(account_currencies)
    return distinct.pop() if len(distinct) == 1 else home


def foreign_currencies(frame: pl.DataFrame, currency: str) -> list[str]:
    """The currencies of the rows other than `currency`, each once, sorted."""
    is_foreign = frame["currency"] != currency
    return sorted(frame["currency"].filter(is_foreign).unique()) if is_foreign.any() else []


def convert(
    rows: pl.LazyFrame,
    *,
    currency: str,
    foreign: Collection[str],
    rates: pl.DataFrame = NO_RATES,
    amount: pl.Expr = AMOUNT,
    day: str = "booking_date",
) -> pl.LazyFrame:
    """The rows with `home_amount` (FIGURE): each row's `amount` in `currency`, at the rate of its `day` or the last one
    before it, rounded half to even to the currency's digits; null where either currency has no rate that day, because
    1:1 is never assumed (decision 19), and for a foreign amount from CONVERTED_END on.

    Rows in `currency` are rounded, too, because some banks state five digits. `foreign` are the other currencies of the
    rows (`foreign_currencies`); without any, the query plan stays short.
    """
    listed = amount.round(minor_digits(currency), mode="half_to_even").cast(FIGURE)
    if not foreign:
        return rows.with_columns(listed.alias("home_amount"))
    is_foreign = pl.col("currency") != currency
    unit = 10 ** (_MONEY_SCALE - minor_digits(currency))
    possible = pl.when(amount.abs() < CONVERTED_END).then(amount)
    units = _rounded_quotient(possible.to_physical() * pl.col("rate_to"), pl.col("rate_from") * unit)
    days = rows.filter(is_foreign).select("currency", day).unique()
    quoted = rates.lazy().filter(pl.col("currency").is_in([*foreign, currency]))
    return (
        rows.join(
            _daily_rates(days, quoted, currency=currency, day=day),
            on=["currency", day],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.when(is_foreign).then(_money(units * unit)).otherwise(listed).alias("home_amount"))
        .drop("rate_from", "rate_to")
    )


def _daily_rates(days: pl.LazyFrame, quoted: pl.LazyFrame, *, currency: str, day: str) -> pl.LazyFrame:
    """One row for each currency and day of `days`: the last rate of that currency until the day (rate_from), and the
    last one of `currency` (rate_to), as whole millionths; null where there is none, or it is no longer quoted."""
    pairs = days.sort(day).with_columns(pl.lit(currency).alias("to"))
    by_day = quoted.sort("day")
    for side, named in (("currency", "rate_from"), ("to", "rate_to")):
        of_side = by_day.select(pl.col("currency").alias(side), pl.col("day").alias(day), pl.col("rate").alias(named))
        pairs = pairs.join_asof(of_side, on=day, by=side, check_sortedness=False).with_columns(
            pl.when(pl.col(side) == EURO)
            .then(pl.lit(_EURO_RATE, dtype=pl.Int128))
            .otherwise(pl.col(named).to_physical())
            .alias(named)
        )
    return pairs.drop("to")


def _rounded_quotient(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """The quotient of two whole numbers, with halves rounded to even. `//` rounds down, so the remainder is never
    negative."""
    quotient = numerator // denominator
    twice_rest = (numerator - quotient * denominator) * 2
    is_up = (twice_rest > denominator) | ((twice_rest == denominator) & (quotient % 2 == 1))
    return quotient + is_up.cast(pl.Int128)


def _money(integer: pl.Expr) -> pl.Expr:
    return (integer.cast(pl.Decimal(38, 0)) * pl.lit(Decimal(1).scaleb(-_MONEY_SCALE))).cast(FIGURE)
