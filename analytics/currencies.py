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

_ALWAYS = pl.lit(value=True)
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
    where: pl.Expr = _ALWAYS,
) -> pl.DataFrame:
    """The frame and `home_amount` (FIGURE): each row's `amount` in `currency` by the rate of its `day` or the last
    one before it, rounded half to even to the currency's digits, as it is listed: rows in `currency` too, of which some
    banks state five digits. Rows outside `where` need no rate and get 0. Raises MissingRate (decision 19)."""
    is_foreign = where & (pl.col("currency") != currency)
    foreign = frame.filter(is_foreign) if (frame["currency"] != currency).any() else frame.clear()
    listed = pl.col(amount).round(minor_digits(currency), mode="half_to_even")
    as_it_is = pl.when(where).then(listed).otherwise(0).cast(FIGURE)
    if foreign.is_empty():
        return frame.with_columns(as_it_is.alias("home_amount"))
    unit = 10 ** (_MONEY_SCALE - minor_digits(currency))
    units = _rounded_quotient(pl.col(amount).to_physical() * pl.col("rate_to"), pl.col("rate_from") * unit)
    return (
        frame.join(
            _dated_rates(foreign, currency=currency, rates=rates, day=day),
            on=["currency", day],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.when(is_foreign).then(_money(units * unit)).otherwise(as_it_is).alias("home_amount"))
        .drop("rate_from", "rate_to")
    )


def _dated_rates(foreign: pl.DataFrame, *, currency: str, rates: pl.DataFrame, day: str) -> pl.DataFrame:
    """One row per currency and day of `foreign`, with both rates as whole millionths."""
    pairs = foreign.select("currency", day).unique().sort(day).with_columns(pl.lit(currency).alias("to"))
    needed = pl.concat(rates.filter(pl.col("currency") == of) for of in {*pairs["currency"], currency}).sort("day")
    for side, named in (("currency", "rate_from"), ("to", "rate_to")):
        quoted = needed.select(pl.col("currency").alias(side), pl.col("day").alias(day), pl.col("rate").alias(named))
        pairs = pairs.join_asof(quoted, on=day, by=side, check_sortedness=False).with_columns(
            pl.when(pl.col(side) == EURO)
            .then(pl.lit(_EURO_RATE, dtype=pl.Int128))
            .otherwise(pl.col(named).to_physical())
            .alias(named)
        )
        missing = pairs.filter(pl.col(named).is_null())
        if not missing.is_empty():
            raise MissingRate(*missing.sort(side, day).select(side, day).row(0))
    return pairs.drop("to")


def _rounded_quotient(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Whole numbers, halves to the even one; `//` rounds down, so that the rest is never negative."""
    quotient = numerator // denominator
    twice_rest = (numerator - quotient * denominator) * 2
    is_up = (twice_rest > denominator) | ((twice_rest == denominator) & (quotient % 2 == 1))
    return quotient + is_up.cast(pl.Int128)


def _money(integer: pl.Expr) -> pl.Expr:
    return (integer.cast(pl.Decimal(38, 0)) * pl.lit(Decimal(1).scaleb(-_MONEY_SCALE))).cast(FIGURE)
