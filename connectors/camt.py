"""Reads camt.052, .053 and .054 (ISO 20022) of every version, entry by entry, by local names alone.

Never validated against a schema: 196 of 283 real files break their own and can be read all the same (sources, What
decides 8). What one entry means is told in `connectors.camt_entry`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import BinaryIO

from lxml import etree

from connectors.camt_entry import Own, Tree, first, read_amount, read_day, read_entry, text
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import ENTRIES_MAX, FILE_BYTES_MAX, XML_BALANCES_MAX, XML_ENTRY_BYTES_MAX, XML_ENTRY_MARKS_MAX
from connectors.text import clean, clean_key, compact_iban, currency_of, parse_bic
from storage.records import AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord

_MESSAGE = re.compile(r"BkToCstmr(?:Stmt|AcctRpt|DbtCdtNtfctn)|:camt\.05[234]\.001\.\d\d")
_STATEMENTS = {"Stmt": "053", "Rpt": "052", "Ntfctn": "054"}
_PAGINATION = ("StmtPgntn", "RptPgntn", "NtfctnPgntn")
_HEADER = frozenset({"Id", "ElctrncSeqNb", "LglSeqNb", "CreDtTm", "FrToDt", "Acct", "Bal", *_PAGINATION})
_KINDS: dict[str, AccountKind] = {
    "CACC": "checking", "CASH": "checking", "TRAN": "checking", "ODFT": "checking", "SVGS": "savings",
    "MOMA": "savings", "CARD": "credit_card", "LOAN": "loan",
}  # fmt: skip


def detect(head: bytes) -> bool:
    """Whether this is the beginning of a camt.052, .053 or .054 message, with or without an envelope."""
    return bool(_MESSAGE.search(_characters(head)))


def read(stream: BinaryIO) -> Iterator[Record]:
    """The statements of the message, streaming; `MalformedFile`, `UnsupportedFile` or `LimitExceeded` otherwise."""
    source = _Window(stream)
    statements = 0
    try:
        for record in _records(source):
            statements += isinstance(record, StatementRecord)
            yield record
    except etree.XMLSyntaxError as error:
        line = f"line {error.lineno}" if error.lineno else "the file"
        raise MalformedFile(f"{line}: not well-formed XML, or cut off.") from None
    if not statements:
        raise MalformedFile("the message holds no statement.")


@dataclass(slots=True)
class _Statement:
    """What has been read of the statement that is open."""

    message: str
    header: Tree = field(default_factory=dict)
    own: Own | None = None
    booked: Decimal = Decimal(0)
    pending: int = 0


def _records(source: "_Window") -> Iterator[Record]:
    statement: _Statement | None = None
    entries = 0
    events = etree.iterparse(
        source, events=("start", "end"), tag=[f"{{*}}{name}" for name in (*_STATEMENTS, "Ntry")],
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, collect_ids=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    for event, element in events:
        name = etree.QName(element).localname
        if name != "Ntry":
            if event == "start":
                _refuse_doctype(element)
                statement = _Statement(_STATEMENTS[name])
            elif statement:
                _absorb(element, statement)
                if statement.own is None:
                    statement.own = _own(statement, None)
                    yield _account(statement)
                yield _closed(statement)
                statement = None
                _forget(element)
                source.begin_window()
        elif event == "end":
            entries += 1
            parent = element.getparent()
            if statement is None or parent is None or etree.QName(parent).localname not in _STATEMENTS:
                raise MalformedFile(f"entry {entries}: stands outside a statement.")
            _absorb(parent, statement, before=element)
            entry = tree(element)
            if statement.own is None:
                statement.own = _own(statement, entry)
                yield _account(statement)
            for transaction in _transactions(entry, statement, entries):
                source.count += 1
                yield transaction
            _forget(element)
            source.begin_window()
    if events.root is not None:
        _refuse_doctype(events.root)


def tree(element: etree._Element) -> Tree:
    """An element as nested lists by local name; an amount's currency stands under "@Ccy", a text under ""."""
    branches: Tree = {}
    for child in element:
        name = _local_name(child.tag)
        branch: Tree | str
        if len(child):
            branch = tree(child)
        else:
            branch = child.text or ""
            if child.attrib and (currency := child.get("Ccy")):
                branch = {"": [branch], "@Ccy": [currency]}
        if name in branches:
            branches[name].append(branch)
        else:
            branches[name] = [branch]
    return branches


_LOCAL_NAMES: dict[object, str] = {}


def _local_name(tag: object) -> str:
    name = _LOCAL_NAMES.get(tag)
    if name is None:
        name = tag.rpartition("}")[2] if isinstance(tag, str) else "&"  # an entity reference that was not resolved
        if len(_LOCAL_NAMES) < 10_000:
            _LOCAL_NAMES[tag] = name
    return name


def _transactions(entry: Tree, statement: _Statement, number: int) -> Iterable[TransactionRecord]:
    assert statement.own is not None
    try:
        transactions = read_entry(entry, statement.own)
    except ValueError as error:
        raise MalformedFile(f"entry {number}: {error}.") from None
    for transaction in transactions:
        if transaction.status == "pending":
            statement.pending += 1
        else:
            statement.booked += transaction.amount
    return transactions


def _own(statement: _Statement, entry: Tree | None) -> Own:
    """The account the statement is about; its currency from the account, a balance, or the first entry."""
    header = statement.header
    account = first(header, "Acct") or {}
    written = text(account, "Id", "IBAN") or _account_id(first(account, "Id"))
    iban = compact_iban(written)
    bic = parse_bic(text(account, "Svcr", "FinInstnId", "BICFI") or text(account, "Svcr", "FinInstnId", "BIC"))
    currencies = [text(account, "Ccy"), *(text(bal, "Amt", "@Ccy") for bal in _balances(header))]
    currencies.append(text(entry, "Amt", "@Ccy") if entry else None)
    stated = [currency.strip().upper() for currency in currencies if currency]
    fallback = _day(header, "FrToDt", "ToDtTm") or _day(header, "FrToDt", "ToDt") or _day(header, "CreDtTm")
    return Own(
        key=iban or clean_key("".join((written or "").split())) or text(account, "Nm") or "unnamed",
        iban=iban,
        bic=bic,
        currency=stated[0] if stated else currency_of(iban, bic),
        last_day=_closing(statement)[1] or fallback,
    )


def _account_id(identification: Tree | None) -> str | None:
    """The text of Othr/Id, or of whatever older versions and local dialects have instead (PrtryAcct/Id, BBAN, UPIC)."""
    for branches in (identification or {}).values():
        for branch in branches:
            found = branch if isinstance(branch, str) else text(branch, "Id")
            if found and found.strip():
                return found
    return None


def _account(statement: _Statement) -> AccountRecord:
    own = statement.own
    assert own is not None
    account = first(statement.header, "Acct") or {}
    servicer = first(account, "Svcr", "FinInstnId") or {}
    return AccountRecord(
        stable_key=own.key,
        currency=own.currency,
        iban=own.iban,
        name=clean(text(account, "Nm"))
        or clean(text(account, "Ownr", "Nm"))
        or clean(text(account, "Ownr", "Pty", "Nm")),
        kind=_KINDS.get((text(account, "Tp", "Cd") or "").strip()),
        bank_name=clean(text(servicer, "Nm")) or clean(text(servicer, "NmAndAdr", "Nm")),
        bic=own.bic,
    )


def _closed(statement: _Statement) -> StatementRecord:
    opening, opening_date = _opening(statement)
    closing, closing_date = _closing(statement)
    header = statement.header
    page = next((found for name in _PAGINATION if (found := first(header, name))), None)
    sequence = clean_key(text(header, "ElctrncSeqNb")) or clean_key(text(header, "LglSeqNb"))
    number = clean_key(text(page, "PgNb")) if page else None
    is_paged = number is not None and (number != "1" or text(page or {}, "LastPgInd") == "false")
    return StatementRecord(
        opening=opening,
        opening_date=opening_date,
        closing=closing,
        closing_date=closing_date,
        sequence=f"{sequence}/{number}" if sequence and is_paged else sequence,
        is_pending_complete=statement.message == "052" and statement.pending > 0 and not is_paged,
        is_authoritative=opening is not None and closing is not None and opening + statement.booked == closing,
    )


Balance = tuple[Decimal | None, date | None]


