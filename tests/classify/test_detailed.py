"""The finer category: below the category and never in its way, told by the first source that knows one."""

from pathlib import Path

import polars as pl
import pytest

from analytics.classification.booking_types import Verdict
from analytics.classification.categories import MCCS as CATEGORIES_BY_MCC
from analytics.classification.categories import PURPOSES as CATEGORIES_BY_PURPOSE
from analytics.classification.classify import classify, with_leaves
from analytics.classification.facts import CATEGORIES, LEAVES, category_of, table
from analytics.classification.leaves import MCCS, PURPOSES
from analytics.classification.rules import ChosenCategory, parse_rules
from tests.classify.conftest import IBAN, Bookings

pytestmark = pytest.mark.requirement("decision.detailed category")

PRECISION_MIN = 0.95
COVERAGE_MIN = 0.75
Labelled = tuple[pl.DataFrame, pl.DataFrame]


def detailed(rows: pl.DataFrame, **arguments: object) -> list[tuple[str | None, str | None]]:
    """The finer category of each row and the rule behind it."""
    answers = classify(rows, **{"own_ibans": {}, **arguments})  # type: ignore[arg-type]  # keywords of classify
    return answers.select("detailed_category", "detailed_rule").rows()


@pytest.mark.parametrize(
    ("name", "is_of_every_leaf"),
    [("detailed_lines.tsv", True), ("more_detailed_lines.tsv", True), ("fresh_detailed_lines.tsv", False)],
)
def test_a_finer_category_is_right_on_95_of_100_lines_that_have_one_and_three_quarters_have_one(
    bookings: Bookings, name: str, is_of_every_leaf: bool
) -> None:
    said, written = [], []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            leaf, amount, shop, purpose, *further = (part.strip() for part in line.split("|"))
            given = {"amount": amount, "counterpart_name": shop, "purpose": purpose}
            pairs = (pair.strip().split("=", 1) for pair in (further or [""])[0].split(";") if pair.strip())
            written.append({key: text for key, text in (given | dict(pairs)).items() if text})
            said.append(None if leaf == "-" else leaf)
    answers = [leaf for leaf, _ in detailed(bookings(*written))]
    answered = [told == given for told, given in zip(said, answers, strict=True) if given]
    labelled = [told == given for told, given in zip(said, answers, strict=True) if told]
    assert len(said) >= 250
    different = {leaf for leaf in said if leaf}
    assert different == set(LEAVES) if is_of_every_leaf else different < set(LEAVES)
    assert sum(answered) >= PRECISION_MIN * len(answered)
    assert sum(labelled) >= COVERAGE_MIN * len(labelled)


def test_there_are_120_below_the_thirteen_each_with_names_in_both_languages() -> None:
    assert len(LEAVES) == 120
    assert {leaf.category for leaf in LEAVES.values()} == set(CATEGORIES)
    assert all(leaf.plaid for leaf in LEAVES.values())
    assert {category_of(code) for code in (*LEAVES, *CATEGORIES)} == set(CATEGORIES)


def test_a_code_and_a_word_name_leaves_that_exist_and_codes_agree_with_the_category() -> None:
    assert {leaf for leaf, _, _ in table("leaf_words.tsv")} | {"RENTAL_INCOME"} == set(LEAVES)
    assert {scope for _, scope, _ in table("leaf_words.tsv")} == {"name", "text", "credit", "else"}
    by_code = {code: category_of(leaf) for code, leaf in MCCS.items() if code in CATEGORIES_BY_MCC}
    assert by_code == {code: CATEGORIES_BY_MCC[code] for code in by_code}
    for (code, sign), leaf in PURPOSES.items():
        for known in {CATEGORIES_BY_PURPOSE.get((code, each)) for each in (sign, "*")} - {None}:
            assert category_of(leaf) == known, code
    assert "5815" not in MCCS, "video or music"


def test_what_lies_elsewhere_is_dropped_and_the_category_stays(labelled: Labelled, bookings: Bookings) -> None:
    rows, _ = labelled
    answers = classify(rows, own_ibans={})
    known = answers.filter(pl.col("detailed_category").is_not_null())
    below = known["detailed_category"].replace_strict({code: leaf.category for code, leaf in LEAVES.items()})
    assert below.equals(known["category"], check_names=False)
    assert answers.filter(pl.col("detailed_category").is_null() != pl.col("detailed_rule").is_null()).is_empty()
    corrected = {"merchant:shell": ChosenCategory("GROCERIES")}
    shell = bookings({"amount": "-9.00", "counterpart_name": "SHELL 1", "bank_text": "KARTENZAHLUNG"})
    assert detailed(shell) == [("FUEL", "brand:shell")]
    assert detailed(shell, corrections=corrected) == [(None, None)]
    rules = parse_rules('{"field": "counterpartName", "operator": "contains", "value": "shell", "category": "OTHER"}')
    assert detailed(shell, rules=rules) == [(None, None)]


