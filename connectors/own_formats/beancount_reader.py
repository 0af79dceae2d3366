"""Reader of the Beancount ledgers that `beancount_writer` writes; all others are refused."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import BinaryIO

from msgspec import Struct, field
from msgspec.structs import replace

from analytics.records import Record, StatementRecord, TransactionRecord
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import ENTRIES_MAX, STATEMENTS_MAX
from connectors.lines import Lines
from connectors.own_formats.beancount_writer import (
    ACCOUNT,
    ADJUSTMENTS,
    BOOKING,
    DAYS,
    DERIVED,
    MERCHANT,
    OPENED,
    OPENING_BALANCES,
)
from connectors.own_formats.beancount_writer import SAID as WORDS
from connectors.own_formats.cells import Cells, account_of, booking_of
from connectors.text import parse_amount, parse_date

SPLITS_MAX = 50  # parts of one booking
FIRST_LINE = f"{OPENED} open {OPENING_BALANCES}"
A_LEDGER = re.compile(
    rb"^\d{4}-\d\d-\d\d +(?:open +(?:Assets|Liabilities|Equity|Income|Expenses):|(?:\*|!|txn) +\")", re.MULTILINE
)
DIRECTIVE = re.compile(r"(\d{4}-\d\d-\d\d) (open|\*|balance) (.+)")
METADATA = re.compile(r"  ([a-z][a-z-]*): (.+)")
POSTING = re.compile(r"(?:  )?([A-Z][^ ]*)  (-?[0-9.]+) ([A-Z]{3})")
TEXT = r'"((?:[^"\\]|\\.)*)"'
SAID = re.compile(f"(?:{TEXT} )?{TEXT}(?: #[A-Za-z0-9/_.-]+)*")
QUOTED = re.compile(TEXT)
ESCAPED = re.compile(r"\\(.)")
NAMES = ACCOUNT.keys() | BOOKING.keys() | MERCHANT.keys() | DERIVED.keys() | WORDS.keys()
WHITE_SPACE = {"n": "\n", "r": "\r", "t": "\t"}


class Directive(Struct):
    """A line that begins with a date, and the indented lines below it."""

    number: int
    day: str
    kind: str
    rest: str
    metadata: dict[str, str] = field(default_factory=dict)
    postings: list[tuple[str, Decimal, str]] = field(default_factory=list)

    def keep(self, line: str) -> None:
        """Add one of the lines below. Raises ValueError for a line that we would not write."""
        if match := POSTING.fullmatch(line):
            self.postings.append(_posting(match))
        elif (match := METADATA.fullmatch(line)) and match[1] in NAMES and match[1] not in self.metadata:
            self.metadata[match[1]] = match[2]
        else:
            raise ValueError("neither metadata of ours nor a posting")
        others_max = SPLITS_MAX if "splits" in self.metadata else 1
        if len(self.postings) > (1 + others_max if self.kind == "*" else 0):
            raise ValueError("postings where none belong")

    def cells(self, names: Mapping[str, str]) -> dict[str, str | None]:
        """The metadata as texts by cell name, None for what is not there."""
        cells: dict[str, str | None] = dict.fromkeys(names.values())
        for name, value in self.metadata.items():
            cells[names[name]] = value if names[name] in DAYS else _unquote(QUOTED.fullmatch(value), 1)
        return cells


def detect(head: bytes) -> bool:
    """Whether a file looks like a Beancount ledger; `read` says whether it is ours."""
    return A_LEDGER.search(head) is not None


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of a ledger that bankdata wrote. Raises UnsupportedFile for others, MalformedFile naming the line."""
    ledger = _OpenLedger()
    for directive in _directives(Lines(stream)):
        try:
            yield from ledger.records(directive)
        except (ValueError, KeyError) as error:
            raise _damage(directive.number, error) from error
    yield from ledger.end()