def _opening(statement: _Statement) -> Balance:
    """OPBD, else the previous statement's PRCD; ITBD on the later pages of a statement (sources 1.2)."""
    found = _of_kind(statement, "OPBD") or _of_kind(statement, "PRCD")
    if not found and _of_kind(statement, "CLBD"):
        found = _of_kind(statement, "ITBD")
    return min(found, key=lambda balance: balance[1] or date.max) if found else (None, None)


def _closing(statement: _Statement) -> Balance:
    """CLBD, else ITBD in an intraday report or after an OPBD on a first page; never CLAV, which holds the overdraft."""
    found = _of_kind(statement, "CLBD")
    if not found and (statement.message == "052" or _of_kind(statement, "OPBD")):
        found = _of_kind(statement, "ITBD")
    return max(found, key=lambda balance: balance[1] or date.min) if found else (None, None)


def _of_kind(statement: _Statement, kind: str) -> list[Balance]:
    currency = statement.own.currency if statement.own else None
    balances = [
        bal for bal in _balances(statement.header) if (text(bal, "Tp", "CdOrPrtry", "Cd") or "").strip() == kind
    ]
    in_currency = [bal for bal in balances if currency and text(bal, "Amt", "@Ccy") == currency]
    return [_balance(bal) for bal in in_currency or balances]


def _balance(balance: Tree) -> Balance:
    try:
        amount = read_amount(balance)
    except ValueError as error:
        raise MalformedFile(f"a balance: {error}.") from None
    is_debit = (text(balance, "CdtDbtInd") or "").strip() == "DBIT"  # may be missing: a credit
    return -amount if is_debit else amount, _day(balance, "Dt", "Dt") or _day(balance, "Dt", "DtTm")


def _day(branches: Tree, *path: str) -> date | None:
    try:
        return read_day(text(branches, *path))
    except ValueError:
        raise MalformedFile(f"{path[-1]}: not a date.") from None


def _balances(header: Tree) -> list[Tree]:
    return [branch for branch in header.get("Bal", ()) if isinstance(branch, dict)]


def _absorb(parent: etree._Element, statement: _Statement, before: etree._Element | None = None) -> None:
    """Keep what the statement says about itself, and drop everything before the entry from memory."""
    while len(parent) and (child := parent[0]) is not before:
        name = _local_name(child.tag)
        if name in _HEADER:
            branches = statement.header.setdefault(name, [])
            branches.append(tree(child) if len(child) else child.text or "")
            if len(branches) > XML_BALANCES_MAX:
                raise LimitExceeded(f"more than {XML_BALANCES_MAX} balances in one statement.")
        del parent[0]


def _forget(element: etree._Element) -> None:
    parent = element.getparent()
    element.clear()
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]


def _refuse_doctype(element: etree._Element) -> None:
    if element.getroottree().docinfo.internalDTD is not None:
        raise UnsupportedFile("the file declares a DOCTYPE, which no bank statement needs.")


def _characters(head: bytes) -> str:
    """The beginning of a file as text, enough to look for names in it, whatever its encoding."""
    return head.replace(b"\x00", b"").decode("ascii", "replace")


class _Window:
    """The stream as the parser reads it: bounded in all, and between two finished entries."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._bytes = self._window_bytes = self._window_marks = 0
        self._has_begun = False
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size if size > 0 else 64 * 1024)
        while not self._has_begun and chunk:
            self._has_begun = True
            if chunk[:1].isspace():  # an empty line before the XML declaration is common and not well-formed
                chunk = chunk.lstrip()
                self._has_begun = bool(chunk)
                chunk = chunk or self._stream.read(size if size > 0 else 64 * 1024)
        self._bytes += len(chunk)
        self._window_bytes += len(chunk)
        self._window_marks += chunk.count(b"<")
        if self._bytes > FILE_BYTES_MAX or self.count > ENTRIES_MAX:
            raise LimitExceeded("the file is larger than allowed.")
        if self._window_bytes > XML_ENTRY_BYTES_MAX or self._window_marks > XML_ENTRY_MARKS_MAX:
            raise LimitExceeded("one entry of the file is larger than allowed.")
        return chunk

    def begin_window(self) -> None:
        self._window_bytes = self._window_marks = 0
