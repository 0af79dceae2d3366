"""Reader of OFX and QFX statements, 1.x (SGML, unclosed tags) and 2.x (XML), as a stream, with its own tokenizer.

It reads only what a booking needs. Left out, because the records have no place for it: securities trades and positions,
available balances, check and server ids, exchange rates.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import BinaryIO, Literal

from msgspec import Struct, field

from analytics.messages import Message, message
from analytics.minor_digits import MINOR_DIGITS_USUAL as USUAL_DIGITS
from analytics.minor_digits import in_digits, minor_digits
from analytics.records import UNNAMED, AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.card_numbers import hidden_card_number
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import ENTRIES_MAX
from connectors.ofx.tokens import Token, declared_charset, decode_value, tokens
from connectors.text import (
    YEARS,
    clean,
    clean_key,
    clean_purpose,
    compact_iban,
    currency_code,
    currency_of,
    day_or_month_end,
    parse_amount,
    parse_bic,
    parse_iban,
)

TAGS_MAX = 1_000_000  # besides those of bookings; a list of 10,000 securities has about 150,000
TAGS_PER_BOOKING = 100  # closing tags included; real ones have some twenty
_HEAD_BYTES = 8192
_BEGINS = re.compile(r"[\s\ufeff]*(?:OFXHEADER\s*[:=]|DATA\s*:\s*OFXSGML|<\?xml|<\?OFX|<!--|<OFX[\s>])", re.IGNORECASE)
_MARK = re.compile(r"<OFX[\s>]|OFXHEADER", re.IGNORECASE)
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:[\sT\d].*|\[.*)?", re.DOTALL)

_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")
_PRICE = re.compile(r"(-?)(?:[A-Z]{0,2}[$€£]|[A-Z]{3})\s*(-?[0-9.,]+)")  # PagSeguro: "R$ 5.326,43"

_STATEMENTS = {"STMTRS": "BANKACCTFROM", "CCSTMTRS": "CCACCTFROM", "INVSTMTRS": "INVACCTFROM"}
_BOOKINGS = {"STMTTRN", "STMTTRNP"}  # STMTTRNP is the pending one of OFX 2.2
_LISTS = {"BANKTRANLIST", "BANKTRANLISTP", "INVBANKTRAN"}
_PARTS = {"PAYEE", "EXTDPAYEE", "CURRENCY", "ORIGCURRENCY", "BANKACCTTO", "CCACCTTO", "IMAGEDATA"}
_OTHERS = {"OFX", "LEDGERBAL", "AVAILBAL", "BALLIST", "BAL", "INVTRANLIST", "INVPOSLIST", "INVBAL", "FI", "STATUS"}
_CONTAINERS = {*_STATEMENTS, *_STATEMENTS.values(), *_BOOKINGS, *_LISTS, *_PARTS, *_OTHERS}
_ONCE = {"TRNAMT", "FITID", "DTPOSTED"}  # twice in one booking: the end tag of another booking is missing

_KINDS: dict[str, AccountKind] = {
    "CHECKING": "checking",
    "SAVINGS": "savings",
    "MONEYMRKT": "savings",
    "CD": "savings",
    "CREDITLINE": "loan",
}


def detect(head: bytes) -> bool:
    """Whether the first bytes of a file are those of an OFX document."""
    is_utf16 = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = head[:_HEAD_BYTES].decode("utf-16" if is_utf16 else "utf-8", "replace")
    return bool(_BEGINS.match(text) and _MARK.search(text))


def read(stream: BinaryIO) -> Iterator[Record]:
    """The accounts and bookings of an OFX file, in the file's order.

    Raises UnsupportedFile when it has no statement (a sign-on answer), MalformedFile naming the line when it cannot be
    read whole, LimitExceeded for an endless value or too many bookings.
    """
    head = stream.read(_HEAD_BYTES)
    reader = _TagReader(charset=declared_charset(head))
    line = 1
    for count, token in enumerate(tokens(stream, head)):
        line = token.line
        if count > TAGS_MAX + TAGS_PER_BOOKING * reader.bookings:
            raise LimitExceeded("Line {line}: far more tags than transactions.", line=line)
        yield from reader.take(token)
    if not reader.is_ended:
        raise MalformedFile("Line {line}: the file ends before its closing OFX tag.", line=line)
    reader.check_doubt()
    if not reader.statements:
        raise UnsupportedFile("The OFX file holds no account statement.")


class _TagReader(Struct):
    """Turns tags into records: keeps the path of open aggregates, and the values of the open statement and booking."""

    charset: str
    path: list[str] = field(default_factory=list)
    statement: dict[str, bytes] | None = None
    booking: dict[str, bytes] | None = None
    account: AccountRecord | None = None
    bank_name: str | None = None
    is_ended: bool = False
    statements: int = 0
    bookings: int = 0
    line: int = 1
    seen: Counter[str] = field(default_factory=Counter)
    doubtful: dict[str, int] = field(default_factory=dict)  # the decimal mark of doubtful amounts, and a line of each
    corrected: dict[str, str] = field(default_factory=dict)  # FITIDs that were replaced, or deleted: "" (OFX 11.4.2)
    decimal_marks: set[str] = field(default_factory=set)  # behind which decimals stand beyond doubt

    def take(self, token: Token) -> Iterator[Record] | tuple[Record, ...]:
        """The records that this tag completes. Raises MalformedFile and LimitExceeded."""
        name, self.line = token.name, token.line
        if name in _CONTAINERS and (token.is_closing or name in _BOOKINGS or not token.text.strip()):
            return self._leave(name) if token.is_closing else self._enter(name)
        if not token.is_closing:
            self._take_value(name, token.text)
        return ()

    def _enter(self, name: str) -> tuple[Record, ...]:
        # A second aggregate of the same kind inside the first means that the closing tag of the first is missing, as
        # SGML writers forget it
        same = _BOOKINGS if name in _BOOKINGS else _STATEMENTS if name in _STATEMENTS else (name,)
        first = next((each for each in self.path if each in same), None)
        records = self._leave(first) if first else ()
        self.path.append(name)
        if name in _STATEMENTS:
            self.statement, self.account, self.seen = {"KIND": name.encode()}, None, Counter()
            self.corrected = {}
        elif name in _BOOKINGS:
            if self.statement is None:
                raise self._malformed("a transaction stands outside of a statement")
            self.booking = {}
        return records

    def _leave(self, name: str) -> tuple[Record, ...]:
        if name not in self.path:
            return ()
        records: tuple[Record, ...] = ()
        while True:
            last = self.path.pop()
            if last in _BOOKINGS:
                records += self._end_booking(is_pending=last == "STMTTRNP")
            elif last in _STATEMENTS:
                records += self._end_statement()
            if last == name:
                break
        self.is_ended = name == "OFX"
        return records

    def _take_value(self, name: str, value: bytes) -> None:
        parent = self.path[-1] if self.path else ""
        if self.booking is not None:
            key = name if parent in _BOOKINGS else f"{parent}.{name}"
            if key in _ONCE and key in self.booking:
                raise self._malformed(Message("a transaction has two {key} values", key=key))
            self.booking.setdefault(key, value)
        elif self.statement is not None:
            if name == "TRNAMT" and parent in _LISTS:
                raise self._malformed("an amount stands outside of a transaction")
            key = name if parent in _STATEMENTS or parent not in _CONTAINERS else f"{parent}.{name}"
            self.statement.setdefault(key, value)
        elif parent == "FI" and name == "ORG":
            self.bank_name = clean(decode_value(value, self.charset))

    def _end_booking(self, *, is_pending: bool) -> tuple[Record, ...]:
        assert self.booking is not None
        values = {name: decode_value(value, self.charset).strip() for name, value in self.booking.items()}
        self.booking = None
        self.bookings += 1
        if self.bookings > ENTRIES_MAX:
            raise LimitExceeded("The OFX file holds more than {limit} transactions.", limit=ENTRIES_MAX)
        account = self._account(has_booking=True)
        text = values.get
        written = text("TRNAMT", "")
        foreign = self._currency(text("CURRENCY.CURSYM", "")) or account.currency
        amount = self._amount("0" if written == "." else written, foreign)  # the day's balance of Caixa
        told, amount = amount, self._converted(amount, foreign, account.currency, text("CURRENCY.CURRATE", ""))
        booking_date = (
            self._day(text("DTPOSTED")) or self._day(text("DTTRAN")) or self._day(text("DTUSER")) or self._last_day()
        )
        mcc = text("SIC", "")
        payee = " ".join(filter(None, (text("NAME") or text("PAYEE.NAME"), text("NAME2") or text("PAYEE.NAME2"))))
        if len(text("EXTDNAME", "")) > len(payee):
            payee = values["EXTDNAME"]
        check = text("CHECKNUM")
        record = TransactionRecord(
            amount=amount,
            currency=account.currency,
            booking_date=booking_date,
            value_date=self._day(text("DTAVAIL")) or self._day(text("DTUSER")),
            status="pending" if is_pending else "booked",
            provider_id=self._provider_id(text("FITID"), booking_date, told),
            counterpart_name=clean(payee),
            counterpart_iban=parse_iban(text("BANKACCTTO.ACCTID")),
            counterpart_bic=parse_bic(text("BANKACCTTO.BANKID")) if text("BANKACCTTO.ACCTID") else None,
            purpose=clean_purpose(text("MEMO"), text("MEMO2"), None if payee or not check else f"Check {check}"),
            swift_code=clean(text("TRNTYPE", "").upper(), 16),
            original_amount=told if foreign != account.currency else None,
            original_currency=foreign if foreign != account.currency else None,
            mcc=mcc.zfill(4) if mcc.isascii() and mcc.isdigit() and len(mcc) < 5 and int(mcc) else None,
        )
        corrected = clean_key(text("CORRECTFITID"))
        is_deleted = text("CORRECTACTION", "").upper() == "DELETE"
        if corrected:
            self.corrected[corrected] = "" if is_deleted else record.provider_id or ""
        records = () if corrected and is_deleted else (record,)
        return records if account is self.account else (self._open(account), *records)

    def _end_statement(self) -> tuple[Record, ...]:
        assert self.statement is not None
        account = self._account()
        balance = self._text("LEDGERBAL.BALAMT")
        priced = _PRICE.fullmatch(balance)
        written = "".join(priced.groups()) if priced else balance
        closing = self._amount(written, account.currency) if balance else None
        day = None if closing is None else self._closing_day()
        corrected, replaced_by = tuple(self.corrected), tuple(self.corrected.values())
        record = StatementRecord(closing=closing, closing_date=day, corrected=corrected, replaced_by=replaced_by)
        opened = () if account is self.account else (self._open(account),)
        self.statement, self.account = None, None
        self.statements += 1
        return (*opened, record)

    def _closing_day(self) -> date | None:
        """The day of the balance; the end of the booking list where the balance has no date in OFX form
        ("23/04/2025")."""
        try:
            day = self._day(self._text("LEDGERBAL.DTASOF"))
        except MalformedFile:
            day = None
        return day or self._day(self._text("BANKTRANLIST.DTEND"))

    def _open(self, account: AccountRecord) -> AccountRecord:
        self.account = account
        return account

    def _account(self, *, has_booking: bool = False) -> AccountRecord:
        """The account of the statement; one that has no number is unnamed if it has a booking. Raises MalformedFile."""
        if self.account is not None:
            return self.account
        assert self.statement is not None
        aggregate = _STATEMENTS[self.statement["KIND"].decode()]
        number = clean(self._text(f"{aggregate}.ACCTID")) or clean(self._text("ACCTID"))
        has_tag = {f"{aggregate}.ACCTID", "ACCTID"} & set(self.statement)
        is_damaged = not has_tag and any(key.startswith(aggregate) for key in self.statement)
        if number is None and (is_damaged or not has_booking):
            raise self._malformed("a statement names no account")
        number = number or UNNAMED
        bank = clean(self._text(f"{aggregate}.BANKID")) or clean(self._text(f"{aggregate}.BROKERID"))
        iban = parse_iban(number) or (compact_iban(number) if parse_bic(bank) else None)
        kind = _KINDS.get(self._text(f"{aggregate}.ACCTTYPE").upper())
        if aggregate == "CCACCTFROM":
            kind, number = "credit_card", hidden_card_number(number)
        elif aggregate == "INVACCTFROM":
            kind = "securities"
        return AccountRecord(
            stable_key=iban or (f"{bank}/{number}" if bank else number),
            currency=self._currency(self._text("CURDEF")) or currency_of(iban, parse_bic(bank)),
            iban=iban,
            kind=kind,
            bank_name=self.bank_name,
            bic=parse_bic(bank),
            is_anonymous=number == UNNAMED,
        )

    def _provider_id(self, fitid: str | None, day: date, amount: Decimal) -> str | None:
        """The FITID with date and amount, because banks reuse a FITID, None without one; a true repeat
        gets a number."""
        key = clean_key(fitid)
        if key is None:
            return None
        key = f"{key}|{day.isoformat()}|{amount.normalize():f}"
        self.seen[key] += 1
        return key if self.seen[key] == 1 else f"{key}|{self.seen[key]}"

    def _amount(self, text: str, currency: str) -> Decimal:
        """The amount, whose decimal mark is comma or point while nothing groups thousands (OFX 3.2.9.2); where both
        occur, the last one is. Three digits behind the only mark are thousands where the currency has no decimals; in
        one of two they leave doubt, until another amount of the file shows that its decimals stand behind this mark."""
        comma, point = text.rfind(","), text.rfind(".")
        mark: Literal[",", "."] = "," if comma > point and text.count(",") == 1 else "."
        if _GROUPED.fullmatch(text) and minor_digits(currency) == 0:
            mark = "." if mark == "," else ","
        elif _GROUPED.fullmatch(text) and minor_digits(currency) == USUAL_DIGITS:
            self.doubtful.setdefault(mark, self.line)
        elif max(comma, point) >= 0:
            self.decimal_marks.add(mark)
        try:
            return parse_amount(text, mark)
        except ValueError:
            raise self._malformed("an amount cannot be read") from None

    def check_doubt(self) -> None:
        """Raise MalformedFile for amounts that may be a thousand times as much."""
        for mark, line in self.doubtful.items():
            if mark not in self.decimal_marks:
                self.line = line
                raise self._malformed("decimals and thousands of an amount cannot be told apart")

    def _converted(self, amount: Decimal, currency: str, home: str, rate: str) -> Decimal:
        """The amount in the account's currency: of a booking with CURRENCY it is not converted yet, and CURRATE says
        how much of the account's currency is one of its own (OFX 5.2). Raises MalformedFile where there is no rate."""
        if currency == home:
            return amount
        try:
            factor = Decimal(rate.replace(",", "."))
        except ArithmeticError:
            factor = Decimal(0)
        if not (factor.is_finite() and factor > 0 and factor != 1):
            raise self._malformed("a transaction in another currency has no rate")
        return in_digits(amount * factor, home)

    def _currency(self, text: str) -> str | None:
        code = currency_code(text)
        if text and code is None:
            raise self._malformed("a currency code cannot be read")
        return code

    def _day(self, text: str | None) -> date | None:
        """The calendar day as written: an offset such as [-5:EST] does not change it (decision 10); None for no text or
        zeros. Raises MalformedFile."""
        if not text or not text[:8].strip("0"):
            return None
        match = _DAY.fullmatch(text)
        try:
            if match is None or int(match[1]) not in YEARS or not 1 <= int(match[2]) <= 12:
                raise ValueError("not a date")
            return day_or_month_end(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            raise self._malformed("a date cannot be read") from None

    def _last_day(self) -> date:
        """The date of a booking without one: the last day of its statement, as in camt. Raises
        MalformedFile."""
        day = self._day(self._text("BANKTRANLIST.DTEND"))
        if day is None:
            raise self._malformed("a transaction has no date")
        return day

    def _text(self, key: str) -> str:
        assert self.statement is not None
        return decode_value(self.statement.get(key, b""), self.charset).strip()

    def _malformed(self, reason: str) -> MalformedFile:
        return MalformedFile("Line {line}: {reason}.", line=self.line, reason=message(reason))
