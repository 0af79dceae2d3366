"""What users have been told about their recurring payments."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from analytics.recurring.news import ToldPayment
from storage.database import Session, Transaction, as_json

PIECE = 50  # users checked at once because their `look_at` day has come


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The last check of a user's recurring payments: the data version, the day, the accounts with bookings at that
    time, and each payment as the user was told of it."""

    data_version: int
    day: date
    accounts: Collection[str]
    payments: Sequence[ToldPayment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Untold:
    """An event not yet reported: about this recurring payment, which is charged to this account."""

    type: str
    id: str
    account_id: str
    expected: date | None


def is_present(session: Session, user_id: str, *, today: date) -> bool:
    """Whether the last check was made today, with the present data."""
    return bool(
        session.rows(
            "SELECT t.user_id FROM recurring_told AS t JOIN users AS u ON u.id = t.user_id"
            " WHERE t.user_id = $1 AND u.id = $1 AND t.data_version = u.data_version AND t.day = $2",
            user_id,
            today,
        )
    )


def last_look(session: Session, user_id: str) -> Look | None:
    """The last check of the user's recurring payments; None where there has been none."""
    rows = session.rows("SELECT data_version, day, accounts, payments FROM recurring_told WHERE user_id = $1", user_id)
    return (
        Look(
            data_version=rows[0]["data_version"],
            day=rows[0]["day"],
            accounts=json.loads(rows[0]["accounts"]),
            payments=[_read(each) for each in json.loads(rows[0]["payments"])],
        )
        if rows
        else None
    )


def keep(session: Transaction, user_id: str, look: Look, untold: Sequence[Untold], *, look_at: date | None) -> None:
    """Store a check in place of the last one; the commit turns `untold` into events.

    `look_at` is the day of the next check that is needed even without new data.
    """
    if untold:
        session.changes(user_id)
    session.execute(
        "INSERT INTO recurring_told (user_id, data_version, day, look_at, accounts, payments, untold)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (user_id) DO UPDATE SET"
        " data_version = excluded.data_version, day = excluded.day, look_at = excluded.look_at,"
        " accounts = excluded.accounts, payments = excluded.payments, untold = excluded.untold",
        user_id,
        look.data_version,
        look.day,
        look_at,
        as_json(list(look.accounts)),
        as_json([_payment_json(each) for each in look.payments]),
        as_json([(each.type, each.id, _event_data(each)) for each in untold]) if untold else "",
    )


def whom_a_day_concerns(session: Session, today: date) -> list[str]:
    """The ids of the next users to check today although no new data came, the longest overdue first."""
    rows = session.rows(
        f"SELECT user_id FROM recurring_told WHERE look_at <= $1 ORDER BY look_at, user_id LIMIT {PIECE}", today
    )
    return [row["user_id"] for row in rows]


def _event_data(event: Untold) -> Mapping[str, str]:
    expected = {"expected": event.expected.isoformat()} if event.expected is not None else {}
    return {"accountId": event.account_id, **expected}


def _payment_json(told: ToldPayment) -> dict[str, Any]:
    return {**asdict(told), "last_charged": told.last_charged.isoformat(), "amount": str(told.amount)}


def _read(row: Mapping[str, Any]) -> ToldPayment:
    return ToldPayment(
        **{**row, "last_charged": date.fromisoformat(row["last_charged"]), "amount": Decimal(row["amount"])}
    )
