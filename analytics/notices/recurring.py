"""What recurring payments tell: a price that was raised, an income that is late."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from analytics.letters import fold
from analytics.minor_digits import in_digits
from analytics.notices.bookings import LOOKED_AT, RECENT, NoticedBooking
from analytics.notices.found import Finding
from analytics.recurring.frequencies import CHARGES_A_YEAR, GRACE_DAYS
from analytics.recurring.history import Charge, history

RAISED_SHARE, RAISED_MIN, RAISED_MAX = Decimal("1.01"), Decimal("0.50"), 2
SEEN_INCOME_MIN = 3
ENOUGH = Decimal("0.8")  # of an expected income
CHARGES_BEFORE = {"quarterly": 2, "half_yearly": 2, "yearly": 1}  # at the former price; three of any other
LATE_FOR = timedelta(days=45)


class PaidCharge(NamedTuple):
    """A charge of a recurring payment; the amount is positive."""

    id: str
    day: date
    amount: Decimal
    account_id: str
    has_mandate: bool


class Payment(Struct, frozen=True, kw_only=True):
    """A recurring payment that goes on and was not dismissed, with its charges, oldest first. `asked` is the day until
    which the bookings of its account are known, `is_sure` says that it is pay or that its person confirmed it."""

    id: str
    name: str
    account_id: str
    currency: str
    frequency: str
    is_incoming: bool
    is_sure: bool
    asked: date
    charges: Sequence[PaidCharge]


def raised_prices(
    payments: Iterable[Payment], originals: Mapping[str, tuple[Decimal, str]], *, today: date
) -> Iterator[Finding]:
    """The payments whose price rose within the last 60 days by more than 1 % and 0.50, at most to double, from one that
    came three times in a row; `originals` has original amount and currency of charges by id, where these differ."""
    for each in payments:
        if each.is_incoming or len(each.charges) < 2 or each.frequency not in CHARGES_A_YEAR:
            continue
        prices = [in_digits(charge.amount, each.currency) for charge in each.charges]
        latest = prices[-1]
        times = next((back for back, price in enumerate(reversed(prices)) if price != latest), len(prices))
        if times == len(prices):
            continue
        before, first = prices[: len(prices) - times], each.charges[-times]
        former = before[-1]
        row = next((back for back, price in enumerate(reversed(before)) if price != former), len(before))
        needed = CHARGES_BEFORE.get(each.frequency, 3)
        has_mandate = first.has_mandate or needed > 1
        is_raised = former * RAISED_SHARE < latest <= former * RAISED_MAX and latest - former > RAISED_MIN
        same_abroad = first.id in originals and originals[first.id] == originals.get(each.charges[-times - 1].id)
        is_recent = today - LOOKED_AT <= first.day <= today
        if (
            is_raised
            and is_recent
            and row >= needed
            and has_mandate
            and not same_abroad
            and _is_on_its_slot(each, times)
        ):
            yield _raised(each, former, latest, times, first, today)


def _is_on_its_slot(each: Payment, times: int) -> bool:
    """Whether the first charge at the new price came when it was due."""
    before, first = each.charges[:-times], each.charges[-times]
    grace = timedelta(days=GRACE_DAYS[each.frequency])
    past = history(_charges(before), frequency=each.frequency, currency=each.currency, today=before[-1].day)
    return abs(first.day - past.next_expected) <= grace if past.next_expected > before[-1].day else True


def _raised(each: Payment, former: Decimal, latest: Decimal, times: int, first: PaidCharge, today: date) -> Finding:
    a_year = (latest - former) * CHARGES_A_YEAR[each.frequency]
    return Finding(
        kind="price.raised",
        subject=f"{fold(each.name)}|{former}|{latest}|{each.currency}",
        day=first.day,
        within=400,
        message="price.raised" if times > 1 else "price.raised.once",
        arguments={
            "name": each.name,
            "former": f"{former} {each.currency}",
            "amount": f"{latest} {each.currency}",
            "year": f"{in_digits(a_year, each.currency)} {each.currency}",
        },
        interrupts=first.day >= today - RECENT,
        cause_day=first.day,
        ends_on=first.day + LOOKED_AT,
        account_ids=[first.account_id],
        transaction_ids=[charge.id for charge in each.charges[-times:]],
        subscription_id=each.id,
        amount=latest,
        currency=each.currency,
    )


def late_incomes(payments: Iterable[Payment], bookings: Sequence[NoticedBooking], *, today: date) -> Iterator[Finding]:
    """Pay and confirmed income that came three times at least and now is missing after its grace, though its account
    was asked; not where four fifths of it came from anybody."""
    for each in payments:
        if not each.is_incoming or not each.is_sure or len(each.charges) < SEEN_INCOME_MIN:
            continue
        charges = _charges(each.charges)
        past = history(
            charges, frequency=each.frequency, currency=each.currency, today=today, incoming=True, asked=each.asked
        )
        due = past.overdue[0] if past.overdue else None
        if due is None or due < today - LATE_FOR:
            continue
        expected, grace = past.prices[-1].amount, timedelta(days=GRACE_DAYS[each.frequency])
        came = any(
            one.amount >= expected * ENOUGH
            and one.currency == each.currency
            and one.day >= due - grace
            and not one.is_own
            for one in bookings
        )
        if not came:
            yield _late(each, due, expected, grace)


def _late(each: Payment, due: date, expected: Decimal, grace: timedelta) -> Finding:
    return Finding(
        kind="income.late",
        subject=f"{fold(each.name)}|{each.currency}",
        day=due,
        within=grace.days,
        message="income.late",
        arguments={"name": each.name, "amount": f"{expected} {each.currency}", "day": due.isoformat()},
        account_ids=[each.account_id],
        subscription_id=each.id,
        amount=expected,
        currency=each.currency,
        due_on=due,
    )


def charges_of_one_price(payments: Iterable[Payment]) -> set[str]:
    """The ids of the charges of outgoing payments whose last three were of one amount."""
    return {
        charge.id
        for each in payments
        if not each.is_incoming and len({charge.amount for charge in each.charges[-3:]}) == 1 and len(each.charges) > 2
        for charge in each.charges
    }


def _charges(charges: Iterable[PaidCharge]) -> list[Charge]:
    return [Charge(id=each.id, day=each.day, amount=each.amount) for each in charges]
