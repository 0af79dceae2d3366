"""`bankdata export`: what is stored, as files that other programs and this one read."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

from msgspec import structs

from analytics.currencies import minor_digits
from connectors.camt import writer as camt053
from connectors.classified_records import UNCLASSIFIED, Classification, Pair
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import csv as csv_statement
from connectors.own_formats import jsonl, parquet_writer
from handlers import json_shapes
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.database import Database, Session
from storage.importing.records import AccountRecord, Record, StatementRecord, TransactionRecord

KEY_CHARACTERS_MAX = 24  # camt ends a number that is no IBAN at 34 characters
SAID = tuple(
    name
    for name in TransactionRecord.__struct_fields__
    if name not in ("provider_id", "references", "status", "merchant_name", "detail", "amount", "original_amount")
)


def export(database: Database, user_id: str, format_: str, path: Path, *, now: datetime, today: date) -> int:
    """Write all booked transactions of a user into a file, streaming; how many. Balance adjustments are not in the
    statement formats, and marked in the others: they are made anew where a gap is.

    All of it is read in one transaction, or rows and balances that a sync brings meanwhile would not add up.
    """
    with database.transaction() as session, _replacing(path) as stream:
        owned = _told_apart(accounts.of_user(session, user_id))
        return FORMATS[format_](session, user_id, owned, stream, now, today)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content becomes the file when all of it is written; until then, and when something fails, the
    path keeps what it had. What is not a file, such as a pipe, is written as it comes. Errors name the path."""
    target = path.resolve()  # a symbolic link stays one
    partial: Path | None = None
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                yield stream
            return
        descriptor, name = mkstemp(dir=target.parent, prefix=".export-", suffix=".part")  # for its owner only
        partial = Path(name)
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def _told_apart(owned: Sequence[StoredAccount]) -> list[StoredAccount]:
    """The accounts; keys that several connections use for accounts without IBAN get the end of our id."""
    uses = Counter((account.stable_key, account.currency) for account in owned if account.iban is None)
    return [
        replace(account, stable_key=f"{account.stable_key[:KEY_CHARACTERS_MAX]}-{account.id[-8:]}")
        if uses[account.stable_key, account.currency] > 1
        else account
        for account in owned
    ]


def _jsonl(
    session: Session, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, _now: datetime, _today: date
) -> int:
    count = 0
    by_id = json_shapes.by_id(owned)
    for account in owned:
        about, closing = _account(account), _closing(account)
        for row in transactions.each(session, user_id, account.id):
            stream.write(jsonl.line(json_shapes.transaction_detail(row, by_id), about, closing, _record(row)))
            count += 1
    return count


def _parquet(
    session: Session, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, _now: datetime, _today: date
) -> int:
    blocks = (
        (_account(account), _closing(account), transactions.pieces(session, user_id, account.id)) for account in owned
    )
    return parquet_writer.write(blocks, stream, schema=transactions.EVERYTHING)


def _statements(write: Callable[[Iterator[Pair], BinaryIO, datetime, date], None]) -> "Write":
    def written(
        session: Session, user_id: str, owned: Sequence[StoredAccount], stream: BinaryIO, now: datetime, today: date
    ) -> int:
        counted = _Counted()
        write(counted.of(_pairs(session, user_id, owned)), stream, now, today)
        return counted.rows

    return written


class _Counted:
    """How many bookings went by."""

    def __init__(self) -> None:
        self.rows = 0

    def of(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            self.rows += isinstance(pair[0], TransactionRecord)
            yield pair


def _pairs(session: Session, user_id: str, owned: Sequence[StoredAccount]) -> Iterator[Pair]:
    for account in owned:
        yield _account(account), UNCLASSIFIED
        total, first = Decimal(0), None  # adjusting entries included: then a statement over a gap does not add up
        for row in transactions.each(session, user_id, account.id):
            total += row["amount"]
            if row["is_adjusting_entry"]:
                continue
            first = first or row["booking_date"]
            yield _record(row), Classification(row["type"], row["category"])
        said = _closing(account)
        opening = None if said.closing is None else _trimmed(said.closing - total, account.currency)
        yield structs.replace(said, opening=opening, opening_date=first), UNCLASSIFIED


def _records(pairs: Iterator[Pair]) -> Iterator[Record]:
    return (record for record, _ in pairs)


def _account(account: StoredAccount) -> AccountRecord:
    return AccountRecord(
        stable_key=account.iban or account.stable_key,
        iban=account.iban,
        currency=account.currency,
        name=account.said_name,
        kind=account.kind,
        bank_name=account.bank_name,
        bic=account.bic,
    )


def _closing(account: StoredAccount) -> StatementRecord:
    balance = None if account.balance is None else _trimmed(account.balance, account.currency)
    return StatementRecord(closing=balance, closing_date=account.balance_date)


def _record(row: Mapping[str, Any]) -> TransactionRecord:
    """The booking as its source reported it; our id is its provider's id, by which an import knows it again."""
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


Write = Callable[[Session, str, Sequence[StoredAccount], BinaryIO, datetime, date], int]

FORMATS: Mapping[str, Write] = {
    "csv": _statements(lambda pairs, stream, _now, _today: csv_statement.write(pairs, stream)),
    "jsonl": _jsonl,
    "parquet": _parquet,
    "camt053": _statements(lambda pairs, stream, now, _today: camt053.write(_records(pairs), stream, created=now)),
    "ofx": _statements(lambda pairs, stream, now, today: ofx.write(_records(pairs), stream, created=now, today=today)),
    "beancount": _statements(lambda pairs, stream, _now, _today: beancount.write(pairs, stream)),
}
