"""What the statement writers put into a file, byte by byte where it matters."""

import csv
import io
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import connectors.mt940.reader
from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.blocks import blocks
from connectors.camt import reader as camt
from connectors.camt import writer as camt053
from connectors.classified_records import UNCLASSIFIED, Classification, without_classes
from connectors.connector import LimitExceeded, MalformedFile, SourceError
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import csv as csv_statement
from tests.statements import mt940_writer as mt940

MADE = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
GIRO = AccountRecord(
    stable_key="DE02120300000000202051",
    iban="DE02120300000000202051",
    currency="EUR",
    name="Girokonto",
    kind="checking",
    bank_name="Musterbank",
    bic="BYLADEM1001",
)
RENT = TransactionRecord(
    amount=Decimal("-890.00"),
    currency="EUR",
    booking_date=date(2026, 1, 2),
    value_date=date(2026, 1, 1),
    provider_id="2601021234567801",
    counterpart_name="Hausverwaltung Grünberg & Söhne",
    counterpart_iban="DE12500105170648489890",
    counterpart_bic="INGDDEFFXXX",
    purpose="Miete Wohnung 12, Ahornweg 7 und noch etwas",
    bank_transaction_code="PMNT-ICDT-STDO",
    gvc="117",
    bank_text="DAUERAUFTRAG",
)
STATED = StatementRecord(
    opening=Decimal("1000.00"),
    opening_date=date(2025, 12, 31),
    closing=Decimal("110.00"),
    closing_date=date(2026, 1, 31),
)


def written(writer: str, *records: Record) -> str:
    """The file as text."""
    stream = io.BytesIO()
    match writer:
        case "camt053":
            camt053.write(records, stream, created=MADE)
        case "ofx":
            ofx.write(records, stream, created=MADE, today=MADE.date())
        case "csv":
            csv_statement.write(without_classes(records), stream)
        case "mt940":
            mt940.write(records, stream)
        case "beancount":
            beancount.write(((record, Classification(category="RENT")) for record in records), stream)
    return stream.getvalue().decode()


