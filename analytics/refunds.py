"""Refunds: credits that bring money back from somebody who was paid before (decision 16)."""

from collections.abc import Collection

import polars as pl
import polars.selectors as cs

from analytics.cashflow import left_out
from analytics.frames import among, frame_of

NO_CATEGORY = "OTHER"  # decision 17
NEVER_REFUNDED = ("SALARY", "TRANSFER")  # decision 16
RENT = "RENT"  # comes from the landlord to whom it was paid, or from a tenant


def refund_places(credited: pl.DataFrame, bookings: pl.DataFrame, *, selection: Collection[str]) -> pl.Series:
    """The places (column `place` of `credited`) of the credits that are refunds: their counterpart was paid before, or
    on the same day, because bookings have no time (decision 16). Salaries, transfers and rows that count as neither
    income nor expense are never refunds. The places are in no order, and one may come several times.

    Rent counts only as a refund where rent was paid: a tenant's rent is no refund of one's own, whatever else the
    tenant was paid for.
    """
    is_credit = (pl.col("amount") > 0) & left_out(selection).is_null() & ~known_category().is_in(NEVER_REFUNDED)
    is_rent = (known_category() == RENT).alias("is_rent")
    credits = by_counterpart(credited.lazy().filter(is_credit), "place", "booking_date", is_rent).pipe(frame_of)
    if credits.is_empty():
        return credits["place"]
    is_payment = (pl.col("amount") < 0) & left_out(selection).is_null()
    payments = bookings.lazy().filter(is_payment, pl.col("account_id").is_in(among(selection)))
    first_paid = (
        by_counterpart(payments, "booking_date", is_rent)
        .filter(pl.col("counterpart").is_in(among(credits["counterpart"])))
        .group_by("counterpart")
        .agg(
            pl.col("booking_date").min().alias("first_paid"),
            pl.col("booking_date").filter("is_rent").min().alias("first_rent"),
        )
    )
    since = pl.when("is_rent").then("first_rent").otherwise("first_paid")
    paid_before = credits.lazy().join(first_paid, on="counterpart").filter(since <= pl.col("booking_date"))
    return paid_before.select("place").pipe(frame_of)["place"]


def refund_ids(credited: pl.DataFrame, bookings: pl.DataFrame, *, selection: Collection[str]) -> pl.Series:
    """The ids of the credited rows on selected accounts that are refunds, each once, in the order of the rows."""
    rows = credited.filter(pl.col("account_id").is_in(among(selection))).with_row_index("place")
    return rows["id"].gather(refund_places(rows, bookings, selection=selection).unique().sort())


def by_counterpart(rows: pl.LazyFrame, *columns: str | pl.Expr) -> pl.LazyFrame:
    """One row per row and property of its counterpart: IBAN, name, merchant, with the names in lower case. Two rows
    that share a property have the same counterpart. (Stacking three columns takes a third of the time of lists.)"""
    names = ("counterpart_name", "merchant_name")
    known_by = rows.select(*columns, "counterpart_iban", pl.col(names).str.to_lowercase())
    return known_by.unpivot(
        ["counterpart_iban", *names], index=cs.exclude("counterpart_iban", *names), value_name="counterpart"
    ).filter(pl.col("counterpart") != "")


def known_category() -> pl.Expr:
    """The category of a row in figures: OTHER for a row without one (decision 17)."""
    return pl.col("category").fill_null(NO_CATEGORY)
