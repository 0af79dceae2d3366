"""Reads a batch and checks it before anything is stored: its statements, each whole or not at all."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
from msgspec import Struct, field
from msgspec.structs import replace

from analytics.messages import Message
from analytics.records import (
    AccountRecord,
    Batch,
    InvalidRecord,
    Record,
    StatementRecord,
    TransactionRecord,
)
from storage.importing.rows import DECIMALS_MAX, DIGITS_BEFORE_POINT_MAX
from storage.importing.same_accounts import Lookalike
from storage.importing.spool import Spool, without_nul
from storage.importing.statements import AHEAD_DAYS_MAX

CURRENCY = re.compile("[A-Z]{3}")  # the shape of ISO 4217; lists of it age
BALANCE_AHEAD = Message("A balance is dated more than {limit} days ahead and was set aside.", limit=AHEAD_DAYS_MAX)


class AccountStatement(Struct, kw_only=True):
    """One statement of a batch: its account, the places of its bookings in the spool, and what it says about the
    account as a whole. `entries` counts rows of the source, `pending_entries` those of them that are pending: one that
    contains several bookings counts once. `booked_amount` is the sum of what is booked."""

    account: AccountRecord
    places: range
    statement: StatementRecord = field(default_factory=StatementRecord)
    entries: int = 0
    pending_entries: int = 0
    booked_amount: Decimal = Decimal(0)
    first_day: date | None = None
    last_day: date | None = None

    def count(self, record: TransactionRecord) -> None:
        """Count one more booking, the one that was just added to the spool."""
        day = record.booking_date
        self.places = range(self.places.start, self.places.stop + 1)
        self.first_day = min(self.first_day or day, day)
        self.last_day = max(self.last_day or day, day)
        if record.detail == 0:
            self.entries += 1
            self.pending_entries += record.status == "pending"
        if record.status == "booked":
            self.booked_amount += record.amount

    @property
    def adds_up(self) -> bool | None:
        """Whether opening balance plus bookings is the closing balance; None where one of the balances is not
        stated."""
        opening, closing = self.statement.opening, self.statement.closing
        if opening is None or closing is None:
            return None
        return opening + self.booked_amount == closing

    def told(self, ids: pl.DataFrame) -> str | None:
        """The ids of the bookings of a statement with both balances, parted by blanks; `ids` are those of the batch
        (`place`, `stored_id`), in the order of their places."""
        if self.adds_up is None:
            return None
        first, end = (bisect_left(ids["place"], each) for each in (self.places.start, self.places.stop))
        return " ".join(ids["stored_id"][first:end].unique(maintain_order=True))


class ReadBatch(Struct, frozen=True):
    """A batch that was read to its end without an error; only such batches are imported. `words` are lines of an export
    of words."""

    id: str
    statements: list[AccountStatement]
    spool: Spool
    warnings: list[str]
    name: str | None = None
    words: Sequence[str] = ()


class AccountReport(Struct, frozen=True, kw_only=True):
    """What the import of one batch did to one account: how many bookings it added (`new`, with those that were pending
    or taken back before), and how many of its bookings were stored already (`known`). `same_as` is the account that it
    seems to duplicate, if its user is being asked about that."""

    account_id: str
    new: int
    known: int
    same_as: Lookalike | None = None


def read_batch(batch: Batch, *, today: date) -> ReadBatch:
    """The whole content of the batch, statement by statement. Raises what its source raises, and InvalidRecord."""
    statements, spool = spool_statements(_check_records(batch, today))
    return ReadBatch(batch.id, statements, spool, batch.warnings, batch.name)


def spool_statements(records: Iterable[Record]) -> tuple[list[AccountStatement], Spool]:
    """The statements in these records, with their bookings in a spool. Raises InvalidRecord."""
    found: list[AccountStatement] = []
    spool = Spool()
    for record in records:
        if isinstance(record, AccountRecord):
            found.append(AccountStatement(account=record, places=range(len(spool), len(spool))))
        elif not found:
            raise InvalidRecord("A transaction stands before its account.")
        elif isinstance(record, TransactionRecord):
            spool.add(record)
            found[-1].count(record)
        else:
            found[-1].statement = record
    return found, spool


def _check_records(batch: Batch, today: date) -> Iterator[Record]:
    """The records, after checks that they make sense, without U+0000. Raises InvalidRecord. Balances dated too far
    ahead are dropped with a warning, because they would stay the newest ones for ever."""
    last_day = today + timedelta(days=AHEAD_DAYS_MAX)
    for record in batch.records:
        match record:
            case TransactionRecord():
                yield _check_booking(record, last_day)
            case AccountRecord():
                _check_currency(record.currency)
                yield without_nul(record)
            case StatementRecord() if max(record.opening_date or today, record.closing_date or today) > last_day:
                batch.warnings.append(BALANCE_AHEAD)
                yield replace(_with_day(record, today), opening=None, closing=None)
            case _:
                yield _with_day(record, today)


def _with_day(record: StatementRecord, today: date) -> StatementRecord:
    """The record, with today as the day of a balance for which the source states no day."""
    record = without_nul(record)
    if record.closing is None or record.closing_date is not None:
        return record
    return replace(record, closing_date=today)


def _check_booking(record: TransactionRecord, last_day: date) -> TransactionRecord:
    """The record, after checks that it is not booked too far in the future, that its currency is a code, and that its
    amounts can be stored exactly. Raises InvalidRecord."""
    if record.booking_date > last_day and record.status == "booked":
        raise InvalidRecord("A transaction is dated more than {limit} days ahead.", limit=AHEAD_DAYS_MAX)
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
                "An amount has more than {digits} digits or more than {decimals} decimals.",
                decimals=DECIMALS_MAX,
                digits=DIGITS_BEFORE_POINT_MAX,
            )
    return record


def _check_currency(code: str) -> None:
    if not CURRENCY.fullmatch(code):
        raise InvalidRecord("A currency is not a code of three capital letters.")