def test_a_word_of_the_new_category_gives_its_leaf_after_a_correction(bookings: Bookings) -> None:
    row = bookings({"amount": "-9.00", "counterpart_name": "Kiosk Cafe Blau", "bank_text": "KARTENZAHLUNG"})
    assert detailed(row) == [("CAFE", "keyword:cafe")]
    corrected = {"merchant:kiosk cafe blau": ChosenCategory("SHOPPING")}
    assert detailed(row, corrections=corrected) == [("TOBACCO_KIOSK", "keyword:kiosk*")]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"counterpart_name": "UBER EATS", "mcc": "5814"}, ("MEAL_DELIVERY", "brand:uber-eats")),
        ({"counterpart_name": "Cafe Blau", "mcc": "5812"}, ("CAFE", "keyword:cafe")),
        ({"counterpart_name": "Zum Blauen", "mcc": "5812"}, ("RESTAURANT", "mcc:5812")),
        ({"counterpart_name": "Q 17", "mcc": "5541"}, ("FUEL", "mcc:5541")),
        ({"counterpart_name": "Ohm AG", "purpose_code": "ELEC"}, ("ELECTRICITY", "purpose-code:ELEC")),
        ({"counterpart_name": "E.ON Energie", "purpose": "Abschlag Gas"}, ("HEATING", "keyword:abschlag gas")),
        ({"counterpart_name": "E.ON Energie"}, ("ELECTRICITY", "brand:e-on")),
        ({"counterpart_name": "Stadtkasse Witten", "purpose": "Grundsteuer"}, ("PROPERTY_TAX", "keyword:grundsteuer*")),
        ({"counterpart_name": "Stadtkasse Witten"}, ("GOVERNMENT_FEES", "keyword:stadtkasse*")),
        ({"bank_text": "SCHECKEINREICHUNG", "counterpart_name": "Nr 12"}, ("CHECK", "keyword:scheckeinreichung*")),
        ({"counterpart_name": "Petra Beispiel", "bank_text": "UEBERWEISUNG"}, ("PERSON_TO_PERSON", "default:transfer")),
    ],
)
def test_the_first_source_that_knows_one_answers(
    bookings: Bookings, row: dict[str, str], expected: tuple[str, str]
) -> None:
    assert detailed(bookings({"amount": "-12.00", **row})) == [expected]


@pytest.mark.parametrize(
    ("amount", "row", "expected"),
    [
        ("720.00", {"counterpart_name": "Ute Beispiel", "purpose": "Miete"}, "RENTAL_INCOME"),
        ("-720.00", {"counterpart_name": "Ute Beispiel", "purpose": "Miete"}, "HOME_RENT"),
        ("50.00", {"counterpart_name": "Finanzamt Bonn", "purpose": "Einkommensteuer"}, "TAX_REFUND"),
        ("1.00", {"purpose": "Zinsen", "bank_text": "ZINSEN"}, "INTEREST_EARNED"),
        ("-1.00", {"purpose": "Zinsen", "bank_text": "ZINSEN"}, "INTEREST_PAID"),
        ("-12.00", {"counterpart_name": "Nebel AG", "purpose": "Rechnung 7"}, None),
    ],
)
def test_taxes_interest_loans_and_rent_are_others_when_money_comes_in(
    bookings: Bookings, amount: str, row: dict[str, str], expected: str | None
) -> None:
    assert detailed(bookings({"amount": amount, **row}))[0][0] == expected


@pytest.mark.parametrize(
    ("kind", "other", "expected"),
    [
        ("checking", "savings", "SAVINGS_ACCOUNT"),
        ("securities", "checking", "SECURITIES"),
        ("checking", "building_savings", "BUILDING_SAVINGS"),
        ("checking", "credit_card", "CARD_SETTLEMENT"),
        ("checking", None, "OWN_TRANSFER"),
    ],
)
def test_between_own_accounts_their_kinds_tell(bookings: Bookings, kind: str, other: str | None, expected: str) -> None:
    rows = bookings({"amount": "-5.00", "counterpart_iban": IBAN, "purpose": "Miete", "account_kind": kind})
    assert detailed(rows, own_ibans={IBAN: other}) == [(expected, "own-account")]


def test_what_was_stored_before_gets_the_leaf_that_its_category_has_room_for(labelled: Labelled) -> None:
    rows, _ = labelled
    answers = classify(rows, own_ibans={})
    stored = rows.with_columns(answers["category"], answers["category_rule"])
    again = with_leaves(stored, own_ibans={})
    assert again.select("category", "detailed_category", "detailed_rule").equals(
        answers.select("category", "detailed_category", "detailed_rule")
    )
    moved = with_leaves(stored.with_columns(category=pl.lit("HEALTH")), own_ibans={})
    codes = moved["detailed_category"].drop_nulls().unique().to_list()
    assert {category_of(code) for code in codes} == {"HEALTH"}


