"""Records events on what is new about a user's recurring payments."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl
from msgspec.structs import replace

from analytics.minor_digits import in_digits
from analytics.recurring.confirmations import DISMISSED, by_stream
from analytics.recurring.history import Charge, history
from analytics.recurring.news import KnownPayment, PaymentState, news_of, state_of
from analytics.recurring.report import over_on
from storage import accounts, connections, transactions
from storage.database import Row, Session, Transaction
from storage.recurring import looks
from storage.recurring.looks import Look, PaymentEvent

EVENTS_MAX = 500  # of one look, about half of what a commit can hold; the next look records the rest
DAY = timedelta(days=1)
REMEMBERED = timedelta(days=25 * 31)  # how long after its latest charge a payment that is gone is remembered
WAITING = timedelta(days=7)  # between looks at a payment, while the connection of its account needs its user


def record_news(session: Transaction, user_id: str, found: pl.DataFrame, *, data_version: int, today: date) -> None:
    """Record events on what has changed since the last look at the user's recurring payments, and store this look;
    `found` are those of `recurring_of` for all accounts, without those added by hand, in the data of version
    `data_version`. There are no events on accounts that are looked at for the first time, nor on dismissed payments.
    While a connection needs its user, missed charges of its accounts are not reported, because they are unknown."""
    last = looks.last_look(session, user_id) or Look(data_version=data_version, day=today, accounts=(), payments=())
    charges = transactions.rows_by_id(session, user_id, found["charge_ids"].explode().drop_nulls())
    waiting = _accounts_waiting(session, user_id)
    before = {id_: each[0] for id_, each in by_stream(found, last.payments).items()}
    events: list[PaymentEvent] = []
    payments: list[KnownPayment] = []
    days_to_look: list[date] = []
    for row in found.with_columns(over_on=over_on()).iter_rows(named=True):
        known, account_id = before.get(row["id"]), charges[row["charge_ids"][-1]]["account_id"]
        if len(events) >= EVENTS_MAX:
            payments += [known] if known is not None else []
            days_to_look.append(today + DAY)
            continue
        stands = _state(row, charges, today)
        if account_id in waiting and known is not None:
            reported = stands.missed[: known.missed_after(row["last_charged"])]
            stands = replace(stands, missed=reported, has_ended=known.has_ended, look_at=today + WAITING)
        now = _payment(row, stands)
        is_reported = row["confirmation"] != DISMISSED and account_id in last.accounts
        events += [
            PaymentEvent(type=type_, id=now.id, account_id=account_id, expected=expected)
            for type_, expected in (news_of(now, stands, known) if is_reported else ())
        ]
        payments.append(now)
        days_to_look += [stands.look_at] if stands.look_at is not None else []
    looks.keep(
        session,
        user_id,
        Look(
            data_version=data_version,
            day=today,
            accounts=transactions.accounts_with_any(session, user_id),
            payments=[*payments, *_payments_gone(last, before, today)],
        ),
        events,
        look_at=min(days_to_look, default=None),
    )


def _payments_gone(last: Look, before: Mapping[str, KnownPayment], today: date) -> list[KnownPayment]:
    """The payments known from the last look that are not found now, if their latest charge is at most 25 months old;
    they are kept so that they are not new when found again."""
    found = {each.id for each in before.values()}
    return [each for each in last.payments if each.id not in found and each.last_charged >= today - REMEMBERED]


def _accounts_waiting(session: Session, user_id: str) -> set[str]:
    """The ids of the accounts whose connection needs its user, and so brings nothing until it is renewed."""
    statuses = connections.statuses(session, user_id)
    owned = accounts.of_user(session, user_id)
    return {each.id for each in owned if statuses[each.connection_id] in connections.NEED_USER}


def _state(row: Mapping[str, Any], by_id: Mapping[str, Row], today: date) -> PaymentState:
    charges = [by_id[id_] for id_ in row["charge_ids"]]
    story = history(
        [Charge(id=each["id"], day=each["booking_date"], amount=abs(each["amount"])) for each in charges],
        frequency=row["frequency"],
        currency=row["currency"],
        today=today,
    )
    return state_of(story, frequency=row["frequency"], over_on=row["over_on"], today=today)


def _payment(row: Mapping[str, Any], stands: PaymentState) -> KnownPayment:
    return KnownPayment(
        id=row["id"],
        transaction_id=row["charge_ids"][-1],
        last_charged=row["last_charged"],
        amount=in_digits(row["amount"], row["currency"]),
        missed=len(stands.missed),
        has_ended=stands.has_ended,
    )
