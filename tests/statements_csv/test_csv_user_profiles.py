"""A profile that a user writes: the documented example, its errors, and what `explain` says of a file."""

import io
import json
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest

from analytics.records import AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.profile import (
    FIELDS,
    PROFILE_BYTES_MAX,
    PROFILES_MAX,
    SHAPES,
    Profile,
    ProfileError,
    load_profiles,
    parse_profile,
)
from connectors.classified_records import without_classes
from connectors.own_formats import csv as csv_statement

Read = Callable[..., tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]]
PAGE = (Path(__file__).parents[2] / "docs" / "csv-profiles.md").read_text("utf-8")
ENTRIES = (
    "about, account_per_currency, bank, columns, credit_words, currency, date, debit_words, decimal, delimiter, "
    "encoding, group, header, ignored, inverted, kind, labels, minor_units, pending, shape, skip"
)
ENCODINGS = (
    "'utf-8', 'cp1250', 'cp1251', 'cp1252', 'cp1253', 'cp1254', 'cp1257', 'cp850', 'cp852', 'iso8859-15', "
    "'iso8859-2', 'mac-roman'"
)
KINDS = ", ".join(map(repr, get_args(AccountKind)))
SMALL = {"header": ["Tag", "Menge"], "columns": {"date": "Tag", "amount": "Menge"}, "date": "DD.MM.YYYY"}


def block(kind: str) -> str:
    """The first code block of a kind in the documented example."""
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.requirement("docs.csv-profiles")
def test_the_documented_profile_reads_the_documented_file(read_csv: Read) -> None:
    profile = parse_profile(block("json"), name="beispielstadt")
    [account], rows, [statement] = read_csv(block("csv"), profiles=[profile])
    assert account == AccountRecord(
        stable_key="DE02120300000000202051",
        currency="EUR",
        iban="DE02120300000000202051",
        name=account.name,
        kind="checking",
        bank_name="Genossenschaftsbank Beispielstadt",
    )
    assert [(row.amount, row.status, row.counterpart_name) for row in rows] == [
        (Decimal("-4.20"), "booked", "Bäckerei Ost"),
        (Decimal("1000.00"), "booked", "Firma Nord"),
        (Decimal("-12.00"), "pending", "Kino West"),
    ]
    assert statement == StatementRecord(
        opening=Decimal("0.00"),
        opening_date=date(2026, 2, 2),
        closing=Decimal("995.80"),
        closing_date=date(2026, 2, 3),
        is_authoritative=True,
    )


@pytest.mark.requirement("docs.csv-profiles")
def test_every_field_is_documented() -> None:
    assert {field for field in FIELDS if f"`{field}`" not in PAGE} == set()


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"colour": "red"}, f"unknown entry 'colour'; known are {ENTRIES}"),
        (
            {"columns": {"date": "Tag", "betrag": "Menge"}},
            f"columns: unknown field 'betrag'; known are {', '.join(sorted(FIELDS))}",
        ),
        ({"columns": {"amount": "Menge"}}, "columns: date is missing"),
        ({"columns": {"date": "Tag"}}, "columns: amount, or debit and credit, is missing"),
        (
            {"columns": {"date": "Tag", "amount": []}},
            "columns.amount: a column name, a column number or a list of them is needed",
        ),
        (
            {"columns": {"date": "Tag", "amount": True}},
            "columns.amount: a column name, a column number or a list of them is needed",
        ),
        ({"columns": "x"}, "columns: an object is needed"),
        ({"date": []}, 'date is missing; for example "DD.MM.YYYY"'),
        ({"decimal": ";"}, "decimal: none of ',', '.'"),
        ({"encoding": "ascii"}, f"encoding: none of {ENCODINGS}"),
        ({"kind": "piggy bank"}, f"kind: none of {KINDS}"),
        ({"header": []}, "either header (names that the header row holds) or shape (of a row) is needed"),
        ({"shape": ["date"]}, "either header (names that the header row holds) or shape (of a row) is needed"),
        ({"header": [], "shape": ["colour"]}, f"shape: 'colour' is none of {', '.join(sorted(SHAPES))}"),
        ({"header": "Tag"}, "header: a list is needed"),
        ({"header": [1]}, "header: texts are needed"),
        (
            {"columns": {"date": "Tag", "amount": "Menge", "indicator": "S"}},
            "debit_words or credit_words are needed with an indicator column",
        ),
        ({"pending": ["x"]}, "pending: an object of column and texts is needed"),
        ({"labels": {"An": "nobody"}}, "labels: an object of label and field is needed"),
        ({"inverted": "yes"}, "inverted: true or false is needed"),
        ({"bank": ""}, "bank: a short text is needed"),
    ],
)
def test_a_wrong_entry_is_named(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        parse_profile(json.dumps(SMALL | change), name="mine")
    assert str(refusal.value) == reason


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "not valid JSON"), ("[]", "not a JSON object"), ("{", "not valid JSON"), ("[" * 100_000, "not valid JSON")],
)
def test_what_is_no_json_object_is_no_profile(text: str, reason: str) -> None:
    with pytest.raises(ProfileError) as refusal:
        parse_profile(text, name="mine")
    assert str(refusal.value) == reason


