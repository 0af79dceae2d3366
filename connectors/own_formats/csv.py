"""Our own CSV layout, for writing and reading: one header, one line per booking, any number of accounts.

Every field of the records has its column, so nothing is left out but whether the pending rows are complete. ISO dates,
decimal points, commas, UTF-8. `record` is the kind of a line: `booked` or `pending` bookings, `opening` or `closing`
balances (`booking_date` is their day), or an `account` without any of these. A cell that a spreadsheet would take for a
formula gets an apostrophe in front, and so does one that begins with an apostrophe; reading removes it. `type`,
`category` and `detailed_category` are for people: importing derives them anew.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from analytics.records import TEXTS, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.classified_records import WORDS, Pair
from connectors.connector import LimitExceeded, MalformedFile
from connectors.limits import ENTRIES_MAX
from connectors.lines import Lines
from connectors.own_formats.cells import (
    ACCOUNT_COLUMNS,
    YES,
    account_cells,
    account_of,
    booking_cells,
    booking_of,
    day_of,
    required_text,
)
from connectors.text import parse_amount

COLUMNS = (
    "record", *ACCOUNT_COLUMNS, "booking_date", "value_date", "amount", "currency", *TEXTS, "original_amount",
    "is_reversal", "is_return", "references", "sequence", "is_authoritative", "type", "category",
)  # fmt: skip
DETAILED = ("detailed_category",)
HEADERS = [
    (*COLUMNS, *detailed, *WORDS[:count]) for detailed in ((), DETAILED) for count in (0, 3, 4, len(WORDS))
]  # of files that have these columns, too; older ones have fewer words
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
FORMULA = tuple("=+-@\t\r'")

Line = dict[str, str | None]


def write(pairs: Iterable[Pair], stream: BinaryIO, *, is_detailed: bool = False, with_words: bool = False) -> None:
    """Write the records as CSV, streaming, with type and category of each booking.

    `is_detailed` adds finer categories, `with_words` the owner's words, unchanged and without protection from
    spreadsheets.
    """
    columns = (*COLUMNS, *DETAILED) if is_detailed else COLUMNS
    words = WORDS if with_words else ()
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        lines = csv.writer(text, lineterminator="\r\n")
        lines.writerow((*columns, *words))
        for line in _lines(pairs):
            cells = [guard_cell(line.get(column) or "") for column in columns]
            lines.writerow([*cells, *(_wrap(line.get(column) or "") for column in words)])
    finally:
        text.detach()


def detect(head: bytes) -> bool:
    """Whether a file begins with the header of this layout."""
    return head.decode("utf-8", "replace").lstrip("\ufeff").startswith(",".join(COLUMNS[:6]))


def read(stream: BinaryIO, *, head: bytes = b"") -> Iterator[Record]:
    """The records of a file of this layout, of which `head` has been read. Raises MalformedFile naming the line."""
    lines = csv.reader(Lines(stream, head=head), strict=True)
    account: AccountRecord | None = None
    statement: StatementRecord | None = None
    try:
        header = tuple(next(lines, ()))
        if header not in HEADERS:
            raise MalformedFile("Line 1: not the header of a bankdata CSV.")
        for number, cells in enumerate(lines, 1):
            if number > ENTRIES_MAX:
                raise LimitExceeded("The file holds more than {limit} lines.", limit=ENTRIES_MAX)
            if len(cells) != len(header):
                raise MalformedFile(
                    "Line {line}: {found} columns where {wanted} are expected.",
                    line=lines.line_num,
                    found=len(cells),
                    wanted=len(header),
                )
            line = {
                name: (_unwrap(cell) if name in WORDS else _unguard(cell)) or None
                for name, cell in zip(header, cells, strict=True)
            }
            named = account_of(line)
            if named != account:
                if account is not None:
                    yield statement or StatementRecord()
                account, statement = named, None
                yield account
            if line["record"] in ("booked", "pending"):
                yield booking_of(line)
            else:
                statement = _statement(line, statement or StatementRecord())
    except (ValueError, ArithmeticError, KeyError, TypeError, csv.Error) as error:
        raise MalformedFile("Line {line}: cannot be read.", line=lines.line_num, detail=type(error).__name__) from error
    if account is not None:
        yield statement or StatementRecord()


def _wrap(text: str) -> str:
    """A text of the owner as a cell: written as JSON where reading lines would change it."""
    return json.dumps(text, ensure_ascii=False) if "\r" in text or text.startswith('"') else text


def _unwrap(cell: str) -> str:
    return str(json.loads(cell)) if cell.startswith('"') else cell


def _lines(pairs: Iterable[Pair]) -> Iterator[Line]:
    columns: Line = {}
    is_silent = False
    for record, derived in pairs:
        match record:
            case AccountRecord():
                if is_silent:
                    yield {"record": "account", **columns}
                columns, is_silent = account_cells(record), True
            case TransactionRecord():
                yield {
                    **booking_cells(record),
                    **columns,
                    **derived.said.cells(),
                    "type": derived.type,
                    "category": derived.category,
                    "detailed_category": derived.detailed_category,
                }
                is_silent = False
            case _:
                for line in _balance_lines(record):
                    yield {**line, **columns}
                    is_silent = False
    if is_silent:
        yield {"record": "account", **columns}


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


def _statement(line: Line, known: StatementRecord) -> StatementRecord:
    if line["record"] == "account":
        return known
    if line["record"] not in ("opening", "closing"):
        raise ValueError("an unknown kind of line")
    amount, day = parse_amount(required_text(line, "amount")), day_of(line["booking_date"])
    is_closing = line["record"] == "closing"
    return StatementRecord(
        opening=known.opening if is_closing else amount,
        opening_date=known.opening_date if is_closing else day,
        closing=amount if is_closing else known.closing,
        closing_date=day if is_closing else known.closing_date,
        sequence=line["sequence"],
        is_authoritative=line["is_authoritative"] == YES,
    )


def guard_cell(cell: str) -> str:
    """The cell, with an apostrophe in front where a spreadsheet would take it for a formula, or where it begins with
    one; a number with a sign stays."""
    return f"'{cell}" if cell.startswith(FORMULA) and not NUMBER.fullmatch(cell) else cell


def _unguard(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell
