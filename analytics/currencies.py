"""One currency for a selection that holds several: the reference rate of the booking's day, exact, rounded once.

A row is converted as amount * rate(to) / rate(from), both in units for one euro, in integers of 128 bits: an amount
has at most 20 digits and a rate at most 14, so no step can overflow.
"""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal

import polars as pl

from analytics.frames import FIGURE, RATES

EURO = "EUR"
NO_RATES = pl.DataFrame(schema=RATES)

MINOR_DIGITS_USUAL = 2
MINOR_DIGITS = {  # ISO 4217 list one: the currencies whose minor unit is not a hundredth
    **{"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0},
    **{"UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0},
    **{"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3},
    **{"CLF": 4, "UYW": 4},
}

_MONEY_SCALE = 5  # digits after the point in MONEY and FIGURE
_EURO_RATE = 10**6  # one euro for one euro, in the unit of RATES


class MissingRate(ValueError):
    """There is no reference rate of the European Central Bank for a currency."""

    def __init__(self, currency: str, day: date) -> None:
        self.currency = currency
        self.day = day
        super().__init__(f"{currency}: there is no reference rate of the European Central Bank for {day.isoformat()}")


def minor_digits(currency: str) -> int:
    """How many digits after the point the currency has (ISO 4217)."""
    return MINOR_DIGITS.get(currency, MINOR_DIGITS_USUAL)


def reporting_currency(account_currencies: Iterable[str], *, home: str) -> str:
    """The currency of a selection's figures: its accounts' only one, else the user's home currency (decision 19)."""
    distinct = set(account_currencies)
    return distinct.pop() if len(distinct) == 1 else home


def convert(
    frame: pl.DataFrame,
    *,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    amount: str = "amount",
    day: str = "booking_date",
) -> pl.DataFrame:
    """The frame and `home_amount` (FIGURE): each row's `amount` in `currency` by the rate of its `day` or the last
    one before it, rounded half to even to the currency's digits; rows that are in `currency` already stay as they
    are. Raises MissingRate (decision 19)."""
    is_home = pl.col("currency") == currency
    if frame.select(is_home.all()).item():
        return frame.with_columns(pl.col(amount).cast(FIGURE).alias("home_amount"))
    pairs = _dated_rates(frame.filter(~is_home), currency=currency, rates=rates, day=day)
    converted = _rounded_quotient(
        pl.col(amount).to_physical() * pl.col("rate_to"),
        pl.col("rate_from") * 10 ** (_MONEY_SCALE - minor_digits(currency)),
    ) * 10 ** (_MONEY_SCALE - minor_digits(currency))
    return (
        frame.join(pairs, on=["currency", day], how="left", maintain_order="left")
        .with_columns(pl.when(is_home).then(pl.col(amount)).otherwise(_money(converted)).alias("home_amount"))
        .drop("rate_from", "rate_to")
    )


def _dated_rates(foreign: pl.DataFrame, *, currency: str, rates: pl.DataFrame, day: str) -> pl.DataFrame:
    """One row per currency and day of `foreign` with both rates as integers (millionths)."""
    pairs = foreign.select("currency", day).unique().sort(day)
    needed = rates.filter(pl.col("currency").is_in([*pairs["currency"].unique(), currency])).sort("day")
    dated = (
        pairs.with_columns(pl.lit(currency).alias("to"))
        .join_asof(
            needed.rename({"rate": "rate_from"}), left_on=day, right_on="day", by="currency", check_sortedness=False
        )
        .join_asof(
            needed.rename({"rate": "rate_to", "currency": "to"}),
            left_on=day,
            right_on="day",
            by="to",
            check_sortedness=False,
        )
        .select("currency", day, _as_integer("rate_from", "currency"), _as_integer("rate_to", "to"))
    )
    for source, side in (("currency", "rate_from"), ("to", "rate_to")):
        missing = dated.with_columns(pl.lit(currency).alias("to")).filter(pl.col(side).is_null())
        if not missing.is_empty():
            name, first_day = missing.sort(source, day).select(source, day).row(0)
            raise MissingRate(name, first_day)
    return dated


def _as_integer(rate: str, currency: str) -> pl.Expr:
    integer = pl.col(rate).to_physical().cast(pl.Int128)
    return pl.when(pl.col(currency) == EURO).then(pl.lit(_EURO_RATE, dtype=pl.Int128)).otherwise(integer).alias(rate)


def _rounded_quotient(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Whole numbers, halves to the even one; `//` rounds down, so that the rest is never negative."""
    quotient = numerator // denominator
    twice_rest = (numerator - quotient * denominator) * 2
    is_up = (twice_rest > denominator) | ((twice_rest == denominator) & (quotient % 2 == 1))
    return quotient + is_up.cast(pl.Int128)


def _money(integer: pl.Expr) -> pl.Expr:
    return (integer.cast(pl.Decimal(38, 0)) * pl.lit(Decimal(1).scaleb(-_MONEY_SCALE))).cast(FIGURE)