@pytest.mark.requirement("readers.csv.profiles")
def test_a_folder_of_profiles_is_loaded_in_the_order_of_names_and_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(SMALL), "utf-8")
    (tmp_path / "a.json").write_text(json.dumps(SMALL | {"bank": "A"}), "utf-8")
    (tmp_path / "note.txt").write_text("not a profile", "utf-8")
    assert [profile.name for profile in load_profiles(tmp_path)] == ["a", "b"]
    (tmp_path / "c.json").write_text("{}", "utf-8")
    with pytest.raises(ProfileError, match=r"^c\.json: "):
        load_profiles(tmp_path)
    (tmp_path / "c.json").write_text(json.dumps(SMALL).ljust(PROFILE_BYTES_MAX), "utf-8")
    assert [profile.name for profile in load_profiles(tmp_path)] == ["a", "b", "c"]
    (tmp_path / "c.json").write_text(json.dumps(SMALL).ljust(PROFILE_BYTES_MAX + 1), "utf-8")
    with pytest.raises(ProfileError) as refusal:
        load_profiles(tmp_path)
    assert str(refusal.value) == f"c.json: larger than {PROFILE_BYTES_MAX} bytes"
    (tmp_path / "c.json").write_bytes(b'{"about": "\xff"}')
    with pytest.raises(ProfileError) as refusal:
        load_profiles(tmp_path)
    assert str(refusal.value) == "c.json: not a text in UTF-8"


@pytest.mark.requirement("security.limits")
def test_the_profiles_of_a_folder_are_limited(tmp_path: Path) -> None:
    for number in range(PROFILES_MAX):
        (tmp_path / f"{number}.json").write_text(json.dumps(SMALL), "utf-8")
    assert len(load_profiles(tmp_path)) == PROFILES_MAX
    (tmp_path / "more.json").write_text(json.dumps(SMALL), "utf-8")
    with pytest.raises(ProfileError) as refusal:
        load_profiles(tmp_path)
    assert str(refusal.value) == f"more than {PROFILES_MAX} profiles"


@pytest.mark.requirement("readers.csv.profiles")
def test_a_profile_of_the_user_comes_before_a_built_in_one(read_csv: Read) -> None:
    text = "IBAN;Text;Valutadatum;Währung;Soll;Haben\nAT483200000012345864;x;01.12.2026;EUR;100,01;0,00\n"
    assert read_csv(text)[1][0].amount == Decimal("-100.01")
    mine = parse_profile(
        json.dumps(
            {
                "header": ["IBAN", "Text", "Valutadatum", "Währung", "Soll", "Haben"],
                "columns": {"date": "Valutadatum", "debit": "Haben", "credit": "Soll"},
                "date": "DD.MM.YYYY",
                "decimal": ",",
            }
        ),
        name="mine",
    )
    assert read_csv(text, profiles=[mine])[1][0].amount == Decimal("100.01")


