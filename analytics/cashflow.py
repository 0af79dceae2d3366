"""Monthly cashflow: the money that enters or leaves the selected accounts, and the bookings behind each figure."""

from collections.abc import Collection
from datetime import date
from decimal import Decimal

import polars as pl

from analytics.currencies import NO_RATES, convert, foreign_currencies
from analytics.frames import COUNTED, FIGURE, MONEY, among, columns, frame_of
from analytics.minor_digits import minor_digits
from analytics.periods import HISTORY_MONTHS_MIN, last_day, shown_months
from analytics.transfers import is_within

CASHFLOW = columns("month, income, expenses, net") | {"unconverted": pl.List(pl.String())}
NO_RATE = "no_rate"
"""The reason why a row is left out whose currency has no reference rate on its day."""

SUMMED = [name for name in COUNTED if name not in ("counterpart_name", "counterpart_iban", "merchant_name")]
SUMS_MAX = 3_000  # in first answers
AMOUNT_END = Decimal(10) ** 15  # amounts are below it, and so are sums that can stand for them

_QUIET = {"income": Decimal(0), "expenses": Decimal(0)}
_ADJUSTING_ENTRY = pl.when("is_adjusting_entry").then(pl.lit("adjusting_entry"))
_TRANSFER = pl.lit("transfer")


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
    """The cashflow of each month: columns month (its first day), income, expenses, net (FIGURE, in `currency`) and
    unconverted (the currencies of rows that are left out because there is no rate, decision 19); one row per month,
    oldest first, the month of `today` last (decision 3).

    Takes BOOKINGS; needs all of them only when `months` exceeds 120. Income and expenses are positive and net is their
    difference (decision 13). Adjusting entries and transfers within the selection count as neither (`left_out`).
    """
    is_long = months > HISTORY_MONTHS_MIN
    shown = shown_months(today, months, first_booking=first_booking(bookings, selection) if is_long else None)
    foreign = foreign_currencies(bookings, currency)
    counted = bookings.lazy().filter(
        _is_selected(selection),
        left_out(selection).is_null(),
        pl.col("booking_date").is_between(shown[0], last_day(shown[-1])),
    )
    home = pl.col("home_amount")
    sums = {
        "income": home.filter(pl.col("amount") >= 0).sum(),
        "expenses": -home.filter(pl.col("amount") < 0).sum(),
    }
    if foreign:
        sums["unconverted"] = pl.col("currency").filter(home.is_null()).unique().sort()
    by_month = (
        at_border(counted, selection, currency=currency, foreign=foreign, rates=rates)
        .group_by(pl.col("booking_date").dt.month_start())
        .agg(**sums)
        .pipe(frame_of)
    )
    of_month = {row["booking_date"]: row for row in by_month.iter_rows(named=True)}
    rows = [(month, of_month.get(month, _QUIET)) for month in shown]
    return pl.DataFrame(
        [
            (month, row["income"], row["expenses"], row["income"] - row["expenses"], row.get("unconverted", []))
            for month, row in rows
        ],
        schema=CASHFLOW,
        orient="row",
    )


