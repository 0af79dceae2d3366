"""The chains of type and category: which rule comes before which, and that every answer names its rule."""

from collections.abc import Callable
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.classification.classify import DERIVED, classify
from analytics.classification.facts import CATEGORIES, TYPES, table
from analytics.classification.rules import ChosenCategory, parse_rules
from analytics.frames import CLASSIFIABLE
from tests.conftest import examples

Bookings = Callable[..., pl.DataFrame]
OWN = "DE89370400440532013000"
OTHER = "DE02120300000000202051"


def derived(rows: pl.DataFrame, **arguments: object) -> dict[str, str | None]:
    own = arguments.pop("own_ibans", {})
    return classify(rows, own_ibans=own, **arguments).select(*DERIVED).row(0, named=True)  # type: ignore[arg-type]  # keyword sets of single tests


@pytest.mark.requirement("interface 2.4 type")
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"bank_transaction_code": "PMNT-RDDT-ESDD", "gvc": "166"}, "direct_debit"),
        ({"bank_transaction_code": "PMNT-NTAV-NTAV", "gvc": "106"}, "card_payment"),
        ({"bank_transaction_code": "PMNT-MCOP-OTHR", "gvc": "083", "swift_code": "NTRF"}, "cash_withdrawal"),
        ({"gvc": "117", "bank_text": "FOLGELASTSCHRIFT"}, "standing_order"),
        ({"gvc": "999", "swift_code": "NDDT"}, "direct_debit"),
        ({"swift_code": "NMSC", "purpose_code": "CCRD"}, "card_payment"),
        ({"swift_code": "NTRF", "bank_text": "SEPA INCASSO"}, "direct_debit"),
        ({"swift_code": "NTRF"}, "transfer"),
        ({"mcc": "5411"}, "card_payment"),
        ({"mcc": "6011"}, "cash_withdrawal"),
        ({"mandate_reference": "M-1"}, "direct_debit"),
        ({"counterpart_iban": OTHER}, "transfer"),
        ({"bank_transaction_code": "ACMT-OPCL-ACCC"}, "fee"),
        ({"gvc": "805", "purpose": "Sollzinsen Q1"}, "interest"),
        ({"gvc": "805"}, "fee"),
        ({"purpose": "Kontofuehrung und Zinsen"}, "interest"),
        ({"counterpart_name": "PENNY SAGT DANKE"}, "card_payment"),
        ({"counterpart_name": "BANKOMAT 0123"}, "cash_withdrawal"),
        ({"purpose": "Kosten Urlaub", "counterpart_iban": OTHER}, "transfer"),  # free text between people
        ({"purpose": "Vorgang 4711"}, "other"),  # it says something, and that fits no type
        ({"counterpart_name": "X"}, "other"),
    ],
)
def test_the_first_rule_of_the_chain_that_answers_gives_the_type(
    bookings: Bookings, row: dict[str, str], expected: str
) -> None:
    assert derived(bookings({"amount": "-1", **row}))["type"] == expected


@pytest.mark.requirement("decision 65")
@pytest.mark.parametrize("amount", ["-1", "1"])
@pytest.mark.parametrize(
    "row",
    [
        {},
        {"purpose": "4711/0815 - 12.03.2026"},
        {"swift_code": "NMSC", "gvc": "999"},
        {"swift_code": "debit", "purpose": " "},
        {"swift_code": "CREDIT"},
    ],
)
def test_a_booking_that_says_nothing_has_neither_type_nor_category(
    bookings: Bookings, amount: str, row: dict[str, str]
) -> None:
    assert derived(bookings({"amount": amount, **row})) == {
        "type": None,
        "type_rule": "nothing",
        "category": None,
        "category_rule": "nothing",
        "merchant_name": None,
        "merchant_rule": "none",
        "detailed_category": None,
        "detailed_rule": None,
        "own_category_id": None,
    }


