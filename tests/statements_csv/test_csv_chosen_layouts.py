"""A layout that a person chose: for one file it is the only one that counts, kept it comes before all others."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.bank_csv.layouts import NO_TABLE, CsvLayout, check_layouts, guesses_in_words
from connectors.bank_csv.profile import (
    LAYOUT_CHARACTERS_MAX,
    Profile,
    ProfileError,
    built_in_profiles,
    chosen_profile,
    layout_id,
    parse_profile,
    profile_json,
)
from connectors.bank_csv.reader import read
from connectors.connector import MalformedFile, UnsupportedFile

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]
NO_DAY = 'date: up to 20 formats of day, month and year are needed, such as "DD.MM.YYYY"'
UNSIGNED = "Datum;Wer;Betrag\n02.03.2026;Rewe;3,50\n03.03.2026;Kino;12,00\n"
SPENT: dict[str, Any] = {
    "header": ["Datum", "Wer", "Betrag"],
    "columns": {"date": "Datum", "name": "Wer", "amount": "Betrag"},
    "date": "DD.MM.YYYY",
    "inverted": True,
    "currency": "CHF",
}

pytestmark = pytest.mark.requirement("readers.csv.chosen")


def chosen(**changes: Any) -> Profile:
    return chosen_profile(json.dumps({name: entry for name, entry in (SPENT | changes).items() if entry is not None}))


def told_of(text: str, *profiles: Profile) -> CsvLayout:
    """The one layout that is told while a file is read, also where it is refused."""
    told: list[CsvLayout] = []
    try:
        list(read(io.BytesIO(text.encode()), profiles, told.append))
    except UnsupportedFile:
        assert told
    (layout,) = told
    return layout


def test_a_file_is_read_by_the_layout_that_was_chosen_for_it(read_csv: Read) -> None:
    [account], rows, _ = read_csv(UNSIGNED, profiles=[chosen()])
    assert account.currency == "CHF"
    assert [(row.amount, row.counterpart_name) for row in rows] == [
        (Decimal("-3.50"), "Rewe"),
        (Decimal("-12.00"), "Kino"),
    ]
    layout = told_of(UNSIGNED, chosen())
    assert (layout.is_guessed, layout.sign, layout.currency, layout.currency_source) == (
        False,
        "turned",
        "CHF",
        "layout",
    )
    assert guesses_in_words([layout]) == []
    check_layouts([layout], is_chosen=True)


def test_a_layout_that_was_chosen_counts_also_where_the_bank_is_known(read_csv: Read) -> None:
    text = "IBAN;Text;Valutadatum;Währung;Soll;Haben\nAT483200000012345864;x;01.12.2026;EUR;100,01;0,00\n"
    swapped = {"date": "Valutadatum", "debit": "Haben", "credit": "Soll"}
    header = ["Valutadatum", "Soll"]  # fewer names than the built-in layout asks for
    assert read_csv(text)[1][0].amount == Decimal("-100.01")
    for standing in ("chosen", "kept"):
        mine = replace(chosen(header=header, columns=swapped, inverted=None), standing=standing)
        assert read_csv(text, profiles=[mine])[1][0].amount == Decimal("100.01")


def test_a_kept_layout_leaves_other_files_alone(read_csv: Read) -> None:
    kept = replace(chosen(), standing="kept")
    assert read_csv(UNSIGNED, profiles=[kept])[1][0].amount == Decimal("-3.50")
    other = "Date,Payee,Amount\n2026-03-02,Netflix,-12.99\n"
    assert read_csv(other, profiles=[kept])[1][0].amount == Decimal("-12.99")
    assert told_of(other, kept).is_guessed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"header": ["Tag", "Betrag"]}, "The file does not have the columns that the chosen layout is for."),
        (
            {"columns": {"date": "Datum", "amount": "Menge"}},
            "The chosen layout takes amount from a column that the file does not have.",
        ),
        (
            {"columns": {"date": "Datum", "amount": 4}},
            "The chosen layout takes amount from a column that the file does not have.",
        ),
        ({"date": "YYYY-MM-DD"}, "Line 2: the booking date cannot be read."),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises((UnsupportedFile, MalformedFile)) as refusal:
        list(read(io.BytesIO(UNSIGNED.encode()), [chosen(**changes)]))
    assert str(refusal.value) == reason


def test_a_layout_is_for_tables() -> None:
    with pytest.raises(UnsupportedFile) as refusal:
        check_layouts([], is_chosen=True)
    assert str(refusal.value) == NO_TABLE


@pytest.mark.parametrize(
    "text",
    [
        UNSIGNED,
        "Date,Payee,Amount,Type\n2026-03-02,Rewe,3.50,Debit\n2026-03-03,Eva,5.00,Credit\n",
        "Date,Payee,Debit,Credit,Status\n2026-03-02,Rewe,3.50,,pending\n2026-03-03,Eva,,5.00,\n",
        "Date,Text,Text,Amount\n2026-03-02,a,b,-3.50\n2026-03-03,c,d,5.00\n",
        "02.03.2026;Rewe;-3,50;96,50\n03.03.2026;Kino;-12,00;84,50\n04.03.2026;Eva;1,00;85,50\n",
        "Tag;Wofür;Menge\n02.03.2026;Rewe;-3,50\n03.03.2026;Kino;-12,00\n",
    ],
)
def test_what_was_guessed_is_told_as_a_profile_that_reads_the_file_alike(read_csv: Read, text: str) -> None:
    profile = told_of(text).profile
    assert profile is not None
    assert read_csv(text, profiles=[chosen_profile(profile)]) == read_csv(text)


def test_of_a_table_without_names_the_look_of_its_columns_is_told() -> None:
    rows = "02.03.2026;1;Rewe;-3,50;96,50;\n03.03.2026;2;Kino;-12,00;84,50;\n04.03.2026;3;Eva;1,00;85,50;x;\n"
    profile = told_of(rows.replace(";x;", ";")).profile
    assert profile is not None
    assert json.loads(profile)["shape"] == ["date", "any", "any", "amount", "amount", "any"]
    unknown = told_of("x;02.03.2026;3,50;4,50\ny;03.03.2026;;4,50\nz;03.03.2026;3,50\n").profile
    assert unknown is not None
    assert json.loads(unknown) == {"shape": ["any", "date", "figure", "figure"]}


def test_a_guess_too_long_for_an_address_is_told_without_a_profile() -> None:
    names = ";".join(f"Spalte {'x' * 80} {number}" for number in range(50))
    layout = told_of(f"Datum;Wer;Betrag;{names}\n02.03.2026;Rewe;-3,50{';' * 50}\n03.03.2026;Kino;-1,00{';' * 50}\n")
    assert layout.profile is None
    assert len(layout.columns) == 53


def test_every_built_in_profile_is_rendered_and_read_again() -> None:
    for profile in built_in_profiles():
        assert parse_profile(profile_json(profile), name=profile.name) == profile


def test_two_layouts_for_the_same_columns_are_one_and_others_are_not() -> None:
    first = layout_id(chosen())
    assert layout_id(chosen(inverted=None, header=["betrag", "Wer", "DATUM"])) == first
    assert layout_id(chosen(header=["Datum", "Betrag"])) != first
    assert layout_id(chosen(header=None, shape=["date", "any", "amount"])) != layout_id(
        chosen(header=None, shape=["date", "amount", "any"])
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (json.dumps(SPENT).ljust(LAYOUT_CHARACTERS_MAX + 1), f"longer than {LAYOUT_CHARACTERS_MAX} characters"),
        (json.dumps(SPENT | {"bank": "\ud800"}), "not valid JSON"),
        (json.dumps(SPENT | {"bank": "a\x00b"}), "bank: a short text is needed"),
        (json.dumps(SPENT | {"currency": "euro"}), 'currency: three capital letters are needed, such as "EUR"'),
        (json.dumps(SPENT | {"date": "DD.DD.YYYY"}), NO_DAY),
        (json.dumps(SPENT | {"date": f"DD.MM.YYYY{' ' * 11}"}), NO_DAY),
        (json.dumps(SPENT | {"date": "DD.MM\x07YYYY"}), NO_DAY),
        (json.dumps(SPENT | {"date": ["DD.MM.YYYY"] * 21}), NO_DAY),
        (json.dumps(SPENT | {"labels": {"An": ["name"]}}), "labels: an object of label and field is needed"),
    ],
)
def test_what_a_stranger_sends_as_a_layout_is_bounded(text: str, reason: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        chosen_profile(text)
    assert str(refusal.value) == reason
    longest = json.dumps(SPENT | {"date": [f"DD.MM.YYYY{' ' * 10}"] * 20}).ljust(LAYOUT_CHARACTERS_MAX)
    assert len(chosen_profile(longest).date) == 20
