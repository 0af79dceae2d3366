"""Monthly cashflow: the money that crosses the border of the selected accounts, and the rows behind each figure."""

from collections.abc import Collection
from datetime import date

import polars as pl

from analytics.currencies import NO_RATES, convert
from analytics.frames import FIGURE
from analytics.periods import last_day, shown_months

_ZERO = pl.lit(0, dtype=FIGURE)


class MonthOutsideHistory(ValueError):
    """month: lies outside the history of these accounts."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


def monthly_cashflow(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    months: int,
    today: date,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
) -> pl.DataFrame:
    """Columns month (its first day), income, expenses, net (FIGURE, in `currency`); one row per month, oldest first,
    the month of `today` last (decision 3). Takes BOOKINGS; needs all of them only when `months` exceeds 120.
    Income and expenses are positive and net is their difference (decision 13). Raises MissingRate."""
    selected = bookings.filter(_is_selected(selection))
    shown = shown_months(today, months, first_booking=_first_booking(selected))
    counted = selected.filter(
        left_out(selection).is_null(), pl.col("booking_date").is_between(shown[0], last_day(shown[-1]))
    )
    sums = (
        convert(counted, currency=currency, rates=rates)
        .group_by(pl.col("booking_date").dt.month_start().alias("month"))
        .agg(
            income=pl.col("home_amount").filter(pl.col("amount") >= 0).sum(),
            expenses=-pl.col("home_amount").filter(pl.col("amount") < 0).sum(),
        )
    )
    return (
        pl.DataFrame({"month": shown}, schema={"month": pl.Date})
        .join(sums, on="month", how="left", maintain_order="left")
        .with_columns(pl.col("income", "expenses").fill_null(_ZERO))
        .with_columns((pl.col("income") - pl.col("expenses")).alias("net"))
    )


def month_transactions(
    bookings: pl.DataFrame,
    *,
    selection: Collection[str],
    month: date,
    today: date,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    pending: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The rows behind one month of `monthly_cashflow`, booking date and id descending, with three columns more:
    counted_as (income, expenses, null), left_out (transfer, adjusting_entry, pending, null) and counted_amount (FIGURE,
    signed, in `currency`; 0 when left out). Counted amounts add up to the figures, always.
    `month` is a first day; `bookings` are all of the selection, or as many as decide whether `month` lies in its
    history: raises MonthOutsideHistory for a month that no cashflow lists. `pending` has the columns of `bookings`."""
    selected = bookings.filter(_is_selected(selection))
    if month not in shown_months(today, 10**6, first_booking=_first_booking(selected)):
        raise MonthOutsideHistory
    rows = _of_month(selected, month).with_columns(left_out(selection).alias("left_out"))
    if pending is not None:
        waiting = _of_month(pending.filter(_is_selected(selection)), month)
        rows = pl.concat([rows, waiting.with_columns(pl.lit("pending").alias("left_out"))])
    is_counted = pl.col("left_out").is_null()
    sign = pl.when(pl.col("amount") < 0).then(pl.lit("expenses")).otherwise(pl.lit("income"))
    return (
        convert(rows, currency=currency, rates=rates, where=is_counted)
        .rename({"home_amount": "counted_amount"})
        .with_columns(pl.when(is_counted).then(sign).alias("counted_as"))
        .sort("booking_date", "id", descending=True)
    )


def needed_since(months: int, *, today: date) -> date | None:
    """The first booking date that `monthly_cashflow` reads; None when it needs the whole history."""
    shown = shown_months(today, months, first_booking=None)
    return shown[0] if months <= len(shown) else None


def left_out(selection: Collection[str]) -> pl.Expr:
    """Why a booked row is no income and no expense: adjusting_entry (decision 15), transfer (decision 14: its other
    side is a selected account too), else null."""
    return (
        pl.when("is_adjusting_entry")
        .then(pl.lit("adjusting_entry"))
        .when(pl.col("transfer_account_id").is_in(list(selection)))
        .then(pl.lit("transfer"))
    )


def _is_selected(selection: Collection[str]) -> pl.Expr:
    return pl.col("account_id").is_in(list(selection))


def _first_booking(bookings: pl.DataFrame) -> date | None:
    first = bookings["booking_date"].min()
    assert first is None or isinstance(first, date)
    return first


def _of_month(bookings: pl.DataFrame, month: date) -> pl.DataFrame:
    return bookings.filter(pl.col("booking_date").is_between(month, last_day(month)))
