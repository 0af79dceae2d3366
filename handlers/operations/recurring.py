"""The operations of /subscriptions beyond the list: recurring payments with their charges, rhythm and prices; one
confirmed or dismissed; one added by hand."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any

from msgspec.structs import replace

from analytics.messages import Message, message
from analytics.minor_digits import in_digits
from analytics.periods import six_months_before
from analytics.recurring.added import NAME_LETTERS_MAX, NAME_LETTERS_MIN, AddedPayment, id_of, is_name
from analytics.recurring.confirmations import Decision, by_payment
from analytics.recurring.directions import INCOMING, OUTGOING
from analytics.recurring.history import Charge, history, period_before
from analytics.recurring.payment import CONFIRMED, DISMISSED, UNDECIDED, RecurringPayment
from auth.principal import Principal
from handlers import json_shapes
from handlers.names import Json
from handlers.operations.selection import owner_of, selected_accounts, selected_or_all
from handlers.web.errors import BadRequest, NotFound
from handlers.web.request import Answer, Request
from handlers.web.steps.parameters import read_date
from handlers.work.cache.user_data import Need, UserData
from handlers.work.services import Services
from handlers.work.sync.detection import recurring_in, recurring_of
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.database import Row, Session, Transaction, state_in
from storage.recurring import added, decisions

NOT_FOUND = "Subscription not found"
CURRENT, ONGOING, ALL = "current", "ongoing", "all"


def list_subscription_details(
    services: Services,
    request: Request,
    reading: UserData,
    *,
    account_ids: str | None,
    status: str | None = None,
    direction: str | None = None,
    with_charges: bool = True,
) -> Answer:
    """List recurring payments, each with its id, charges, rhythm and prices, of each direction the highest yearly
    amount first, and those added by hand last; without charges on request, which are most of the answer. Without
    `status` and `direction` they are the current outgoing ones (decisions 21, 22). A request for either chooses by
    them ("all" takes any), and each payment also has status, direction, and when the next charge is expected
    (decision 117)."""
    today = services.clock.today()
    wanted = status or CURRENT
    user_id = request.principal.user_id
    with services.of(user_id).transaction() as session:
        found = [
            each
            for each in _recurring_in(services, session, request, reading, account_ids)
            if direction == ALL or each.direction == (direction or OUTGOING)
            if _is_wanted(each, wanted, today)
        ]
        charges = charges_of(session, user_id, found)
    details = [detail_of(each, charges, today) for each in found]
    if wanted not in (CURRENT, ONGOING, ALL):
        details = [each for each in details if each["status"] == wanted]
    if not with_charges:
        details = [{**each, "charges": []} for each in details]
    if status is None and direction is None:
        details = [{key: value for key, value in each.items() if key not in json_shapes.STANDING} for each in details]
    return Answer(body={"subscriptions": details})


def _recurring_in(
    services: Services, session: Session, request: Request, reading: UserData, account_ids: str | None
) -> Sequence[RecurringPayment]:
    """The recurring payments of the selected accounts, in the state that the session sees, which is later than that of
    `reading` where the data have just changed."""
    user_id = request.principal.user_id
    if reading.state != state_in(session, user_id):
        reading = services.reader.read(session, user_id, Need.ACCOUNTS)
    selected = selected_accounts(reading.accounts, account_ids, request.principal)
    return recurring_in(
        services.of(user_id),
        user_id,
        selected,
        told=reading.recurring,
        state=reading.state,
        today=services.clock.today(),
        session=session,
    )


def _is_wanted(payment: RecurringPayment, wanted: str, today: date) -> bool:
    if wanted == CURRENT:
        return payment.is_current(today)
    return payment.goes_on if wanted == ONGOING else wanted == ALL or payment.confirmation != DISMISSED


def get_subscription(
    services: Services, request: Request, reading: UserData, *, id: str, account_ids: str | None
) -> Answer:
    """One recurring payment of the selected accounts, whatever its status and direction; raises NotFound."""
    today = services.clock.today()
    user_id = request.principal.user_id
    with services.of(user_id).transaction() as session:
        payment = _with_id(id, _recurring_in(services, session, request, reading, account_ids))
        charges = charges_of(session, user_id, [payment])
    return Answer(body=detail_of(payment, charges, today))


def _with_id(id: str, payments: Iterable[RecurringPayment]) -> RecurringPayment:
    found = next((each for each in payments if each.id == id), None)
    if found is None:
        raise NotFound(NOT_FOUND)
    return found


def charges_of(session: Session, user_id: str, payments: Iterable[RecurringPayment]) -> Mapping[str, Row]:
    """The stored bookings that are the charges of these payments, by transaction id."""
    return transactions.rows_by_id(session, user_id, chain.from_iterable(each.charge_ids for each in payments))


def detail_of(payment: RecurringPayment, by_id: Mapping[str, Row], today: date) -> Json:
    """The recurring payment as JSON (the complete SubscriptionDetail of the contract); `by_id` has its charges. One
    added by hand and never charged is treated as if it had been charged one period before its first day."""
    charges = [by_id[charge_id] for charge_id in payment.charge_ids]
    paid = [Charge(id=charge["id"], day=charge["booking_date"], amount=abs(charge["amount"])) for charge in charges]
    past = history(
        paid or [Charge(id=payment.id, day=payment.last_charged, amount=payment.amount)],
        frequency=payment.frequency,
        currency=payment.currency,
        today=today,
        incoming=payment.direction == INCOMING,
        asked=payment.asked,
        first_due=None if paid else payment.next_expected,
    )
    window = six_months_before(today)
    shown = [json_shapes.charge(charge, is_counted=charge["booking_date"] >= window) for charge in charges]
    category = charges[-1]["category"] if charges else None
    return json_shapes.subscription_detail(payment, past, shown, today, category=category)


def confirm_subscription(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Store whether the user confirms or dismisses a recurring payment, or takes that back, and return its present
    form; see `decide`. Raises NotFound."""
    return decide(services, owner_of(request), id, body["confirmation"], caller=request.principal)


