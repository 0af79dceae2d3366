"""Writes the stored bookings as files that other programs and this one read: `bankdata export`, and GET
/transactions/export."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, BinaryIO

import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from analytics.minor_digits import in_digits, minor_digits
from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.camt import writer as camt053
from connectors.classified_records import UNCLASSIFIED, WORDS, Classification, OwnerWords, Pair, PartWords
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import csv as csv_statement
from connectors.own_formats import jsonl, parquet_writer
from handlers import json_shapes
from storage import transactions
from storage.accounts import StoredAccount
from storage.annotations.annotation import OwnWords, Split
from storage.database import Session
from storage.importing.derivation import LEAF
from storage.transactions import Selection

TRANSFER = ("transfer_account_id", "transfer_id", "transfer_rule")
WORD_COLUMNS = dict.fromkeys(WORDS, pl.String())
KEY_CHARACTERS_MAX = 24  # camt ends a number that is no IBAN at 34 characters
REPORTED = tuple(
    name
    for name in TransactionRecord.__struct_fields__
    if name
    not in ("provider_id", "references", "status", "merchant_name", "detail", "words", "amount", "original_amount")
)


class Export(Struct, frozen=True, kw_only=True, dict=True):
    """What an export contains: the booked transactions of these accounts of one user that a selection lets through.

    `selection` None: all bookings, and each account's balance too (with only some of the bookings, no statement would
    add up). `may_read` says which accounts may be named as the other side of a transfer. `leaf` turns the code of a
    finer category into the name that is exported; None leaves finer categories out. `words` None leaves the user's own
    words out. `said` has lines of an export of words, which stand first in JSON lines and nowhere else.
    """

    user_id: str
    accounts: Sequence[StoredAccount]
    now: datetime
    today: date
    selection: Selection | None = None
    may_read: Callable[[str], bool] = lambda _account_id: True
    leaf: Callable[[str | None], str | None] | None = None
    words: OwnWords | None = None
    said: Iterable[str] = ()

    def words_on(self, row: Mapping[str, Any]) -> OwnerWords:
        """The user's own words on this booking (category, own category, note, tags, parts); empty where they are not
        exported."""
        annotation = self.words.by_id.get(row["id"]) if self.words is not None else None
        if annotation is None:
            return OwnerWords()
        tags = [self._names[tag][0] for tag in annotation.tags]
        splits = [(part.place.category, self._part(part, row["currency"])) for part in annotation.parts]
        category, leaf, own_id = annotation.place or (None, None, None)
        return OwnerWords(leaf or category, annotation.note, tags, splits, self._own_category_name(own_id))

    def _part(self, part: Split, currency: str) -> PartWords:
        tags = [self._names[tag][0] for tag in part.tags]
        amount = in_digits(part.amount, currency)
        category, leaf, own_id = part.place
        return PartWords(amount, leaf or category, part.note, tags, self._own_category_name(own_id))

    def _own_category_name(self, own_id: str | None) -> str | None:
        own = self.words.own.get(own_id or "") if self.words is not None else None
        return own and own.name

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, int]]:
        assert self.words is not None, "nothing is said"
        return self.words.names(self.may_read)

    def rows(self, session: Session, account: StoredAccount) -> Iterator[pl.DataFrame]:
        """The account's bookings as frames of `transactions.EVERYTHING`, the earliest booking date first. The TRANSFER
        columns are null where the other account may not be named (`may_read`)."""
        for piece in transactions.pieces(session, self.user_id, account.id, self.selection or Selection()):
            others = piece["transfer_account_id"].unique().drop_nulls()
            hidden = [account_id for account_id in others if not self.may_read(account_id)]
            is_readable = pl.when(~pl.col("transfer_account_id").is_in(hidden).fill_null(value=False))
            yield piece.with_columns(is_readable.then(pl.col(*TRANSFER)).name.keep()) if hidden else piece

    def each(self, session: Session, account: StoredAccount) -> Iterator[Mapping[str, Any]]:
        """The account's bookings one by one, as `rows` gives them."""
        for piece in self.rows(session, account):
            yield from piece.iter_rows(named=True)

    def as_table(self, piece: pl.DataFrame) -> pl.DataFrame:
        """The frame with the columns of a table, and the codes of finer categories replaced by their exported names."""
        if self.leaf is not None:
            names = [self.leaf(code) for code in piece["detailed_category"]]
            piece = piece.with_columns(pl.Series("detailed_category", names, dtype=pl.String))
        return piece.select(*_columns(self))

    def leaf_of(self, row: Mapping[str, Any]) -> str | None:
        """The exported name of a booking's finer category; None where it has none, or finer categories are left out."""
        return self.leaf(row["detailed_category"]) if self.leaf is not None else None

    def closing_statement(self, account: StoredAccount) -> StatementRecord:
        """The account's balance as a statement; an empty one where only some bookings are exported or no balance is
        known."""
        if self.selection is not None or account.balance is None:
            return StatementRecord()
        line = account.credit_line
        return StatementRecord(
            closing=_without_extra_zeros(account.balance, account.currency),
            closing_date=account.balance_date,
            credit_line=None if line is None else _without_extra_zeros(line, account.currency),
        )


def write(session: Session, export: Export, format_: str, stream: BinaryIO) -> int:
    """Write the export in this format to the stream piece by piece, and return the number of bookings. Adjusting
    entries are left out of the statement formats and marked in the others: an import makes them anew wherever a gap is.

    The session has to be one transaction: rows and balances that a sync brings meanwhile would not add up.
    """
    return FORMATS[format_](session, replace(export, accounts=_with_distinct_keys(export.accounts)), stream)


