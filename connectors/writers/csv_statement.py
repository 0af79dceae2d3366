"""The project's own CSV layout, written and read: one header, one line per booking, any number of accounts.

Every field of the records has its column, so nothing is left out but whether the pending rows are all there are. ISO
dates, decimal points, commas, UTF-8. `record` says what a line is: `booked` or `pending` bookings, `opening` or
`closing` balances (`booking_date` is their day), or an `account` without any of these. A cell that a spreadsheet would
take for a formula is prefixed with an apostrophe, and so is one that begins with an apostrophe; reading takes it off.
`type` and `category` are for the eyes of people: they are derived anew from what is read.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from functools import partial
from typing import BinaryIO, cast, get_args

from connectors.connector import LimitExceeded, MalformedFile
from connectors.csv_lines import Lines
from connectors.limits import CODE_CHARACTERS_MAX, ENTRIES_MAX
from connectors.text import clean, clean_purpose, compact_iban, parse_amount, parse_bic, parse_date
from storage.records import AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord

ACCOUNT_COLUMNS = ("account", "iban", "account_name", "account_type", "account_currency", "bank_name", "bic")
TEXT_COLUMNS = (
    "provider_id",
    "counterpart_name",
    "counterpart_iban",
    "counterpart_bic",
    "counterpart_bank_name",
    "creditor_id",
    "debitor_id",
    "mandate_reference",
    "end_to_end_id",
    "purpose",
    "bank_transaction_code",
    "purpose_code",
    "gvc",
    "swift_code",
    "mcc",
    "bank_text",
    "merchant_name",
    "original_currency",
)
COLUMNS = (
    "record", *ACCOUNT_COLUMNS, "booking_date", "value_date", "amount", "currency", *TEXT_COLUMNS, "original_amount",
    "is_reversal", "is_return", "references", "sequence", "is_authoritative", "type", "category",
)  # fmt: skip
READ_AS: dict[str, Callable[[str | None], str | None]] = {
    "counterpart_iban": compact_iban,
    "counterpart_bic": parse_bic,
    "purpose": clean_purpose,
    "bank_transaction_code": partial(clean, characters=CODE_CHARACTERS_MAX),
    "purpose_code": partial(clean, characters=CODE_CHARACTERS_MAX),
}
"""Columns that are more, or less, than a name."""
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
FORMULA = tuple("=+-@\t\r'")
YES = "true"

Line = dict[str, str | None]
Derived = Callable[[TransactionRecord], tuple[str | None, str | None]]


def write(records: Iterable[Record], stream: BinaryIO, *, derived: Derived = lambda _: (None, None)) -> None:
    """The records as CSV, streaming; `derived` names type and category of a row while that row is written."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        lines = csv.writer(text, lineterminator="\r\n")
        lines.writerow(COLUMNS)
        for line in _lines(records, derived):
            lines.writerow([_guarded(line.get(column) or "") for column in COLUMNS])
    finally:
        text.detach()


