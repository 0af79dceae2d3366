"""Every rule that can be stored is told in a sentence a person understands."""

from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics.classification.classify import classify
from analytics.classification.rules import parse_rules
from analytics.frames import CLASSIFIABLE
from analytics.transfers import BY_AMOUNT, BY_IBAN, BY_OTHER_LEG, BY_SETTLEMENT
from handlers.operations import rules_in_words as reasons
from tests.explanations.conftest import Service

TABLES = {"type_rule": reasons.TYPE, "category_rule": reasons.CATEGORY, "merchant_rule": reasons.MERCHANT}


def lines_of_statements() -> pl.DataFrame:
    """The hand-labelled lines of the classification's tests: one of each kind of statement that banks write."""
    path = Path(__file__).parents[1] / "classify" / "labelled_lines.tsv"
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        _type, _category, _merchant, amount, name, purpose, further = (part.strip() for part in line.split("|"))
        row: dict[str, str | None] = {"amount": amount, "counterpart_name": name or None, "purpose": purpose or None}
        for pair in filter(None, further.split(";")):
            column, _, value = pair.strip().partition("=")
            row[column] = value
        rows.append(row)
    texts = pl.DataFrame(
        [{column: row.get(column) for column in CLASSIFIABLE} for row in rows],
        schema=dict.fromkeys(CLASSIFIABLE, pl.String()),
    )
    flags = [pl.lit(value=False).alias(column) for column in ("is_reversal", "is_return")]
    return texts.with_columns(pl.col("amount").cast(CLASSIFIABLE["amount"]), *flags)


@pytest.mark.requirement("explanations.reasons")
@pytest.mark.parametrize("column", TABLES)
def test_every_rule_that_a_statement_meets_has_a_sentence_of_its_own(column: str) -> None:
    rules = classify(lines_of_statements(), own_ibans={})[column].unique().drop_nulls().to_list()
    assert len(rules) > 5
    for rule in rules:
        told = reasons.reason(TABLES[column], rule, [])
        assert rule.partition(":")[0] in TABLES[column], rule
        assert told.endswith(".")
        assert "{" not in told


@pytest.mark.requirement("explanations.reasons")
@pytest.mark.parametrize("column", TABLES)
def test_every_rule_stored_in_the_demo_has_a_sentence_of_its_own(demo_service: Service, column: str) -> None:
    rows = demo_service.services.everybody.rows(f"SELECT DISTINCT {column} AS rule FROM transactions")
    for rule in (row["rule"] for row in rows):
        assert rule is None or rule.partition(":")[0] in TABLES[column]


@pytest.mark.requirement("explanations.reasons")
@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("user-rule:7", "Your rule 7 says so: counterpart name contains “Kita”."),
        ("user-rule:8", "Your rule 8 said so; you have changed your rules since."),
        ("correction:iban", "You have corrected a transaction with the same IBAN of payee or payer before."),
        ("correction:name", "You have corrected a transaction with the same name before."),
        ("mcc:5411", "The merchant category code 5411 of the card payment says so."),
        (
            "adjusting-entry",
            "The service wrote this entry itself, so that an incomplete history meets the bank's balance.",
        ),
        ("new-rule:x", "The rule new-rule:x says so."),
        (None, "No rule gave a value."),
    ],
)
def test_what_the_user_has_said_is_told_as_such(rule: str | None, told: str) -> None:
    own = parse_rules(
        '{"id": "7", "field": "counterpartName", "operator": "contains", "value": "Kita", "category": "OTHER"}'
    )
    assert reasons.reason(reasons.CATEGORY, rule, own) == told


@pytest.mark.requirement("explanations.reasons")
@pytest.mark.parametrize("rule", [BY_IBAN, BY_OTHER_LEG, BY_SETTLEMENT, BY_AMOUNT])
def test_a_transfer_is_told_with_its_other_leg_or_without(rule: str) -> None:
    paired = reasons.transfer_reason({"transfer_rule": rule, "transfer_id": "txn_2", "transfer_fee": None})
    lossy = reasons.transfer_reason({"transfer_rule": rule, "transfer_id": "txn_2", "transfer_fee": Decimal("0.50")})
    alone = reasons.transfer_reason({"transfer_rule": rule, "transfer_id": None})
    assert paired.endswith("it is left out where both accounts are selected.")
    assert lossy.endswith("only the fee counts that it lost on its way.")
    assert alone.endswith("so it counts as income or expense until one arrives.")
    assert paired != alone != reasons.transfer_reason({"transfer_rule": None, "transfer_id": None})