@pytest.mark.requirement("readers.csv.explain")
def test_explain_names_profile_reason_and_what_is_left_out() -> None:
    text = "IBAN;Text;Valutadatum;Währung;Soll;Haben;Laune\nAT483200000012345864;x;01.12.2026;EUR;1,00;0,00;gut\n"
    found = csv_statements.explain(io.BytesIO(text.encode("cp1252")))
    assert (found.profile, found.bank, found.delimiter, found.encoding) == ("ing-at", "ING Austria", ";", "cp1252")
    assert (found.header_row, found.decimal) == (1, ",")
    assert found.why == "row 1 holds the 6 column names of this layout"
    assert found.columns == (
        ("IBAN", "account"), ("Text", "purpose"), ("Valutadatum", "date"), ("Währung", "currency"),
        ("Soll", "debit"), ("Haben", "credit"), ("Laune", None),
    )  # fmt: skip


@pytest.mark.requirement("readers.csv.explain")
def test_explain_says_why_a_file_would_be_refused() -> None:
    found = csv_statements.explain(io.BytesIO(b"Farbe;Menge;Laune\nrot;1,00;gut\n"))
    assert found.profile is None
    assert "no column is recognised as the booking date" in found.why
    assert "docs/csv-profiles.md" in found.why


@pytest.mark.requirement("export.csv")
def test_our_own_export_is_read_back_exactly() -> None:
    records: list[Record] = [
        AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="=1+1"),
        TransactionRecord(
            amount=Decimal("-3.10"), currency="EUR", booking_date=date(2026, 1, 2), purpose="@x\u00fc", mcc="5411"
        ),
        StatementRecord(closing=Decimal("7"), closing_date=date(2026, 1, 3)),
        AccountRecord(stable_key="B/2", currency="JPY", kind="savings"),
        TransactionRecord(
            amount=Decimal("500"), currency="JPY", booking_date=date(2026, 1, 2), status="pending", provider_id="-7"
        ),
        StatementRecord(),
    ]
    file = io.BytesIO()
    csv_statement.write(without_classes(records), file)
    assert csv_statements.detect(file.getvalue())
    assert list(csv_statements.read(io.BytesIO(file.getvalue()))) == records
    assert csv_statements.explain(io.BytesIO(file.getvalue())).profile == "bankdata"


def own(**entries: object) -> list[Profile]:
    columns = {"date": "Tag", "amount": "Menge", "purpose": "Text"}
    whole = {"header": ["Tag", "Menge"], "columns": columns, "date": "DD.MM.YYYY"}
    return [parse_profile(json.dumps(whole | entries), name="mine")]


