"""Rare ways of matching, one smallest batch each; that they agree with the obvious way is told by random ones."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from storage.importing.matching.counted_merge import match_booked
from storage.importing.records import TransactionRecord
from tests.storage.conftest import Bank
from tests.storage.test_certain_matches import explained
from tests.storage.test_matching_agrees import BANK, items, rows

DAY = date(2026, 11, 2)


def record(amount: int, **said: Any) -> TransactionRecord:
    return TransactionRecord(amount=Decimal(amount), currency="EUR", booking_date=DAY, **said)


def explaining(told: list[TransactionRecord], stored: list[TransactionRecord]) -> list[str | None]:
    """The stored row of each booking of a bank that gives ids; files told the stored ones."""
    matches = match_booked(items(told, BANK), rows(stored, [None] * len(stored)), [], source=BANK)
    return [match.stored.id if match.stored else None for match in matches]


@pytest.mark.requirement("import.any-order")
def test_beside_a_known_booking_parts_are_the_whole_that_they_add_up_to() -> None:
    told = [record(-5, references=("t:1",)), record(-10, references=("s:1/1",)), record(-10, references=("s:1/2",))]
    assert explaining(told, [record(-20, references=("s:1",)), record(-5, references=("t:1",))]) == [
        "row1",
        "row0",
        "row0",
    ]


@pytest.mark.requirement("import.references")
def test_an_id_that_is_new_is_found_by_the_second_of_its_references() -> None:
    told = [record(-5, provider_id="p1", references=("s:1", "s:2"), purpose="Brot")]
    assert explaining(told, [record(-5, references=("s:2",), purpose="Milch")]) == ["row0"]


@pytest.mark.requirement("import.any-order")
def test_a_pending_row_that_one_booking_was_is_not_what_resembles_it_too() -> None:
    told = [record(-5, purpose="Cafe Blau Karte"), record(-5, purpose="Cafe Blau Mitte")]
    waiting = rows([record(-5, purpose="Karte Cafe Blau"), record(-5, purpose="Miete Nord")], [None, None])
    matches = match_booked(items(told, BANK), [], waiting, source=BANK)
    assert [match.stored.id if match.stored else None for match in matches] == ["row0", None]


@pytest.mark.requirement("import.any-order")
def test_ids_and_none_in_one_batch_beside_rows_with_ids_are_decided_one_by_one() -> None:
    told = [record(-5, provider_id="p1", purpose="Brot"), record(-10, purpose="Milch")]
    stored = rows([record(-5, purpose="Brot", provider_id="p1"), record(-10, purpose="Milch")], [BANK, None])
    assert explained(told, stored, BANK) == ["row0", "row1"]


@pytest.mark.requirement("import.pending")
def test_a_pending_booking_keeps_the_id_that_is_learned_for_it_and_a_new_one_beside_it_has_none(bank: Bank) -> None:
    bread = record(-5, purpose="Brot", status="pending")
    bank.bring([bread])
    bank.bring([replace(bread, provider_id="p1"), record(-10, purpose="Milch", provider_id="p2", status="pending")])
    claims = bank.database.rows("SELECT amount, claims FROM pending_transactions ORDER BY amount DESC")
    assert [(row["amount"], row["claims"] is not None) for row in claims] == [(-5, True), (-10, False)]
