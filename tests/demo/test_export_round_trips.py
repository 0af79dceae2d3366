"""What the exports that are nobody's standard write comes back: JSON lines, Parquet, Beancount ledgers."""

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.classified_records import without_classes
from connectors.own_formats import beancount_reader as beancount_reading
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import jsonl, parquet_reader, parquet_writer
from handlers import json_shapes
from storage.accounts import StoredAccount
from storage.transactions import EVERYTHING
from tests.demo.record_streams import carried, record_streams, rendered

USER_NAMES = ["demo", "solo", "lapsed", "globe"]
Fetch = Callable[..., list[Record]]
Block = tuple[AccountRecord, list[TransactionRecord], StatementRecord]


def blocks(records: Sequence[Record]) -> Iterator[Block]:
    """Accounts with their booked rows."""
    for record in records:
        if isinstance(record, AccountRecord):
            account, rows = record, list[TransactionRecord]()
        elif isinstance(record, StatementRecord):
            yield account, rows, record
        elif record.status == "booked":
            rows.append(record)


def stored(row: TransactionRecord) -> dict[str, Any]:
    """The row as the store has it, with something derived."""
    known = {name: getattr(row, name, None) for name in EVERYTHING}
    derived = {
        "id": row.provider_id,
        "account_id": "acc_1",
        "merchant_name": "Somebody",
        "source_merchant_name": row.merchant_name,
        "type": "other",
        "category": "OTHER",
        "created_at": datetime(2026, 11, 20, 12),  # noqa: DTZ001 - the store keeps UTC without zone
        "is_potential_duplicate": False,
        "is_adjusting_entry": False,
    }
    return known | derived


def as_jsonl(records: Sequence[Record]) -> io.BytesIO:
    """JSON lines."""
    lines = []
    for account, rows, said in blocks(records):
        owner = StoredAccount(
            id="acc_1",
            connection_id="con_1",
            stable_key=account.stable_key,
            iban=account.iban,
            said_name=account.name,
            kind=account.kind,
            currency=account.currency,
            bank_name=account.bank_name or "Statement files",
            bic=account.bic,
            balance=said.closing,
            balance_date=said.closing_date,
            last_synced_at=None,
        )
        lines += [
            jsonl.line(json_shapes.transaction_detail(stored(row), {"acc_1": owner}), account, said, row)
            for row in rows
        ]
    return io.BytesIO(b"".join(lines))


def as_parquet(records: Sequence[Record]) -> io.BytesIO:
    """A Parquet file."""
    stream = io.BytesIO()
    parquet_writer.write(
        (
            (account, said, [pl.DataFrame([stored(row) for row in rows], schema=EVERYTHING)])
            for account, rows, said in blocks(records)
        ),
        stream,
        schema=EVERYTHING,
    )
    stream.seek(0)
    return stream


def as_beancount(records: Sequence[Record]) -> io.BytesIO:
    """A ledger."""
    return rendered(lambda some, file: beancount.write(without_classes(some), file), records)


def told_by_rows(records: Sequence[Record]) -> list[Record]:
    """What a file of rows can say: accounts with their bookings and the balance, none without a booking."""
    lost = ("references", "opening", "opening_date", "is_authoritative", "is_pending_complete", "sequence")
    found: list[Record] = []
    for account, rows, said in blocks(records):
        if rows:
            found += [account, *rows, said]
    return carried(found, lost=lost)


def told_by_a_ledger(records: Sequence[Record]) -> list[Record]:
    """What a ledger can say: everything but weak references; nothing is opened with nothing."""
    found: list[Record] = []
    for account, rows, said in blocks(records):
        opening = said.opening
        if opening is None and said.closing is not None:
            opening = said.closing - sum((row.amount for row in rows), Decimal(0))
            said = replace(said, opening_date=min(row.booking_date for row in rows) if rows else said.closing_date)
        found += [account, *rows, replace(said, opening=opening, opening_date=said.opening_date if opening else None)]
    return carried(found, lost=("references", "is_authoritative", "is_pending_complete", "sequence"))


@pytest.mark.requirement("export.jsonl")
@given(record_streams())
def test_json_lines_give_everything_back(records: list[Record]) -> None:
    named = [
        replace(record, bank_name="Bank") if isinstance(record, AccountRecord) else record for record in records
    ]  # every stored account has a bank
    assert list(jsonl.read(as_jsonl(named))) == told_by_rows(named)


@pytest.mark.requirement("export.jsonl")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_json_lines_give_the_demo_histories_back(user: str, fetched: Fetch) -> None:
    assert list(jsonl.read(as_jsonl(fetched(user)))) == told_by_rows(fetched(user))


@pytest.mark.requirement("export.parquet")
@given(record_streams())
def test_parquet_gives_everything_back(records: list[Record]) -> None:
    assert list(parquet_reader.read(as_parquet(records))) == told_by_rows(records)


@pytest.mark.requirement("export.parquet")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_parquet_gives_the_demo_histories_back(user: str, fetched: Fetch) -> None:
    assert list(parquet_reader.read(as_parquet(fetched(user)))) == told_by_rows(fetched(user))


@pytest.mark.requirement("export.parquet")
def test_parquet_is_read_by_others(fetched: Fetch, tmp_path: Path) -> None:
    file = tmp_path / "export.parquet"
    file.write_bytes(as_parquet(fetched("globe")).getvalue())
    wanted = [(account.currency, row.amount) for account, rows, _ in blocks(fetched("globe")) for row in rows]
    assert pl.read_parquet(file).select("account_currency", "amount").rows() == wanted
    assert duckdb.execute(f"SELECT account_currency, amount FROM read_parquet('{file}')").fetchall() == wanted


@pytest.mark.requirement("export.beancount")
@given(record_streams())
def test_a_ledger_gives_everything_back(records: list[Record]) -> None:
    assert list(beancount_reading.read(as_beancount(records))) == told_by_a_ledger(records)


@pytest.mark.requirement("export.beancount")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_a_ledger_gives_the_demo_histories_back(user: str, fetched: Fetch) -> None:
    assert list(beancount_reading.read(as_beancount(fetched(user)))) == told_by_a_ledger(fetched(user))
