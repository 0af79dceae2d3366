"""The format of a user's rules: what is read, what is refused and where, and what holds for a booking."""

import pytest

from analytics.classification.rules import (
    RULES_MAX,
    VALUE_LENGTH_MAX,
    InvalidRule,
    Rule,
    comparable_value,
    correction_keys,
    first_rule,
    parse_rules,
    render_rules,
)

KITA = '{"field": "counterpartName", "operator": "contains", "value": "Kita", "category": "OTHER"}'


@pytest.mark.requirement("issue 4 user rules")
def test_rules_are_json_lines_and_are_written_back_as_the_same_rules() -> None:
    text = f"# my rules\n\n{KITA}\n" + (
        '{"id": "x", "field": "counterpartIban", "operator": "equals", "value": "DE02 1203", "merchant": "Landlord"}\n'
    )
    rules = parse_rules(text)
    assert rules == [
        Rule(id="3", field="counterpartName", operator="contains", value="Kita", category="OTHER"),
        Rule(id="x", field="counterpartIban", operator="equals", value="DE02 1203", merchant="Landlord"),
    ]
    assert parse_rules(render_rules(rules)) == rules


@pytest.mark.requirement("issue 4 user rules")
@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x1e", "\r"])
def test_a_value_may_hold_what_ends_lines_elsewhere(end: str) -> None:
    rules = [Rule(id="1", field="purpose", operator="contains", value=f"one{end}two", category="OTHER")]
    assert parse_rules(render_rules(rules)) == rules


@pytest.mark.requirement("issue 4 user rules")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("nonsense", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        (KITA.replace('"field"', '"feld"'), "unknown key 'feld'"),
        (KITA.replace("counterpartName", "amount"), "field must be one of counterpartName"),
        (KITA.replace("contains", "regex"), "operator must be one of contains, equals, startswith"),
        (KITA.replace("OTHER", "FOOD"), "category must be one of GROCERIES"),
        (KITA.replace('"Kita"', '" "'), "value must not be empty"),
        (KITA.replace('"Kita"', "7"), "value must be a text"),
        (KITA.replace("Kita", "\\ud800"), "value must be a text"),
        (KITA.replace("Kita", "k" * (VALUE_LENGTH_MAX + 1)), "value is longer than 200 characters"),
        (KITA.replace('"category": "OTHER"', '"type": "gift"'), "type must be one of direct_debit"),
        (KITA.replace(', "category": "OTHER"', ""), "nothing to do"),
        (KITA.replace('{"field"', '{"id": 1, "field"'), "id 1 is taken by an earlier line"),
    ],
)
def test_a_line_that_cannot_be_used_is_refused_with_its_number_and_the_reason(line: str, reason: str) -> None:
    first = KITA.replace('{"field"', '{"id": "1", "field"')
    with pytest.raises(InvalidRule) as refused:
        parse_rules(f"{first}\n\n{line}")
    assert refused.value.line == 3
    assert str(refused.value).startswith(f"line 3: {reason}")


@pytest.mark.requirement("issue 4 user rules")
def test_the_longest_value_and_the_largest_number_of_rules_are_accepted_and_one_more_is_not() -> None:
    assert parse_rules(KITA.replace("Kita", "k" * VALUE_LENGTH_MAX))
    assert len(parse_rules("\n".join([KITA] * RULES_MAX))) == RULES_MAX
    with pytest.raises(InvalidRule, match=f"line {RULES_MAX + 1}: more than {RULES_MAX} rules"):
        parse_rules("\n".join([KITA] * (RULES_MAX + 1)))


@pytest.mark.requirement("issue 4 user rules")
@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("contains", "muell", True),
        ("contains", "MÜLLER", True),
        ("startswith", "Bäckerei", True),
        ("startswith", "Müller", False),
        ("equals", "baeckerei  mueller", True),
        ("equals", "Bäckerei", False),
        ("contains", ".*", False),  # no regular expression
    ],
)
def test_texts_compare_without_case_accents_and_spelling_of_umlauts(operator: str, value: str, expected: bool) -> None:
    [rule] = parse_rules(
        f'{{"field": "counterpartName", "operator": "{operator}", "value": "{value}", "category": "GROCERIES"}}'
    )
    assert rule.holds({"counterpartName": comparable_value("counterpartName", "Bäckerei Müller")}) is expected
    assert not rule.holds({})


@pytest.mark.requirement("issue 4 user rules")
def test_the_first_rule_that_holds_wins() -> None:
    general, special = KITA, KITA.replace("Kita", "Kita Regenbogen").replace("OTHER", "HEALTH")
    values = {"counterpartName": comparable_value("counterpartName", "Kita Regenbogen e.V.")}
    for text, category in ((f"{special}\n{general}", "HEALTH"), (f"{general}\n{special}", "OTHER")):
        rule = first_rule(parse_rules(text), values)
        assert rule is not None
        assert rule.category == category
    assert first_rule(parse_rules(general), {"counterpartName": "schule"}) is None


@pytest.mark.requirement("issue 4 correction memory")
def test_a_correction_is_remembered_by_creditor_id_else_iban_else_merchant_else_name() -> None:
    known = {
        "creditor_id": "DE98 ZZZ0 9999 9999 99",
        "counterpart_iban": "de02 1203 0000 0000 2020 51",
        "merchant_name": "Café  Müller",
        "counterpart_name": "CAFÉ MÜLLER FIL. 7",
    }
    keys = ["creditor:DE98ZZZ09999999999", "iban:DE02120300000000202051", "merchant:cafe muller"]
    assert correction_keys(**known) == [*keys, "name:cafe muller fil. 7"]
    assert correction_keys(**{**dict.fromkeys(known), "creditor_id": ""}) == []
