"""POST /subscriptions/{id}/confirmation: a person confirms or dismisses a recurring payment."""

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
    """The user has no recurring payment with this id."""


def confirm_subscription(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Store the person's decision on a recurring payment, and return its present form."""
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
    """Store what a person says about a recurring payment, replacing what they said before ("none" only removes it), and
    return the payment as SubscriptionDetail. A payment added by hand is removed unless it is "confirmed". Raises
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
