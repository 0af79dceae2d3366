"""Records events on what is new about a user's recurring payments."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from analytics.minor_digits import in_digits
from analytics.recurring.confirmations import by_payment
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import Charge, history
from analytics.recurring.news import KnownPayment, PaymentState, known_after, news_of, state_of
from analytics.recurring.payment import DISMISSED, RecurringPayment
from storage import transactions
from storage.database import Row, Transaction
from storage.recurring import looks
from storage.recurring.looks import Look, PaymentEvent

EVENTS_MAX = 500  # of one look, about half of what a commit can hold; the next look records the rest
REMEMBERED = timedelta(days=25 * 31)  # how long after its latest charge a payment that is gone is remembered


def record_news(
    session: Transaction,
    user_id: str,
    found: Sequence[RecurringPayment],
    charges: Mapping[str, Row],
    *,
    today: date,
) -> None:
    """Record events on what has changed since the last look at the user's recurring payments, and store this look;
    `found` are those of `recurring_of` for all accounts, without those added by hand, `charges` their bookings by id.
    There are no events on accounts that are looked at for the first time, nor on dismissed payments."""
    last = looks.last_look(session, user_id) or Look(accounts=(), payments=())
    before = {id_: each[0] for id_, each in by_payment(found, last.payments).items()}
    events: list[PaymentEvent] = []
    payments: list[KnownPayment] = []
    for payment in found:
        known = before.get(payment.id)
        if len(events) >= EVENTS_MAX:
            payments += [known] if known is not None else []
            continue
        stands = _state(payment, charges, today)
        now = _as_known(payment, stands, known)
        is_reported = payment.confirmation != DISMISSED and payment.account_id in last.accounts
        news = news_of(now, stands, known) if is_reported else ()
        events += [PaymentEvent(news=each, id=now.id, account_id=payment.account_id) for each in news]
        payments.append(now)
    accounts = transactions.accounts_with_any(session, user_id)
    gone = _payments_gone(last, before, today)
    looks.keep(session, user_id, Look(accounts=accounts, payments=[*payments, *gone]), events)


def _payments_gone(last: Look, before: Mapping[str, KnownPayment], today: date) -> list[KnownPayment]:
    """The payments known from the last look that are not found now, if their latest charge is at most 25 months old;
    they are kept so that they are not new when found again."""
    found = {each.id for each in before.values()}
    return [each for each in last.payments if each.id not in found and each.last_charged >= today - REMEMBERED]


def _state(payment: RecurringPayment, by_id: Mapping[str, Row], today: date) -> PaymentState:
    charges = [by_id[id_] for id_ in payment.charge_ids]
    story = history(
        [Charge(id=each["id"], day=each["booking_date"], amount=abs(each["amount"])) for each in charges],
        frequency=payment.frequency,
        currency=payment.currency,
        today=today,
        incoming=payment.direction == INCOMING,
        asked=payment.asked,
    )
    return state_of(
        story, payment.charge_days, frequency=payment.frequency, over_on=payment.over_on, asked=payment.asked
    )


def _as_known(payment: RecurringPayment, stands: PaymentState, before: KnownPayment | None) -> KnownPayment:
    return KnownPayment(
        id=payment.id,
        transaction_id=payment.charge_ids[-1],
        last_charged=payment.last_charged,
        amount=in_digits(payment.amount, payment.currency),
        missed=known_after(before, stands),
        over_since=stands.over_since,
    )
