"""The examples of docs/recurring.md are true."""

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

Row = dict[str, object]
PAGE = (Path(__file__).parents[2] / "docs" / "recurring.md").read_text(encoding="utf-8")
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
