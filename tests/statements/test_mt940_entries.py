"""MT940 and MT942, a booking at a time: what banks write into its line and its text."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from connectors.mt940.reader import read
from tests.statements.conftest import booking

Text = Callable[..., str]
Gather = Callable[..., Any]


@pytest.mark.requirement("readers.mt940.sign")
@pytest.mark.parametrize(
    ("mark", "amount", "reversal"),
    [
        ("C", "12.34", False),
        ("D", "-12.34", False),
        ("RC", "-12.34", True),
        ("RD", "12.34", True),
        ("CR", "12.34", False),
        ("DR", "-12.34", False),
        ("RCR", "-12.34", True),
        ("d", "-12.34", False),
        ("C ", "12.34", False),
    ],
)
def test_a_reversed_credit_leaves_the_account(
    mark: str, amount: str, reversal: bool, found: Gather, block: Text
) -> None:
    row = found(read, block(booking(line=f":61:260130{mark}12,34NTRFNONREF"))).only
    assert (row.amount, row.is_reversal) == (Decimal(amount), reversal)


@pytest.mark.requirement("readers.mt940.dates")
@pytest.mark.parametrize(
    ("dates", "booked", "value"),
    [
        ("260130", date(2026, 1, 30), date(2026, 1, 30)),
        ("2601300129", date(2026, 1, 29), date(2026, 1, 30)),
        ("2512310102", date(2026, 1, 2), date(2025, 12, 31)),
        ("2601021231", date(2025, 12, 31), date(2026, 1, 2)),
        ("2602300301", date(2026, 3, 1), date(2026, 2, 28)),
        ("2402300230", date(2024, 2, 29), date(2024, 2, 29)),
        ("9912310102", date(2000, 1, 2), date(1999, 12, 31)),
        ("20260130", date(2026, 1, 30), date(2026, 1, 30)),
        ("260130    ", date(2026, 1, 30), date(2026, 1, 30)),
    ],
)
def test_the_entry_day_is_in_the_year_nearest_to_the_value_date(
    dates: str, booked: date, value: date, found: Gather, block: Text
) -> None:
    row = found(read, block(booking(line=f":61:{dates}C1,00NTRF"))).only
    assert (row.booking_date, row.value_date) == (booked, value)


@pytest.mark.requirement("readers.mt940.amount")
@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("12,", "12"),
        ("12,5", "12.5"),
        ("000000012,50", "12.5"),
        ("12", "12"),
        ("12.50", "12.5"),
        ("1.234,50", "1234.5"),
    ],
)
def test_amounts_with_commas_points_and_neither(written: str, amount: str, found: Gather, block: Text) -> None:
    assert found(read, block(booking(line=f":61:260130C{written}NTRFNONREF"))).only.amount == Decimal(amount)


@pytest.mark.requirement("readers.mt940.german")
def test_every_field_of_a_german_direct_debit(found: Gather, block: Text) -> None:
    details = (
        "105?00FOLGELASTSCHRIFT?109310?20EREF+E2E-1?21MREF+M-1?22CRED+DE98ZZZ09999999999?23SVWZ+Abschlag Strom 01/20\n"
        "?2426 Kunde 4711?30BYLADEM1001?31DE02120300000000202051?32Stadtwerke Musterstadt Ver?33trieb GmbH?34992"
    )
    row = found(read, block(booking(details, line=":61:2601300130D12,34NDDTNONREF//2601300000012345"))).only
    assert row.end_to_end_id == "E2E-1"
    assert row.mandate_reference == "M-1"
    assert row.creditor_id == "DE98ZZZ09999999999"
    assert row.purpose == "Abschlag Strom 01/20 26 Kunde 4711"
    assert (row.counterpart_iban, row.counterpart_bic) == ("DE02120300000000202051", "BYLADEM1001")
    assert row.counterpart_name == "Stadtwerke Musterstadt Ver trieb GmbH"
    assert (row.gvc, row.swift_code, row.bank_transaction_code) == ("105", "NDDT", "PMNT-RDDT-ESDD")
    assert row.bank_text == "FOLGELASTSCHRIFT"
    assert row.references == ("servicer:2601300000012345",)


@pytest.mark.requirement("readers.mt940.german")
def test_subfields_of_27_characters_go_on_without_a_break(found: Gather, block: Text) -> None:
    details = "166?00GUTSCHRIFT?20SVWZ+abcdefghijklmnopqrstuv?21wxyz und?22mehr?32Erika"
    row = found(read, block(booking(details))).only
    assert row.purpose == "abcdefghijklmnopqrstuvwxyz und mehr"


@pytest.mark.requirement("readers.mt940.german")
def test_a_tag_cut_by_the_end_of_the_line_is_one_tag(found: Gather, block: Text) -> None:
    row = found(read, block(booking("166?00GUTSCHRIFT?20SVWZ+Miete?3\n2Erika?3\n1DE02120300000000202051"))).only
    assert (row.purpose, row.counterpart_name) == ("Miete", "Erika")
    assert row.counterpart_iban == "DE02120300000000202051"


@pytest.mark.requirement("readers.mt940.german")
def test_a_line_that_begins_with_half_a_time_is_no_field(found: Gather, block: Text) -> None:
    for half in (":30:45", ":25:59 Uhr", ":20:15 Ware", ":12:00"):
        row = found(read, block(booking(f"105?20SVWZ+Karte 2026-01-30T12\n{half}?32Shop"))).only
        assert half.replace(":", "") in (row.purpose or "").replace(":", "")
        assert row.counterpart_name == "Shop"


@pytest.mark.requirement("readers.mt940.german")
def test_the_real_payer_stands_in_for_a_missing_name(found: Gather, block: Text) -> None:
    row = found(read, block(booking("105?20SVWZ+Ware ABWA+Shop AG?31123?30DEUTDEFF"))).only
    assert (row.purpose, row.counterpart_name, row.counterpart_iban) == ("Ware", "Shop AG", None)


@pytest.mark.requirement("readers.mt940.german")
def test_labels_of_cooperative_banks_are_read_and_stay_in_the_text(found: Gather, block: Text) -> None:
    text = "166?20EREF: E2E-9 Miete?21IBAN: DE02120300000000202051 ?22BIC: BYLADEM1001?32Erika"
    row = found(read, block(booking(text))).only
    assert (row.end_to_end_id, row.counterpart_iban) == ("E2E-9", "DE02120300000000202051")
    assert "Miete" in row.purpose


@pytest.mark.requirement("readers.gvc")
@pytest.mark.parametrize(
    ("account", "gvc"), [("37040044/0532013000", "116"), ("BREXPLPW/123456", None), ("1234", None)]
)
def test_three_digits_are_a_gvc_only_at_a_german_bank(
    account: str, gvc: str | None, found: Gather, block: Text
) -> None:
    assert found(read, block(booking("116?00X?20text"), account=account)).only.gvc == gvc


@pytest.mark.requirement("readers.mt940.return")
def test_a_returned_direct_debit_is_a_return(found: Gather, block: Text) -> None:
    row = found(read, block(booking("109?00RETOURE?20SVWZ+x"))).only
    assert (row.is_return, row.is_reversal) == (True, False)


@pytest.mark.requirement("readers.mt940.dutch")
def test_dutch_codes_between_slashes(found: Gather, block: Text) -> None:
    details = (
        "/TRTP/SEPA INCASSO ALGEMEEN DOORLOPEND/CSID/DE98ZZZ09999999999/NAME\n"
        "/ENERGIE BV/MARF/M-77/REMI/FACTUUR 12 JANUARI/IBAN/NL91ABNA0417164300/BIC/ABNANL2A/EREF/E-5"
    )
    row = found(read, block(booking(details), account="417164300")).only
    assert row.counterpart_name == "ENERGIE BV"
    assert (row.counterpart_iban, row.counterpart_bic) == ("NL91ABNA0417164300", "ABNANL2A")
    assert (row.mandate_reference, row.creditor_id, row.end_to_end_id) == ("M-77", "DE98ZZZ09999999999", "E-5")
    assert (row.purpose, row.bank_text) == ("FACTUUR 12 JANUARI", "SEPA INCASSO ALGEMEEN DOORLOPEND")


@pytest.mark.requirement("readers.mt940.dutch")
def test_ing_names_the_counterpart_by_place(found: Gather, block: Text) -> None:
    details = "/EREF/E-1//CNTP/NL91ABNA0417164300/ABNANL2A/J JANSEN/AMSTERDAM//REMI/USTD//HUUR MAART/"
    row = found(read, block(booking(details, line=":61:260130D1,00NTRFEREF//26013012345\n/TRCD/00100/"))).only
    assert (row.counterpart_name, row.counterpart_iban) == ("J JANSEN", "NL91ABNA0417164300")
    assert (row.purpose, row.bank_text) == ("HUUR MAART", None)


@pytest.mark.requirement("readers.mt940.dutch")
def test_rabobank_asn_and_sns_put_the_counterpart_into_the_customer_reference(found: Gather, block: Text) -> None:
    rabobank = booking("/BENM//NAME/Bakker/REMI/Brood", line=":61:260130D000000001,00N541NL91ABNA0417164300")
    row = found(read, block(rabobank)).only
    assert (row.counterpart_iban, row.counterpart_name, row.purpose) == ("NL91ABNA0417164300", "Bakker", "Brood")
    newer = booking("/EREF/E-1//BENM//NAME/Bakker", line=":61:260130D1,00N102EREF\nNL91ABNA0417164300")
    row = found(read, block(newer)).only
    assert (row.counterpart_iban, row.end_to_end_id, row.bank_text) == ("NL91ABNA0417164300", "E-1", None)
    asn = booking(
        "NL91ABNA0417164300 de bakker\n   \nbrood en taart", line=":61:260130D1,00NOVBNL91ABNA0417164300\nde bakker"
    )
    row = found(read, block(asn)).only
    assert (row.counterpart_iban, row.counterpart_name, row.purpose) == (
        "NL91ABNA0417164300",
        "de bakker",
        "brood en taart",
    )
    sns = booking("0417164300 de bakker\n   \nbrood en taart", line=":61:260130D1,00NIOB0417164300\nde bakker")
    row = found(read, block(sns)).only  # numbers of before IBAN, or an IBAN whose digits were made unreadable
    assert (row.counterpart_iban, row.counterpart_name, row.purpose) == (None, "de bakker", "brood en taart")
    other = booking("0417164300 de slager, worst", line=":61:260130D1,00NIOB0417164300\nde bakker")
    row = found(read, block(other)).only
    assert (row.counterpart_name, row.purpose) == (None, "0417164300 de slager, worst")


@pytest.mark.requirement("readers.mt940.dutch")
def test_old_dutch_labels(found: Gather, block: Text) -> None:
    details = "SEPA OVERBOEKING   IBAN: NL91ABNA0417164300  BIC: ABNANL2A   NAAM: J JANSEN   OMSCHRIJVING: HUUR"
    row = found(read, block(booking(details))).only
    assert (row.counterpart_name, row.counterpart_iban, row.purpose) == ("J JANSEN", "NL91ABNA0417164300", "HUUR")


@pytest.mark.requirement("readers.mt940")
def test_free_text_over_several_lines_and_fields(found: Gather, block: Text) -> None:
    row = found(read, block(":61:260130C1,00NMSCNONREF\n:86:Zahlung\n Rechnung 12\n:86:Kunde 4")).only
    assert row.purpose == "Zahlung Rechnung 12 Kunde 4"


@pytest.mark.requirement("readers.mt940")
def test_text_before_the_first_and_after_the_last_booking_belongs_to_none(found: Gather, block: Text) -> None:
    text = block(f":86:statement\n{booking('mine')}", closing=":62F:C260131EUR87,66\n:86:summary")
    assert found(read, text).only.purpose == "mine"


@pytest.mark.requirement("readers.mt940.original_amount")
@pytest.mark.parametrize(
    ("code", "amount", "currency"),
    [
        ("/OCMT/USD1,15/", Decimal("1.15"), "USD"),
        ("/OCMT/USD1,15//CHGS/EUR0,10/", Decimal("1.15"), "USD"),
        ("/OCMT/EUR1,00/", None, None),
        ("/OCMT/USD1,1,5/", None, None),
    ],
)
def test_the_amount_paid_abroad_is_kept(
    code: str, amount: Decimal | None, currency: str | None, found: Gather, block: Text
) -> None:
    row = found(read, block(booking("x", line=f":61:260130D1,00NTRFNONREF\n{code}"))).only
    assert (row.original_amount, row.original_currency) == (amount, currency)


@pytest.mark.requirement("readers.references")
@pytest.mark.parametrize("reference", ["NONREF", "0000000", "BEA betaling", "WORDS"])
def test_words_and_placeholders_are_no_bank_reference(reference: str, found: Gather, block: Text) -> None:
    assert found(read, block(booking(line=f":61:260130D1,00NTRFX//{reference}"))).only.references == ()


@pytest.mark.requirement("readers.references")
def test_a_reference_that_looks_like_a_date_stays_whole(found: Gather, block: Text) -> None:
    row = found(read, block(booking(line=":61:2601300130D1,00NTRFNONREF//20260131C77"))).only
    assert row.references == ("servicer:20260131C77",)


@pytest.mark.requirement("readers.mt940")
def test_ns_fields_of_old_german_programs(found: Gather, block: Text) -> None:
    text = ":61:260130C1,00NMSCNONREF\n:NS:01Rechnung\n02Nummer 7\n15Erika\n16Muster\n17GUTSCHRIFT\n1812:30\nxx"
    row = found(read, block(text)).only
    assert (row.purpose, row.counterpart_name, row.bank_text) == ("Rechnung Nummer 7", "Erika Muster", "GUTSCHRIFT")


@pytest.mark.requirement("readers.mt940.dutch")
def test_a_slashed_text_without_a_name_is_all_purpose(found: Gather, block: Text) -> None:
    row = found(read, block(booking("/TRCD/00100/"))).only
    assert row.purpose == "/TRCD/00100/"
    assert found(read, block(booking("/PURP/CD/SALA/NAME/X"))).only.purpose_code == "SALA"


@pytest.mark.requirement("readers.mt940.dates")
@pytest.mark.parametrize(("entry", "day"), [("1399", date(2026, 1, 30)), ("0132", date(2026, 1, 30))])
def test_an_entry_day_that_does_not_exist_is_that_of_the_value(
    entry: str, day: date, found: Gather, block: Text
) -> None:
    assert found(read, block(f":61:260130{entry}D12,34NTRF")).only.booking_date == day
