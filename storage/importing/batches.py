"""What is read of a batch and checked before anything is stored: its statements, each whole or not at all."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal

from storage.importing.records import AccountRecord, Batch, InvalidRecord, StatementRecord, TransactionRecord
from storage.importing.rows import DECIMALS_MAX, DIGITS_BEFORE_POINT_MAX
from storage.importing.statements import AHEAD_DAYS_MAX

CURRENCY = re.compile("[A-Z]{3}")  # the shape of ISO 4217; lists of it age
BALANCE_AHEAD = f"A balance is dated more than {AHEAD_DAYS_MAX} days ahead and was set aside."


@dataclass(slots=True)
class AccountStatement:
    """One statement of a batch: its account, its bookings, and what it says of the account as a whole."""

    account: AccountRecord
    transactions: list[TransactionRecord] = field(default_factory=list)
    statement: StatementRecord = field(default_factory=StatementRecord)

    @property
    def entries(self) -> list[TransactionRecord]:
        """What stands in the source as a row of its own: a batch is one, however many bookings it shows."""
        return [record for record in self.transactions if record.detail == 0]

    @property
    def booked(self) -> list[TransactionRecord]:
        """The bookings that move the booked balance."""
        return [record for record in self.transactions if record.status == "booked"]

    @property
    def adds_up(self) -> bool | None:
        """Whether opening plus bookings is closing; None where one of the balances is not stated."""
        opening, closing = self.statement.opening, self.statement.closing
        if opening is None or closing is None:
            return None
        return opening + sum((record.amount for record in self.booked), Decimal(0)) == closing


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch that was read to its end without an error: only such a one is imported."""

    id: str
    statements: list[AccountStatement]
    warnings: list[str]
    name: str | None = None


def read_batch(batch: Batch, *, today: date) -> ReadBatch:
    """Everything the batch says, statement by statement; raises what its source raises, and InvalidRecord.

    A balance of a day that is too far ahead is set aside with a warning: it would be the newest one for good.
    """
    found: list[AccountStatement] = []
    last_day = today + timedelta(days=AHEAD_DAYS_MAX)
    with without_collection():
        for record in batch.records:
            if isinstance(record, TransactionRecord) and found:
                found[-1].transactions.append(_checked(record, last_day))
            elif isinstance(record, AccountRecord):
                _check_currency(record.currency)
                found.append(AccountStatement(record))
            elif not found:
                raise InvalidRecord("A booking stands before its account.")
            else:
                assert isinstance(record, StatementRecord)
                found[-1].statement = _dated(record, today)
                if max(record.opening_date or today, record.closing_date or today) > last_day:
                    found[-1].statement = replace(record, opening=None, closing=None)
                    batch.warnings.append(BALANCE_AHEAD)
    return ReadBatch(batch.id, found, batch.warnings, batch.name)


@contextmanager
def without_collection() -> Iterator[None]:
    """Records refer to nothing that refers back: looking for cycles among a million of them, again and again, took a
    quarter of the time of an import. Imports in several threads may overlap; the last one to begin ends it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _dated(record: StatementRecord, today: date) -> StatementRecord:
    """A balance whose day the source does not say is that of today."""
    if record.closing is None or record.closing_date is not None:
        return record
    return replace(record, closing_date=today)


def _checked(record: TransactionRecord, last_day: date) -> TransactionRecord:
    """The record, if it has happened, its currency is a code and its amounts can be kept exactly."""
    if record.booking_date > last_day and record.status == "booked":
        raise InvalidRecord(f"A booking is dated more than {AHEAD_DAYS_MAX} days ahead.")
    _check_currency(record.currency)
    for amount in (record.amount, record.original_amount):
        if amount is None:
            continue
        if not amount.is_finite():
            raise InvalidRecord("An amount is not a number.")
        exponent = amount.as_tuple().exponent
        assert isinstance(exponent, int)
        if amount.adjusted() >= DIGITS_BEFORE_POINT_MAX or -exponent > DECIMALS_MAX:
            raise InvalidRecord(
                f"An amount has more than {DIGITS_BEFORE_POINT_MAX} digits or more than {DECIMALS_MAX} decimals."
            )
    return record


def _check_currency(code: str) -> None:
    if not CURRENCY.fullmatch(code):
        raise InvalidRecord("A currency is not a code of three capital letters.")