@pytest.mark.requirement("interface 2.4 type")
@pytest.mark.parametrize(
    ("amount", "code", "expected"),
    [
        ("1", "PMNT-RCDT-SALA", "salary"),
        ("-1", "PMNT-ICDT-SALA", "transfer"),  # an employer pays
        ("-1", "PMNT-CNTR-OTHR", "cash_withdrawal"),
        ("1", "PMNT-CNTR-OTHR", "cash_deposit"),
        ("1", "PMNT-RDDT-UPDD", "direct_debit"),  # a debit that came back
        ("-1", "PMNT-RCDT-ESCT", "transfer"),  # families are used both ways: the sign decides the rest
    ],
)
def test_the_sign_decides_where_a_code_is_ambiguous(bookings: Bookings, amount: str, code: str, expected: str) -> None:
    assert derived(bookings({"amount": amount, "bank_transaction_code": code}))["type"] == expected


@pytest.mark.requirement("interface 2.4 type")
def test_every_type_of_the_interface_can_be_derived_and_no_other() -> None:
    values = {row[-1] for name in ("iso_types.tsv", "gvc_types.tsv", "swift_types.tsv") for row in table(name)}
    assert values - {"?"} == set(TYPES)


@pytest.mark.requirement("issue 4 category")
def test_the_order_of_the_category_chain(bookings: Bookings) -> None:
    row = {
        "amount": "-10",
        "counterpart_name": "REWE Markt GmbH",
        "counterpart_iban": OWN,
        "creditor_id": "DE98ZZZ09999999999",
        "purpose": "Miete",
        "purpose_code": "INSU",
        "mcc": "5912",
    }
    rule = parse_rules(
        '{"id": "r1", "field": "counterpartName", "operator": "contains", "value": "rewe", "category": "SHOPPING"}'
    )
    memory = {"creditor:DE98ZZZ09999999999": ChosenCategory("DINING")}
    steps = []
    for arguments in (
        {"own_ibans": {OWN: None}, "rules": rule, "corrections": memory},
        {"own_ibans": {OWN: None}, "corrections": memory},
        {"own_ibans": {OWN: None}},
        {},
    ):
        answer = derived(bookings(row), **arguments)
        steps.append((answer["category"], answer["category_rule"]))
    for left_out in ("purpose_code", "mcc", "counterpart_name", "purpose"):
        del row[left_out]
        answer = derived(bookings(row))
        steps.append((answer["category"], answer["category_rule"]))
    assert steps == [
        ("SHOPPING", "user-rule:r1"),
        ("DINING", "correction:creditor"),
        ("TRANSFER", "own-account"),
        ("INSURANCE", "purpose-code:INSU"),
        ("HEALTH", "mcc:5912"),
        ("GROCERIES", "brand:rewe"),
        ("RENT", "keyword:miete"),
        ("OTHER", "default:direct_debit"),
    ]


@pytest.mark.requirement("issue 4 category")
@pytest.mark.parametrize(
    ("account_kind", "other_kind", "expected"),
    [
        ("checking", "checking", "TRANSFER"),
        ("checking", None, "TRANSFER"),
        ("checking", "savings", "SAVINGS"),
        ("securities", "checking", "SAVINGS"),
        ("credit_card", "checking", "TRANSFER"),
    ],
)
def test_an_own_transfer_is_saving_when_either_side_saves(
    bookings: Bookings, account_kind: str, other_kind: str | None, expected: str
) -> None:
    row = {"amount": "-10", "counterpart_iban": "DE89 3704 0044 0532 0130 00", "account_kind": account_kind}
    answer = derived(bookings({**row, "counterpart_name": "Erika Mustermann"}), own_ibans={OWN: other_kind})
    assert (answer["category"], answer["category_rule"]) == (expected, "own-account")
    assert answer["merchant_name"] is None


@pytest.mark.requirement("decision 65")
def test_a_rule_of_the_user_gives_a_booking_that_says_nothing_what_it_lacks(bookings: Bookings) -> None:
    row = bookings({"amount": "-1", "purpose": "4711"})
    rule = parse_rules(
        '{"id": "r1", "field": "purpose", "operator": "equals", "value": "4711", "category": "RENT", "type": "fee"}'
    )
    answer = derived(row, rules=rule)
    assert [answer[name] for name in ("type", "type_rule", "category")] == ["fee", "user-rule:r1", "RENT"]


