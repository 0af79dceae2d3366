"""Reader of camt.052, .053 and .054 (ISO 20022) in all versions, entry by entry, by local names only.

Nothing is validated against a schema: 196 of 283 real files break their own and can be read all the same (sources, What
decides 8). The meaning of an entry is in `connectors.camt.entry`.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import BinaryIO

from lxml import etree
from msgspec import Struct, field

from analytics.messages import message
from analytics.records import UNNAMED, AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.camt.entry import Own, read_amount, read_day, read_entry
from connectors.camt.texts import Texts, local_name, read_entry_texts, read_texts, text
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import (
    ENTRIES_MAX,
    FILE_BYTES_MAX,
    STATEMENTS_MAX,
    XML_BALANCES_MAX,
    XML_ENTRY_BYTES_MAX,
    XML_ENTRY_MARKS_MAX,
)
from connectors.reference import german_accounts
from connectors.text import clean, clean_key, compact_iban, currency_of, parse_bic

_MESSAGE = re.compile(r"BkToCstmr(?:Stmt|AcctRpt|DbtCdtNtfctn)|:camt\.05[234]\.001\.\d\d")
_ELEMENT = re.compile(rb"<[A-Za-z]")
_DOCTYPE_REFUSED = "the file declares a DOCTYPE, which no bank statement needs."
_SWEEP_MARKS = 50_000  # some hundred finished entries
_STATEMENTS = {"Stmt": "053", "Rpt": "052", "Ntfctn": "054"}
_PAGINATION = ("StmtPgntn", "RptPgntn", "NtfctnPgntn")
_HEADER = frozenset({"ElctrncSeqNb", "LglSeqNb", "CreDtTm", "FrToDt", "Acct", *_PAGINATION})
_ACCOUNT_IDS = ("PrtryAcct/Id", "BBAN", "UPIC", "Prtry/Id")  # camt.052.001.01 and local dialects
_BALANCE_KIND = ("Tp/CdOrPrtry/Cd", "Tp/Cd")
GERMAN_CLEARING = "DEBLZ"
_KINDS: dict[str, AccountKind] = {
    "CACC": "checking", "CASH": "checking", "TRAN": "checking", "ODFT": "checking", "SVGS": "savings",
    "MOMA": "savings", "CARD": "credit_card", "LOAN": "loan",
}  # fmt: skip


def detect(head: bytes) -> bool:
    """Whether this is the beginning of a camt.052, .053 or .054 message, with or without an envelope."""
    text = head.replace(b"\x00", b"").decode("ascii", "replace").lstrip("\ufffd \t\r\n")  # UTF-16 included
    return text.startswith("<") and bool(_MESSAGE.search(text))


class _OpenStatement(Struct):
    """The statement that is being read: what is known of it so far."""

    message: str
    element: etree._Element
    header: Texts = field(default_factory=Texts)
    balances: list[Texts] = field(default_factory=list)
    lines: dict[bool, Decimal] = field(default_factory=dict)  # granted, at closing balances or elsewhere; the last ones
    own: Own | None = None
    booked: Decimal = Decimal(0)
    pending: int = 0


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of the message's statements, as a stream. Raises `MalformedFile`, `UnsupportedFile` or
    `LimitExceeded`."""
    source = _Window(stream)
    statement: _OpenStatement | None = None
    statements = entries = bookings = 0
    events = etree.iterparse(
        source, events=("end",), tag=[f"{{*}}{name}" for name in (*_STATEMENTS, "Ntry")],
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, collect_ids=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        for _, element in events:
            is_entry = element.tag.endswith("Ntry")
            holder = element.getparent() if is_entry else element
            if statement is None:
                _refuse_doctype(element)
                statement = _begin_statement(holder, entries)
            if holder is not statement.element:
                raise MalformedFile("entry {entry}: stands outside its statement.", entry=entries + 1)
            if statement.own is None or source.unswept > _SWEEP_MARKS or not is_entry:
                _absorb(statement, before=element)
                source.unswept = 0
            entries += is_entry
            entry, details = read_entry_texts(element) if is_entry else (Texts(), [])
            if statement.own is None:
                statement.own = _own_account(statement, entry)
                yield _account(statement)
            if is_entry:
                transactions = _transactions(entry, details, statement, entries)
                bookings += len(transactions)
                if bookings > ENTRIES_MAX:
                    raise LimitExceeded("more than {limit} transactions in one file.", limit=ENTRIES_MAX)
                yield from transactions
            else:
                yield _statement_record(statement)
                statements += 1
                if statements > STATEMENTS_MAX:
                    raise LimitExceeded("more than {limit} statements in one file.", limit=STATEMENTS_MAX)
                statement = None
            element.clear()
            source.begin_window()
    except etree.XMLSyntaxError as error:
        raise MalformedFile("line {line}: not well-formed XML, or cut off.", line=error.lineno or 1) from None
    _refuse_doctype(events.root)
    if not statements:
        raise MalformedFile("the message holds no statement.")


def _begin_statement(element: etree._Element | None, entries: int) -> _OpenStatement:
    message = _STATEMENTS.get(local_name(element.tag)) if element is not None else None
    if element is None or message is None:
        raise MalformedFile("entry {entry}: stands outside a statement.", entry=entries + 1)
    return _OpenStatement(message, element)


def _transactions(
    entry: Texts, details: list[Texts], statement: _OpenStatement, number: int
) -> list[TransactionRecord]:
    assert statement.own is not None
    try:
        transactions = read_entry(entry, details, statement.own)
    except ValueError as error:
        raise MalformedFile("entry {entry}: {reason}.", entry=number, reason=message(str(error))) from None
    for transaction in transactions:
        if transaction.status == "pending":
            statement.pending += 1
        else:
            statement.booked += transaction.amount
    return transactions


def _own_account(statement: _OpenStatement, entry: Texts) -> Own:
    """The account of the statement, with the currency of the account, a balance, or the first entry."""
    header = statement.header
    written = text(header, "Acct/Id/IBAN", "Acct/Id/Othr/Id", *(f"Acct/Id/{kind}" for kind in _ACCOUNT_IDS))
    number = "".join((written or "").split())
    if (code := _german_bank_code(header)) and german_accounts.NUMBER.fullmatch(f"{code}/{number}"):
        number = f"{code}/{number}"  # as in MT940 and OFX; another bank may have the same number
    iban = compact_iban(written) or german_accounts.iban_of(number)
    bic = parse_bic(text(header, "Acct/Svcr/FinInstnId/BICFI", "Acct/Svcr/FinInstnId/BIC"))
    balance_currencies = (text(balance, "Amt/@Ccy") for balance in statement.balances)
    currency = text(header, "Acct/Ccy") or next(filter(None, balance_currencies), None) or text(entry, "Amt/@Ccy")
    try:
        last_day = read_day(header, "FrToDt/ToDtTm", "FrToDt/ToDt", "CreDtTm")
    except ValueError:
        last_day = None  # only needed for an entry without a date, which is then refused
    return Own(
        key=compact_iban(written) or clean_key(number) or clean(text(header, "Acct/Nm")) or UNNAMED,
        iban=iban,
        bic=bic,
        currency=currency.upper() if currency else currency_of(iban, bic),
        last_day=_closing(statement)[1] or last_day,
    )


def _german_bank_code(header: Texts) -> str | None:
    """The bank's code in the German clearing system, for statements without an IBAN; None where it is not stated."""
    for institution in ("Acct/Svcr/FinInstnId", "Acct/Svcr/FinInstnId/CmbndId"):
        if text(header, f"{institution}/ClrSysMmbId/ClrSysId/Cd") == GERMAN_CLEARING:
            return text(header, f"{institution}/ClrSysMmbId/MmbId")
    return None


def _account(statement: _OpenStatement) -> AccountRecord:
    own = statement.own
    assert own is not None
    header = statement.header
    servicer = "Acct/Svcr/FinInstnId"
    return AccountRecord(
        stable_key=own.key,
        currency=own.currency,
        iban=own.iban,
        name=clean(text(header, "Acct/Nm", "Acct/Ownr/Nm", "Acct/Ownr/Pty/Nm")),
        kind=_KINDS.get(text(header, "Acct/Tp/Cd") or ""),
        bank_name=clean(text(header, f"{servicer}/Nm", f"{servicer}/NmAndAdr/Nm", f"{servicer}/CmbndId/Nm")),
        bic=own.bic,
        is_anonymous=own.key == UNNAMED,
    )


def _statement_record(statement: _OpenStatement) -> StatementRecord:
    opening, opening_date = _opening(statement)
    closing, closing_date = _closing(statement)
    header = statement.header
    sequence = clean_key(text(header, "ElctrncSeqNb")) or clean_key(text(header, "LglSeqNb"))
    page = text(header, *(f"{name}/PgNb" for name in _PAGINATION))
    is_last = text(header, *(f"{name}/LastPgInd" for name in _PAGINATION)) != "false"
    is_paged = page is not None and not (page == "1" and is_last)
    is_interim = statement.message == "052" and not _of_kind(statement, "CLBD")
    issued_at = clean(text(header, "CreDtTm")) if opening is not None and closing is not None else None
    return StatementRecord(
        opening=opening,
        opening_date=opening_date,
        closing=closing,
        closing_date=closing_date,
        sequence=f"{sequence}/{page}" if sequence and is_paged else sequence,
        is_pending_complete=statement.message == "052" and statement.pending > 0 and not is_paged,
        is_authoritative=not is_interim
        and opening is not None
        and closing is not None
        and opening + statement.booked == closing,
        is_notification=statement.message == "054",
        issued_at=issued_at[: len("2026-02-02T08:00:00")] if issued_at else None,
        credit_line=statement.lines.get(True, statement.lines.get(False)),
    )


Balance = tuple[Decimal | None, date | None]


def _opening(statement: _OpenStatement) -> Balance:
    """The opening balance and its day: OPBD, else the previous statement's PRCD; ITBD on later pages of a statement
    (docs/decisions/readers.md, 10). The earliest of several; both None where there is none."""
    balances = _of_kind(statement, "OPBD") or _of_kind(statement, "PRCD")
    if not balances and _of_kind(statement, "CLBD"):
        balances = _of_kind(statement, "ITBD")
    return min(balances, key=lambda balance: balance[1] or date.max) if balances else (None, None)


def _closing(statement: _OpenStatement) -> Balance:
    """The closing balance and its day: CLBD, else ITBD in an intraday report or after an OPBD on a first page; never
    CLAV, which includes the overdraft. The latest of several; both None where there is none."""
    balances = _of_kind(statement, "CLBD")
    if not balances and (statement.message == "052" or _of_kind(statement, "OPBD")):
        balances = _of_kind(statement, "ITBD")
    return max(balances, key=lambda balance: balance[1] or date.min) if balances else (None, None)


def _credit_line(balance: etree._Element, currency: str | None) -> Decimal | None:
    """The overdraft that the bank grants in the account's currency; None where it states none. What is left of one
    (AVAI) is none."""
    for line in map(read_texts, balance.iterfind("{*}CdtLine")):
        is_foreign = currency is not None and text(line, "Amt/@Ccy") not in (None, currency)
        if "Amt" in line and text(line, "Tp/Cd") != "AVAI" and not is_foreign:
            with suppress(ValueError):
                return abs(read_amount(line))
    return None


def _of_kind(statement: _OpenStatement, kind: str) -> list[Balance]:
    currency = statement.own.currency if statement.own else text(statement.header, "Acct/Ccy")
    balances = [balance for balance in statement.balances if text(balance, *_BALANCE_KIND) == kind]
    in_currency = [balance for balance in balances if currency and text(balance, "Amt/@Ccy") == currency]
    return [_balance(balance) for balance in in_currency or balances]


def _balance(balance: Texts) -> Balance:
    try:
        amount = read_amount(balance)
        is_debit = text(balance, "CdtDbtInd") == "DBIT"  # may be missing: a credit
        return -amount if is_debit else amount, read_day(balance, "Dt/Dt", "Dt/DtTm", "Dt")
    except ValueError as error:
        raise MalformedFile("a balance: {reason}.", reason=message(str(error))) from None


def _absorb(statement: _OpenStatement, before: etree._Element) -> None:
    """Store the statement's balances and header in it, and remove everything before the element `before` from
    memory."""
    parent = statement.element
    count = len(parent) if before is parent else parent.index(before)
    for child in islice(parent, count):
        name = local_name(child.tag)
        if name == "Bal":
            statement.balances.append(read_texts(child))
            if (line := _credit_line(child, text(statement.header, "Acct/Ccy"))) is not None:
                statement.lines[text(statement.balances[-1], *_BALANCE_KIND) == "CLBD"] = line
            if len(statement.balances) > XML_BALANCES_MAX:
                raise LimitExceeded("more than {limit} balances in one statement.", limit=XML_BALANCES_MAX)
        elif name in _HEADER and name not in statement.header:
            statement.header[name] = child.text or ""
            statement.header.update(read_texts(child, below=name))
    del parent[:count]


def _refuse_doctype(element: etree._Element) -> None:
    if element.getroottree().docinfo.internalDTD is not None:
        raise UnsupportedFile(_DOCTYPE_REFUSED)


class _Window:
    """The stream as the parser reads it, with a limit on the whole and on the part between two finished entries."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._bytes = self._window_bytes = self._window_marks = 0
        self._has_begun = False
        self.unswept = 0  # "<" and "=" of elements that are still in the tree

    def read(self, size: int = -1) -> bytes:
        chunk = self._chunk(size)
        if not self._has_begun:
            chunk = self._first_chunk(chunk, size)
        self._bytes += len(chunk)
        self._window_bytes += len(chunk)
        marks = chunk.count(b"<") + chunk.count(b"=")
        self._window_marks += marks
        self.unswept += marks
        if self._bytes > FILE_BYTES_MAX:
            raise LimitExceeded("the file is larger than allowed.")
        if self._window_bytes > XML_ENTRY_BYTES_MAX or self._window_marks > XML_ENTRY_MARKS_MAX:
            raise LimitExceeded("one entry of the file is larger than allowed.")
        return chunk

    def _chunk(self, size: int) -> bytes:
        return self._stream.read(size if size > 0 else 64 * 1024)

    def _first_chunk(self, chunk: bytes, size: int) -> bytes:
        """The chunk without empty lines before the XML declaration, which some programs write. Raises UnsupportedFile
        for a DOCTYPE."""
        while chunk and not (chunk := chunk.lstrip(b" \t\r\n")):
            chunk = self._chunk(size)
        self._has_begun = True
        before, mark, _ = chunk.replace(b"\x00", b"").partition(b"<!DOCTYPE")
        if mark and not _ELEMENT.search(before):
            raise UnsupportedFile(_DOCTYPE_REFUSED)
        return chunk

    def begin_window(self) -> None:
        self._window_bytes = self._window_marks = 0