def test_a_paycheck_is_a_salary_in_the_thirteen_too(bookings: Bookings) -> None:
    rows = bookings({"amount": "900.00", "counterpart_name": "Biweekly Paycheck", "bank_text": "DEBIT CARD"})
    answer = classify(rows, own_ibans={}).row(0, named=True)
    assert Verdict(answer["category"], answer["category_rule"]) == ("SALARY", "keyword:paycheck")
    assert answer["detailed_category"] == "WAGES"


def test_what_a_booking_is_for_says_more_than_that_it_is_a_fee_an_insurer_or_somebody_who_is_called_as_a_person(
    bookings: Bookings,
) -> None:
    lines = {
        ("-58.00", "Abfallbetrieb Auental", "Muellgebuehren 2. Quartal"): "WASTE",
        ("-31.00", "Kaminkehrer Moos", "Kehrgebuehr"): "HOME_REPAIR",
        ("-37.00", "Buergeramt Auental", "Gebuehr Personalausweis"): "GOVERNMENT_FEES",
        ("-10.00", "PLANET FITNESS", "CLUB FEES"): None,
        ("-4.90", "Bank in Auental", "Kontofuehrung"): "BANK_FEES",
        ("-58.00", "Debeka Krankenversicherung", "Beitrag"): "HEALTH_INSURANCE",
        ("-58.00", "Concordia Rechtsschutz", "Vertrag 881"): "LEGAL_INSURANCE",
        ("-13.00", "Mr. Wash Auto-Service AG", "Premium"): None,
        ("-13.00", "Frau Moos", "Kaffee"): "PERSON_TO_PERSON",
        ("-20.00", "Tikkie", "Tikkie van Moos"): "PERSON_TO_PERSON",
        ("312.00", "Stadt Auental", "Wohngeld"): None,
        ("-12.00", "Stadt Auental", "Buchung"): "GOVERNMENT_FEES",
    }
    rows = bookings(*({"amount": amount, "counterpart_name": name, "purpose": text} for amount, name, text in lines))
    assert [leaf for leaf, _ in detailed(rows)] == list(lines.values())


@pytest.mark.requirement("decision.doubtful leaves")
def test_where_too_little_tells_the_category_nothing_below_it_is_said_and_the_category_stays(
    bookings: Bookings,
) -> None:
    lines = {
        # a longer word stands for another category: a loan of the bank that is called as a telephone line
        ("-1185.00", "DSL Bank", "Baufinanzierung Rate", "LASTSCHRIFT"): ("SUBSCRIPTION", None),
        ("-39.00", "Nebel Telekommunikation", "DSL Rate", "LASTSCHRIFT"): ("SUBSCRIPTION", "INTERNET_LANDLINE"),
        ("728.00", "AOK Plus", "Pflegegeld Mai", "GUTSCHRIFT"): ("INSURANCE", None),
        ("-402.00", "AOK Plus", "Beitrag Mai", "LASTSCHRIFT"): ("INSURANCE", "HEALTH_INSURANCE"),
        ("-55.00", "Ute Beispiel", "Kindesunterhalt", "UEBERWEISUNG"): ("TRANSFER", None),
        ("-55.00", "Ute Beispiel", "Konzertkarten", "UEBERWEISUNG"): ("TRANSFER", "PERSON_TO_PERSON"),
        ("-55.00", "Ute Beispiel", "Rechnung 12", "UEBERWEISUNG"): ("TRANSFER", None),
        # the name of what nothing else tells
        ("-95.00", "Tanzschule Moos", "Kurs Mai", "LASTSCHRIFT"): ("OTHER", None),
        ("-95.00", "Moos GmbH", "Kurs Mai", "LASTSCHRIFT"): ("OTHER", "EDUCATION"),
        # the same word for two
        ("1184.00", "Renten Service", "Rente RV 65", "GUTSCHRIFT"): ("OTHER", None),
        ("538.00", "Gasthof Adler OHG", "April", "GUTSCHRIFT"): ("DINING", None),
        ("-38.00", "Gasthof Adler OHG", "April", "KARTENZAHLUNG"): ("DINING", "RESTAURANT"),
        ("-35.00", "John Lewis", "CARD", ""): ("TRANSFER", None),
        ("-35.00", "Herr Moos", "CARD", ""): ("TRANSFER", "PERSON_TO_PERSON"),
    }
    rows = bookings(
        *(
            {"amount": amount, "counterpart_name": name, "purpose": text, "bank_text": kind}
            for amount, name, text, kind in lines
        )
    )
    answers = classify(rows, own_ibans={})
    assert answers.select("category", "detailed_category").rows() == list(lines.values())
    chosen = {"merchant:dsl bank": ChosenCategory("SUBSCRIPTION")}
    assert detailed(rows.head(1), corrections=chosen) == [("INTERNET_LANDLINE", "keyword:dsl")]  # a person has said so