@pytest.mark.requirement("issue 4 merchant")
@pytest.mark.parametrize(
    ("name", "purpose", "expected"),
    [
        ("REWE SAGT DANKE. 4711//Koeln/DE", "", "REWE"),
        ("PAYPAL *SPOTIFY", "", "Spotify"),
        ("SumUp *Cafe Blume", "", "Cafe Blume"),
        ("SQ *BLUE DOOR DINER", "", "Blue Door Diner"),
        ("AMZN Mktp DE*2K4AB", "", "Amazon"),
        ("PAYPAL *IKEADEUTSCHLAN", "", "IKEA"),
        ("Zettle_*Kleine Roesterei", "", "Kleine Roesterei"),
        (
            "PayPal Europe S.a.r.l. et Cie S.C.A",
            "1034/PP.1494.PP/. LIEFERANDO, Ihr Einkauf bei LIEFERANDO",
            "Lieferando",
        ),
        ("PayPal Europe S.a.r.l. et Cie S.C.A", "Guthaben aufladen", "PayPal"),
        ("BUCHLADEN AM ECK 65705220764", "", "Buchladen am Eck"),
        ("Beispiel Moden GmbH & Co. KG", "", "Beispiel Moden"),
        ("", "CHECKCARD 0105 SHELL OIL 57442 CHARLOTTE NC", "Shell"),
        ("", "POS 0105 SUMUP *CAFE BLAU", "Cafe Blau"),
        ("", "PAYPAL *WOLLKISTE", "Wollkiste"),
        ("", "PAYPAL *SPOTIFY", "Spotify"),
        ("", "PAYPAL Ihr Einkauf bei Wollkiste GmbH", "Wollkiste"),
        ("", "PAYPAL 4029357733", "PayPal"),
    ],
)
def test_a_card_payment_shows_the_shop_a_person_would_recognise(
    bookings: Bookings, name: str, purpose: str, expected: str
) -> None:
    row = {"amount": "-5", "counterpart_name": name, "purpose": purpose, "bank_transaction_code": "PMNT-CCRD-POSD"}
    assert derived(bookings(row))["merchant_name"] == expected


@pytest.mark.requirement("issue 4 merchant")
@pytest.mark.parametrize(
    "name",
    [
        "Erika Mustermann",
        "MUSTERMANN, MAX",
        "Herr Beispiel",
        "P. VERSTEEGJE EO",
        "Dirk Penny",
        "Erika Mustermann 27 Heidestrasse 17",
    ],
)
def test_a_private_person_is_never_a_merchant(bookings: Bookings, name: str) -> None:
    answer = derived(bookings({"amount": "-5", "counterpart_name": name, "bank_transaction_code": "PMNT-ICDT-ESCT"}))
    assert (answer["merchant_name"], answer["category"]) == (None, "TRANSFER")


@pytest.mark.requirement("issue 4 merchant")
def test_a_transfer_to_a_company_is_not_called_a_transfer_between_people(bookings: Bookings) -> None:
    row = {"amount": "-5", "counterpart_name": "Dachdeckerei Beispiel GmbH", "counterpart_iban": OTHER}
    answer = derived(bookings(row))
    assert (answer["merchant_name"], answer["category"]) == ("Dachdeckerei Beispiel", "OTHER")


@pytest.mark.requirement("issue 4 correction memory")
def test_a_correction_holds_for_the_shop_and_not_for_all_that_one_intermediary_carries(bookings: Bookings) -> None:
    carried = {"amount": "-5", "counterpart_name": "PAYPAL *WOLLKISTE", "creditor_id": "LU96ZZZ0000000000000000058"}
    dining, shopping = ChosenCategory("DINING"), ChosenCategory("SHOPPING")
    memory = {"creditor:LU96ZZZ0000000000000000058": dining, "merchant:wollkiste": shopping}
    answer = derived(bookings(carried), corrections=memory)
    assert (answer["category"], answer["category_rule"]) == ("SHOPPING", "correction:merchant")


