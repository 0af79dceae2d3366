"""An id of a recurring payment belongs to one contract of a user, whatever selection of accounts shows it."""

from collections import defaultdict
from itertools import chain, combinations

import pytest

from analytics.records import AccountRecord, TransactionRecord
from tests.explanations.conftest import Holder
from tests.explanations.test_explanations import booked

LANDLORD = "DE02500105170137075030"
MONTHS = range(3, 12)


def account(name: str) -> AccountRecord:
    return AccountRecord(stable_key=name, currency="EUR", name=name)


def rents(amount: str, day: int = 1) -> list[TransactionRecord]:
    return [
        booked(f"2026-{month:02}-{day:02}", f"-{amount}", "Hausverwaltung Nord", counterpart_iban=LANDLORD)
        for month in MONTHS
    ]


def contracts_by_id(holder: Holder) -> dict[str, set[frozenset[str]]]:
    """What each id named in every selection: the charges it listed."""
    ids = holder.account_ids()
    named: dict[str, set[frozenset[str]]] = defaultdict(set)
    for selection in chain.from_iterable(combinations(ids, size) for size in range(1, len(ids) + 1)):
        query = ",".join(selection)
        shown = holder.get("/subscriptions/details", accountIds=query, status="current")["subscriptions"]
        assert len({each["id"] for each in shown}) == len(shown)
        for each in shown:
            named[each["id"]].add(frozenset(charge["transactionId"] for charge in each["charges"]))
            assert holder.get(f"/subscriptions/{each['id']}", accountIds=query) == each
    return named


@pytest.mark.no_cover  # every selection of accounts, see tests/conftest.py
@pytest.mark.requirement("subscriptions.id")
@pytest.mark.long
def test_five_rents_to_one_landlord_have_five_ids_in_every_selection(holder: Holder) -> None:
    for name, amount in zip("abcde", ("500.00", "610.00", "745.00", "880.00", "1010.00"), strict=True):
        holder.bring(account(name), rents(amount))
    named = contracts_by_id(holder)
    assert len(named) == 5
    assert [charges for charges in named.values() if len(charges) > 1] == []


@pytest.mark.requirement("subscriptions.id")
def test_equal_rents_of_one_day_that_look_like_one_together_share_no_id_apart(holder: Holder) -> None:
    for name in "ab":
        holder.bring(account(name), rents("500.00"))
    named = contracts_by_id(holder)
    apart = {charges for shown in named.values() for charges in shown if len(charges) == len(MONTHS)}
    assert len(apart) == 2
    for shown in named.values():
        assert len(shown & apart) <= 1


@pytest.mark.requirement("subscriptions.id")
def test_a_contract_that_moved_to_another_account_keeps_its_id(holder: Holder) -> None:
    earlier, later = rents("500.00")[:4], rents("500.00")[4:]
    holder.bring(account("a"), earlier)
    holder.bring(account("b"), later)
    both = ",".join(holder.account_ids())
    (whole,) = holder.get("/subscriptions/details", accountIds=both)["subscriptions"]
    (part,) = holder.get("/subscriptions/details", accountIds=holder.account_ids()[1])["subscriptions"]
    assert part["id"] == whole["id"]
    assert len(part["charges"]) == 5
