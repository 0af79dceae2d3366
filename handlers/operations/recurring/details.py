"""GET /subscriptions/details and /subscriptions/{id}: recurring payments with their charges, rhythm and prices.

Each answer is made from one state of the store and is never cut into pages.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

import polars as pl

from analytics.periods import six_months_before
from analytics.recurring.confirmations import DISMISSED
from analytics.recurring.directions import OUTGOING
from analytics.recurring.history import Charge, history
from handlers import json_shapes
from handlers.cache.user_data import UserData
from handlers.http.errors import NotFound
from handlers.http.request import Answer, Json, Request
from handlers.operations.selection import selected_accounts
from handlers.services import Services
from handlers.sync.detection import current, recurring_of
from storage import accounts, transactions
from storage.database import Row, Session

NOT_FOUND = "Subscription not found"
CURRENT, ALL = "current", "all"


def list_subscription_details(
    services: Services,
    request: Request,
    _reading: UserData,
    *,
    account_ids: str | None,
    status: str | None = None,
    direction: str | None = None,
) -> Answer:
    """List the payments of GET /subscriptions in the same order, each with its id, charges, rhythm and prices
    (decisions 21, 22). A request for a status or a direction also gets both fields, and when the next charge is
    expected (decision 117)."""
    today = services.clock.today()
    wanted = status or CURRENT
    user_id = request.principal.user_id
    database = services.of(user_id)
    with database.transaction() as session:
        selected = selected_accounts(accounts.of_user(session, user_id), account_ids, request.principal)
        found = recurring_of(database, user_id, selected, today=today, session=session)
        if direction != ALL:
            found = found.filter(direction=direction or OUTGOING)
        if wanted == CURRENT:
            found = current(found, today)
        elif wanted != ALL:
            found = found.filter(pl.col("confirmation") != DISMISSED)
        charges = charges_of(session, user_id, found)
    told = [told_of(row, charges, today) for row in found.iter_rows(named=True)]
    if wanted not in (CURRENT, ALL):
        told = [each for each in told if each["status"] == wanted]
    if status is None and direction is None:
        told = [{key: value for key, value in each.items() if key not in json_shapes.STANDING} for each in told]
    return Answer(body={"subscriptions": told})


def get_subscription(
    services: Services, request: Request, _reading: UserData, *, id: str, account_ids: str | None
) -> Answer:
    """One recurring payment, whatever its status and direction."""
    today = services.clock.today()
    user_id = request.principal.user_id
    database = services.of(user_id)
    with database.transaction() as session:
        selected = selected_accounts(accounts.of_user(session, user_id), account_ids, request.principal)
        found = recurring_of(database, user_id, selected, today=today, session=session).filter(id=id)
        if found.is_empty():
            raise NotFound(NOT_FOUND)
        charges = charges_of(session, user_id, found)
    return Answer(body=told_of(found.row(0, named=True), charges, today))


def charges_of(session: Session, user_id: str, found: pl.DataFrame) -> Mapping[str, Row]:
    """The charges of these streams, by transaction id."""
    return transactions.listed(session, user_id, found["charge_ids"].explode().drop_nulls())


def told_of(row: Mapping[str, Any], by_id: Mapping[str, Row], today: date) -> Json:
    """The complete SubscriptionDetail of the contract. A payment added by hand and never charged is treated as if it
    had been charged one period before its first day."""
    charges = [by_id[charge_id] for charge_id in row["charge_ids"]]
    paid = [Charge(id=charge["id"], day=charge["booking_date"], amount=abs(charge["amount"])) for charge in charges]
    told = history(
        paid or [Charge(id=row["id"], day=row["last_charged"], amount=row["amount"])],
        frequency=row["frequency"],
        currency=row["currency"],
        today=today,
        first_due=None if paid else row["next_expected"],
    )
    window = six_months_before(today)
    shown = [json_shapes.charge(charge, is_counted=charge["booking_date"] >= window) for charge in charges]
    return json_shapes.subscription_detail(row, told, shown, today)
