"""One look at a user's data: what is found is told, each cause once, in the transaction that keeps the look."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.notices.ahead import AHEAD
from analytics.notices.bookings import (
    KNOWN_FOR,
    LOOKED_AT,
    NoticedBooking,
    bookings_of,
    double_charges,
    failed_payments,
    names_of,
    new_debits,
    payee_of,
    suspects,
)
from analytics.notices.found import Finding
from analytics.notices.recurring import PaidCharge, Payment, charges_of_one_price, late_incomes, raised_prices
from analytics.recurring.directions import INCOMING
from analytics.recurring.payment import CONFIRMED, DISMISSED, RecurringPayment, ids_by_charge
from handlers.work.sync.notices.ahead import runs_short
from storage import connections, transactions
from storage.accounts import StoredAccount
from storage.database import Row, Session, Transaction
from storage.notices import looks, stored
from storage.notices.looks import BEHIND, NoticeLook
from storage.notices.stored import Notice

KINDS = ("overdraft.ahead", "debit.new", "charge.double", "price.raised", "income.late", "payment.failed")
"""The kinds that a look finds; of the others, those of ledgers come after it (handlers.work.sync.notices.ledgers), the
rest follows from a state (storage.notices.from_state)."""
OF_SHARED = ("overdraft.ahead", "payment.failed")
"""The kinds that are told of an account that another person shares; its own person hears of the others."""
READ = LOOKED_AT + timedelta(days=15)  # days of bookings that are read, so that what came back has its payment
OLD = timedelta(days=3)  # of data: who knows what has come since
YEAR = timedelta(days=425)


class Seen(Struct, frozen=True, kw_only=True):
    """What a look reads of a user: their accounts, their bookings of the last months, the first and last day of each
    account, the day until which each is known, and the last look."""

    accounts: Mapping[str, StoredAccount]
    window: Sequence[NoticedBooking]
    days: Mapping[str, tuple[date, date]]
    asked: Mapping[str, date]
    last: NoticeLook

    def is_fresh(self, account_id: str, today: date) -> bool:
        """Whether the account is known until three days ago."""
        return self.asked.get(account_id, date.min) >= today - OLD


def look(
    session: Transaction,
    user_id: str,
    accounts: Sequence[StoredAccount],
    recurring: Sequence[RecurringPayment],
    charges: Mapping[str, Row],
    asked: Mapping[str, date],
    *,
    today: date,
    since: date,
) -> None:
    """Look at the user's data, store what is to be told, and the look. `recurring` are those of `recurring_of` for all
    `accounts`, without those added by hand; `charges` has their bookings by id, `asked` the day until which
    each account is known; `since` is the day from which they were looked for. The caller has called `hold`."""
    stored.wake(session, user_id, today=today)
    rows = transactions.noticed(session, user_id, since=today - READ)
    seen = Seen(
        accounts={each.id: each for each in accounts},
        window=bookings_of(rows),
        days=transactions.days_of_accounts(session, user_id),
        asked=asked,
        last=looks.last_look(session, user_id),
    )
    shares = connections.of_shares(session, user_id)
    lent = {each.id for each in accounts if each.connection_id in shares}
    payments = [_payment(each, charges) for each in recurring if each.goes_on]
    dismissed = set(ids_by_charge(each for each in recurring if each.confirmation == DISMISSED))
    fresh = [each for each in accounts if seen.is_fresh(each.id, today)]
    window = seen.window
    short = list(
        runs_short(
            session, user_id, fresh, window, today=today, since=since, asked=asked, dismissed=dismissed, lent=lent
        )
    )
    found = [
        *(notice for _, notice in short if notice is not None),
        *_of_bookings(session, user_id, seen, payments, today),
        *raised_prices(payments, _originals(rows), today=today),
        *late_incomes([each for each in payments if seen.is_fresh(each.account_id, today)], window, today=today),
    ]
    stored.reconcile(
        session,
        user_id,
        KINDS,
        [each for each in found if each.kind in OF_SHARED or not lent.issuperset(each.account_ids)],
        today=today,
        is_known=lambda each: _is_known(each, seen.last),
        is_judged=lambda each: _is_judged(each, seen, today),
    )
    ahead = [one.day - timedelta(days=AHEAD) for one, _ in short]
    days_due = [day for day in (*ahead, *stored.days_due(session, user_id)) if day > today]
    last = seen.last.last_days
    until = {id_: min(latest, today) for id_, (_, latest) in seen.days.items()}  # future bookings make nothing known
    known = {id_: max(day, min(last.get(id_, day), today)) for id_, day in until.items()}
    looks.keep(session, user_id, {**last, **known}, today=today, look_on=min(days_due, default=None))


def _payment(each: RecurringPayment, charges: Mapping[str, Row]) -> Payment:
    paid = [charges[id_] for id_ in each.charge_ids]
    return Payment(
        id=each.id,
        name=each.merchant_name,
        account_id=each.account_id,
        currency=each.currency,
        frequency=each.frequency,
        is_incoming=each.direction == INCOMING,
        is_sure=each.confirmation == CONFIRMED or paid[-1]["type"] == "salary",
        asked=each.asked,
        charges=[
            PaidCharge(
                id=charge["id"],
                day=charge["booking_date"],
                amount=abs(charge["amount"]),
                account_id=charge["account_id"],
                has_mandate=charge["mandate_reference"] is not None,
            )
            for charge in paid
        ],
    )


def _originals(rows: Sequence[Row]) -> Mapping[str, tuple[Decimal, str]]:
    return {
        row["id"]: (abs(row["original_amount"]), row["original_currency"])
        for row in rows
        if row["original_amount"] is not None
    }


def _of_bookings(
    session: Session, user_id: str, seen: Seen, payments: Sequence[Payment], today: date
) -> Iterator[Finding]:
    begin = today - READ
    collectors = transactions.collectors(session, user_id, since=begin - KNOWN_FOR, until=begin)
    known: dict[str, date] = {}
    for row in collectors:
        for name in names_of(row["creditor_id"], row["mandate_reference"], payee_of(row["name"])):
            known[name] = max(row["day"], known.get(name, row["day"]))
    ibans = {id_: account.iban for id_, account in seen.accounts.items()}
    first = {id_: day for id_, (day, _) in seen.days.items()}
    yield from new_debits(seen.window, today=today, seen=known, first=first, ibans=ibans)
    yield from failed_payments(seen.window, today=today)
    names = suspects(seen.window, today=today)
    if names:
        before = transactions.noticed(session, user_id, since=today - YEAR, names=names)
        earlier = bookings_of(row for row in before if row["booking_date"] < begin)
        yield from double_charges([*earlier, *seen.window], today=today, fixed=charges_of_one_price(payments))


def _is_known(each: Finding, last: NoticeLook) -> bool:
    """Whether the person knew that already: from before the first look at the account, from before a restore, or as it
    came later for days more than five before the last one."""
    if last.is_past or not any(id_ in last.last_days for id_ in each.account_ids):
        return True
    return each.cause_day is not None and all(
        each.cause_day < last.last_days[id_] - BEHIND for id_ in each.account_ids if id_ in last.last_days
    )


def _is_judged(each: Notice, seen: Seen, today: date) -> bool:
    """Whether a stored notice that was not found is over: not while its account's data are too old to know, nor of an
    account that is below its limit by now."""
    account = seen.accounts.get(next(iter(each.content["accountIds"]), ""))
    if each.kind not in ("overdraft.ahead", "income.late") or account is None:
        return True
    is_below = each.kind == "overdraft.ahead" and (account.balance or 0) < account.limit and today < each.day
    return seen.is_fresh(account.id, today) and not is_below
