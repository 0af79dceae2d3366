"""Recurring payments that a user adds by hand, because the rules do not find them (yet)."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.letters import fold
from analytics.recurring.contract_ids import digest
from analytics.recurring.directions import INCOMING
from analytics.recurring.history import period_before
from analytics.recurring.payment import CONFIRMED, UNDECIDED, RecurringPayment
from analytics.search_text import fold_column

LEAST, MOST = Decimal("0.5"), Decimal(2)  # of the stated amount; other amounts are for something else


NAME_LETTERS_MIN, NAME_LETTERS_MAX = 3, 200  # a shorter name would occur in texts of other bookings


class AddedPayment(Struct, frozen=True, kw_only=True):
    """A recurring payment as the user stated it: `direction` is "incoming" or "outgoing", the amount is positive, in
    the currency of the account, and `next_day` is the day of the next charge."""

    id: str
    account_id: str
    name: str
    amount: Decimal
    direction: str
    frequency: str
    next_day: date


def is_name(name: str) -> bool:
    """Whether an added payment can be called so; the name is trimmed."""
    return NAME_LETTERS_MIN <= len(fold(name)) <= len(name) <= NAME_LETTERS_MAX


def id_of(user_id: str, account_id: str, name: str, direction: str, frequency: str) -> str:
    """The id of an added payment; adding one of the same folded name again with another amount or day has the same id,
    and so changes it."""
    return digest("\x1f".join(("added", user_id, account_id, fold(name), direction, frequency)))


def include_added(
    found: Sequence[RecurringPayment],
    added: Sequence[AddedPayment],
    rows: pl.DataFrame,
    currencies: Mapping[str, str],
    today: date,
) -> Sequence[RecurringPayment]:
    """The found payments, then the added ones that are not among them. A found payment that is the same as an added one
    has its id as `added_id` and counts as confirmed, unless it was dismissed. An added payment that was not found
    stands for itself, confirmed, with its account as `added_to`.

    `rows` (CHARGES) are the bookings of the accounts, whose `currencies` are given. The charges of an added payment are
    bookings in its direction, of half to twice its amount, whose counterpart, merchant or purpose contains its name. It
    is the same as the found payment that has the latest of these charges, of those that are in any. Of several added
    payments that are the same as one found, only the first is kept.
    """
    holders = {(each.direction, charge): each.id for each in found for charge in each.charge_ids}
    same: dict[str, str] = {}
    others: list[RecurringPayment] = []
    for payment in added:
        charges = _charges(payment, rows, currencies[payment.account_id], today)
        ids = [id_ for id_, *_ in charges]
        held = next((holders[key] for id_ in reversed(ids) if (key := (payment.direction, id_)) in holders), None)
        if held is not None:
            same.setdefault(held, payment.id)
            continue
        last, amount = (
            charges[-1][1:] if charges else (period_before(payment.next_day, payment.frequency), payment.amount)
        )
        others.append(
            RecurringPayment(
                id=payment.id,
                merchant_name=payment.name,
                amount=abs(amount),
                currency=currencies[payment.account_id],
                frequency=payment.frequency,
                last_charged=last,
                charge_ids=ids,
                charge_days=[day for _, day, _ in charges],
                confidence=0.0,
                next_expected=payment.next_day,
                account_id=payment.account_id,
                direction=payment.direction,
                confirmation=CONFIRMED,
                added_id=payment.id,
                added_to=payment.account_id,
            )
        )
    return [*(_joined(each, same[each.id]) if each.id in same else each for each in found), *others]


def _joined(found: RecurringPayment, added_id: str) -> RecurringPayment:
    confirmation = CONFIRMED if found.confirmation == UNDECIDED else found.confirmation
    return replace(found, added_id=added_id, confirmation=confirmation)


def _charges(payment: AddedPayment, rows: pl.DataFrame, currency: str, today: date) -> list[tuple[str, date, Decimal]]:
    """The bookings of an added payment until today, as `include_added` says, oldest first: id, day, amount (with its
    sign)."""
    sign = 1 if payment.direction == INCOMING else -1
    name = fold(payment.name)
    texts = pl.concat_str("counterpart_name", "merchant_name", "purpose", separator="\n", ignore_nulls=True)
    paid = (pl.col("amount") * sign).is_between(payment.amount * LEAST, payment.amount * MOST)
    return (
        rows.filter(
            pl.col("booking_date") <= today,
            ~pl.col("is_potential_duplicate").fill_null(False),
            ~pl.col("is_adjusting_entry").fill_null(False),
            paid,
            account_id=payment.account_id,
            currency=currency,
        )
        .filter(fold_column(texts).str.contains(name, literal=True))
        .sort("booking_date", "id")
        .select("id", "booking_date", "amount")
        .rows()
    )
