"""POST /subscriptions/added: a person adds a recurring payment that detection does not find."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from analytics.currencies import in_digits
from analytics.letters import fold
from analytics.recurring.added import AddedPayment, id_of
from analytics.recurring.directions import OUTGOING
from analytics.recurring.history import day_before
from handlers.http.errors import BadRequest
from handlers.http.request import Json, Request
from handlers.http.steps.parameters import Unreadable, read_date
from handlers.operations.recurring.details import charges_of, told_of
from handlers.operations.selection import owner_of
from handlers.services import Services
from handlers.sync.detection import recurring_of
from storage import accounts
from storage.accounts import Selected, StoredAccount
from storage.database import Transaction
from storage.recurring import added

NAME_LETTERS_MIN, NAME_LETTERS_MAX = 3, 200  # a shorter name would occur in texts of other bookings
NOT_YOURS = "accountId: not one of your accounts. GET /accounts lists their ids"
ADDED_BEFORE = "name: You have added this payment before, under another name or with another rhythm."


class CannotBeAdded(Exception):
    """The payment cannot be added: `field` is the wrong field of the contract, the message a sentence about it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def add_subscription(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Add a recurring payment, and return its present form: joined with a detected one where both are the same."""
    user_id, today = owner_of(request), services.clock.today()
    database = services.of(user_id)
    try:
        next_day = read_date(body["nextExpected"])
    except Unreadable as error:
        raise BadRequest(f"nextExpected: {error}") from error

    def work(session: Transaction) -> Json:
        session.hold(user_id)
        everything = Selected(accounts.of_user(session, user_id), is_everything=True)
        chosen = [each for each in everything.accounts if each.id == body["accountId"]]
        if not chosen:
            raise BadRequest(NOT_YOURS)
        before = recurring_of(database, user_id, everything, today=today, session=session)
        payment = add(
            session,
            user_id,
            chosen[0],
            name=body["name"],
            amount=Decimal(str(body["amount"])),
            frequency=body["frequency"],
            next_day=next_day,
            direction=body.get("direction", OUTGOING),
            today=today,
        )
        every = recurring_of(database, user_id, everything, today=today, session=session)
        if not {payment.id, *before["added_id"].drop_nulls()} <= set(every["added_id"]):
            raise BadRequest(ADDED_BEFORE)  # a detected payment can be joined with one that was added, not with two
        found = every.filter(added_id=payment.id)
        return told_of(found.row(0, named=True), charges_of(session, user_id, found), today)

    try:
        return database.atomically(work)
    except CannotBeAdded as error:
        raise BadRequest(f"{error.field}: {error}") from error


def add(
    session: Transaction,
    user_id: str,
    account: StoredAccount,
    *,
    name: str,
    amount: Decimal,
    frequency: str,
    next_day: date,
    direction: str,
    today: date,
) -> AddedPayment:
    """Store a payment that detection does not find; adding it again with another amount or day changes it. Raises
    CannotBeAdded."""
    name = name.strip()
    if not NAME_LETTERS_MIN <= len(fold(name)) <= len(name) <= NAME_LETTERS_MAX:
        raise CannotBeAdded("name", f"A name has {NAME_LETTERS_MIN} to {NAME_LETTERS_MAX} characters.")
    if amount <= 0 or amount != in_digits(amount, account.currency):
        raise CannotBeAdded("amount", "An amount is above 0, in the digits of its currency.")
    if next_day < today or day_before(next_day, frequency) > today:
        raise CannotBeAdded("nextExpected", "The next day is today or later, and no more than one period ahead.")
    payment = AddedPayment(
        id=id_of(user_id, account.id, name, direction, frequency),
        account_id=account.id,
        name=name,
        amount=amount,
        direction=direction,
        frequency=frequency,
        next_day=next_day,
    )
    added.keep(session, user_id, payment)
    return payment
