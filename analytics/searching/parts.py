"""Parts of bookings: how the user has divided a booking's amount among categories.

A part is no booking: it has no id, is never paired, is never a charge, and does not affect sums of whole bookings.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby

import polars as pl

from analytics.frames import FIGURE, among, columns, frame_of
from analytics.minor_digits import in_digits, minor_digits

PARTS = columns("id, amount, category, detailed_category, own_category_id")
"""One row per part of one user's bookings (`id`), those of a booking in order; they add up to its amount."""

NO_PARTS = pl.DataFrame(schema=PARTS)


def fit(amounts: Sequence[Decimal], *, amount: Decimal, currency: str) -> bool:
    """Whether parts of these amounts make up a booking of `amount`, which is rounded to its currency's digits first:
    they add up to it, and each has those digits, the booking's sign, and is not zero. No parts make up a booking of
    zero."""
    return sum(amounts) == in_digits(amount, currency) and all(
        each == in_digits(each, currency) and each * amount > 0 for each in amounts
    )


def shares(whole: Decimal, amounts: Sequence[Decimal], *, currency: str) -> list[Decimal]:
    """The whole amount, given in the currency's digits, divided in proportion to these amounts: rounded down, with the
    remainder given to those that lost most, the first of equal ones."""
    digits = minor_digits(currency)
    units, sign = int(abs(Fraction(whole)) * 10**digits), "-" if whole < 0 else ""
    weights = [abs(Fraction(each)) for each in amounts]
    each = [divmod(units * weight, sum(weights)) for weight in weights]
    left = units - sum(share for share, _ in each)
    losers = sorted(range(len(each)), key=lambda place: -each[place][1])[:left]
    return [Decimal(f"{sign}{share + (place in losers)}E-{digits}") for place, (share, _) in enumerate(each)]


def with_part_in(parts: pl.DataFrame, *wanted: pl.Expr) -> pl.Series:
    """The ids of the bookings with a part that meets all conditions, each once, in the order of `parts`."""
    return parts.filter(*wanted)["id"].unique(maintain_order=True)


def in_own(own_category: str | None) -> Iterator[pl.Expr]:
    """The condition that a part is in the own category, to be used as a filter; nothing where no own category is
    given."""
    if own_category is not None:
        yield pl.col("own_category_id") == own_category


def is_split(parts: pl.DataFrame, *, may_be_pending: bool = False) -> pl.Expr:
    """Whether a row is a booking that has parts. `may_be_pending` says that the rows have `is_pending`: a pending one
    has no parts."""
    has = pl.col("id").is_in(among(parts["id"].unique()))
    return has & ~pl.col("is_pending") if may_be_pending else has


def apart(
    rows: pl.LazyFrame,
    parts: pl.DataFrame,
    *,
    currency: str,
    may_be_pending: bool = False,
    own_category: str | None = None,
) -> pl.LazyFrame:
    """The rows in order, with each booking that has parts replaced by one row per part: with the part's amount, its
    categories as far as the rows have them, and its share of `home_amount`; the shares add up to it exactly, in the
    digits of `currency`. A column `booking` with the index of the original row is added, but without any parts `rows`
    itself is returned. `may_be_pending` says that the rows have `is_pending`: a pending one has no parts. With
    `own_category`, only parts in it are kept; bookings without parts all stay."""
    if parts.is_empty():
        return rows
    whole = rows.with_row_index("booking").pipe(frame_of)
    has = is_split(parts, may_be_pending=may_be_pending)
    split = whole.filter(has).join(parts, on="id", how="inner", suffix="_of_part", maintain_order="left_right")
    homes: list[Decimal | None] = []
    of_parts = split.select("booking", "home_amount", "amount_of_part").iter_rows()
    for (_, home), each in groupby(of_parts, key=lambda row: row[:2]):
        amounts = [amount for *_, amount in each]
        homes += [None] * len(amounts) if home is None else shares(home, amounts, currency=currency)
    names = [name for name in PARTS if name != "id" and name in whole.columns]
    parted = split.with_columns(
        pl.Series("home_amount", homes, dtype=FIGURE), *(pl.col(f"{name}_of_part").alias(name) for name in names)
    ).filter(*in_own(own_category))
    return pl.concat([whole.filter(~has), parted.select(whole.columns)]).lazy().sort("booking", maintain_order=True)
