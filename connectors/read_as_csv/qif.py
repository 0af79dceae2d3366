"""QIF, the Quicken Interchange Format: the bookings of each account are read as a CSV file.

A record has one line for each value, which begins with its letter, and ends with `^`. The format says neither currency
nor how days and amounts are written: what the file leaves open is guessed and said, or refused, as for CSV.
"""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from analytics.records import Record
from connectors.bank_csv.cell_kinds import kinds
from connectors.bank_csv.encodings import likeliest_encoding
from connectors.bank_csv.layouts import OnLayout
from connectors.bank_csv.profile import Profile
from connectors.connector import MalformedFile, UnsupportedFile
from connectors.limits import HEAD_BYTES
from connectors.lines import Lines, visible
from connectors.read_as_csv.table import read_table

_BEGINS = re.compile(r"\s*(?:\ufeff)?!(?:type|account|option|clear)\b", re.IGNORECASE)
_BOOKING_TYPES = {"bank", "ccard", "cash", "oth a", "oth l"}
_COLUMNS = ("Booking date", "Transaction amount", "Payee", "Memo", "Check number")
_LETTERS = "DTPMN"  # of the values of these columns

Row = list[str]


def detect(head: bytes) -> bool:
    """Whether the file begins with the header of a QIF list."""
    return bool(_BEGINS.match(head[:200].decode("utf-8", "replace")))


def read(stream: BinaryIO, profiles: Sequence[Profile] | None, on_layout: OnLayout) -> Iterator[Record]:
    """The accounts and bookings of a QIF file; trades of securities, categories and other lists are left out. Raises
    UnsupportedFile where there is no booking, MalformedFile for a record that is cut off."""
    is_empty = True
    for account, rows in _accounts(stream):
        if rows:
            is_empty = False
            above = [["Account", account, ""]] if account else []
            yield from read_table([*above, _COLUMNS, *rows], profiles, on_layout, has_banks_columns=False)
    if is_empty:
        raise UnsupportedFile("the QIF file holds no transactions of an account.")


def _accounts(stream: BinaryIO) -> Iterator[tuple[str, list[Row]]]:
    """The name of each account, empty where the file names none, with its bookings as rows of _COLUMNS."""
    head = stream.read(HEAD_BYTES)
    lines = Lines(stream, head=head, encoding=likeliest_encoding(head))
    kind, account, rows = "", "", list[Row]()
    record: dict[str, str] = {}
    for line in visible(lines):
        letter, value = line[:1].upper(), line[1:].strip()
        if letter == "!":
            if record:
                raise MalformedFile("Line {line}: a record has no end.", line=lines.number)
            kind = value.lower().removeprefix("type:").strip()
            if kind == "account" or (kind in _BOOKING_TYPES and not account):
                yield account, rows
                rows = []
        elif letter != "^":
            if letter.strip():
                record.setdefault(letter, value)
        else:
            if kind == "account":
                account = record.get("N", "")
            elif kind in _BOOKING_TYPES and record:
                rows.append(_row(record, lines.number))
            record = {}
    if record:
        raise MalformedFile("Line {line}: a record has no end.", line=lines.number)
    yield account, rows


def _row(record: dict[str, str], line: int) -> Row:
    values = {**record, "T": record.get("T") or record.get("U", ""), "D": _day(record.get("D", ""))}
    if "amount" not in kinds(values["T"]):
        raise MalformedFile("Line {line}: a record without an amount that can be read.", line=line)
    sign = "" if values["T"][:1] in "+-" else "+"  # the format has signs: none is a credit
    return [f"{sign}{values['T']}" if letter == "T" else values.get(letter, "") for letter in _LETTERS]


def _day(text: str) -> str:
    """The day as other formats write it: 3/ 2'26 is 3/2/26, and 3-2-26 leaves open which is the month."""
    compact = "".join(text.split()).replace("'", "/")
    return compact if compact[:4].isdigit() else compact.replace("-", "/")
