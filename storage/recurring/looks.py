"""The last look at each user's recurring payments: when it was, and what it found."""

import json
from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec import Struct

from analytics.recurring.news import KnownPayment, News
from storage.database import Session, Transaction, as_json, put_row


class Look(Struct, frozen=True, kw_only=True):
    """The last look at a user's recurring payments: the accounts with bookings at that time, and each payment as it was
    reported."""

    accounts: Collection[str]
    payments: Sequence[KnownPayment]


class PaymentEvent(Struct, frozen=True, kw_only=True):
    """An event to report: about this recurring payment, which is charged to this account."""

    news: News
    id: str
    account_id: str


def last_look(session: Session, user_id: str) -> Look | None:
    """The last look at the user's recurring payments; None where there has been none."""
    rows = session.rows("SELECT accounts, payments FROM recurring_told WHERE user_id = $1", user_id)
    return (
        Look(
            accounts=json.loads(rows[0]["accounts"]),
            payments=msgspec.json.decode(rows[0]["payments"], type=list[KnownPayment]),
        )
        if rows
        else None
    )


def keep(session: Transaction, user_id: str, look: Look, events: Sequence[PaymentEvent]) -> None:
    """Store a look in place of the last one; the commit records `events`, and counts as a change of the user's data if
    there are any."""
    if events:
        session.changes(user_id)
    put_row(
        session,
        "recurring_told",
        ["user_id"],
        user_id=user_id,
        accounts=as_json(list(look.accounts)),
        payments=msgspec.json.encode(look.payments).decode(),
        untold=as_json([(each.news.type, each.id, _event_data(each)) for each in events]) if events else "",
    )


def _event_data(event: PaymentEvent) -> Mapping[str, str]:
    news = event.news
    retracts = {"retracts": news.retracts} if news.retracts is not None else {}
    expected = {"expected": news.expected.isoformat()} if news.expected is not None else {}
    return {"accountId": event.account_id, **retracts, **expected}
