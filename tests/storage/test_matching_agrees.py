"""The indexed merge and the obvious one explain the same bookings by the same rows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from storage.importing.matching.booking_keys import fingerprint
from storage.importing.matching.compared_rows import Item, StoredRow
from storage.importing.matching.counted_merge import match_booked
from storage.importing.matching.pending_bookings import match_pending
from storage.importing.matching.similar_texts import ALIKE_COMPARED_MAX
from storage.importing.matching.stored_index import FILES
from storage.importing.records import TransactionRecord
from tests.conftest import NOW, examples
from tests.storage import slow_counted_merge
from tests.storage.slow_counted_merge import base_keys

DAY = date(2026, 11, 2)
BANK = "con_bank"
REFERENCES = st.lists(st.sampled_from(["s:1", "s:2", "s:1/1", "s:1/2", "t:1", "t:9"]), max_size=2, unique=True)
RECORDS = st.lists(
    st.builds(
        TransactionRecord,
        amount=st.sampled_from([Decimal(-5), Decimal(-10), Decimal(5)]),
        currency=st.sampled_from(["EUR", "EUR", "EUR", "USD"]),
        booking_date=st.sampled_from([DAY, DAY, DAY + timedelta(days=1), DAY + timedelta(days=8)]),
        provider_id=st.sampled_from([None, None, "p1", "p2", "p3"]),
        references=REFERENCES.map(tuple),
        counterpart_name=st.sampled_from([None, "Shop", "shop ", "Cafe Blau"]),
        counterpart_iban=st.sampled_from([None, None, "DE02120300000000202051"]),
        purpose=st.sampled_from([None, "Brot", "Cafe Blau Karte", "Karte Blau Mitte"]),
    ),
    max_size=8,
)
NAMED = st.lists(st.sampled_from([None, BANK, FILES, "con_other"]), min_size=8, max_size=8)


def items(records: Sequence[TransactionRecord], source: str) -> list[Item]:
    """The records with their keys."""
    return [
        Item(record, place, base, fingerprint(record), f"{source}:{id_}" if (id_ := record.provider_id) else None)
        for place, (record, base) in enumerate(zip(records, base_keys(records), strict=True))
    ]


def rows(records: Sequence[TransactionRecord], sources: Sequence[str | None], prefix: str = "row") -> list[StoredRow]:
    """Stored rows as if these records had been told, each claimed by an id of a source or by none; that source told
    it, else all sources took turns."""
    counts: dict[str, int] = {}
    found = []
    for number, (record, base, source) in enumerate(zip(records, base_keys(records), sources, strict=False)):
        counts[base] = counts.get(base, 0) + 1
        print_ = fingerprint(record)
        found.append(
            StoredRow(
                id=f"{prefix}{number}",
                source=source or (BANK, FILES, "con_other")[number % 3],
                identity=f"{base}#{counts[base]}",
                fingerprint=print_,
                references=record.references,
                booking_date=record.booking_date,
                amount=record.amount,
                currency=record.currency,
                counterpart_iban=record.counterpart_iban,
                counterpart_name=record.counterpart_name,
                purpose=record.purpose,
                created_at=NOW,
                claims={f"{source}:{record.provider_id or 'p9'}": print_} if source else {},
            )
        )
    return found


@pytest.mark.requirement("import.any-order")
@settings(max_examples=examples(120))
@given(records=RECORDS, told=RECORDS, waiting=RECORDS, named=NAMED, source=st.sampled_from([BANK, FILES]))
def test_booked_records_are_explained_by_the_rows_of_the_obvious_way(
    records: list[TransactionRecord],
    told: list[TransactionRecord],
    waiting: list[TransactionRecord],
    named: list[str | None],
    source: str,
) -> None:
    stored, pending = rows(told, named), rows(waiting, named[::-1], "pending")
    matches = match_booked(items(records, source), stored, pending, source=source)
    assert [match.stored and match.stored.id for match in matches] == slow_counted_merge.explained(
        records, stored, pending, source
    )
    assert [match.item.record for match in matches] == records


@pytest.mark.requirement("import.pending")
@settings(max_examples=examples(120))
@given(records=RECORDS, told=RECORDS, waiting=RECORDS, named=NAMED, source=st.sampled_from([BANK, FILES]))
def test_pending_records_are_explained_by_the_rows_of_the_obvious_way(
    records: list[TransactionRecord],
    told: list[TransactionRecord],
    waiting: list[TransactionRecord],
    named: list[str | None],
    source: str,
) -> None:
    booked, pending = rows(told, named), rows(waiting, named[::-1], "pending")
    matches = match_pending(items(records, source), pending, booked, source=source)
    assert [match.stored and match.stored.id for match in matches] == slow_counted_merge.still_pending(
        records, pending, booked, source
    )


@pytest.mark.requirement("import.pending")
@pytest.mark.parametrize(("others", "is_found"), [(ALIKE_COMPARED_MAX - 1, True), (ALIKE_COMPARED_MAX, False)])
def test_word_by_word_a_record_is_compared_with_a_hundred_texts_of_a_day(others: int, *, is_found: bool) -> None:
    booked = TransactionRecord(amount=Decimal(-5), currency="EUR", booking_date=DAY, purpose="Karte Blau Mitte")
    words = ["".join(chr(97 + int(digit)) for digit in f"{number:04}") for number in range(others)]
    told = [structs.replace(booked, purpose=text) for text in ("Blau Mitte Zahlung", *words)]
    alike, *pending = rows(told, [None] * len(told))
    alike = replace(alike, identity="first#1")  # the shortest identity comes first and is looked at last
    (match,) = match_booked(items([booked], BANK), [], [alike, *pending], source=BANK)
    assert match.takes_over is is_found