def _with_distinct_keys(owned: Sequence[StoredAccount]) -> list[StoredAccount]:
    """The accounts, each with a key of its own: where several connections use the same key for accounts without IBAN in
    one currency, the end of the account's id is added to the key of each."""
    uses = Counter((account.stable_key, account.currency) for account in owned if account.iban is None)
    return [
        replace(account, stable_key=f"{account.stable_key[:KEY_CHARACTERS_MAX]}-{account.id[-8:]}")
        if uses[account.stable_key, account.currency] > 1
        else account
        for account in owned
    ]


def _jsonl(session: Session, export: Export, stream: BinaryIO) -> int:
    count = 0
    by_id = {account.id: account for account in export.accounts}
    stream.writelines(f"{each}\n".encode() for each in export.said)
    for account in export.accounts:
        about, closing = _account(account), export.closing_statement(account)
        for row in export.each(session, account):
            detail, leaf = json_shapes.transaction_detail(row, by_id), export.leaf_of(row)
            if leaf is not None:
                detail["detailedCategory"] = leaf
            if export.words is not None:
                detail |= _words(export.words_on(row))
            stream.write(jsonl.line(detail, about, closing, _record(row)))
            count += 1
    return count


def _parquet(session: Session, export: Export, stream: BinaryIO) -> int:
    schema = _columns(export) if export.words is None else {**_columns(export), **WORD_COLUMNS}
    blocks = (
        (_account(account), export.closing_statement(account), _with_words(export, export.rows(session, account)))
        for account in export.accounts
    )
    return parquet_writer.write(blocks, stream, schema=schema)


def _columns(export: Export) -> Mapping[str, pl.DataType]:
    """The columns of a table by name; those of the finer category come last, and only where they are exported."""
    usual = {name: dtype for name, dtype in transactions.EVERYTHING.items() if name not in LEAF}
    return usual if export.leaf is None else {**usual, **{name: transactions.EVERYTHING[name] for name in LEAF}}


def _with_words(export: Export, pieces: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    for piece in map(export.as_table, pieces):
        if export.words is None:
            yield piece
        else:
            said = [export.words_on(row).cells() for row in piece.select("id", "currency").iter_rows(named=True)]
            yield piece.with_columns(pl.Series(name, [each[name] for each in said], dtype=pl.String) for name in WORDS)


def _words(said: OwnerWords) -> dict[str, Any]:
    """The user's own words as members of a line of JSON; what the user has not said is absent."""
    splits = [part.json() for _, part in said.splits]
    place = {"chosenCategory": said.category, "ownCategory": said.own}
    members = {"note": said.note, "tags": said.tags, **place, "splits": splits}
    return {name: value for name, value in members.items() if value}


def _statements(write_pairs: Callable[[Iterator[Pair], BinaryIO, Export], None]) -> "Write":
    def write_statements(session: Session, export: Export, stream: BinaryIO) -> int:
        count = 0

        def counted() -> Iterator[Pair]:
            nonlocal count
            for pair in _pairs(session, export):
                count += isinstance(pair[0], TransactionRecord)
                yield pair

        write_pairs(counted(), stream, export)
        return count

    return write_statements


def _pairs(session: Session, export: Export) -> Iterator[Pair]:
    for account in export.accounts:
        yield _account(account), UNCLASSIFIED
        said, first = export.closing_statement(account), None
        total, until = Decimal(0), said.closing_date or date.max  # what is booked later is not in the balance
        for row in export.each(session, account):
            if row["booking_date"] <= until:
                total += row["amount"]  # adjusting entries included: then a statement over a gap does not add up
            if row["is_adjusting_entry"]:
                continue
            first = first or row["booking_date"]
            words = export.words_on(row)
            yield _record(row), Classification(row["type"], row["category"], export.leaf_of(row), words)
        opening = None if said.closing is None else _without_extra_zeros(said.closing - total, account.currency)
        yield replace(said, opening=opening, opening_date=first and min(first, until)), UNCLASSIFIED


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


def _record(row: Mapping[str, Any]) -> TransactionRecord:
    """The booking as its source reported it, with our id as the provider's id, by which a later import recognises
    it."""
    original = row["original_amount"]
    return TransactionRecord(
        provider_id=row["id"],
        merchant_name=row["source_merchant_name"],
        amount=_without_extra_zeros(row["amount"], row["currency"]),
        original_amount=None
        if original is None
        else _without_extra_zeros(original, row["original_currency"] or row["currency"]),
        **{name: row[name] for name in REPORTED},
    )


def _without_extra_zeros(amount: Decimal, currency: str) -> Decimal:
    """The amount without the zeros that the store appends, but with all decimals of its currency."""
    short = amount.quantize(Decimal(1).scaleb(-minor_digits(currency)))
    return short if short == amount else amount.normalize()


Write = Callable[[Session, Export, BinaryIO], int]

FORMATS: Mapping[str, Write] = {
    "csv": _statements(
        lambda pairs, stream, export: csv_statement.write(
            pairs, stream, is_detailed=export.leaf is not None, with_words=export.words is not None
        )
    ),
    "jsonl": _jsonl,
    "parquet": _parquet,
    "camt053": _statements(lambda pairs, stream, export: camt053.write(_records(pairs), stream, created=export.now)),
    "ofx": _statements(
        lambda pairs, stream, export: ofx.write(_records(pairs), stream, created=export.now, today=export.today)
    ),
    "beancount": _statements(lambda pairs, stream, _export: beancount.write(pairs, stream)),
}
