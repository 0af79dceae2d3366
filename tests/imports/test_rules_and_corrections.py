"""Rules and corrections by command: faults name their line, and what the user says is read into what is stored."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.command_line import Shell

CSV = """Date,Payee,Description,Amount,Currency
2026-03-01,Kita Sonnenschein,Kita Sonnenschein,-300.00,EUR
2026-03-02,Kita Mondschein,Kita Mondschein,-10.00,EUR
"""


@pytest.fixture
def filled(shell: Shell, write: Callable[..., Path]) -> Shell:
    shell.import_(write("a.csv", CSV))
    return shell


def rule(**said: str) -> str:
    return json.dumps({"field": "text", "operator": "contains", "value": "Sonnenschein", "category": "RENT", **said})


@pytest.mark.requirement("rules.faults")
@pytest.mark.parametrize(
    "fault",
    [
        "{",
        "[]",
        rule(category="FOOD"),
        rule(field="amount"),
        rule(operator="matches"),
        rule(value=""),
        '{"field": "text"}',
    ],
)
@pytest.mark.sampled
def test_a_fault_names_its_line_and_no_rule_is_added(fault: str, filled: Shell, write: Callable[..., Path]) -> None:
    path = write("rules.jsonl", f"# a comment\n{rule()}\n\n{fault}\n")
    result = filled("rules", "add", "--user", "eva", path, code=1)
    assert result.stderr.startswith("Error: ")
    assert "ine 4" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert filled("rules", "list", "--user", "eva").stdout == ""


@pytest.mark.requirement("rules.apply")
def test_a_rule_acts_on_what_is_stored_when_it_is_applied(filled: Shell, write: Callable[..., Path]) -> None:
    before = filled.rows("purpose, category")
    filled("rules", "add", "--user", "eva", write("rules.jsonl", rule()))
    assert filled.rows("purpose, category") == before
    assert filled("rules", "apply", "--user", "eva").stdout == "1 booking changed.\n"
    assert dict(filled.rows("purpose, category"))["Kita Sonnenschein"] == "RENT"
    assert filled("rules", "apply", "--user", "eva").stdout == "0 bookings changed.\n"
    filled("rules", "remove", "1", "--user", "eva")
    filled("rules", "apply", "--user", "eva")
    assert filled.rows("purpose, category") == before


@pytest.mark.requirement("rules.listed")
def test_listed_rules_can_be_added_again(filled: Shell, write: Callable[..., Path]) -> None:
    filled("rules", "add", "--user", "eva", write("rules.jsonl", rule()))
    listed = filled("rules", "list", "--user", "eva").stdout
    filled("rules", "add", "--user", "tom", write("again.jsonl", listed))
    assert filled("rules", "list", "--user", "tom").stdout == listed


@pytest.mark.requirement("rules.own-transfers")
@pytest.mark.long
def test_a_rule_of_the_user_wins_over_an_own_transfer(shell: Shell, write: Callable[..., Path]) -> None:
    shell("connect", "demo", "--user", "eva")
    own = [row for row in shell.rows("id, category, category_rule, transfer_account_id") if row[3]]
    assert own
    assert {row[1] for row in own} <= {"TRANSFER", "SAVINGS"}
    chosen = own[0][0]
    (name,) = next(row[1:] for row in shell.rows("id, counterpart_name") if row[0] == chosen)
    said = rule(field="counterpartName", operator="equals", value=name, category="HEALTH")
    shell("rules", "add", "--user", "eva", write("rules.jsonl", said))
    shell("rules", "apply", "--user", "eva")
    category, stays = next(row[1:] for row in shell.rows("id, category, transfer_account_id") if row[0] == chosen)
    assert category == "HEALTH"
    assert stays is not None


@pytest.mark.requirement("corrections")
def test_a_correction_holds_for_the_counterpart_and_for_what_comes(filled: Shell, write: Callable[..., Path]) -> None:
    (id_,) = [row[0] for row in filled.rows("id, purpose") if row[1] == "Kita Sonnenschein"]
    result = filled("correct", id_, "HEALTH", "--user", "eva")
    assert result.stdout == "1 booking changed.\n"
    later = CSV.replace("2026-03", "2026-04")
    filled("import", "--user", "eva", "--account", "CSV", write("b.csv", later))
    found = {row[1] for row in filled.rows("purpose, category") if row[0] == "Kita Sonnenschein"}
    assert found == {"HEALTH"}
    assert "no transaction" in filled("correct", "txn_none", "HEALTH", "--user", "eva", code=1).stderr
    assert "no transaction" in filled("correct", id_, "HEALTH", "--user", "tom", code=1).stderr
