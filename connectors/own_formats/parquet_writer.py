"""Writer of Parquet: one booking per row with everything that is stored of it, and with its account and balance.

Polars writes a row group at a time. An account without a booking has no row.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

import polars as pl
from polars.io.plugins import register_io_source

from analytics.frames import MONEY as MONEY_DTYPE
from analytics.records import AccountRecord, StatementRecord
from connectors.own_formats.cells import account_cells
from connectors.own_formats.parquet_reader import ACCOUNT, DAY, FLAG, MONEY, TEXT

ROW_GROUP_ROWS = 10_000
OS_ERROR = re.compile(r"\(os error (\d+)\)")
DTYPES: Mapping[str, pl.DataType] = {
    TEXT: pl.String(),
    DAY: pl.Date(),
    MONEY: MONEY_DTYPE,
    FLAG: pl.Boolean(),
}

AccountFrames = tuple[AccountRecord, StatementRecord, Iterable[pl.DataFrame]]


def write(blocks: Iterable[AccountFrames], stream: BinaryIO, *, schema: Mapping[str, pl.DataType]) -> int:
    """Write each account with its statement and its bookings, given as frames of `schema`, which has all columns of
    BOOKING; returns the number of bookings."""
    count = 0
    account = {name: DTYPES[kind] for name, (_, kind) in ACCOUNT.items()}

    def frames(*_wanted: object) -> Iterator[pl.DataFrame]:  # pragma: no cover - Polars' thread, which nothing traces
        nonlocal count
        for about, said, pieces in blocks:
            cells = {**account_cells(about), "balance": said.closing, "balance_date": said.closing_date}
            facts = [pl.lit(cells[cell], DTYPES[kind]).alias(name) for name, (cell, kind) in ACCOUNT.items()]
            for piece in pieces:
                yield piece.with_columns(facts)
                count += piece.height

    source = register_io_source(frames, schema={**schema, **account})
    try:
        source.sink_parquet(stream, row_group_size=ROW_GROUP_ROWS)
    except pl.exceptions.ComputeError as error:
        if match := OS_ERROR.search(str(error)):
            number = int(match[1])
            raise OSError(number, os.strerror(number)) from error  # a full disk is no Polars error
        raise
    return count