@pytest.mark.requirement("issue 4 correction memory")
def test_a_correction_is_found_again_by_iban(bookings: Bookings) -> None:
    row = {"amount": "-5", "counterpart_name": "Erika Mustermann", "counterpart_iban": OTHER}
    memory = {f"iban:{OTHER}": ChosenCategory("RENT"), "merchant:erika": ChosenCategory("DINING")}
    answer = derived(bookings(row), corrections=memory)
    assert (answer["category"], answer["category_rule"]) == ("RENT", "correction:iban")
    assert derived(bookings(row), corrections={"merchant:erika": ChosenCategory("DINING")})["category"] == "TRANSFER"


@pytest.mark.requirement("issue 4 correction memory")
def test_a_correction_is_found_again_by_name_but_not_for_all_that_one_intermediary_carries(bookings: Bookings) -> None:
    memory = {"name:erika mustermann": ChosenCategory("RENT"), "name:paypal": ChosenCategory("DINING")}
    answer = derived(bookings({"amount": "-5", "counterpart_name": "Erika  Mustermann"}), corrections=memory)
    assert (answer["category"], answer["category_rule"]) == ("RENT", "correction:name")
    assert derived(bookings({"amount": "-5", "counterpart_name": "PayPal"}), corrections=memory)["category"] != "DINING"


@pytest.mark.requirement("issue 4 category")
def test_goods_by_purpose_code_are_shopping_only_when_nothing_else_speaks(bookings: Bookings) -> None:
    row = {"amount": "-5", "counterpart_name": "Wollkiste GmbH", "purpose_code": "GDDS"}
    assert derived(bookings(row))["category"] == "SHOPPING"
    assert derived(bookings({**row, "amount": "5"}))["category"] == "OTHER"
    assert derived(bookings({**row, "counterpart_name": "Rosen-Apotheke"}))["category"] == "HEALTH"


@pytest.mark.requirement("issue 4 rule stored")
def test_a_users_rule_may_name_merchant_and_type_and_leave_the_category_to_the_chain(bookings: Bookings) -> None:
    rules = parse_rules(
        '{"field": "purpose", "operator": "startswith", "value": "Kitty", "merchant": "Flat share", "type": "transfer"}'
    )
    answer = derived(bookings({"amount": "-5", "purpose": "kitty march", "mcc": "5411"}), rules=rules)
    assert (answer["merchant_name"], answer["merchant_rule"]) == ("Flat share", "user-rule:1")
    assert (answer["type"], answer["type_rule"]) == ("transfer", "user-rule:1")
    assert (answer["category"], answer["category_rule"]) == ("GROCERIES", "mcc:5411")


@pytest.mark.requirement("issue 4 rule stored")
def test_other_columns_and_the_order_stay_and_an_empty_frame_gets_the_columns(bookings: Bookings) -> None:
    rows = bookings({"amount": "-1", "purpose": "b"}, {"amount": "-2", "purpose": "a"}).with_columns(
        id=pl.Series("xy"[i] for i in range(2))
    )
    answer = classify(rows, own_ibans={})
    assert answer["id"].to_list() == ["x", "y"]
    assert answer.drop(*DERIVED).equals(rows.drop("merchant_name"))
    assert dict(classify(rows.clear(), own_ibans={}).select(*DERIVED).schema) == DERIVED


TEXT = st.none() | st.text(max_size=40)
ROWS = st.fixed_dictionaries(
    {
        "amount": st.decimals(min_value=-10_000, max_value=10_000, places=2),
        **{column: TEXT for column, dtype in CLASSIFIABLE.items() if dtype == pl.String()},
        "is_reversal": st.booleans(),
        "is_return": st.booleans(),
    }
)


