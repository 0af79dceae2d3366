"""What two tellings of a booking say of each other, one smallest pair each."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.combined_texts import fuller_words
from storage.importing.matching.evidence import evidence, fold_letters, is_fuller, references_contradict, text_agreement
from storage.importing.matching.likely_matches import BEFORE, Remaining
from storage.importing.matching.stored_bookings import Item, StoredRow

pytestmark = pytest.mark.requirement("import.formats")
DAY = date(2026, 11, 2)


def record(**said: object) -> TransactionRecord:
    fields: Mapping[str, object] = {"amount": Decimal(-5), "currency": "EUR", "booking_date": DAY, **said}
    return TransactionRecord(**fields)  # type: ignore[arg-type]  # the fields' names and types


def stored(id_: str = "row", *, is_other_source: bool = False, is_whole: bool = False, **said: object) -> StoredRow:
    return StoredRow(
        id=id_,
        identity=f"content:{id_}#1",
        created_at=datetime.combine(DAY, time(12)),
        record=record(**said),
        claim=None,
        is_other_source=is_other_source,
        has_its_references=True,
        is_whole=is_whole,
    )


def test_an_umlaut_is_its_letter_however_it_is_written() -> None:
    assert {
        fold_letters(text) for text in ("Öffentliche Bücherei", "OEFFENTLICHE BUECHEREI", "offentliche-bucherei")
    } == {"offentlichebucherei"}
    assert len(fold_letters("\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 5_000)) <= 500


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        ("Miete Oktober", "Miete Oktober 2026", 1),
        ("Oktober", "Miete Oktober 2026", 1),
        ("Rewe", "Rewe Markt", 1),
        ("dm", "dm Markt", -1),
        ("Markt", "Rewe Markt", 1),
        ("Abo", "Fit Abo 12/2026", 1),
        ("arkt", "Rewe Markt", -1),
        ("471", "Kunde 471", -1),
        ("Rechnung 1", "Rechnung 12", -1),
        ("23 Rechnung", "123 Rechnung", -1),
        ("Kartenzahlung vom 1", "Kartenzahlung vom 12", 1),
        ("Miete", None, 0),
        ("2,02600E+13", "20260000012345", 0),
        ("Vertrag 20260000012345", "Vertrag 2.026E+13", 1),
        ("0004711", "4711", 1),
        ("20260000012345678", "20260000012345600", 1),
        ("20260000012345678", "20260000012345689", -1),
        ("2026000001234500", "2026000001234600", -1),
    ],
)
def test_a_text_agrees_with_the_one_that_it_begins_or_stands_in(one: str, other: str | None, agreement: int) -> None:
    assert text_agreement(one, other) == text_agreement(other, one) == agreement


@pytest.mark.parametrize(
    ("told", "known", "score"),
    [
        ({"counterpart_iban": "DE1"}, {"counterpart_iban": "DE2"}, None),
        ({"mandate_reference": "M1"}, {}, 0),
        ({"purpose": "Brot"}, {"purpose": "Kuchen"}, None),
        ({"counterpart_name": "Anna"}, {"counterpart_name": "Bert"}, None),
        (
            {"counterpart_name": "Anna", "purpose": "Miete", "creditor_id": "C"},
            {"counterpart_name": "Bert", "purpose": "Miete", "creditor_id": "C"},
            8,
        ),
        ({"value_date": DAY, "purpose": "Brot"}, {"value_date": DAY, "purpose": "brot"}, 5),
        ({"value_date": DAY}, {"value_date": date(2026, 11, 3)}, -1),
        ({"mandate_reference": "20260000012345"}, {"mandate_reference": "2,02600E+13"}, 0),
        ({"mandate_reference": "20260000012345"}, {"mandate_reference": "20260000099999"}, None),
        ({"creditor_id": "0012"}, {"creditor_id": "12"}, 8),
        ({"purpose": "Lohn"}, {"purpose": "AGLohn"}, None),
        ({"counterpart_iban": "DE1", "purpose": "Lohn"}, {"counterpart_iban": "DE1", "purpose": "AGLohn"}, 7),
        ({"counterpart_name": "Arbeit", "purpose": "12"}, {"purpose": "Lohn 12 Arbeit"}, 2),
        ({"counterpart_name": "Arbeit", "purpose": "13"}, {"purpose": "Lohn 12 Arbeit"}, None),
        ({"counterpart_name": "Arbeit AG", "purpose": "Lohn"}, {"purpose": "Arbeit AG L"}, 2),
    ],
)
def test_identifiers_weigh_most_then_texts_then_the_value_date(
    told: dict[str, object], known: dict[str, object], score: int | None
) -> None:
    assert evidence(record(**told), record(**known), is_other_source=False) == score


def test_another_source_may_have_words_of_its_own() -> None:
    told, known = record(counterpart_name="Shop", purpose="Brot"), record(counterpart_name="SHOP", purpose="Karte")
    assert evidence(told, known, is_other_source=True) == 0
    told, known = record(counterpart_name="Anna", purpose="Miete"), record(counterpart_name="Bert", purpose="Miete")
    assert evidence(told, known, is_other_source=True) == 0


def test_references_contradict_only_within_a_kind() -> None:
    assert references_contradict(("a:1",), ("a:2",))
    assert not references_contradict(("a:1",), ("b:2",))
    assert not references_contradict(("a:1", "b:1"), ("a:2", "b:1"))
    assert not references_contradict((), ("a:2",))
    assert not references_contradict(("a:007",), ("a:7",))


def test_the_fuller_text_says_the_other_one_and_more() -> None:
    assert is_fuller("Miete Oktober", than="Miete")
    assert is_fuller("Miete", than=None)
    assert not is_fuller(None, than="Miete")
    assert not is_fuller("Kuchen und Torte", than="Brot")


def test_what_is_stored_gains_what_it_lacks_and_a_correction_holds_but_for_cut_texts() -> None:
    known = record(counterpart_name="Anna", purpose="Miete Oktober", mandate_reference="M1", references=("a:1",))
    told = record(counterpart_name="Bert", purpose="Miete", mandate_reference="M2", references=("b:1",), gvc="105")
    gained = replace(known, references=("a:1", "b:1"), gvc="105")
    assert fuller_words(known, told, is_correction=False) == gained
    assert fuller_words(told, known, is_correction=False).purpose == "Miete Oktober"
    corrected = replace(gained, counterpart_name="Bert", mandate_reference="M2")
    assert fuller_words(known, told, is_correction=True) == corrected


def test_a_correction_is_looked_for_only_among_rows_of_its_words_that_are_left() -> None:
    told = [record(amount=Decimal(-6), purpose="Einkauf"), record(amount=Decimal(-7), purpose="Einkauf")]
    items = [Item(record(amount=Decimal(-8), purpose="Einkauf", mandate_reference="M2"), 3, "bank:9")]
    items += [Item(each, place, None) for place, each in enumerate(told)]
    items.append(Item(record(booking_date=date(2026, 10, 1), purpose="Einkauf"), 2, None))
    rows = [stored("a", purpose="Einkauf", mandate_reference="M1", is_whole=True)]
    remaining = Remaining(items, rows, are_references_lasting=False)
    remaining.match_corrections({0, 1, 3})
    assert [(item.place, row.id) for item, row in remaining.pairs] == [(0, "a")]


def test_a_reference_that_several_bookings_have_says_nothing() -> None:
    told = [record(references=("a:1",), purpose="Brot"), record(references=("a:1",), purpose="Kuchen")]
    rows = [stored("x", references=("a:1",), purpose="Torte"), stored("y", references=("b:1", "c:1"), purpose="Eis")]
    items = [Item(each, place, None) for place, each in enumerate(told)]
    for are_lasting in (True, False):
        remaining = Remaining(items, rows, are_references_lasting=are_lasting)
        remaining.match_by_day()
        assert remaining.pairs == []


def test_one_of_two_alike_wholes_is_the_parts() -> None:
    rows = [stored("x", amount=Decimal(-10), references=("s:7",)), stored("y", amount=Decimal(3), references=("s:8",))]
    told = [record(references=("s:7/0",)), record(references=("s:7/1",)), record(amount=Decimal(4))]
    items = [Item(each, place, None) for place, each in enumerate(told)]
    remaining = Remaining(items, rows, are_references_lasting=True)
    remaining.match_by_day()
    assert [(item.place, row.id) for item, row in remaining.replaced] == [(0, "x"), (1, "x")]
    assert sorted(remaining.items) == [0, 1, 2]


def test_parts_that_do_not_add_up_are_no_whole() -> None:
    rows = [stored("x", references=("s:7/0",)), stored("y", amount=Decimal(-6), references=("s:7/1",))]
    told = [record(amount=Decimal(-12), references=("s:7", "t:1")), record(amount=Decimal(-7))]
    remaining = Remaining(
        [Item(each, place, None) for place, each in enumerate(told)], rows, are_references_lasting=True
    )
    remaining.match_by_day()
    assert (remaining.parts, remaining.pairs) == ([], [])


def test_of_two_bookings_in_former_words_of_one_row_only_one_is_that_row() -> None:
    items = [Item(record(purpose=purpose), place, None) for place, purpose in enumerate(("Brot", "Kuchen"))]
    remaining = Remaining(items, [stored("x", purpose="Torte")], are_references_lasting=False)
    remaining.match_other_words({"x": [record(purpose="Brot"), record(purpose="Kuchen")]})
    assert [(item.place, row.id) for item, row in remaining.pairs] == [(0, "x")]


def booked_of(waiting: Sequence[StoredRow], *purposes: str) -> list[tuple[int, str]]:
    """Which of the rows that wait the bookings in these words are, by place and id."""
    items = [Item(record(purpose=purpose), place, None) for place, purpose in enumerate(purposes)]
    remaining = Remaining(items, waiting, are_references_lasting=False)
    remaining.match_waiting([], BEFORE)
    return [(item.place, row.id) for item, row in remaining.pairs]


def test_a_pending_row_has_no_words_in_common_with_a_text_that_has_none() -> None:
    assert booked_of([stored("a", purpose="Karte Cafe Blau"), stored("b", purpose="4711")], "12") == []


def test_a_pending_row_that_has_words_in_common_with_several_bookings_is_one_of_them() -> None:
    waiting = [stored("a", purpose="Karte Cafe Blau"), stored("b", purpose="Miete Nord Sued")]
    assert booked_of(waiting, "Cafe Blau Mitte", "Cafe Blau Ost", "Cafe Blau West") == [(0, "a")]
