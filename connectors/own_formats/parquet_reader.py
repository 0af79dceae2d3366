"""Reader of the Parquet files that `parquet_writer` writes, by DuckDB (`parquet_texts`), because Polars panics on
damaged files.

Derived columns (type, category, merchant, rules, transfers) are for calculations by others: importing derives them
anew.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from analytics.records import TEXTS, Record
from connectors.blocks import COPY_BYTES
from connectors.classified_records import WORDS
from connectors.limits import ENTRIES_MAX, FILE_BYTES_MAX
from connectors.own_formats.cells import Cells, records_of
from connectors.own_formats.parquet_texts import texts

MAGIC = b"PAR1"
TEXT, DAY, MONEY, FLAG = "VARCHAR", "DATE", "DECIMAL(20,5)", "BOOLEAN"
ACCOUNT: Mapping[str, tuple[str, str]] = {
    "account_key": ("account", TEXT),
    "account_iban": ("iban", TEXT),
    "account_name": ("account_name", TEXT),
    "account_type": ("account_type", TEXT),
    "account_currency": ("account_currency", TEXT),
    "account_bank_name": ("bank_name", TEXT),
    "account_bic": ("bic", TEXT),
    "account_balance": ("balance", MONEY),
    "account_balance_date": ("balance_date", DAY),
}
BOOKING: Mapping[str, tuple[str, str]] = {
    "id": ("provider_id", TEXT),
    "source_merchant_name": ("merchant_name", TEXT),
    **{name: (name, TEXT) for name in (*TEXTS, "currency") if name not in ("provider_id", "merchant_name")},
    **{name: (name, DAY) for name in ("booking_date", "value_date")},
    **{name: (name, MONEY) for name in ("amount", "original_amount")},
    **{name: (name, FLAG) for name in ("is_reversal", "is_return", "is_adjusting_entry")},
}
"""The columns that are read, each with its cell and type."""


def detect(head: bytes) -> bool:
    """Whether a file is Parquet; `read` says whether it is ours."""
    return head.startswith(MAGIC)


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of a Parquet file that bankdata wrote. Raises UnsupportedFile for others, MalformedFile for damage,
    LimitExceeded for more than a file may contain."""
    return records_of(_rows(stream), "Row")


def _rows(stream: BinaryIO) -> Iterator[Cells]:
    columns = {**ACCOUNT, **BOOKING}
    types = {name: type_ for name, (_, type_) in columns.items()}
    cells = [*(cell for cell, _ in columns.values()), *WORDS]
    with NamedTemporaryFile(prefix="bankdata-", suffix=".parquet") as copy:  # its end is read first, of a stream too
        shutil.copyfileobj(stream, copy, COPY_BYTES)
        copy.flush()
        bounds = {"rows_max": ENTRIES_MAX, "characters_max": FILE_BYTES_MAX}
        rows = texts(Path(copy.name), types, perhaps=dict.fromkeys(WORDS, TEXT), **bounds)
        for row in rows:
            yield dict(zip(cells, row, strict=True))
