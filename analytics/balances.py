"""Balances over time: the balances of the selected accounts at the end of each day, computed backwards from the present
ones."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import polars as pl
from msgspec import Struct

from analytics.currencies import NO_RATES, convert, foreign_currencies
from analytics.frames import FIGURE, frame_of

Every = Literal["day", "week", "month"]
Reason = Literal["no_balance", "no_rate"]

POINTS_MAX = 3_700  # ten years of days
OLD_BALANCE_DAYS = 7  # banks state balances on working days, and no run of holidays is longer


class DatedBalance(Struct, frozen=True, kw_only=True):
    """The balance of an account at the end of `day`: `balance` in the currency of the figures (None where there is no
    exchange rate) and `own_balance` in its own, in which `points` are, too (day and balance, oldest first). It `is_old`
    if it may have changed since, being more than seven days older than the day asked for."""

    account_id: str
    day: date
    balance: Decimal | None
    own_balance: Decimal
    own_currency: str
    is_old: bool  # more than OLD_BALANCE_DAYS before `as_of`, so that the balance may have changed since
    points: Sequence[tuple[date, Decimal]]  # in its own currency, oldest first, from the first known day on


class BalanceSeries(Struct, frozen=True, kw_only=True):
    """The balances over time, all in `currency`, oldest first. `accounts` are those with a balance. `left_out` are the
    accounts that no point includes, each with the reason: "no_balance", or "no_rate" for its currency today; the latter
    are in `accounts`, too."""

    currency: str
    accounts: Sequence[DatedBalance]  # those with a balance, in their order; they add up to the last point
    points: Sequence[tuple[date, Decimal]]  # oldest first
    left_out: Sequence[tuple[str, Reason]]  # account id and reason, in the order of the accounts


def balance_series(
    accounts: pl.DataFrame,
    bookings: pl.DataFrame,
    *,
    days: Sequence[date],
    today: date,
    currency: str,
    rates: pl.DataFrame = NO_RATES,
    as_of: date | None = None,
) -> BalanceSeries:
    """The sum of the accounts (HOLDINGS; they are the selection) at the end of each of `days`, ascending and none after
    `today`, from all their BOOKINGS, including adjusting entries. Accounts without a balance, or without a rate today,
    are left out.

    Bookings after the day of an account's balance are not in the balance and change no point, so that the point of
    today equals the snapshot's total. Other currencies count at the rate of each day, rounded per account; points begin
    after the last day on which one of them has no rate. The balance of each account is as of `as_of` (default: today),
    or of the nearest day for which it is known: the day of its balance, or the day before its first booking.
    """
    as_of = as_of or today
    held = _daily_balances(accounts, bookings, days=[*days, today, as_of], today=today, rates=rates)
    converted = convert(
        held.lazy(),
        currency=currency,
        foreign=foreign_currencies(accounts, currency),
        rates=rates,
        amount=pl.col("balance"),
        day="day",
    ).pipe(frame_of)
    without_rate = set(converted.filter((pl.col("day") == today) & pl.col("home_amount").is_null())["id"])
    listed = zip(accounts["id"], accounts["balance"], strict=True)
    reasons = [(id_, _reason(balance, has_rate=id_ not in without_rate)) for id_, balance in listed]
    by_day = (
        converted.filter(~pl.col("id").is_in(list(without_rate)))
        .group_by("day")
        .agg(pl.col("home_amount").sum().alias("balance"), pl.col("home_amount").is_null().any().alias("is_unknown"))
    )
    of_day = {day: (balance, is_unknown) for day, balance, is_unknown in by_day.rows()}
    points = [(day, *of_day.get(day, (Decimal(0), False))) for day in days]
    known_from = max((place + 1 for place, (_, _, is_unknown) in enumerate(points) if is_unknown), default=0)
    return BalanceSeries(
        currency=currency,
        accounts=_dated_balances(_with_day(accounts, today=today), converted, bookings, days=days, as_of=as_of),
        points=[(day, balance) for day, balance, _ in points[known_from:]],
        left_out=[(id_, reason) for id_, reason in reasons if reason is not None],
    )


def shown_days(every: Every, *, first: date, last: date) -> list[date]:
    """The last days of the weeks (Sundays) or months from `first` to `last`, or all days, and `last` itself, oldest
    first; at most the latest 3,700 of them, none when `first` is after `last`."""
    days: list[date] = []
    if first <= last:
        days.append(last)
    while days and (day := _end_before(days[-1], every)) >= first and len(days) < POINTS_MAX:
        days.append(day)
    return days[::-1]


def _end_before(day: date, every: Every) -> date:
    """The last day of the period before that of `day`."""
    if every == "month":
        return day.replace(day=1) - timedelta(days=1)
    return day - timedelta(days=1 if every == "day" else day.isoweekday() % 7 or 7)


def _reason(balance: Decimal | None, *, has_rate: bool) -> Reason | None:
    if balance is None:
        return "no_balance"
    return None if has_rate else "no_rate"


def _dated_balances(
    counted: pl.DataFrame, converted: pl.DataFrame, bookings: pl.DataFrame, *, days: Sequence[date], as_of: date
) -> list[DatedBalance]:
    before = pl.min("booking_date") - timedelta(days=1)
    begun = dict(bookings.group_by("account_id").agg(before).iter_rows())
    by_id = converted.sort("day").partition_by("id", as_dict=True)
    dated = []
    for id_, currency, until in counted.select("id", "currency", "until").iter_rows():
        first = min(begun.get(id_, until), until)
        held = {day: (own, home) for day, own, home in by_id[(id_,)].select("day", "balance", "home_amount").rows()}
        own_balance, balance = held[as_of]
        day = min(max(as_of, first), until)
        dated.append(
            DatedBalance(
                account_id=id_,
                day=day,
                balance=balance,
                own_balance=own_balance,
                own_currency=currency,
                is_old=as_of - day > timedelta(days=OLD_BALANCE_DAYS),
                points=[(each, held[each][0]) for each in days if each >= first],
            )
        )
    return dated


def _with_day(accounts: pl.DataFrame, *, today: date) -> pl.DataFrame:
    """The accounts that have a balance, with its day as `until`; where that is unknown or in the future, today."""
    return accounts.filter(pl.col("balance").is_not_null()).with_columns(
        pl.min_horizontal(pl.col("balance_date").fill_null(today), pl.lit(today)).alias("until")
    )


def _daily_balances(
    accounts: pl.DataFrame, bookings: pl.DataFrame, *, days: Sequence[date], today: date, rates: pl.DataFrame
) -> pl.DataFrame:
    """The balance at the end of each of `days`, in the account's own currency, of each account that states a balance:
    columns id, currency, day, balance (FIGURE)."""
    counted = _with_day(accounts, today=today)
    moved = _running_sums(counted, bookings, rates=rates)
    grid = counted.join(pl.DataFrame({"day": sorted(set(days))}, schema={"day": pl.Date()}), how="cross")
    return (
        grid.sort("day")
        .join_asof(moved, left_on="day", right_on="booking_date", by="id", check_sortedness=False)
        .join(moved.group_by("id").agg(pl.col("so_far").last().alias("in_all")), on="id", how="left")
        .select(
            "id",
            "currency",
            "day",
            (
                pl.col("balance").cast(FIGURE)
                - pl.col("in_all").fill_null(Decimal(0))
                + pl.col("so_far").fill_null(Decimal(0))
            ).alias("balance"),
        )
    )


def _running_sums(counted: pl.DataFrame, bookings: pl.DataFrame, *, rates: pl.DataFrame) -> pl.DataFrame:
    """The running sums of bookings, one row for each account and day on which it has bookings, oldest first, in the
    account's own currency (an amount without a rate is zero): columns id, booking_date, so_far (FIGURE). Bookings after
    the account's `until` are left out."""
    rows = bookings.select("account_id", "booking_date", "amount", "currency").join(
        counted.select(pl.col("id").alias("account_id"), pl.col("currency").alias("own"), "until"), on="account_id"
    )
    rows = rows.filter(pl.col("booking_date") <= pl.col("until"))
    parts = [
        convert(part.lazy(), currency=own, foreign=foreign_currencies(part, own), rates=rates).pipe(frame_of)
        for (own,), part in rows.partition_by("own", as_dict=True, include_key=True).items()
    ]
    # Exact in the account's own currency; an amount without a rate counts as zero
    is_own = pl.col("currency") == pl.col("own")
    amount = pl.when(is_own).then(pl.col("amount").cast(FIGURE)).otherwise("home_amount").fill_null(Decimal(0))
    empty = pl.DataFrame(schema={"id": pl.String(), "booking_date": pl.Date(), "amount": FIGURE})
    moved = pl.concat(
        [
            empty,
            *(part.select(pl.col("account_id").alias("id"), "booking_date", amount.alias("amount")) for part in parts),
        ]
    )
    return (
        moved.group_by("id", "booking_date")
        .agg(pl.col("amount").sum())
        .sort("booking_date")
        .with_columns(pl.col("amount").cum_sum().over("id").alias("so_far"))
        .select("id", "booking_date", "so_far")
    )
