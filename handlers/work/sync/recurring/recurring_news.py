"""Records events on what is new about a user's recurring payments."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl

from analytics.minor_digits import in_digits
from analytics.recurring.confirmations import DISMISSED, by_stream
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import Charge, history
from analytics.recurring.news import KnownPayment, PaymentState, known_after, news_of, state_of
from analytics.recurring.report import over_on
from storage import transactions
from storage.database import Row, Transaction
from storage.recurring import looks
from storage.recurring.looks import Look, PaymentEvent

EVENTS_MAX = 500  # of one look, about half of what a commit can hold; the next look records the rest
REMEMBERED = timedelta(days=25 * 31)  # how long after its latest charge a payment that is gone is remembered


def record_news(session: Transaction, user_id: str, found: pl.DataFrame, *, today: date) -> None:
    """Record events on what has changed since the last look at the user's recurring payments, and store this look;
    `found` are those of `recurring_of` for all accounts, without those added by hand. There are no events on accounts
    that are looked at for the first time, nor on dismissed payments."""
    last = looks.last_look(session, user_id) or Look(accounts=(), payments=())
    charges = transactions.rows_by_id(session, user_id, found["charge_ids"].explode().drop_nulls())
    before = {id_: each[0] for id_, each in by_stream(found, last.payments).items()}
    events: list[PaymentEvent] = []
    payments: list[KnownPayment] = []
    for row in found.with_columns(over_on=over_on()).iter_rows(named=True):
        known = before.get(row["id"])
        if len(events) >= EVENTS_MAX:
            payments += [known] if known is not None else []
            continue
        stands = _state(row, charges, today)
        now = _payment(row, stands, known)
        is_reported = row["confirmation"] != DISMISSED and row["account_id"] in last.accounts
        news = news_of(now, stands, known) if is_reported else ()
        events += [PaymentEvent(news=each, id=now.id, account_id=row["account_id"]) for each in news]
        payments.append(now)
    accounts = transactions.accounts_with_any(session, user_id)
    gone = _payments_gone(last, before, today)
    looks.keep(session, user_id, Look(accounts=accounts, payments=[*payments, *gone]), events)


def _payments_gone(last: Look, before: Mapping[str, KnownPayment], today: date) -> list[KnownPayment]:
    """The payments known from the last look that are not found now, if their latest charge is at most 25 months old;
    they are kept so that they are not new when found again."""
    found = {each.id for each in before.values()}
    return [each for each in last.payments if each.id not in found and each.last_charged >= today - REMEMBERED]


def _state(row: Mapping[str, Any], by_id: Mapping[str, Row], today: date) -> PaymentState:
    charges = [by_id[id_] for id_ in row["charge_ids"]]
    story = history(
        [Charge(id=each["id"], day=each["booking_date"], amount=abs(each["amount"])) for each in charges],
        frequency=row["frequency"],
        currency=row["currency"],
        today=today,
        incoming=row["direction"] == INCOMING,
        asked=row["asked"],
    )
    charged = [each["booking_date"] for each in charges]
    return state_of(story, charged, frequency=row["frequency"], over_on=row["over_on"], asked=row["asked"])


def _payment(row: Mapping[str, Any], stands: PaymentState, before: KnownPayment | None) -> KnownPayment:
    return KnownPayment(
        id=row["id"],
        transaction_id=row["charge_ids"][-1],
        last_charged=row["last_charged"],
        amount=in_digits(row["amount"], row["currency"]),
        missed=known_after(before, stands),
        over_since=stands.over_since,
    )
