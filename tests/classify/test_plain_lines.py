"""Lists without codes in four languages: what has a category gets it, and what gets one has it."""

from pathlib import Path

import pytest

from analytics.classification.classify import classify
from tests.classify.conftest import Bookings

PRECISION_MIN = 0.96
RECALL_MIN = 0.88
HOUSEHOLD = ("SALARY", "RENT", "INSURANCE", "TRANSPORT")
HOUSEHOLD_RECALL_MIN = 0.87


def lines() -> dict[str, list[list[str]]]:
    """Category, amount, name and purpose by language."""
    found: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name("plain_lines.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("# --- "):
            found[line.removeprefix("# --- ")] = []
        elif not line.startswith("#"):
            found[list(found)[-1]].append([part.strip() for part in line.split("|")])
    return found


@pytest.mark.requirement("issue 4 category precision")
@pytest.mark.parametrize("language", lines())
def test_each_language_has_words_for_pay_home_insurance_and_fuel(language: str, bookings: Bookings) -> None:
    written = lines()[language]
    rows = [
        {"amount": amount} | {key: text for key, text in (("counterpart_name", name), ("purpose", purpose)) if text}
        for _, amount, name, purpose in written
    ]
    answers = list(zip([line[0] for line in written], classify(bookings(*rows), own_ibans={})["category"], strict=True))
    told = [said == given for said, given in answers if given != "OTHER"]
    known = [said == given for said, given in answers if said != "OTHER"]
    household = [said == given for said, given in answers if said in HOUSEHOLD]
    assert len(answers) >= 150
    assert sum(told) >= PRECISION_MIN * len(told)
    assert sum(known) >= RECALL_MIN * len(known)
    assert sum(household) >= HOUSEHOLD_RECALL_MIN * len(household)


@pytest.mark.requirement("decision.rent")
@pytest.mark.parametrize(
    "purpose",
    ["Mortgage payment 03/26", "Hypothekarzins", "Prêt immobilier", "Hipoteca", "Rata mutuo", "Hypotheek maart"],
)
def test_a_mortgage_is_what_a_home_costs_like_rent(purpose: str, bookings: Bookings) -> None:
    rows = bookings({"amount": "-900.00", "counterpart_name": "Example Bank", "purpose": purpose})
    assert classify(rows, own_ibans={})["category"].to_list() == ["RENT"]


@pytest.mark.requirement("decision.rent")
def test_service_charges_of_a_home_are_no_fees_of_the_bank(bookings: Bookings) -> None:
    rows = bookings(
        {"amount": "-120.00", "counterpart_name": "Elm Court", "purpose": "Service charge flat 12"},
        {"amount": "-5.00", "purpose": "Service charge"},
    )
    assert classify(rows, own_ibans={})["category"].to_list() == ["RENT", "OTHER"]


@pytest.mark.requirement("issue 4 category precision")
def test_a_bare_name_of_a_brand_is_that_brand_and_a_name_of_several_words_is_not(bookings: Bookings) -> None:
    names = ["BP", "BOOTS 1223", "JET", "Boots Michael"]
    rows = bookings(*({"amount": "-20.00", "counterpart_name": name} for name in names))
    assert classify(rows, own_ibans={})["category"].to_list() == ["TRANSPORT", "HEALTH", "TRANSPORT", "TRANSFER"]


@pytest.mark.requirement("issue 4 category precision")
def test_a_line_that_names_a_person_and_no_more_is_a_transfer_one_with_an_initial_is_not(bookings: Bookings) -> None:
    rows = bookings(
        {"amount": "-40.00", "counterpart_name": "Sarah Whitfield", "purpose": "dinner"},
        {"amount": "-40.00", "counterpart_name": "E. Leclerc"},
    )
    assert classify(rows, own_ibans={})["category"].to_list() == ["TRANSFER", "OTHER"]
