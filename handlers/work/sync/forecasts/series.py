"""Selects the bookings that a forecast of an account, or of all accounts in a currency, starts from."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

import polars as pl
from msgspec import Struct

from analytics.forecasting.ledgers import AccountLedger, DayMoved, Pending, Reason, joint_ledger
from analytics.frames import CHARGES
from storage.accounts import StoredAccount
from storage.database import Row

IS_DOUBTFUL = pl.col("is_potential_duplicate").fill_null(False)  # may be there twice


class Series(Struct, frozen=True, kw_only=True):
    """One account, or all accounts in one currency together, by whose id or code it is called (`key`). `rows` (CHARGES)
    are its bookings and, dated today at the latest, those that are pending or booked for a coming day; in a currency's
    series without the transfers between its accounts."""

    key: str
    ledger: AccountLedger
    balance_date: date
    rows: pl.DataFrame


def series_of(
    owned: Iterable[StoredAccount], rows: pl.DataFrame, waiting: pl.DataFrame, histories: Iterable[Row], today: date
) -> tuple[list[Series], list[tuple[str, Reason]]]:
    """A series for each account that can be forecast, from its bookings in its own currency and its pending ones
    (`waiting`); and the ids of the other accounts, each with the reason."""
    ahead = pl.concat([rows.filter(pl.col("booking_date") > today), waiting]).filter(~IS_DOUBTFUL)
    certain = ahead.partition_by("account_id", "currency", as_dict=True)
    whole = {(row["account_id"], row["currency"]): row for row in histories}
    past = rows.filter(pl.col("booking_date") <= today)
    found: list[Series] = []
    left_out: list[tuple[str, Reason]] = []
    for account in owned:
        of_all = whole.get((account.id, account.currency))
        if account.balance is None or of_all is None:
            left_out.append((account.id, "no_balance" if account.balance is None else "short_history"))
            continue
        own = past.filter(account_id=account.id, currency=account.currency)  # no copy where that is all of them
        coming = certain.get((account.id, account.currency), rows.clear())
        balance_date = min(account.balance_date or today, today)
        balance = account.balance + sum(own.filter(pl.col("booking_date") > balance_date)["amount"], Decimal(0))
        ledger = AccountLedger(
            currency=account.currency,
            day=today,
            balance=balance,
            first=of_all["first"],
            bookings=of_all["bookings"],
            opening=balance - of_all["total"],
            moved=_moved_by_day(own, within=[]),
            pending=_pending(coming),
        )
        if ledger.reason is not None:
            left_out.append((account.id, ledger.reason))
            continue
        known = pl.concat([own, coming.with_columns(pl.col("booking_date").clip(upper_bound=today))])
        found.append(Series(key=account.id, ledger=ledger, balance_date=balance_date, rows=known))
    return found, left_out


def by_currency(found: Sequence[Series]) -> dict[str, Series]:
    """A series for each currency, by its code, of all its accounts; transfers between two of them are no income or
    expense. For a single account it is the series of that account, under the account's id."""
    members_of: dict[str, list[Series]] = {}
    for each in found:
        members_of.setdefault(each.ledger.currency, []).append(each)
    return {
        currency: members[0] if len(members) == 1 else _pool(currency, members)
        for currency, members in members_of.items()
    }


def _pool(currency: str, members: Sequence[Series]) -> Series:
    ids = [each.key for each in members]
    rows = pl.concat([each.rows for each in members])
    pending = {one.id: one for each in members for one in each.ledger.pending}
    moved = _moved_by_day(rows.filter(~pl.col("id").is_in(list(pending))), within=ids)
    rows = rows.filter(~_is_within(ids))
    certain = [pending[id_] for id_ in rows["id"] if id_ in pending]
    return Series(
        key=currency,
        ledger=joint_ledger([each.ledger for each in members], moved, certain),
        balance_date=min(each.balance_date for each in members),
        rows=rows,
    )


def _pending(rows: pl.DataFrame) -> list[Pending]:
    named = pl.coalesce("merchant_name", "counterpart_name", "purpose", pl.lit(""))
    ordered = rows.sort("booking_date", "id").select("id", "booking_date", "amount", named)
    return [Pending(id=id_, day=day, amount=amount, name=name) for id_, day, amount, name in ordered.iter_rows()]


def _moved_by_day(rows: pl.DataFrame, *, within: Sequence[str]) -> dict[date, DayMoved]:
    is_usual = ~pl.col("is_adjusting_entry").fill_null(False) & ~_is_within(within)
    moved = rows.select("booking_date", "amount", usual=pl.when(is_usual).then("amount"))
    by_day = moved.group_by("booking_date").agg(pl.sum("amount", "usual"), bookings=pl.len())
    return {
        day: DayMoved(total=total, usual=usual, bookings=bookings) for day, total, usual, bookings in by_day.iter_rows()
    }


def _is_within(ids: Sequence[str]) -> pl.Expr:
    return pl.col("transfer_account_id").is_in(list(ids)).fill_null(False)


def all_rows(series: Iterable[Series]) -> pl.DataFrame:
    """The bookings of all series in one frame (CHARGES), with the key of the series in place of the user's id."""
    return pl.concat(
        [pl.DataFrame(schema=CHARGES), *(each.rows.with_columns(user_id=pl.lit(each.key)) for each in series)]
    )