def detect(head: bytes) -> bool:
    """Whether a file begins with this layout's header."""
    return head.decode("utf-8", "replace").lstrip("\ufeff").startswith(",".join(COLUMNS[:6]))


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of a file of this layout; raises MalformedFile naming the line."""
    lines = csv.reader(Lines(stream), strict=True)
    account: AccountRecord | None = None
    statement: StatementRecord | None = None
    try:
        if tuple(next(lines, ())) != COLUMNS:
            raise MalformedFile("Line 1: not the header of a bankdata CSV.")
        for number, cells in enumerate(lines, 1):
            if number > ENTRIES_MAX:
                raise LimitExceeded(f"The file holds more than {ENTRIES_MAX} lines.")
            if len(cells) != len(COLUMNS):
                raise MalformedFile(f"Line {lines.line_num}: {len(cells)} columns where {len(COLUMNS)} are expected.")
            line = {name: _bare(cell) or None for name, cell in zip(COLUMNS, cells, strict=True)}
            found = _account(line)
            if found != account:
                if account is not None:
                    yield statement or StatementRecord()
                account, statement = found, None
                yield account
            if line["record"] in ("booked", "pending"):
                yield _transaction(line)
            else:
                statement = _statement(line, statement or StatementRecord())
    except (ValueError, ArithmeticError, KeyError, TypeError, csv.Error) as error:
        raise MalformedFile(f"Line {lines.line_num}: cannot be read.", detail=type(error).__name__) from error
    if account is not None:
        yield statement or StatementRecord()


def _lines(records: Iterable[Record], derived: Derived) -> Iterator[Line]:
    columns: Line = {}
    is_silent = False
    for record in records:
        match record:
            case AccountRecord():
                if is_silent:
                    yield {"record": "account", **columns}
                columns, is_silent = _account_line(record), True
            case TransactionRecord():
                type_, category = derived(record)
                yield {**_booking_line(record), **columns, "type": type_, "category": category}
                is_silent = False
            case StatementRecord():
                for line in _balance_lines(record):
                    yield {**line, **columns}
                    is_silent = False
    if is_silent:
        yield {"record": "account", **columns}


def _account_line(account: AccountRecord) -> Line:
    values = (
        account.stable_key, account.iban, account.name, account.kind, account.currency, account.bank_name, account.bic
    )  # fmt: skip
    return dict(zip(ACCOUNT_COLUMNS, values, strict=True))


def _booking_line(row: TransactionRecord) -> Line:
    texts: Line = {name: getattr(row, name) for name in TEXT_COLUMNS}
    return texts | {
        "record": row.status,
        "booking_date": row.booking_date.isoformat(),
        "value_date": row.value_date.isoformat() if row.value_date else None,
        "amount": f"{row.amount:f}",
        "currency": row.currency,
        "original_amount": f"{row.original_amount:f}" if row.original_amount is not None else None,
        "is_reversal": YES if row.is_reversal else None,
        "is_return": YES if row.is_return else None,
        "references": "\n".join(row.references) or None,
    }


def _balance_lines(statement: StatementRecord) -> Iterator[Line]:
    shared: Line = {
        "sequence": statement.sequence,
        "is_authoritative": YES if statement.is_authoritative else None,
    }
    for name, amount, day in (
        ("opening", statement.opening, statement.opening_date),
        ("closing", statement.closing, statement.closing_date),
    ):
        if amount is not None:
            yield shared | {"record": name, "amount": f"{amount:f}", "booking_date": day.isoformat() if day else None}


def _account(line: Line) -> AccountRecord:
    kind = line["account_type"]
    if kind is not None and kind not in get_args(AccountKind):
        raise ValueError("an unknown kind of account")
    return AccountRecord(
        stable_key=_stated(line, "account"),
        currency=_stated(line, "account_currency"),
        iban=compact_iban(line["iban"]),
        name=clean(line["account_name"]),
        kind=cast(AccountKind | None, kind),
        bank_name=clean(line["bank_name"]),
        bic=parse_bic(line["bic"]),
    )


def _transaction(line: Line) -> TransactionRecord:
    texts = {name: READ_AS.get(name, clean)(line[name]) for name in TEXT_COLUMNS}
    return TransactionRecord(
        amount=parse_amount(_stated(line, "amount")),
        currency=_stated(line, "currency"),
        booking_date=parse_date(_stated(line, "booking_date")),
        value_date=_day(line["value_date"]),
        status="pending" if line["record"] == "pending" else "booked",
        original_amount=parse_amount(line["original_amount"]) if line["original_amount"] else None,
        is_reversal=line["is_reversal"] == YES,
        is_return=line["is_return"] == YES,
        references=tuple((line["references"] or "").split("\n")) if line["references"] else (),
        detail=0,  # each line is a booking of its own
        **texts,
    )


def _statement(line: Line, known: StatementRecord) -> StatementRecord:
    if line["record"] == "account":
        return known
    if line["record"] not in ("opening", "closing"):
        raise ValueError("an unknown kind of line")
    amount, day = parse_amount(_stated(line, "amount")), _day(line["booking_date"])
    is_closing = line["record"] == "closing"
    return StatementRecord(
        opening=known.opening if is_closing else amount,
        opening_date=known.opening_date if is_closing else day,
        closing=amount if is_closing else known.closing,
        closing_date=day if is_closing else known.closing_date,
        sequence=line["sequence"],
        is_authoritative=line["is_authoritative"] == YES,
    )


def _stated(line: Line, column: str) -> str:
    value = line[column]
    if value is None:
        raise ValueError(f"{column} is empty")
    return value


def _day(text: str | None) -> date | None:
    return parse_date(text) if text else None


def _guarded(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell
