"""The last look at each user's recurring payments: when it was, and what it found."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date

import msgspec
from msgspec import Struct

from analytics.recurring.news import KnownPayment
from storage.database import Session, Transaction, as_json, put_row

PIECE = 50  # users checked at once because their `look_at` day has come


class Look(Struct, frozen=True, kw_only=True):
    """The last look at a user's recurring payments: the data version, the day, the accounts with bookings at that time,
    and each payment as it was reported."""

    data_version: int
    day: date
    accounts: Collection[str]
    payments: Sequence[KnownPayment]


class PaymentEvent(Struct, frozen=True, kw_only=True):
    """An event to report: about this recurring payment, which is charged to this account; `expected` is the day of a
    missed charge, None in other events."""

    type: str
    id: str
    account_id: str
    expected: date | None


def is_present(session: Session, user_id: str, *, today: date) -> bool:
    """Whether the last look was today and at the user's present data version."""
    return bool(
        session.rows(
            "SELECT t.user_id FROM recurring_told AS t JOIN users AS u ON u.id = t.user_id"
            " WHERE t.user_id = $1 AND u.id = $1 AND t.data_version = u.data_version AND t.day = $2",
            *(user_id, today),
        )
    )


def last_look(session: Session, user_id: str) -> Look | None:
    """The last look at the user's recurring payments; None where there has been none."""
    rows = session.rows("SELECT data_version, day, accounts, payments FROM recurring_told WHERE user_id = $1", user_id)
    return (
        Look(
            data_version=rows[0]["data_version"],
            day=rows[0]["day"],
            accounts=json.loads(rows[0]["accounts"]),
            payments=msgspec.json.decode(rows[0]["payments"], type=list[KnownPayment]),
        )
        if rows
        else None
    )


def keep(
    session: Transaction, user_id: str, look: Look, events: Sequence[PaymentEvent], *, look_at: date | None
) -> None:
    """Store a look in place of the last one; the commit records `events`, and counts as a change of the user's data if
    there are any.

    `look_at` is the day of the next look that is needed even without new data; None if none is.
    """
    if events:
        session.changes(user_id)
    put_row(
        session,
        "recurring_told",
        ["user_id"],
        user_id=user_id,
        data_version=look.data_version,
        day=look.day,
        look_at=look_at,
        accounts=as_json(list(look.accounts)),
        payments=msgspec.json.encode(look.payments).decode(),
        untold=as_json([(each.type, each.id, _event_data(each)) for each in events]) if events else "",
    )


def users_to_check(session: Session, today: date) -> list[str]:
    """The ids of the next PIECE users to look at today although no new data came, the longest overdue first."""
    rows = session.rows(
        f"SELECT user_id FROM recurring_told WHERE look_at <= $1 ORDER BY look_at, user_id LIMIT {PIECE}", today
    )
    return [row["user_id"] for row in rows]


def _event_data(event: PaymentEvent) -> Mapping[str, str]:
    expected = {"expected": event.expected.isoformat()} if event.expected is not None else {}
    return {"accountId": event.account_id, **expected}