@pytest.mark.requirement("issue 4 category")
@given(ROWS)
@settings(max_examples=examples(150))
def test_whatever_a_bank_writes_gets_a_type_and_a_category_or_neither_with_their_rules(
    row: dict[str, str | bool | Decimal],
) -> None:
    rows = pl.DataFrame([row], schema=CLASSIFIABLE)
    first = classify(rows, own_ibans={})
    assert first.equals(classify(rows, own_ibans={}))
    answer = first.row(0, named=True)
    assert answer["type"] in (None, *TYPES)
    assert answer["category"] in (None, *CATEGORIES)
    assert (answer["type"] is None) == (answer["category"] is None)
    assert answer["type_rule"]
    assert answer["category_rule"]
    assert answer["merchant_rule"]
    assert answer["merchant_name"] is None or 0 < len(answer["merchant_name"]) <= 60


KNOWN = [
    "Stadtwerke",
    "REWE",
    "PAYPAL *",
    "Einkauf bei ",
    "PP . 12 . PP . ",
    "Kartenzahlung",
    "Miete",
    "blume",
    "2000",
    "1&1",
]
WORDS = st.sampled_from(
    [*KNOWN, "Müller", "Straße", "GmbH", "+49", "NC", "0", "12345", "00000", "11111", "1712345678", "345678/1", "٣٤٥٦٧"]
)
TEXT_WITH_NUMBERS = st.lists(
    st.tuples(
        WORDS | st.integers(1, 10**12).map(str), st.sampled_from([*" " * 9, "", "-", "'", "´", "*", ",", "\u0301"])
    ),
    max_size=8,
).map(lambda parts: "".join(map("".join, parts)))


@pytest.mark.requirement("issue 4 category")
@given(st.lists(st.tuples(TEXT_WITH_NUMBERS, TEXT_WITH_NUMBERS), min_size=1, max_size=30))
@settings(max_examples=examples(40))
def test_bookings_that_differ_in_long_numbers_alone_are_told_as_each_of_them_is(texts: list[tuple[str, str]]) -> None:
    told = [{"amount": "-1", "counterpart_name": name, "purpose": purpose} for name, purpose in texts]
    told += [{"amount": "-1", "purpose": purpose, "mandate_reference": name} for name, purpose in texts]
    rows = pl.DataFrame(told, schema=dict.fromkeys(CLASSIFIABLE, pl.String()), orient="row")
    rows = rows.with_columns(pl.col("amount").cast(CLASSIFIABLE["amount"]), is_reversal=False, is_return=False)
    as_they_stand = parse_rules('{"field": "purpose", "operator": "equals", "value": "no such 1", "category": "RENT"}')
    assert classify(rows, own_ibans={}).equals(classify(rows, own_ibans={}, rules=as_they_stand))


@pytest.mark.requirement("issue 4 category")
def test_a_long_number_is_seen_by_rules(bookings: Bookings) -> None:
    rows = bookings(*({"amount": "-1", "purpose": f"Vertrag {number}", "mcc": "5999"} for number in (71234, 12347)))
    rules = parse_rules('{"field": "purpose", "operator": "contains", "value": "7123", "category": "RENT"}')
    assert classify(rows, own_ibans={}, rules=rules)["category"].to_list() == ["RENT", "SHOPPING"]


@pytest.mark.requirement("issue 4 merchant")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Depot-12345 Nord", "Depot-12345 Nord"),
        ("Depot" * 11 + "-1234567", "Depot" * 11 + "-1234"),
    ],
)
def test_a_long_number_stays_in_the_name_that_shows_it(bookings: Bookings, name: str, expected: str) -> None:
    rows = bookings(
        *({"amount": "-1", "counterpart_name": each, "mcc": "5999"} for each in (name.replace("1", "9"), name))
    )
    assert classify(rows, own_ibans={})["merchant_name"][1] == expected


@pytest.mark.requirement("issue 4 category")
@pytest.mark.parametrize("line", [" ".join(["pp"] * 2_000), "*" * 2_000, "PP." * 1_000, "1.1" * 1_000, " -" * 2_000])
def test_repetitive_texts_of_thousands_of_characters_come_to_an_end(bookings: Bookings, line: str) -> None:
    for column in ("purpose", "counterpart_name", "bank_text"):
        assert classify(bookings({"amount": "-1", column: line, "mcc": "5411"}), own_ibans={}).height == 1
