"""Parts of bookings: what of one went where, as far as a person has said so.

A part is no booking: it has no id, is never paired, never a charge, and no sum of whole bookings knows of it.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

import polars as pl

from analytics.currencies import in_digits, minor_digits
from analytics.frames import FIGURE, MONEY

PARTS: dict[str, pl.DataType] = {
    "id": pl.String(),  # of the booking
    "amount": MONEY,
    "category": pl.String(),
    "detailed_category": pl.String(),
    "own_category_id": pl.String(),
}
"""One row per part of one user's bookings, those of each in their order; they add up to it."""

NO_PARTS = pl.DataFrame(schema=PARTS)


def fit(amounts: Sequence[Decimal], *, amount: Decimal, currency: str) -> bool:
    """Whether parts of these amounts are the whole booking: in its currency's digits, each of its sign and not zero."""
    return sum(amounts) == in_digits(amount, currency) and all(
        each == in_digits(each, currency) and each * amount > 0 for each in amounts
    )


def shares(whole: Decimal, amounts: Sequence[Decimal], *, currency: str) -> list[Decimal]:
    """The whole amount, which has the currency's digits, shared out as these amounts are: rounded down, and what is
    left goes to those that lost most, the first of equal ones."""
    digits = minor_digits(currency)
    units, sign = int(abs(Fraction(whole)) * 10**digits), "-" if whole < 0 else ""
    weights = [abs(Fraction(each)) for each in amounts]
    each = [divmod(units * weight, sum(weights)) for weight in weights]
    left = units - sum(share for share, _ in each)
    losers = sorted(range(len(each)), key=lambda place: -each[place][1])[:left]
    return [Decimal(f"{sign}{share + (place in losers)}E-{digits}") for place, (share, _) in enumerate(each)]


def with_part_in(parts: pl.DataFrame, *wanted: pl.Expr) -> pl.Series:
    """The ids of the bookings of which one part is as wanted."""
    return parts.filter(*wanted)["id"].unique(maintain_order=True)


def in_own(own_category: str | None) -> Iterator[pl.Expr]:
    """What is wanted of parts where an own category is named."""
    if own_category is not None:
        yield pl.col("own_category_id") == own_category


def is_split(parts: pl.DataFrame, *, may_be_pending: bool = False) -> pl.Expr:
    """Whether a row is a booking that has parts; what is not booked yet has none."""
    has = pl.col("id").is_in(parts["id"].unique().implode())
    return has & ~pl.col("is_pending") if may_be_pending else has


def apart(
    rows: pl.LazyFrame,
    parts: pl.DataFrame,
    *,
    currency: str,
    may_be_pending: bool = False,
    own_category: str | None = None,
) -> pl.LazyFrame:
    """The rows in their order, one of a booking that has parts as one row for each of these, with its amount, those of
    its categories that the rows have, and its share of `home_amount`, which was converted to `currency` and rounded
    once. A column more, `booking`, counts the rows as they were; where there are no parts at all, everything stays as
    it is. Where an own category is named, of the parts those in it alone."""
    if parts.is_empty():
        return rows
    whole = rows.with_row_index("booking").collect(engine="in-memory")
    has = is_split(parts, may_be_pending=may_be_pending)
    split = whole.filter(has).join(parts, on="id", how="inner", suffix="_of_part", maintain_order="left_right")
    homes: list[Decimal | None] = []
    of_parts = split.select("booking", "home_amount", "amount_of_part").iter_rows()
    for (_, home), each in groupby(of_parts, key=lambda row: row[:2]):
        amounts = [amount for *_, amount in each]
        homes += [None] * len(amounts) if home is None else shares(home, amounts, currency=currency)
    names = [name for name in PARTS if name != "id" and name in whole.columns]
    told = split.with_columns(
        pl.Series("home_amount", homes, dtype=FIGURE), *(pl.col(f"{name}_of_part").alias(name) for name in names)
    ).filter(*in_own(own_category))
    return pl.concat([whole.filter(~has), told.select(whole.columns)]).lazy().sort("booking", maintain_order=True)