def cells(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.requirement("export.mt940")
def test_mt940_chops_its_fields_at_27_characters_and_states_both_balances() -> None:
    assert written("mt940", GIRO, RENT, STATED).split("\r\n") == [
        ":20:STARTUMS1",
        ":25:DE02120300000000202051",
        ":28C:1/1",
        ":60F:C251231EUR1000,00",
        ":61:2601010102D890,00NMSCNONREF//2601021234567801",
        ":86:117?00DAUERAUFTRAG?20SVWZ+Miete Wohnung 12, Ahor",
        "?21nweg 7 und noch etwas?30INGDDEFFXXX",
        "?31DE12500105170648489890?32Hausverwaltung Grünberg & S",
        "?33öhne",
        ":62F:C260131EUR110,00",
        "-",
        "",
    ]


@pytest.mark.requirement("export.mt940")
@pytest.mark.parametrize(
    ("amount", "is_reversal", "mark"),
    [("-1.50", False, "D1,50"), ("1.50", False, "C1,50"), ("-1.50", True, "RC1,50"), ("1.50", True, "RD1,50")],
)
def test_mt940_marks_reversals_by_what_they_take_back(amount: str, is_reversal: bool, mark: str) -> None:
    text = written("mt940", GIRO, replace(RENT, amount=Decimal(amount), is_reversal=is_reversal), STATED)
    assert f":61:2601010102{mark}NMSC" in text


@pytest.mark.requirement("export.mt940")
@pytest.mark.parametrize(("digits", "reference"), [(16, f"//{'7' * 16}"), (17, "")])
def test_mt940_states_a_reference_whole_or_not_at_all(digits: int, reference: str) -> None:
    text = written("mt940", GIRO, replace(RENT, provider_id="7" * digits), STATED)
    assert f"NONREF{reference}\r\n" in text


@pytest.mark.requirement("export.mt940")
@pytest.mark.parametrize("letters", [21, 22, 23, 49, 50])
def test_mt940_texts_come_back_whole_wherever_the_seam_falls(letters: int) -> None:
    row = replace(RENT, purpose=f"{'a' * letters} b {'c' * 40}", counterpart_name=f"{'d' * (letters % 27)} e f")
    booking = list(connectors.mt940.reader.read(io.BytesIO(written("mt940", GIRO, row, STATED).encode())))[1]
    assert isinstance(booking, TransactionRecord)
    assert (booking.purpose, booking.counterpart_name) == (row.purpose, row.counterpart_name)


@pytest.mark.requirement("export.beancount")
def test_beancount_has_two_postings_the_id_and_an_asserted_balance() -> None:
    assert (
        written("beancount", GIRO, RENT, STATED)
        == """\
1970-01-01 open Equity:Opening-Balances
1970-01-01 open Assets:Musterbank:Girokonto
  account: "DE02120300000000202051"
  iban: "DE02120300000000202051"
  account-name: "Girokonto"
  account-type: "checking"
  account-currency: "EUR"
  bank-name: "Musterbank"
  bic: "BYLADEM1001"
1970-01-01 open Expenses:Rent
2026-01-02 * "Hausverwaltung Grünberg & Söhne" "Miete Wohnung 12, Ahornweg 7 und noch etwas"
  id: "2601021234567801"
  value-date: 2026-01-01
  iban: "DE12500105170648489890"
  bic: "INGDDEFFXXX"
  code: "PMNT-ICDT-STDO"
  gvc: "117"
  bank-text: "DAUERAUFTRAG"
  Assets:Musterbank:Girokonto  -890.00 EUR
  Expenses:Rent  890.00 EUR

2025-12-31 * "Opening balance"
  Assets:Musterbank:Girokonto  1000.00 EUR
  Equity:Opening-Balances  -1000.00 EUR

2026-02-01 balance Assets:Musterbank:Girokonto  110.00 EUR

"""
    )


@pytest.mark.requirement("export.beancount")
def test_beancount_opens_an_account_once_however_often_it_is_told_of() -> None:
    file = written("beancount", GIRO, RENT, STATED, GIRO, replace(RENT, amount=Decimal("-1.00")), STATED)
    assert file.count(" open Assets:") == 1
    assert file.count("\n2026-01-02 * ") == 2


@pytest.mark.requirement("export.beancount")
def test_beancount_names_accounts_apart_and_quotes_texts() -> None:
    second = replace(GIRO, stable_key="DE91100000000123456789", name="Girokonto")
    nameless = replace(GIRO, stable_key="99911000/4711", name=None, bank_name="Bänk für Übermut")
    text = written("beancount", GIRO, second, nameless, replace(RENT, purpose='a "quote" \\ slash'))
    assert "open Assets:Musterbank:Girokonto\n" in text
    assert "open Assets:Musterbank:Girokonto-6789\n" in text
    assert "open Assets:Baenk-fuer-Uebermut:Account-4711\n" in text
    assert r'"a \"quote\" \\ slash"' in text


@pytest.mark.requirement("export.beancount")
def test_beancount_tells_accounts_of_one_name_and_number_apart_by_their_order() -> None:
    twins = [replace(GIRO, currency=currency) for currency in ("EUR", "USD", "CHF")]
    names = [line for line in written("beancount", *twins).splitlines() if "open Assets" in line]
    assert names == [
        "1970-01-01 open Assets:Musterbank:Girokonto",
        "1970-01-01 open Assets:Musterbank:Girokonto-2051",
        "1970-01-01 open Assets:Musterbank:Girokonto-2051-2",
    ]


@pytest.mark.requirement("export.beancount")
def test_beancount_opens_an_account_once_and_books_no_opening_of_nothing() -> None:
    text = written("beancount", GIRO, RENT, RENT, replace(STATED, opening=Decimal("0.00"), closing=None))
    assert text.count("open Expenses:Rent") == 1
    assert "Opening balance" not in text
    assert "balance Assets:Musterbank:Girokonto  -1780.00 EUR" in text


@pytest.mark.requirement("export.beancount")
def test_beancount_leaves_out_what_is_only_announced() -> None:
    assert "890" not in written("beancount", GIRO, replace(RENT, status="pending"))


@pytest.mark.requirement("export.csv")
def test_csv_keeps_accounts_of_which_nothing_is_said() -> None:
    other = replace(GIRO, stable_key="99911000/4711", iban=None)
    records: list[Record] = [GIRO, StatementRecord(), other, StatementRecord()]
    file = written("csv", *records)
    assert [line["record"] for line in cells(file)] == ["account", "account"]
    assert list(csv_statement.read(io.BytesIO(file.encode()))) == records


@pytest.mark.requirement("export.csv")
def test_csv_names_type_and_category_for_the_eye_and_reading_leaves_them_alone() -> None:
    stream = io.BytesIO()
    csv_statement.write(
        [(GIRO, UNCLASSIFIED), (RENT, Classification("standing_order", "RENT")), (STATED, UNCLASSIFIED)], stream
    )
    line = cells(stream.getvalue().decode())[0]
    assert (line["type"], line["category"]) == ("standing_order", "RENT")
    stream.seek(0)
    assert list(csv_statement.read(stream)) == [GIRO, RENT, STATED]


@pytest.mark.requirement("export.ofx")
def test_ofx_keeps_the_kind_of_booking_that_ofx_itself_once_named() -> None:
    assert "<TRNTYPE>SRVCHG</TRNTYPE>" in written("ofx", GIRO, replace(RENT, swift_code="SRVCHG"))
    assert "<TRNTYPE>REPEATPMT</TRNTYPE>" in written("ofx", GIRO, replace(RENT, swift_code="NMSC"))


@pytest.mark.requirement("security.formula")
@pytest.mark.parametrize("text", ["=1+1", "+49 221", "-x", "@SUM(A1)", "'quoted", '=HYPERLINK("a")'])
def test_csv_disarms_formulas_and_gives_the_text_back(text: str) -> None:
    file = written("csv", GIRO, replace(RENT, purpose=text, counterpart_name=text))
    assert cells(file)[0]["purpose"] == f"'{text}"
    booking = list(csv_statement.read(io.BytesIO(file.encode())))[1]
    assert isinstance(booking, TransactionRecord)
    assert (booking.purpose, booking.counterpart_name) == (text, text)


@pytest.mark.requirement("security.formula")
@pytest.mark.parametrize(("text", "cell"), [("-12.50", "-12.50"), ("+7", "+7"), ("0815", "0815"), ("\tx", "'\tx")])
def test_csv_leaves_plain_numbers_alone(text: str, cell: str) -> None:
    file = written("csv", GIRO, replace(RENT, purpose=text))
    assert cells(file)[0]["purpose"] == cell
    assert cells(file)[0]["amount"] == "-890.00"


@pytest.mark.requirement("export.csv")
def test_csv_has_one_line_per_booking_and_balance() -> None:
    lines = cells(written("csv", GIRO, RENT, STATED))
    assert [(line["record"], line["booking_date"], line["amount"]) for line in lines] == [
        ("booked", "2026-01-02", "-890.00"),
        ("opening", "2025-12-31", "1000.00"),
        ("closing", "2026-01-31", "110.00"),
    ]
    assert {line["iban"] for line in lines} == {"DE02120300000000202051"}


@pytest.mark.requirement("export.csv")
@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (("-890.00", "many"), "Line 2"),
        (("2026-01-02", "2026-02-30"), "Line 2"),
        (("booked", "hoped"), "Line 2"),
        (("checking", "pocket"), "Line 2"),
        (("-890.00,EUR", "-890.00"), "Line 2"),
        (("-890.00,EUR", ",EUR"), "Line 2"),
        (("record,account", "record,konto"), "Line 1"),
    ],
)
def test_csv_that_is_damaged_is_refused_with_its_line(damage: tuple[str, str], line: str) -> None:
    file = written("csv", GIRO, RENT, STATED).replace(*damage, 1)
    with pytest.raises(MalformedFile, match=line):
        list(csv_statement.read(io.BytesIO(file.encode())))


