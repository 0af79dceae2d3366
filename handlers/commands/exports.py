"""`bankdata export`: what is stored, as files that other programs and this one read."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from analytics.currencies import minor_digits
from connectors.camt import writer as camt053
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import csv as csv_statement
from connectors.own_formats import jsonl, parquet
from handlers import wire
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.database import Database
from storage.importing.records import AccountRecord, Record, StatementRecord, TransactionRecord

KEY_CHARACTERS_MAX = 24  # camt ends a number that is no IBAN at 34 characters
SAID = tuple(
    name
    for name in TransactionRecord.__dataclass_fields__
    if name not in ("provider_id", "references", "status", "merchant_name", "detail", "amount", "original_amount")
)


class Derived:
    """Type and category of the row that is being written: the writers ask while they hold it."""

    def __init__(self) -> None:
        self.type: str | None = None
        self.category: str | None = None

    def both(self, _row: TransactionRecord) -> tuple[str | None, str | None]:
        """For the CSV layout."""
        return self.type, self.category

    def only_category(self, _row: TransactionRecord) -> str | None:
        """For a ledger."""
        return self.category


def export(database: Database, user_id: str, format_: str, path: Path, *, now: datetime) -> int:
    """Write all booked transactions of a user into a file, streaming; how many. Balance adjustments are not in the
    statement formats, and marked in the others: they are made anew where a gap is."""
    owned = _told_apart(accounts.of_user(database, user_id))
    path.touch(mode=0o600)
    with path.open("wb") as stream:
        return FORMATS[format_](database, user_id, owned, stream, now)


def _told_apart(owned: Sequence[StoredAccount]) -> list[StoredAccount]:
    """The accounts; keys that several connections use for accounts without IBAN get the end of our id."""
    uses = Counter((account.stable_key, account.currency) for account in owned if account.iban is None)
    return [
        replace(account, stable_key=f"{account.stable_key[:KEY_CHARACTERS_MAX]}-{account.id[-8:]}")
        if uses[account.stable_key, account.currency] > 1
        else account
        for account in owned
    ]


def _jsonl(database: Database, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, now: datetime) -> int:  # noqa: ARG001 - one shape for all formats
    count = 0
    by_id = wire.by_id(owned)
    for account in owned:
        about, closing = _account(account), _closing(account)
        for row in transactions.each(database, user_id, account.id):
            stream.write(jsonl.line(wire.transaction_detail(row, by_id), about, closing, _record(row)))
            count += 1
    return count


def _parquet(database: Database, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, now: datetime) -> int:  # noqa: ARG001 - as above
    count = 0

    def pieces(account: StoredAccount) -> Iterator[pl.DataFrame]:
        nonlocal count
        for piece in transactions.pieces(database, user_id, account.id):
            yield piece
            count += piece.height

    blocks = ((_account(account), _closing(account), pieces(account)) for account in owned)
    parquet.write(blocks, stream, schema=transactions.EVERYTHING)
    return count


def _statements(write: Callable[[Iterator[Record], BinaryIO, Derived, datetime], None]) -> "Write":
    def written(
        database: Database, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, now: datetime
    ) -> int:
        counted = _Counted()
        derived = Derived()
        write(counted.of(_records(database, user_id, owned, derived)), stream, derived, now)
        return counted.rows

    return written


class _Counted:
    """How many bookings went by."""

    def __init__(self) -> None:
        self.rows = 0

    def of(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            self.rows += isinstance(record, TransactionRecord)
            yield record


def _records(database: Database, user_id: str, owned: Sequence[StoredAccount], derived: Derived) -> Iterator[Record]:
    for account in owned:
        yield _account(account)
        total, first = Decimal(0), None  # adjusting entries included: then a statement over a gap does not add up
        for row in transactions.each(database, user_id, account.id):
            total += row["amount"]
            if row["is_adjusting_entry"]:
                continue
            derived.type, derived.category = row["type"], row["category"]
            first = first or row["booking_date"]
            yield _record(row)
        said = _closing(account)
        opening = None if said.closing is None else _trimmed(said.closing - total, account.currency)
        yield replace(said, opening=opening, opening_date=first)


def _account(account: StoredAccount) -> AccountRecord:
    return AccountRecord(
        stable_key=account.iban or account.stable_key,
        iban=account.iban,
        currency=account.currency,
        name=account.name,
        kind=account.kind,
        bank_name=account.bank_name,
        bic=account.bic,
    )


def _closing(account: StoredAccount) -> StatementRecord:
    balance = None if account.balance is None else _trimmed(account.balance, account.currency)
    return StatementRecord(closing=balance, closing_date=account.balance_date)


def _record(row: Mapping[str, Any]) -> TransactionRecord:
    """The booking as its source told it; our id is its provider's id, by which an import knows it again."""
    original = row["original_amount"]
    return TransactionRecord(
        provider_id=row["id"],
        merchant_name=row["source_merchant_name"],
        amount=_trimmed(row["amount"], row["currency"]),
        original_amount=None if original is None else _trimmed(original, row["original_currency"] or row["currency"]),
        **{name: row[name] for name in SAID},
    )


def _trimmed(amount: Decimal, currency: str) -> Decimal:
    """The amount without the zeros that the store adds, but with the decimals of its currency."""
    short = amount.quantize(Decimal(1).scaleb(-minor_digits(currency)))
    return short if short == amount else amount.normalize()


Write = Callable[[Database, str, Sequence[StoredAccount], BinaryIO, datetime], int]

FORMATS: Mapping[str, Write] = {
    "csv": _statements(
        lambda records, stream, derived, _now: csv_statement.write(records, stream, derived=derived.both)
    ),
    "jsonl": _jsonl,
    "parquet": _parquet,
    "camt053": _statements(lambda records, stream, _derived, now: camt053.write(records, stream, created=now)),
    "ofx": _statements(lambda records, stream, _derived, now: ofx.write(records, stream, created=now)),
    "beancount": _statements(
        lambda records, stream, derived, _now: beancount.write(records, stream, category_of=derived.only_category)
    ),
}
