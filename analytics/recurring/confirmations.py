"""The decisions of users on recurring payments: confirmed or dismissed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from analytics.recurring.news import KnownPayment
from analytics.recurring.payment import RecurringPayment, ids_by_charge


class Decision(Struct, frozen=True, kw_only=True):
    """A user's decision, "confirmed" or "dismissed", about the recurring payment that had this id and this latest
    charge at the time."""

    id: str
    transaction_id: str
    confirmation: str


A = TypeVar("A", Decision, KnownPayment)


def with_confirmations(
    payments: Sequence[RecurringPayment], decisions: Iterable[Decision]
) -> Sequence[RecurringPayment]:
    """The payments with their `confirmation`: the first of the decisions about each."""
    said = by_payment(payments, decisions)
    return [replace(each, confirmation=said[each.id][0].confirmation) if each.id in said else each for each in payments]


def by_payment(payments: Sequence[RecurringPayment], known: Iterable[A]) -> Mapping[str, list[A]]:
    """The facts about each payment (such as decisions) by its id, in their order; those about no payment here are left
    out.

    A fact belongs to the payment that now has its charge; where none has it, to the payment with its id. The charge
    comes first, because another rhythm or beginning changes the id of a payment.
    """
    ids, holders = {each.id for each in payments}, ids_by_charge(payments)
    about: dict[str, list[A]] = {}
    for each in known:
        meant = holders.get(each.transaction_id, each.id)
        if meant in ids:
            about.setdefault(meant, []).append(each)
    return about
