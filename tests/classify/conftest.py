"""Rows for the classification as short tables of text; what a line does not say is null."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest

from analytics.frames import CLASSIFIABLE

IBAN = "DE02120300000000202051"
Bookings = Callable[..., pl.DataFrame]


@pytest.fixture
def bookings() -> Bookings:
    """Rows from keyword sets: bookings({"amount": "-5", "purpose": "Miete"}, ...)."""
    return _frame


@pytest.fixture
def labelled() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The hand-labelled lines: the rows to classify and what a person said (type, category, merchant)."""
    rows: list[dict[str, str]] = []
    said: list[dict[str, str]] = []
    for line in Path(__file__).with_name("labelled_lines.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, category, merchant, amount, name, purpose, further = (part.strip() for part in line.split("|"))
        row = {"amount": amount, "counterpart_name": name, "purpose": purpose}
        row |= dict(pair.strip().split("=", 1) for pair in further.split(";") if pair)
        if "counterpart_iban" in row:
            row["counterpart_iban"] = IBAN
        rows.append(row)
        said.append({"said_type": kind, "said_category": category, "said_merchant": merchant})
    return _frame(*rows), pl.DataFrame(said)


def _frame(*rows: Mapping[str, str]) -> pl.DataFrame:
    texts = pl.DataFrame(
        [{column: row.get(column) for column in CLASSIFIABLE} for row in rows],
        schema=dict.fromkeys(CLASSIFIABLE, pl.String()),
    )
    flags = [pl.lit(False).alias(column) for column in ("is_reversal", "is_return")]
    return texts.with_columns(pl.col("amount").cast(CLASSIFIABLE["amount"]), *flags)
