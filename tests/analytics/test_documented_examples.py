"""Every example of docs/analytics.md is run: the first table goes in, the second comes out."""

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics.balances import balance_series
from analytics.cashflow import month_transactions, monthly_cashflow
from analytics.forecasting.projection import project
from analytics.frames import HOLDINGS
from analytics.periods import month_of
from analytics.potential_duplicates import potential_duplicate_ids
from analytics.snapshot import category_transactions, snapshot
from analytics.transfers import pair
from tests.analytics.ledgers import balances, bookings, converted, legs, lookalikes, own_accounts, quotes, table
from tests.analytics.test_forecasting import ledger

PAGE = Path(__file__).resolve().parents[2] / "docs" / "analytics.md"
Table = list[list[str]]


@dataclass(frozen=True)
class Example:
    """A heading, what its line in italics says, and its two tables."""

    title: str
    given: dict[str, str]
    goes_in: str
    comes_out: str

    @property
    def selection(self) -> list[str]:
        return self.given["Selected"].split(", ")

    @property
    def today(self) -> date:
        return date.fromisoformat(self.given["Today"])


def examples() -> list[Example]:
    """All of the page."""
    found = []
    for section in re.split(r"^##+ ", PAGE.read_text(), flags=re.MULTILINE):
        if section.startswith("Example"):
            words = re.search(r"^\*(.*)\*$", section, flags=re.MULTILINE)
            said = re.findall(r"([A-Z][a-z ]+): ([^.]+(?:\.\d+)?)\.", words[1]) if words else []
            goes_in, comes_out = re.findall(r"(?:^\|.*\|\n?)+", section, flags=re.MULTILINE)
            found.append(Example(section.splitlines()[0], dict(said), _plain(goes_in), _plain(comes_out)))
    return found


def _plain(markdown: str) -> str:
    """A table as `ledgers` reads it."""
    lines = [line.strip().removeprefix("|").removesuffix("|") for line in markdown.strip().splitlines()]
    return "\n".join(line for line in lines if set(line) - set("-|"))


def cells(text: str) -> Table:
    """Header and lines of a table."""
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]


def shown(frame: pl.DataFrame, columns: list[str]) -> Table:
    """A frame as the page writes it."""
    return [columns, *([_shown(value) for value in row] for row in frame.select(columns).rows())]


def _shown(value: object) -> str:
    if isinstance(value, date):
        return f"{value:%Y-%m}"
    return "" if value is None else f"{value:.2f}" if isinstance(value, Decimal) else str(value)


def computed(example: Example) -> Table:
    """What the analysis that the second table belongs to makes of the first."""
    header = cells(example.comes_out)[0]
    if "net" in header:
        months = int(example.given["Months"])
        rows = bookings(example.goes_in)
        cashflow = monthly_cashflow(
            rows, selection=example.selection, months=months, today=example.today, currency="EUR"
        )
        return shown(cashflow, header)
    if "balance" in header:
        said = [re.fullmatch(r"(\w+) = (\d+) of (\S+)", each) for each in example.given["Held"].split(", ")]
        held = "\n".join(" | ".join(account.groups()) for account in said if account)
        days = [date.fromisoformat(day) for day, _ in cells(example.comes_out)[1:]]
        series = balance_series(
            table(f"id | balance | balance_date\n{held}", HOLDINGS),
            bookings(example.goes_in),
            days=days,
            today=example.today,
            currency="EUR",
        )
        return [header, *([day.isoformat(), _shown(balance)] for day, balance in series.points)]
    if "expected" in header:
        (_, (since, amount)) = cells(example.goes_in)
        every = [amount] * ((example.today - date.fromisoformat(since)).days + 1)
        coming = project(ledger(every, opening=example.given["Before"]), [], days=3).days
        return [header, *([f"{day.day}", f"{day.expected}", f"{day.low}", f"{day.high}"] for day in coming)]
    if "percentage" in header:
        accounts = balances("id | bank_name\n" + "\n".join(f"{account} | Bank" for account in example.selection))
        seen = snapshot(accounts, bookings(example.goes_in), today=example.today, currency="EUR")
        return shown(seen.top_categories, header)
    if "transfer_rule" in header:
        named = [account.partition(" = ") for account in example.given["Own accounts"].split(", ")]
        own = own_accounts("id | iban\n" + "\n".join(f"{account} | {iban}" for account, _, iban in named))
        return shown(pair(legs(example.goes_in), own), header)
    if "home_amount" in header:
        rows = bookings("\n".join(line.rpartition("|")[0] for line in example.comes_out.splitlines()))
        amounts = converted(rows, currency=example.given["To"], rates=quotes(example.goes_in))
        return [
            [*line[:-1], amount]
            for line, amount in zip(cells(example.comes_out), ["home_amount", *map(_shown, amounts)], strict=True)
        ]
    if "flagged" in header:
        rows = lookalikes(example.goes_in)
        return [header, *([found] for found in sorted(potential_duplicate_ids(rows, rows.clear())))]
    if "Month" in example.given:
        behind = month_transactions(
            bookings(example.goes_in),
            selection=example.selection,
            month=month_of(example.given["Month"]),
            today=example.today,
            currency="EUR",
        )
    else:
        behind = category_transactions(
            bookings(example.goes_in),
            selection=example.selection,
            category=example.given["Category"],
            today=example.today,
            currency="EUR",
        )
    return shown(behind, header)


@pytest.mark.requirement("docs.examples")
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_an_example_of_the_page_comes_out_as_written(example: Example) -> None:
    assert computed(example) == cells(example.comes_out)


@pytest.mark.requirement("docs.examples")
def test_the_page_has_examples_of_every_rule() -> None:
    assert len(examples()) == 10
