"""Recurring payments that a user adds by hand, because the rules do not find them (yet)."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
from msgspec import Struct

from analytics.letters import fold
from analytics.periods import six_months_before
from analytics.recurring.confirmations import CONFIRMED, UNDECIDED
from analytics.recurring.contract_ids import digest
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import period_before
from analytics.search_text import fold_column

LEAST, MOST = Decimal("0.5"), Decimal(2)  # of the stated amount; other amounts are for something else


class AddedPayment(Struct, frozen=True, kw_only=True):
    """A recurring payment as the user stated it: `direction` is "incoming" or "outgoing", the amount is positive, in
    the currency of the account, and `next_day` is the day of the next charge."""

    id: str
    account_id: str
    name: str
    amount: Decimal
    direction: str
    frequency: str
    next_day: date


def id_of(user_id: str, account_id: str, name: str, direction: str, frequency: str) -> str:
    """The id of an added payment; adding one of the same folded name again with another amount or day has the same id,
    and so changes it."""
    return digest("\x1f".join(("added", user_id, account_id, fold(name), direction, frequency)))


def include_added(
    streams: pl.DataFrame, added: Sequence[AddedPayment], rows: pl.DataFrame, currencies: Mapping[str, str], today: date
) -> pl.DataFrame:
    """The found streams, then the added payments that are not among them. A stream that is the same as an added payment
    has its id as `added_id` (else null) and counts as confirmed, unless it was dismissed. An added payment that was not
    found is a row of its own, confirmed, with its account as `added_to`.

    `rows` (CHARGES) are the bookings of the accounts, whose `currencies` are given. The charges of an added payment are
    bookings in its direction, of half to twice its amount, whose counterpart, merchant or purpose contains its name. It
    is the same as the stream that has the latest of these charges, of those that are in any stream. Of several added
    payments that are the same as one stream, only the first is kept.
    """
    if not added:
        return streams.with_columns(added_id=pl.lit(None, pl.String), added_to=pl.lit(None, pl.String))
    holders = {
        (row["direction"], charge): row["id"] for row in streams.iter_rows(named=True) for charge in row["charge_ids"]
    }
    same: dict[str, str] = {}
    others: list[dict[str, Any]] = []
    for payment in added:
        charges = _charges(payment, rows, currencies[payment.account_id], today)
        ids = [id_ for id_, *_ in charges]
        held = next((holders[key] for id_ in reversed(ids) if (key := (payment.direction, id_)) in holders), None)
        if held is not None:
            same.setdefault(held, payment.id)
            continue
        last, amount = (
            charges[-1][1:] if charges else (period_before(payment.next_day, payment.frequency), payment.amount)
        )
        others.append(
            {
                **dict.fromkeys(streams.columns),
                "id": payment.id,
                "merchant_name": payment.name,
                "amount": abs(amount),
                "currency": currencies[payment.account_id],
                "frequency": payment.frequency,
                "last_charged": last,
                "occurrences": sum(day >= six_months_before(today) for _, day, _ in charges),
                "charge_ids": ids,
                "confidence": 0.0,
                "next_expected": payment.next_day,
                "direction": payment.direction,
                "confirmation": CONFIRMED,
                "account_id": payment.account_id,
                "added_id": payment.id,
                "added_to": payment.account_id,
            }
        )
    added_ids = [same.get(id_) for id_ in streams["id"]]
    decided = [
        CONFIRMED if added_id is not None and confirmation == UNDECIDED else confirmation
        for added_id, confirmation in zip(added_ids, streams["confirmation"], strict=True)
    ]
    joined = streams.with_columns(
        pl.Series("added_id", added_ids, dtype=pl.String),
        pl.lit(None, pl.String).alias("added_to"),
        pl.Series("confirmation", decided, dtype=pl.String),
    )
    return pl.concat([joined, pl.DataFrame(others, schema=joined.schema)]) if others else joined


def _charges(payment: AddedPayment, rows: pl.DataFrame, currency: str, today: date) -> list[tuple[str, date, Decimal]]:
    """The bookings of an added payment until today, as `include_added` says, oldest first: id, day, amount (with its
    sign)."""
    sign = 1 if payment.direction == INCOMING else -1
    name = fold(payment.name)
    texts = pl.concat_str("counterpart_name", "merchant_name", "purpose", separator="\n", ignore_nulls=True)
    paid = (pl.col("amount") * sign).is_between(payment.amount * LEAST, payment.amount * MOST)
    return (
        rows.filter(
            pl.col("booking_date") <= today,
            ~pl.col("is_potential_duplicate").fill_null(False),
            ~pl.col("is_adjusting_entry").fill_null(False),
            paid,
            account_id=payment.account_id,
            currency=currency,
        )
        .filter(fold_column(texts).str.contains(name, literal=True))
        .sort("booking_date", "id")
        .select("id", "booking_date", "amount")
        .rows()
    )