@pytest.mark.requirement("readers.csv.profiles")
def test_a_label_without_anything_behind_it_says_nothing(read_csv: Read) -> None:
    text = "Tag;Menge;Text\n01.02.2026;1,00;Von: An: Erika Zweck: Miete\n"
    [row] = read_csv(text, profiles=own(labels={"Von": "mandate", "An": "name", "Zweck": "purpose"}))[1]
    assert (row.mandate_reference, row.counterpart_name, row.purpose) == (None, "Erika", "Miete")


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    ("word", "amount"), [("ab", Decimal("-1.00")), ("zu", Decimal("1.00")), ("?", Decimal("1.00"))]
)
def test_a_word_beside_the_amount_gives_its_sign_if_the_profile_knows_it(
    word: str, amount: Decimal, read_csv: Read
) -> None:
    columns = {"date": "Tag", "amount": "Menge", "indicator": "Text"}
    profiles = own(columns=columns, debit_words=["ab"], credit_words=["zu"])
    [row] = read_csv(f"Tag;Menge;Text\n01.02.2026;1,00;{word}\n", profiles=profiles)[1]
    assert row.amount == amount


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    ("written", "signs"), [("10,00;ab", {"debit_words": "ab"}), ("10,00;", {"inverted": True}), ("-10,00;", {})]
)
def test_a_fee_makes_a_payment_dearer_however_its_sign_is_written(
    written: str, signs: dict[str, object], read_csv: Read
) -> None:
    columns = {"date": "Tag", "amount": "Menge", "fee": "Text"} | (
        {"indicator": "Art"} if "debit_words" in signs else {}
    )
    [row] = read_csv(f"Tag;Menge;Art;Text\n01.02.2026;{written};0,50\n", profiles=own(columns=columns, **signs))[1]
    assert row.amount == Decimal("-10.50")


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    ("debits", "amounts"),
    [
        (("10,00", "20,00", "-10,00"), (-10, -20, 10)),  # the last one reverses the first
        (("-10,00", "-20,00", "30,00"), (-10, -20, -30)),  # the minus is how debits are written
        (("-10,00",), (-10,)),
        (("10,00", "-10,00"), (-10, 10)),
    ],
)
def test_a_minus_among_debits_without_one_is_that_of_a_reversal(
    debits: Sequence[str], amounts: Sequence[int], read_csv: Read
) -> None:
    profiles = own(header=["Tag", "Soll"], columns={"date": "Tag", "debit": "Soll", "credit": "Haben"})
    lines = [f"0{day}.02.2026;{debit};\n" for day, debit in enumerate(debits, start=1)]
    rows = read_csv("Tag;Soll;Haben\n" + "".join(lines), profiles=profiles)[1]
    assert [row.amount for row in rows] == [Decimal(amount) for amount in amounts]


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(("original", "kept"), [("2,50 USD", Decimal("2.50")), ("zwei", None)])
def test_an_original_amount_that_cannot_be_read_is_left_out(
    original: str, kept: Decimal | None, read_csv: Read
) -> None:
    columns = {"date": "Tag", "amount": "Menge", "original_amount": "Text"}
    [row] = read_csv(f"Tag;Menge;Text\n01.02.2026;1,00;{original}\n", profiles=own(columns=columns))[1]
    assert row.original_amount == kept


@pytest.mark.requirement("readers.csv.profiles")
def test_amounts_of_two_decimal_marks_are_read_as_the_separator_of_the_file_has_it(read_csv: Read) -> None:
    text = "Tag;Menge;Text\n01.02.2026;1,50;x\n02.02.2026;2.50;y\n03.02.2026;1.000,00;z\n"
    rows = read_csv(text, profiles=own())[1]
    assert [row.amount for row in rows] == [Decimal("1.50"), Decimal("2.50"), Decimal("1000.00")]


@pytest.mark.requirement("readers.csv.profiles")
@pytest.mark.parametrize(
    "entries",
    [
        {"columns": {"date": "Tag", "amount": "Summe"}},  # a column that the file does not have
        {"delimiter": ","},  # another separator
        {"header": [], "shape": ["date", "figure", "text"], "delimiter": ","},
    ],
)
def test_a_profile_that_does_not_fit_leaves_the_file_to_the_words_of_its_columns(
    entries: dict[str, object], read_csv: Read
) -> None:
    text = "Datum;Tag;Menge;Betrag\n01.02.2026;01.02.2026;9,00;1,00\n"
    [row] = read_csv(text, profiles=own(**entries))[1]
    assert row.amount == Decimal("1.00")


@pytest.mark.requirement("readers.csv.profiles")
def test_one_row_of_a_shape_among_others_is_no_table_of_that_shape(read_csv: Read) -> None:
    shape = own(header=[], shape=["date", "figure", "text"], columns={"date": "@1", "amount": "@2"}, decimal=",")
    one = "01.02.2026;7,00;x\n"
    assert len(read_csv(one, profiles=shape)[1]) == 1
    other = "Datum;Text;Betrag\n01.02.2026;7,00;1,00\n" + "01.02.2026;x;1,00\n" * 3
    assert [row.amount for row in read_csv(other, profiles=shape)[1]] == [Decimal("1.00")] * 4
