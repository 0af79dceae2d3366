"""Histories as tables of text, and what the detector says about them."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from analytics.frames import CHARGES
from analytics.recurring.detection import detect

TODAY = date(2026, 11, 20)
Row = dict[str, object]
History = Callable[..., pl.DataFrame]
Said = Callable[..., list[Row]]


def frame(rows: list[Row]) -> pl.DataFrame:
    """Rows with the columns they name; every other column is null, flags are false."""
    blank: Row = {
        "user_id": "u",
        "account_id": "a",
        "currency": "EUR",
        "is_potential_duplicate": False,
        "is_adjusting_entry": False,
    }
    full = [{**dict.fromkeys(CHARGES), **blank, "id": f"t{number:05}", **row} for number, row in enumerate(rows)]
    return pl.DataFrame(full, schema=CHARGES)


def table(text: str, **every_row: object) -> pl.DataFrame:
    """A table of text: a head line with column names, then rows; `name` is short for counterpart_name."""
    short = {
        "date": "booking_date",
        "name": "counterpart_name",
        "mandate": "mandate_reference",
        "iban": "counterpart_iban",
    }
    head, *lines = [line.strip() for line in text.strip().splitlines()]
    columns = [short.get(column.strip(), column.strip()) for column in head.split("|")]
    rows: list[Row] = []
    for line in lines:
        cells: Row = {}
        for column, cell in zip(columns, (part.strip() for part in line.split("|")), strict=True):
            if column == "booking_date":
                cells[column] = date.fromisoformat(cell)
            elif column == "amount":
                cells[column] = Decimal(cell)
            else:
                cells[column] = cell or None
        rows.append({**every_row, **cells})
    return frame(rows)


@pytest.fixture
def history() -> History:
    """Makes the charges of one user from a table of text."""
    return table


@pytest.fixture
def charges_from() -> Callable[[list[Row]], pl.DataFrame]:
    """Makes charges from dictionaries."""
    return frame


@pytest.fixture
def said() -> Said:
    """What the detector says about charges on a day, one dictionary per stream."""

    def detected(charges: pl.DataFrame, today: date = TODAY) -> list[Row]:
        users = charges.select("user_id").unique().with_columns(today=pl.lit(today))
        return detect(charges, users).to_dicts()

    return detected
