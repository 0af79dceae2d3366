"""Which credits are refunds: money back from somebody who was paid before (decision 16)."""

from collections.abc import Collection
from typing import Literal

import polars as pl
import polars.selectors as cs

from analytics.cashflow import left_out

NO_CATEGORY = "OTHER"  # decision 17
NEVER_REFUNDED = ("SALARY", "TRANSFER")  # decision 16
RENT = "RENT"  # comes from whom rent was paid to, or from somebody to whom a room is let

_IN_MEMORY: Literal["in-memory"] = "in-memory"


def refund_places(credited: pl.LazyFrame, bookings: pl.DataFrame, *, selection: Collection[str]) -> pl.Series:
    """The places of the credits whose counterpart was paid before, or on the same day: bookings carry no time
    (decision 16). Rent that comes back was paid as rent: what somebody pays for a room is no refund of the own rent,
    whatever else that person was paid for."""
    is_credit = (pl.col("amount") > 0) & left_out(selection).is_null() & ~known_category().is_in(NEVER_REFUNDED)
    is_rent = (known_category() == RENT).alias("is_rent")
    credits = _by_counterpart(credited.filter(is_credit), "place", "booking_date", is_rent).collect(engine=_IN_MEMORY)
    if credits.is_empty():
        return credits["place"]
    payments = bookings.lazy().filter(is_payment(selection), pl.col("account_id").is_in(list(selection)))
    first_paid = (
        _by_counterpart(payments, "booking_date", is_rent)
        .filter(pl.col("counterpart").is_in(credits["counterpart"].implode()))
        .group_by("counterpart")
        .agg(
            pl.col("booking_date").min().alias("first_paid"),
            pl.col("booking_date").filter("is_rent").min().alias("first_rent"),
        )
    )
    since = pl.when("is_rent").then("first_rent").otherwise("first_paid")
    paid_before = credits.lazy().join(first_paid, on="counterpart").filter(since <= pl.col("booking_date"))
    return paid_before.select("place").collect(engine=_IN_MEMORY)["place"]


def refund_ids(credited: pl.DataFrame, bookings: pl.DataFrame, *, selection: Collection[str]) -> pl.Series:
    """The ids of those among these rows of the selection that are refunds."""
    rows = credited.lazy().filter(pl.col("account_id").is_in(list(selection))).with_row_index("place")
    places = refund_places(rows, bookings, selection=selection)
    return rows.filter(pl.col("place").is_in(places.implode())).select("id").collect(engine=_IN_MEMORY)["id"]


def _by_counterpart(rows: pl.LazyFrame, *columns: str | pl.Expr) -> pl.LazyFrame:
    """One row per row and thing its counterpart is known by: IBAN, name, merchant, the names in lower case; two rows
    that share one have the same counterpart. (Three columns on end take a third of the time of lists.)"""
    names = ("counterpart_name", "merchant_name")
    known_by = rows.select(*columns, "counterpart_iban", pl.col(names).str.to_lowercase())
    return known_by.unpivot(
        ["counterpart_iban", *names], index=cs.exclude("counterpart_iban", *names), value_name="counterpart"
    ).filter(pl.col("counterpart") != "")


def is_payment(selection: Collection[str]) -> pl.Expr:
    """Whether a row is money that left the selection."""
    return (pl.col("amount") < 0) & left_out(selection).is_null()


def known_category() -> pl.Expr:
    """The category that figures give a row: OTHER for one that has none (decision 17)."""
    return pl.col("category").fill_null(NO_CATEGORY)
