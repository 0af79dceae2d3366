"""POST /subscriptions/{id}/confirmation: a person says that a recurring payment is one, or that it is none."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from analytics.recurring.confirmations import CONFIRMED, UNDECIDED, Decision, by_stream
from handlers.http.errors import NotFound
from handlers.http.request import Json, Request
from handlers.operations.recurring.details import NOT_FOUND, charges_of, told_of
from handlers.operations.selection import owner_of
from handlers.services import Services
from handlers.sync.detection import recurring_of
from storage import accounts
from storage.accounts import Selected
from storage.database import Database, Transaction
from storage.recurring import added, decisions


class NoSuchPayment(Exception):
    """The user has no recurring payment of this id."""


def confirm_subscription(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """The recurring payment as it is then."""
    user_id = owner_of(request)
    try:
        return decide(
            services.of(user_id),
            user_id,
            id,
            body["confirmation"],
            now=services.clock.now(),
            today=services.clock.today(),
        )
    except NoSuchPayment:
        raise NotFound(NOT_FOUND) from None


def decide(database: Database, user_id: str, id: str, confirmation: str, *, now: datetime, today: date) -> Json:
    """Remember what was said about a recurring payment of all accounts in place of what was said before, or nothing
    for "none"; the payment as SubscriptionDetail. What was added by hand is taken away by all but "confirmed". Raises
    NoSuchPayment."""

    def work(session: Transaction) -> Json:
        session.hold(user_id)
        everything = Selected(accounts.of_user(session, user_id), is_everything=True)
        every = recurring_of(database, user_id, everything, today=today, session=session)
        found = every.filter(id=id)
        if found.is_empty():
            raise NoSuchPayment
        row = found.row(0, named=True)
        before = by_stream(every, decisions.of_user(session, user_id)).get(id, [])
        decisions.forget(session, user_id, [decision.id for decision in before])
        if confirmation != CONFIRMED and row["added_id"] is not None:
            added.remove(session, user_id, row["added_id"])
        if confirmation != UNDECIDED and row["added_to"] is None:
            decision = Decision(id=id, transaction_id=row["charge_ids"][-1], confirmation=confirmation)
            decisions.keep(session, user_id, decision, now=now)
        then = {**row, "confirmation": confirmation, "added_to": row["added_to"] if confirmation == CONFIRMED else None}
        return told_of(then, charges_of(session, user_id, found), today)

    return database.atomically(work)