def sums_by_month(bookings: pl.DataFrame, *, currency: str, accounts: Collection[str]) -> pl.DataFrame | None:
    """The sums of the incoming and of the outgoing amounts of each account in each month (`booking_date` is its first
    day), those by category, with the columns SUMMED; apart for each account on the other side, for legs whose other one
    is there (`transfer_id` is that of any of them) and for adjusting entries. None where these are very many.

    Takes COUNTED. Added up is what is in `currency` on these accounts, in whole units of it; each other booking stands
    alone, with its day, because it is converted or rounded by itself, and so does a transfer that lost a fee on its
    way.
    """
    amount, is_spent = pl.col("amount"), pl.col("amount") < 0
    is_whole = amount == amount.round(minor_digits(currency))
    is_plain = is_whole & (pl.col("currency") == currency) & pl.col("account_id").is_in(among(accounts))
    alone = ~is_plain | pl.col("transfer_fee").is_not_null()
    found = (
        bookings.lazy()
        .select(SUMMED)
        .with_row_index("row")
        .with_columns(
            booking_date=pl.when(alone).then("booking_date").otherwise(pl.col("booking_date").dt.month_start()),
            category=pl.when(is_spent).then("category"),
            amount=amount.cast(FIGURE),
            is_spent=is_spent,
            is_open=pl.col("transfer_id").is_null(),
            one=pl.when(alone).then("row"),
        )
        .group_by(*(name for name in SUMMED if name not in ("amount", "transfer_id")), "is_spent", "is_open", "one")
        .agg(pl.col("amount").sum(), pl.col("transfer_id").min())
        .sort(*SUMMED)
        .select(SUMMED)
        .pipe(frame_of)
    )
    if found.height > SUMS_MAX or (found["amount"].abs() >= AMOUNT_END).any():
        return None
    return found.cast({"amount": MONEY})


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
    """The rows behind one month of `monthly_cashflow`, booking date and id descending, with three more columns:
    counted_as (income, expenses, null), left_out (transfer, adjusting_entry, pending, no_rate, null) and counted_amount
    (FIGURE, signed, in `currency`; 0 when left out). Counted amounts always add up to the figures.

    `month` is a first day; `bookings` are all of the selection, or enough to decide whether `month` is in its history.
    Raises MonthOutsideHistory for a month that no cashflow lists. `pending` has the columns of `bookings`.
    """
    selected = bookings.filter(_is_selected(selection))
    if month not in shown_months(today, 10**6, first_booking=first_booking(bookings, selection)):
        raise MonthOutsideHistory
    rows = _of_month(selected, month).with_columns(left_out(selection).alias("left_out"))
    if pending is not None:
        waiting = _of_month(pending.filter(_is_selected(selection)), month)
        rows = pl.concat([rows, waiting.with_columns(pl.lit("pending").alias("left_out"))])
    sign = pl.when(pl.col("amount") < 0).then(pl.lit("expenses")).otherwise(pl.lit("income"))
    foreign = foreign_currencies(rows, currency)
    return (
        at_border(rows.lazy(), selection, currency=currency, foreign=foreign, rates=rates)
        .with_columns(pl.when(without_rate()).then(pl.lit(NO_RATE)).otherwise("left_out").alias("left_out"))
        .with_columns(
            pl.when(pl.col("left_out").is_null()).then(sign).alias("counted_as"),
            counted_amount().alias("counted_amount"),
        )
        .drop("home_amount")
        .sort("booking_date", "id", descending=True)
        .pipe(frame_of)
    )


def first_booking(bookings: pl.DataFrame, selection: Collection[str]) -> date | None:
    """The first booking date of the selection; None where it has no booking."""
    first = bookings.lazy().filter(_is_selected(selection)).select(pl.col("booking_date").min()).pipe(frame_of).item()
    assert first is None or isinstance(first, date)
    return first


def left_out(selection: Collection[str]) -> pl.Expr:
    """The reason why a booked row is neither income nor expense, whatever its currency: adjusting_entry (decision 15),
    transfer (decision 14: both legs are there, on accounts of the selection, and nothing was lost between), else
    null."""
    return _ADJUSTING_ENTRY.when(is_within(selection) & pl.col("transfer_fee").is_null()).then(_TRANSFER)


def at_border(
    rows: pl.LazyFrame, selection: Collection[str], *, currency: str, foreign: Collection[str], rates: pl.DataFrame
) -> pl.LazyFrame:
    """The rows with `home_amount` as `convert` has it, of what crossed the border of the selection: of a transfer
    within it that is the fee."""
    crossed = pl.when(is_within(selection) & pl.col("transfer_fee").is_not_null()).then(-pl.col("transfer_fee"))
    return convert(rows, currency=currency, foreign=foreign, rates=rates, amount=crossed.otherwise("amount"))


def without_rate() -> pl.Expr:
    """Whether a row, which has `left_out` and `home_amount`, would count if its currency had a rate on its day
    (decision 19)."""
    return pl.col("left_out").is_null() & pl.col("home_amount").is_null()


def counted_amount() -> pl.Expr:
    """The amount that a row adds to the figures: its `home_amount`, or 0 where `left_out` has a reason."""
    return pl.when(pl.col("left_out").is_null()).then("home_amount").otherwise(pl.lit(0, dtype=FIGURE))


def _is_selected(selection: Collection[str]) -> pl.Expr:
    return pl.col("account_id").is_in(among(selection))


def _of_month(bookings: pl.DataFrame, month: date) -> pl.DataFrame:
    return bookings.filter(pl.col("booking_date").is_between(month, last_day(month)))
