"""Bookings that only the history around them tells apart: first payments to somebody, and payments of which money came
back."""

from collections.abc import Collection
from datetime import timedelta

import polars as pl

from analytics.cashflow import left_out
from analytics.frames import among, frame_of
from analytics.refunds import by_counterpart
from analytics.searching.filters import OfHistory

KNOWN_DAYS_MIN = 90  # of history that are needed before a payee can be called new
RETURNED_WITHIN = timedelta(days=365)


def with_flag(
    flag: OfHistory, bookings: pl.DataFrame, refunds: pl.Series, *, selection: Collection[str], own: Collection[str]
) -> pl.Series:
    """The ids of the bookings (BOOKINGS, all that the caller may read) with this flag; `refunds` are the ids of the
    refunds on accounts of `selection`, `own` the account numbers of the user's own accounts."""
    if flag == "new_payee":
        return _new_payees(bookings, own)
    paid = bookings.lazy().filter(
        pl.col("account_id").is_in(among(selection)), pl.col("amount") < 0, left_out(selection).is_null()
    )
    returned = pl.Series(_refunded(bookings, paid, refunds), dtype=pl.String)
    is_returned = pl.col("id").is_in(among(returned))
    return paid.filter(is_returned if flag == "refunded" else ~is_returned).select("id").pipe(frame_of)["id"]


def _new_payees(bookings: pl.DataFrame, own: Collection[str]) -> pl.Series:
    """The ids of the payments on the first day on which their account number was paid, if 90 days are known before."""
    iban, day = pl.col("counterpart_iban"), pl.col("booking_date")
    paid = bookings.lazy().filter(pl.col("amount") < 0, iban != "", ~iban.is_in(list(own)))
    known_from = bookings["booking_date"].min()
    is_known = day - pl.lit(known_from, pl.Date) >= timedelta(days=KNOWN_DAYS_MIN)
    return paid.filter(day == day.min().over(iban), is_known).select("id").pipe(frame_of)["id"]


def _refunded(bookings: pl.DataFrame, paid: pl.LazyFrame, refunds: pl.Series) -> list[str]:
    """The ids of the payments that refunds brought back, each refund one: a payment to the same counterpart within the
    year before, in its currency and not smaller; one of its size if there is any, else the latest. The earliest refund
    chooses first."""
    columns = ("id", "booking_date", "amount", "currency")
    credits = by_counterpart(bookings.lazy().filter(pl.col("id").is_in(among(refunds))), *columns)
    payments = by_counterpart(paid, *columns)
    day, day_paid, left = pl.col("booking_date"), pl.col("booking_date_paid"), pl.col("amount") + pl.col("amount_paid")
    pairs = (
        credits.join(payments, on=["counterpart", "currency"], suffix="_paid")
        .filter(day_paid <= day, day_paid >= day - RETURNED_WITHIN, left <= 0)
        .sort(day, "id", left < 0, day_paid, "id_paid", descending=[False, False, False, True, True])
        .select("id", "id_paid")
    )
    chosen: dict[str, str] = {}  # payments by their refund
    taken: set[str] = set()
    for refund, payment in pairs.pipe(frame_of).iter_rows():
        if refund not in chosen and payment not in taken:
            chosen[refund] = payment
            taken.add(payment)
    return [*taken]
