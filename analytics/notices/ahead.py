"""What is known of the coming days: whether an account lasts until the next income."""

from collections.abc import Container, Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct

from analytics.forecasting.ledgers import AccountLedger
from analytics.forecasting.projection import Event, Stream, known_events
from analytics.notices.bookings import NoticedBooking, payee_of
from analytics.notices.found import Finding

AHEAD = 10  # days within which an account would not last
HORIZON = 45  # days that are looked at, so that the day of the next look is known
RECENT = timedelta(days=75)  # in which a monthly payment has come twice, even if one is late
YEAR = timedelta(days=390)
MAIN_SHARE = Decimal("0.5")  # of the largest income: what ends a stretch


def taken_at_most(recent: Iterable[NoticedBooking], older: Iterable[tuple[str | None, Decimal]]) -> Decimal:
    """What the known payments of an account can take at most in the time that is looked ahead, positive: what went out
    in the last RECENT days or is booked ahead (`recent`), and of the year before (`older`: names and amounts) what is
    more than its payee took since, or is pending, with no name."""
    total, most = Decimal(0), dict[str, Decimal]()
    for each in recent:
        if each.amount < 0:
            total -= each.amount
            most[each.payee] = max(most.get(each.payee, Decimal(0)), -each.amount)
    return total - sum(
        (amount for name, amount in older if name is None or -amount > most.get(payee_of(name), 0)), Decimal(0)
    )


class Shortfall(Struct, frozen=True, kw_only=True):
    """An account that ends the `day` with less than its limit, `missing` that much (positive), after this payment; the
    stretch lasts `until` the next income, None where none is expected."""

    day: date
    missing: Decimal
    payment: Event
    until: date | None


def shortfall(
    ledger: AccountLedger, streams: Iterable[Stream], *, limit: Decimal, own: Container[str] = ()
) -> Shortfall | None:
    """The first day of the next 45, before the next income, on which the balance, what is pending and known payments
    alone end below the limit; None for an account that is below it already. `own` are the ids of bookings
    between own accounts, which are no income. Late income counts as not coming."""
    streams, balance = list(streams), ledger.balance
    if balance < limit:
        return None
    largest = max((each.expected for each in streams if each.charges[-1].id not in own), default=Decimal(0))
    events = [each for each in known_events(ledger, streams, days=HORIZON) if not (each.is_overdue and each.amount > 0)]
    income = [
        each.day
        for each in events
        if each.amount > 0
        and not each.is_pending
        and (each.last_charge or "") not in own
        and each.amount >= largest * MAIN_SHARE
    ]
    until = min(income, default=None)
    by_day: dict[date, list[Event]] = {}
    for each in events:
        by_day.setdefault(each.day, []).append(each)
    first: tuple[date, Event] | None = None
    lowest = balance
    for day, of_day in sorted(by_day.items()):
        if until is not None and day >= until:
            break
        balance += sum((each.amount for each in of_day), Decimal(0))
        if balance < limit and first is None:
            first = day, min(of_day, key=lambda event: event.amount)
        lowest = min(lowest, balance)
    if first is None:
        return None
    return Shortfall(day=first[0], missing=limit - lowest, payment=first[1], until=until)


def overdraft_ahead(
    account_id: str, ledger: AccountLedger, found: Shortfall | None, *, elsewhere: Decimal
) -> Finding | None:
    """The notice of a shortfall within ten days; `elsewhere` is what lies on the person's other accounts of the
    currency."""
    if found is None or found.day > ledger.day + timedelta(days=AHEAD):
        return None
    arguments: Mapping[str, str] = {
        "name": found.payment.name or "",
        "day": found.day.isoformat(),
        "amount": f"{-found.payment.amount} {ledger.currency}",
        "missing": f"{found.missing} {ledger.currency}",
        "elsewhere": f"{elsewhere} {ledger.currency}",
    }
    return Finding(
        kind="overdraft.ahead",
        subject=account_id,
        day=found.until or found.day,
        within=6 if found.until else AHEAD,
        message="overdraft.ahead" if elsewhere > 0 else "overdraft.ahead.alone",
        arguments=arguments,
        account_ids=[account_id],
        subscription_id=found.payment.id,
        amount=found.missing,
        currency=ledger.currency,
        due_on=found.day,
    )