class _OpenLedger:
    """The account whose bookings follow, and the facts about its statement so far."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._statement = StatementRecord()
        self._accounts = self._bookings = 0

    def records(self, directive: Directive) -> Iterator[Record]:
        """The records in one directive."""
        match directive.kind:
            case "open":
                if directive.rest.startswith("Assets:"):
                    yield from self._account(directive)
            case "balance":
                self._balance(directive)
            case _:
                yield from self._transaction(directive)

    def end(self) -> Iterator[Record]:
        """The statement of the open account, if there is one."""
        if self._name is not None:
            yield self._statement

    def _account(self, directive: Directive) -> Iterator[Record]:
        if not directive.metadata and self._name is None:
            raise UnsupportedFile("not a Beancount ledger that bankdata exported.")
        yield from self.end()
        self._accounts += 1
        if self._accounts > STATEMENTS_MAX:
            raise LimitExceeded("The file holds more than {limit} accounts.", limit=STATEMENTS_MAX)
        yield account_of(directive.cells(ACCOUNT))
        self._name, self._statement = directive.rest, StatementRecord()

    def _balance(self, directive: Directive) -> None:
        name, closing, _ = _posting(POSTING.fullmatch(directive.rest))
        if name != self._name:
            raise ValueError("the balance of another account")
        self._statement = replace(
            self._statement,
            opening=self._statement.opening or Decimal(0),  # an opening balance of zero is not written
            closing=closing,
            closing_date=parse_date(directive.day) - timedelta(days=1),  # a Beancount balance holds in the morning
        )

    def _transaction(self, directive: Directive) -> Iterator[Record]:
        """The record of a booking; an opening balance goes into the statement, and an adjustment has no record."""
        self._check(directive)
        (_, amount, currency), (other, _, _), *_ = directive.postings
        if other == OPENING_BALANCES:
            self._statement = replace(self._statement, opening=amount, opening_date=parse_date(directive.day))
        elif other != ADJUSTMENTS:
            self._bookings += 1
            if self._bookings > ENTRIES_MAX:
                raise LimitExceeded("The file holds more than {limit} transactions.", limit=ENTRIES_MAX)
            yield _booking(directive, amount, currency)

    def _check(self, directive: Directive) -> None:
        """Raise ValueError unless the postings add up to zero and the first of them is of the account opened last."""
        if len(directive.postings) < 2:
            raise ValueError("not two postings")
        name, _, currency = directive.postings[0]
        total = sum(amount for _, amount, _ in directive.postings)
        if name != self._name or total or any(other != currency for _, _, other in directive.postings):
            raise ValueError("postings that do not balance, or of another account")


def _booking(directive: Directive, amount: Decimal, currency: str) -> TransactionRecord:
    said = SAID.fullmatch(directive.rest)
    cells = directive.cells(BOOKING | MERCHANT | DERIVED | WORDS)
    if cells["merchant_name"] is None:
        cells["counterpart_name"] = _unquote(said, 1)
    facts: Cells = cells | {
        "booking_date": directive.day,
        "purpose": _unquote(said, 2),
        "amount": f"{amount:f}",
        "currency": currency,
    }
    return booking_of(facts)


def _directives(lines: Lines) -> Iterator[Directive]:
    """The directives of the ledger. Raises MalformedFile for a line that we would not write."""
    current: Directive | None = None
    for text in _strip_lines(lines):
        try:
            if text.startswith("  ") and current is not None:
                current.keep(text)
                continue
            if current is not None:
                yield current
                current = None
            if not text:
                continue
            match = DIRECTIVE.fullmatch(text)
            if match is None:
                raise ValueError("not a directive of ours")
            current = Directive(lines.number, match[1], match[2], match[3])
        except ValueError as error:
            raise _damage(lines.number, error) from error
    if current is not None:
        yield current


def _strip_lines(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        text = line.rstrip("\n")
        if number == 0 and text != FIRST_LINE:
            raise UnsupportedFile("not a Beancount ledger that bankdata exported.")
        yield text


def _posting(match: re.Match[str] | None) -> tuple[str, Decimal, str]:
    if match is None:
        raise ValueError("not an account with an amount")
    return match[1], parse_amount(match[2]), match[3]


def _unquote(match: re.Match[str] | None, group: int) -> str | None:
    if match is None:
        raise ValueError("not a text in quotes")
    text = match[group]
    return text and ESCAPED.sub(lambda match: WHITE_SPACE.get(match[1], match[1]), text)


def _damage(number: int, error: Exception) -> MalformedFile:
    return MalformedFile("Line {line}: cannot be read.", line=number, detail=type(error).__name__)