@pytest.mark.requirement("security.damage")
@given(st.integers(0, 10_000), st.integers(1, 255), st.booleans())
def test_csv_that_was_cut_or_flipped_is_read_or_refused_but_never_crashes(at: int, bit: int, is_cut: bool) -> None:
    file = bytearray(written("csv", GIRO, RENT, RENT, STATED).encode())
    at %= len(file)
    if is_cut:
        del file[at:]
    else:
        file[at] ^= bit
    with suppress(SourceError):
        list(csv_statement.read(io.BytesIO(bytes(file))))


@pytest.mark.requirement("security.limits")
def test_csv_refuses_an_endless_line() -> None:
    file = written("csv", GIRO, RENT).replace("Ahornweg", "A" * 70_000)
    with pytest.raises(LimitExceeded):
        list(csv_statement.read(io.BytesIO(file.encode())))


@pytest.mark.requirement("security.limits")
def test_csv_of_too_many_lines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_statement, "ENTRIES_MAX", 3)
    assert len(list(csv_statement.read(io.BytesIO(written("csv", GIRO, RENT, STATED).encode())))) == 3
    with pytest.raises(LimitExceeded):
        list(csv_statement.read(io.BytesIO(written("csv", GIRO, RENT, RENT, STATED).encode())))


@pytest.mark.requirement("export.csv")
def test_csv_is_recognised_by_its_header() -> None:
    file = written("csv", GIRO).encode()
    assert csv_statement.detect(file)
    assert csv_statement.detect(b"\xef\xbb\xbf" + file)
    assert not csv_statement.detect(b"record;account;iban")