def decide(services: Services, user_id: str, id: str, confirmation: str, *, caller: Principal | None = None) -> Json:
    """Store what a person says about a recurring payment, replacing what they said before ("none" only removes it), and
    return the payment as SubscriptionDetail. A payment added by hand is removed unless it is "confirmed". Raises
    NotFound, also for one that `caller` (None: the person) may not read."""
    now, today = services.clock.now(), services.clock.today()

    def work(session: Transaction) -> Json:
        everything = accounts.everything(session, user_id)
        if caller is not None:
            everything = selected_or_all(everything.accounts, None, caller)
        every = recurring_of(services.of(user_id), user_id, everything, today=today, session=session)
        payment = _with_id(id, every)
        before = by_payment(every, decisions.of_user(session, user_id)).get(id, [])
        decisions.forget(session, user_id, [decision.id for decision in before])
        if confirmation != CONFIRMED and payment.added_id is not None:
            added.remove(session, user_id, payment.added_id)
        if confirmation != UNDECIDED and payment.added_to is None:
            decision = Decision(id=id, transaction_id=payment.charge_ids[-1], confirmation=confirmation)
            decisions.keep(session, user_id, decision, now=now)
        added_to = payment.added_to if confirmation == CONFIRMED else None
        then = replace(payment, confirmation=confirmation, added_to=added_to)
        return detail_of(then, charges_of(session, user_id, [payment]), today)

    return services.alone(user_id, work)


NOT_YOURS = "accountId: not one of your accounts. GET /accounts lists their ids"
ADDED_BEFORE = "name: You have added this payment before, under another name or with another rhythm."


class CannotBeAdded(Exception):
    """The recurring payment cannot be added: `field` is the wrong field of the contract, the message a sentence about
    it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def add_subscription(services: Services, request: Request, *, body: Mapping[str, Any]) -> Json:
    """Add a recurring payment by hand, and return its present form: joined with a detected one where both are the same.
    Raises BadRequest, also for one that was added before under another name."""
    user_id, today = owner_of(request), services.clock.today()
    database = services.of(user_id)
    next_day = read_date(body["nextExpected"])

    def work(session: Transaction) -> Json:
        everything = selected_or_all(accounts.of_user(session, user_id), None, request.principal)
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
        found = {each.added_id: each for each in every}
        if not {payment.id, *(each.added_id for each in before if each.added_id)} <= found.keys():
            raise BadRequest(ADDED_BEFORE)  # a detected payment can be joined with one that was added, not with two
        then = found[payment.id]
        return detail_of(then, charges_of(session, user_id, [then]), today)

    try:
        return services.alone(user_id, work)
    except CannotBeAdded as error:
        raise BadRequest("{field}: {reason}", field=error.field, reason=message(str(error))) from error


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
    """Store a payment that the user adds by hand, its name trimmed; adding it again with another amount or day changes
    it. Raises CannotBeAdded."""
    name = name.strip()
    if not is_name(name):
        raise CannotBeAdded(
            "name", Message("A name has {least} to {limit} characters.", least=NAME_LETTERS_MIN, limit=NAME_LETTERS_MAX)
        )
    if amount <= 0 or amount != in_digits(amount, account.currency):
        raise CannotBeAdded("amount", "An amount is above 0, in the digits of its currency.")
    if next_day < today or period_before(next_day, frequency) > today:
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
