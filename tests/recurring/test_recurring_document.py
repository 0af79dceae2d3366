"""The examples of docs/recurring.md are true."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics.recurring import evidence as rules
from analytics.recurring import frequencies, rhythm

Row = dict[str, object]
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "recurring.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### (Example: .+?)\n(.+?)(?=^##|\Z)", PAGE, flags=re.MULTILINE | re.DOTALL))


def tables(text: str) -> list[list[dict[str, str]]]:
    """The Markdown tables of a text, as rows of cells by column name."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE):
        head, _, *lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in block.splitlines()]
        found.append([dict(zip(head, line, strict=True)) for line in lines])
    return found


@pytest.mark.requirement("subscriptions.document")
@pytest.mark.parametrize("title", EXAMPLES)
def test_an_example_of_the_page_is_what_the_detector_says(
    title: str, charges_from: Callable[[list[Row]], pl.DataFrame], said: Callable[..., list[Row]]
) -> None:
    given, expected = tables(EXAMPLES[title])
    columns = {"name": "counterpart_name", "purpose": "purpose", "mandate": "mandate_reference"}
    rows: list[Row] = [
        {
            "booking_date": date.fromisoformat(row["date"]),
            "amount": Decimal(row["amount"]),
            **{ours: row[theirs] or None for theirs, ours in columns.items() if theirs in row},
        }
        for row in given
    ]
    assert [
        {
            "merchantName": stream["merchant_name"],
            "amount": f"{stream['amount']:.2f}",
            "frequency": stream["frequency"],
            "lastCharged": str(stream["last_charged"]),
            "occurrences": str(stream["occurrences"]),
        }
        for stream in said(charges_from(rows))
    ] == expected


@pytest.mark.requirement("subscriptions.document")
def test_the_page_has_its_examples() -> None:
    assert len(EXAMPLES) == 3


def section(title: str) -> str:
    """What stands below a heading, in one line."""
    return " ".join(PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0].split())


@pytest.mark.requirement("subscriptions.document")
def test_the_tolerances_of_the_page_are_those_of_the_lattices() -> None:
    cells = re.findall(r"\| ([\w ,]+?) \| ([\d.]+) (?=\|)", section("The calendar test"))
    named = {name: float(days) for names, days in cells for name in names.split(", ")}
    units = {"days": "days", "business": "business days"}
    assert named == {
        (
            row["lattice"].replace("_", " ") if row["axis"] == "months" else f"{row['period']:.0f} {units[row['axis']]}"
        ): (row["tolerance_days"])
        for row in rhythm.LATTICES.iter_rows(named=True)
    }


@pytest.mark.requirement("subscriptions.document")
def test_the_thresholds_of_the_page_are_those_of_the_rules() -> None:
    calendar, evidence = section("The calendar test"), section("How much evidence")
    assert re.findall(r"(\d+) %", calendar) == [
        f"{100 * share:.0f}"
        for share in (rules.SHARE_MIN, rules.COVERAGE_MIN, rules.COVERAGE_MIN_FAST, rules.COVERAGE_MIN_FEW)
    ]
    assert f"at most {rules.REPEATS_MAX} charges" in calendar
    weekly, biweekly, monthly = (rules.RULES[each] for each in ("weekly", "biweekly", "monthly"))
    quarterly, yearly = rules.RULES["quarterly"], rules.RULES["yearly"]
    assert (
        f"{100 * weekly.contract_variation:.0f} % weekly to {100 * monthly.contract_variation:.0f} % monthly"
        in evidence
    )
    assert f"| {monthly.charges}, within {monthly.spread_days} days |" in evidence
    assert f"| {weekly.charges} and {biweekly.charges}; one less if never a day off |" in evidence
    assert {rule.charges - rule.charges_exact for rule in (weekly, biweekly)} == {1}
    assert f"| quarterly | 2 | {quarterly.charges} |" in evidence
    assert f"| every six months | 2, all of the mandate | {rules.RULES['half_yearly'].charges} |" in evidence
    for said, name, filled in (
        ("twice a month", "twice_monthly", f"{rules.TWICE_MONTHLY_FILLED}, of one price"),
        ("every two months", "two_monthly", f"{rules.TWO_MONTHLY_FILLED}"),
    ):
        rule = rules.RULES[name]
        assert f"| {said} | {filled} | {rule.charges}; {rule.charges_exact} if never a day off |" in evidence
    step, worst = 100 * rules.YEARLY_STEP_MAX, rules.YEARLY_WORST_DAYS
    assert f"| yearly | 2 | {yearly.charges} within {step:.0f} % and {worst:.0f} days, nothing else" in evidence


@pytest.mark.requirement("subscriptions.document")
def test_how_late_a_charge_may_be_is_said_as_the_rules_have_it() -> None:
    words = {"twice_monthly": "twice a month", "two_monthly": "every two months", "half_yearly": "every six months"}
    named: dict[int, list[str]] = {}
    for each, days in frequencies.GRACE_DAYS.items():
        named.setdefault(days, []).append(words.get(each, each))
    *most, last = [f"{days} ({', '.join(names)})" for days, names in named.items()]
    page = " ".join((DOCS / "analytics.md").read_text(encoding="utf-8").split())
    assert f"{', '.join(most)} or {last} days late" in page