@pytest.mark.requirement("export.camt053")
def test_camt_cuts_long_texts_at_spaces_and_they_come_back_whole() -> None:
    purpose = " ".join(f"word{number}" for number in range(60))
    stream = io.BytesIO(written("camt053", GIRO, replace(RENT, purpose=purpose), STATED).encode())
    booking = list(camt.read(stream))[1]
    assert isinstance(booking, TransactionRecord)
    assert booking.purpose == purpose


@pytest.mark.requirement("export.camt053")
def test_camt_carries_an_id_of_this_service_without_its_dash_because_keys_end_at_35_characters() -> None:
    own = f"txn_{'0123456789abcdef' * 2}"
    assert f"<AcctSvcrRef>txn{own[4:]}</AcctSvcrRef>" in written("camt053", GIRO, replace(RENT, provider_id=own))


@pytest.mark.requirement("export.camt053")
def test_camt_of_a_returned_debit_names_the_creditor_as_the_other_side() -> None:
    text = written("camt053", GIRO, replace(RENT, amount=Decimal("890.00"), is_return=True), STATED)
    assert "<Cdtr><Pty><Nm>Hausverwaltung Grünberg &amp; Söhne</Nm></Pty></Cdtr>" in text
    assert "<RtrInf>" in text


@pytest.mark.requirement("export.streaming")
@pytest.mark.parametrize("statement", [STATED, replace(STATED, opening=None), replace(STATED, closing=None)])
def test_a_missing_balance_follows_from_the_other_one_and_the_booked_rows(statement: StatementRecord) -> None:
    announced = replace(RENT, status="pending")
    (balances,) = [block.balances() for block in blocks([GIRO, RENT, announced, statement], lambda *_: "")]
    assert balances == (Decimal("1000.00"), Decimal("110.00"))


@pytest.mark.requirement("export.streaming")
@pytest.mark.parametrize("writer", ["camt053", "ofx", "csv", "mt940", "beancount"])
def test_no_records_make_a_file_and_a_lone_account_is_no_error(writer: str) -> None:
    assert written(writer) or writer == "mt940"
    assert written(writer, GIRO)


@pytest.mark.requirement("export.streaming")
def test_rows_are_taken_from_the_source_one_by_one() -> None:
    alive: list[int] = []

    def records() -> Iterator[Record]:
        yield GIRO
        for number in range(3):
            alive.append(number)
            yield RENT

    taken: list[int] = []

    def render(_: AccountRecord, row: TransactionRecord) -> str:
        taken.append(len(alive))
        return row.currency

    for block in blocks(records(), render):
        assert block.total == 3 * RENT.amount
    assert taken == [1, 2, 3]


@pytest.mark.requirement("export.ofx")
def test_an_ofx_account_that_states_no_day_is_of_the_persons_day_and_not_of_utc() -> None:
    stream = io.BytesIO()
    ofx.write([GIRO, StatementRecord()], stream, created=datetime(2026, 11, 21, 23, 30), today=date(2026, 11, 22))  # noqa: DTZ001 - UTC
    assert b"<DTSERVER>20261121233000</DTSERVER>" in stream.getvalue()
    assert b"<DTSTART>20261122</DTSTART><DTEND>20261122</DTEND>" in stream.getvalue()
