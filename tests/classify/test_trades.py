"""What a shop's own words, a masked name or a line of the bank's say against a brand and a default."""

from collections.abc import Callable

import polars as pl
import pytest

from analytics.classification.classify import classify

Bookings = Callable[..., pl.DataFrame]


def answer(rows: pl.DataFrame) -> tuple[str | None, str | None, str | None]:
    """Type, category, merchant of one row."""
    row = classify(rows, own_ibans={}).row(0, named=True)
    return row["type"], row["category"], row["merchant_name"]


@pytest.mark.requirement("issue 4 merchant")
@pytest.mark.parametrize(
    ("name", "category", "merchant"),
    [
        ("BAECKEREI KLINGEL", "GROCERIES", "Baeckerei Klingel"),
        ("KLINGEL 33", "SHOPPING", "Klingel"),
        ("SATURN APOTHEKE", "HEALTH", "Saturn Apotheke"),
        ("SATURN 112", "SHOPPING", "Saturn"),
        ("TANKSTELLE SHELL", "TRANSPORT", "Tankstelle Shell"),
        ("RESTAURANT IKEA", "DINING", "Restaurant Ikea"),
        ("IKEA RESTAURANT", "SHOPPING", "IKEA"),  # a sure name at the beginning stays the name
        ("Q-PARK BIJENKORF", "TRANSPORT", "Q-Park"),
        ("REWE MARKT SHELL", "GROCERIES", "REWE"),
    ],
)
def test_the_first_name_on_a_slip_is_the_shop_unless_its_trade_says_otherwise(
    bookings: Bookings, name: str, category: str, merchant: str
) -> None:
    row = {"amount": "-1", "counterpart_name": name, "bank_text": "KARTENZAHLUNG"}
    assert answer(bookings(row)) == ("card_payment", category, merchant)


@pytest.mark.requirement("issue 4 category precision")
def test_a_word_may_count_for_cards_only(bookings: Bookings) -> None:
    canteen = {"amount": "-4", "counterpart_name": "Studentenwerk Dresden"}
    assert answer(bookings({**canteen, "bank_text": "KARTENZAHLUNG"}))[1] == "DINING"
    assert answer(bookings({**canteen, "bank_text": "LASTSCHRIFT", "purpose": "Wohnheimmiete Mai"}))[1] == "RENT"


@pytest.mark.requirement("issue 4 category precision")
def test_a_word_may_count_for_money_that_comes_in(bookings: Bookings) -> None:
    row = {"counterpart_name": "Bundesagentur fuer Arbeit - Familienkasse", "purpose": "Kindergeld 05"}
    assert answer(bookings({"amount": "255", "bank_text": "GUTSCHRIFT", **row}))[:2] == ("transfer", "SALARY")
    assert answer(bookings({"amount": "-255", "bank_text": "UEBERWEISUNG", **row}))[:2] == ("transfer", "OTHER")


@pytest.mark.requirement("issue 4 category precision")
@pytest.mark.parametrize(
    ("purpose", "expected"),
    [
        ("Uebertrag auf Tagesgeldkonto", "SAVINGS"),  # what it is for says more than how it goes
        ("Uebertrag auf Girokonto", "TRANSFER"),
        ("MIETE04/26", "RENT"),  # words run into numbers
        ("42", "TRANSFER"),
    ],
)
def test_what_a_transfer_is_for(bookings: Bookings, purpose: str, expected: str) -> None:
    row = {"amount": "-1", "counterpart_name": "Birte Asmussen", "purpose": purpose, "bank_text": "UEBERWEISUNG"}
    assert answer(bookings(row))[1] == expected


@pytest.mark.requirement("issue 4 category precision")
@pytest.mark.parametrize(
    ("name", "purpose", "expected"),
    [
        ("Lena Quandt", "", "TRANSFER"),
        ("+46700000000", "", "TRANSFER"),
        ("J.P. van der Meulen", "", "TRANSFER"),
        ("LLXXX ADXXX", "", "OTHER"),  # masked: nobody can tell what it was
        ("", "VIR SEPA M. DUPUIS THIERRY remboursement", "TRANSFER"),
        ("", "GIRO AUS 4711 AUFTRAGGEBER: JANE DOE, BEISPIELWEG 10", "TRANSFER"),
        ("", "GIRO AUS 4711 AUFTRAGGEBER: BEISPIEL AG", "OTHER"),
    ],
)
def test_people_are_told_from_companies_and_are_no_merchants(
    bookings: Bookings, name: str, purpose: str, expected: str
) -> None:
    row = {"amount": "-1", "counterpart_name": name, "purpose": purpose, "bank_text": "transfer"}
    assert answer(bookings(row)) == ("transfer", expected, None)


@pytest.mark.requirement("issue 4 type accuracy")
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"bank_text": "LASTSCHRIFT", "purpose": "Abrechnung Karte 1234"}, "card_payment"),
        ({"bank_text": "LASTSCHRIFT", "purpose": "Abrechnung Karte 1234", "mandate_reference": "M"}, "direct_debit"),
        ({"purpose": "CB BEISPIEL NANTES 12/05"}, "card_payment"),
        ({"purpose": "PAGO EN E.S. BEISPIEL TARJ 1123"}, "card_payment"),
        ({"counterpart_name": "BLUE DOOR 412 AUSTIN TX", "swift_code": "DEBIT"}, "card_payment"),
        ({"counterpart_name": "BLUE DOOR 412 AUSTIN TX"}, "other"),
        ({"bank_text": "Autogiro"}, "direct_debit"),
        ({"bank_text": "Płatność kartą"}, "card_payment"),
        ({"bank_text": "Opłata za kartę"}, "fee"),
        ({"bank_text": "Výběr z bankomatu"}, "cash_withdrawal"),
    ],
)
def test_card_slips_and_words_of_banks_of_many_countries(
    bookings: Bookings, row: dict[str, str], expected: str
) -> None:
    assert answer(bookings({"amount": "-1", **row}))[0] == expected


@pytest.mark.requirement("issue 4 category precision")
@pytest.mark.parametrize("name", ["Jana Lindström", "Peter Strom", "Anna Gas"])
def test_the_name_of_a_person_says_nothing_of_what_is_paid(bookings: Bookings, name: str) -> None:
    row = {"amount": "-18.50", "counterpart_name": name, "counterpart_iban": "DE02120300000000202051"}
    assert answer(bookings({**row, "purpose": "Danke"})) == ("transfer", "TRANSFER", None)
    assert answer(bookings({**row, "purpose": "Miete Mai"})) == ("transfer", "RENT", None)
