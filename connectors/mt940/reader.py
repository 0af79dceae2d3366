"""Reader of MT940 and MT942 (SWIFT customer statements), line by line, one statement per :20: block.

Why it uses its own tokenizer and not the mt-940 library is in docs/decisions/readers.md. The meaning of a booking's
free text (:86:) is in `connectors.mt940.field_86`.
"""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import BinaryIO

from msgspec import Struct, field

from analytics.messages import message
from analytics.records import UNNAMED, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import LimitExceeded, MalformedFile
from connectors.limits import DETAILS_CHARACTERS_MAX, HELD_ENTRIES_MAX, STATEMENTS_MAX
from connectors.mt940.field_86 import read_details
from connectors.mt940.fields import LINE_MARK, Field, NumberedLines, fields
from connectors.reference.gvc import bank_transaction_code_of
from connectors.text import (
    clean,
    clean_key,
    compact_iban,
    currency_of,
    day_or_month_end,
    parse_amount,
    parse_bic,
    parse_iban,
    reference,
)

_BLOCK = re.compile(r"(?m)^[^\w\n]{0,10}(?:\{.*\{4:\s*)?:20:[^\n]*\n(?:[^:\n][^\n]*\n){0,3}:(?:13|2[158]|60|34|NS|61)")
_LINE_ENDS = re.compile(r"[\r\n]+")
_LINE = re.compile(
    r"(?P<value>\d{6})(?P<entry>\d{4}|[ ]{4})?"  # 20260131 instead of 2601310131 occurs, too: see _LONG_DATE
    r"(?P<mark>R?[CDcd]|E[CD])[ ]*+(?P<funds>[A-Z]{0,3})[ ]*+"  # *+: blanks are read once
    r"(?P<amount>\d[\d.,]*+|,\d++)(?![eE][+-]?\d)[ ]?"  # 1e309 is no amount
    r"(?P<type>[A-Z][A-Z0-9]{3}|[NSF][A-Z0-9]{2}[ ])?(?P<customer>.*?)(?://(?P<bank>.*))?"
)
_LONG_DATE = re.compile(r"^(?:19|20)(\d{6})(?=R?[CD])")
_BALANCE = re.compile(
    r"(?P<mark>R?[CDcd])(?P<date>\d{8}(?=[A-Z]{3})|\d{6})(?P<currency>[A-Z]{3})?(?:(?<=EUR)O)?"
    r"(?P<amount>\d[\d.,]*|,\d+)"  # some programs write EURO0,00
)
_FLOOR = re.compile(r"([A-Z]{3})")
_ORIGINAL = re.compile(r"/OCMT/([A-Z]{3})([\d.,]+)")
_REFERENCE_DIGITS_MIN = 4  # after "//" some banks continue with words of the text
_BIC_ACCOUNT = re.compile(r"([A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)/")
_RETURNS = frozenset({"RRTN", "UPDD", "UPCT", "UPCQ", "PRDD", "RPCR", "RCDD"})


def detect(head: bytes) -> bool:
    """Whether the beginning of the file has a :20: block followed by an account, a number or a balance."""
    text = _LINE_ENDS.sub("\n", head.lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\x00", b"").decode("latin-1"))
    text = text.replace(LINE_MARK, "\n") if text.startswith(LINE_MARK) else text
    return bool(_BLOCK.search(text))


def read(stream: BinaryIO) -> Iterator[Record]:
    """The records of the file's statements, as a stream. Raises `MalformedFile` or `LimitExceeded`."""
    source = NumberedLines(stream)
    statement: _OpenBlock | None = None
    statements = transactions = 0
    for item in fields(source):
        if item.tag == "20" or statement is None or _begins_another(item, statement):
            statements += 1
            if statements > STATEMENTS_MAX:
                raise LimitExceeded("more than {limit} statements in one file.", limit=STATEMENTS_MAX)
            if statement is not None:
                transactions += len(statement.held) + (statement.entry is not None)
                yield from _close_statement(statement)
            statement = _next_block(item, statement)
        if item.tag in ("61", "62") and statement.currency and statement.record is None:
            yield _open_account(statement)
        for record in _take(item, statement):
            transactions += 1
            yield record
    if statement is None:
        raise MalformedFile("the file holds no statement.")
    transactions += len(statement.held) + (statement.entry is not None)
    yield from _close_statement(statement)
    if transactions != source.entries:
        raise MalformedFile(
            "{entries} lines begin with :61:, but {transactions} transactions were found.",
            entries=source.entries,
            transactions=transactions,
        )


class _OpenBlock(Struct):
    """The block that is being read: what is known of it so far."""

    account: str = ""
    currency: str | None = None
    sequence: str | None = None
    opening: tuple[Decimal, date | None] | None = None
    closing: tuple[Decimal, date | None] | None = None
    is_interim: bool = False  # MT942: an interim report, in which nothing is booked yet
    record: AccountRecord | None = None  # once the account has been yielded
    is_after_entries: bool = False
    booked: Decimal = Decimal(0)
    entry: Field | None = None
    details: list[Field] = field(default_factory=list)
    details_size: int = 0
    held: list[tuple[Field, list[Field]]] = field(default_factory=list)  # entries that wait until the currency is known


def _begins_another(item: Field, statement: _OpenBlock) -> bool:
    """Whether a field begins a statement although no :20: was read before it: a :25: after bookings or balances, and an
    opening balance after bookings or a closing one."""
    is_told = bool(statement.entry or statement.held or statement.record or statement.closing)
    if item.tag == "25":
        return bool(item.lines[0].strip()) and (is_told or statement.opening is not None)
    return item.tag == "60" and item.option == "F" and is_told and statement.opening is not None


def _next_block(item: Field, last: _OpenBlock | None) -> _OpenBlock:
    """The block that a field begins; one of an opening balance without a :25: is about the same account if the balance
    is that at which the last one closed. Raises MalformedFile for any other."""
    if item.tag != "60" or last is None:
        return _OpenBlock()
    amount, _, currency = _balance(item)
    if last.closing is None or amount != last.closing[0] or currency != last.currency:
        raise MalformedFile("line {line}: a second opening balance that names no account.", line=item.line)
    return _OpenBlock(account=last.account, sequence=last.sequence)


def _take(item: Field, statement: _OpenBlock) -> Iterator[Record]:
    if item.tag in ("86", "NS"):
        if statement.entry is not None:
            statement.details.append(item)
            statement.details_size += sum(map(len, item.lines)) + len(item.lines)
            if statement.details_size > DETAILS_CHARACTERS_MAX:
                raise LimitExceeded("line {line}: a transaction with more text than allowed.", line=item.line)
        return
    yield from _end_entry(statement)
    content = item.lines[0].strip()
    if item.tag == "61":
        statement.entry = item
    elif item.tag == "25" and content:
        statement.account = content
    elif item.tag == "28":
        statement.sequence = clean_key(content)
    elif item.tag in ("60", "62"):
        amount, day, currency = _balance(item)
        statement.currency = statement.currency or currency
        if amount is not None and item.tag == "60":
            statement.opening = statement.opening or (amount, day)
        elif amount is not None:
            statement.closing = (amount, day)
    elif item.tag in ("34", "90", "13"):
        statement.is_interim = statement.opening is None
        currency_found = _FLOOR.search(content)
        if item.tag != "13" and currency_found:
            statement.currency = statement.currency or currency_found[1]


def _end_entry(statement: _OpenBlock) -> Iterator[TransactionRecord]:
    """End the open entry, if there is one: it joins the held ones, and their transactions are yielded as soon as the
    account was opened, for which the currency is needed. Raises LimitExceeded for too many held ones, MalformedFile for
    one that cannot be read."""
    if statement.entry is None:
        return
    statement.held.append((statement.entry, statement.details))
    statement.entry, statement.details, statement.details_size = None, [], 0
    if statement.record is not None:
        yield from _release_entries(statement, statement.record)
    elif len(statement.held) > HELD_ENTRIES_MAX:
        raise LimitExceeded("more than {limit} transactions before the statement's currency.", limit=HELD_ENTRIES_MAX)


def _release_entries(statement: _OpenBlock, account: AccountRecord) -> Iterator[TransactionRecord]:
    held, statement.held = statement.held, []
    for entry, details in held:
        transaction = _transaction(entry, details, statement, account)
        if transaction.status == "booked":
            statement.booked += transaction.amount
        yield transaction


def _open_account(statement: _OpenBlock) -> AccountRecord:
    statement.record = _account(statement)
    return statement.record


def _account(statement: _OpenBlock) -> AccountRecord:
    """The account in :25:, which may be an IBAN, an IBAN followed by its currency, bank code/number, or free text."""
    written = statement.account
    compact = "".join(written.split())
    iban, currency = parse_iban(compact), statement.currency
    if (
        iban is None
        and compact[-3:].isalpha()
        and compact[-3:].isupper()
        and compact[-3:] == (currency or compact[-3:])
    ):
        stripped = parse_iban(compact[:-3])
        if stripped or (currency and compact_iban(compact[:-3])):
            iban, compact, currency = stripped, compact[:-3], compact[-3:]
    prefix = _BIC_ACCOUNT.match(compact)
    bic = parse_bic(prefix[1]) if prefix else None
    currency = currency or currency_of(iban, bic)
    key = iban or clean(compact)
    return AccountRecord(stable_key=key or UNNAMED, currency=currency, iban=iban, bic=bic, is_anonymous=key is None)


def _close_statement(statement: _OpenBlock) -> Iterator[Record]:
    if statement == _OpenBlock():
        return  # an empty block, such as the first of two :20: in a row
    account = statement.record
    if account is None:
        account = _open_account(statement)
        yield account
    yield from _end_entry(statement)
    yield from _release_entries(statement, account)
    opening, closing = statement.opening, statement.closing
    yield StatementRecord(
        opening=opening[0] if opening else None,
        opening_date=opening[1] if opening else None,
        closing=closing[0] if closing else None,
        closing_date=closing[1] if closing else None,
        sequence=statement.sequence,
        is_authoritative=opening is not None and closing is not None and opening[0] + statement.booked == closing[0],
    )


def _transaction(entry: Field, extra: list[Field], statement: _OpenBlock, account: AccountRecord) -> TransactionRecord:
    line = _LONG_DATE.sub(r"\1", entry.lines[0].strip(), count=1)
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise MalformedFile("line {line}: a :61: that cannot be read.", line=entry.line)
    try:
        amount = _amount(parts["amount"])
        value_date = _short_date(parts["value"])
    except ValueError as error:
        raise MalformedFile("line {line}: a :61: with {reason}.", line=entry.line, reason=message(str(error))) from None
    is_debit = parts["mark"].upper() in ("D", "RC", "ED")  # a reversed credit reduces the balance
    amount = -amount if is_debit else amount
    currency = account.currency
    supplement = [text for text in entry.lines[1:] if text.strip()]
    details = read_details(
        [(item.tag, item.lines) for item in extra], supplement, parts["customer"], is_german=_is_german(account)
    )
    code = bank_transaction_code_of(details.gvc, is_credit=amount > 0)
    details = details._replace(is_return=details.is_return or (code is not None and code[-4:] in _RETURNS))
    original_amount, original_currency = _original("".join(supplement), currency)
    return TransactionRecord(
        amount=amount,
        currency=currency,
        booking_date=_booking_date(parts["entry"], value_date),
        value_date=value_date,
        status="pending" if statement.is_interim else "booked",
        references=_references(parts["bank"]),
        bank_transaction_code=code,
        swift_code=parts["type"].strip() if parts["type"] else None,
        original_amount=original_amount,
        original_currency=original_currency,
        is_reversal=parts["mark"].startswith("R"),
        **details._asdict(),
    )


def _is_german(account: AccountRecord) -> bool:
    """Whether the three digits before a :86: are a GVC, because the account is German by IBAN, bank code or BIC."""
    key = account.stable_key
    return key.startswith("DE") or (key[:8].isdigit() and key[8:9] == "/") or (account.bic or "")[4:6] == "DE"


def _original(supplement: str, currency: str) -> tuple[Decimal | None, str | None]:
    """The amount and currency before conversion, from /OCMT/USD12,50/, without a sign; both None where there is none,
    it cannot be read, or the currency is that of the account."""
    match = _ORIGINAL.search(supplement)
    if match is None or match[1] == currency:
        return None, None
    try:
        return _amount(match[2]), match[1]
    except ValueError:
        return None, None  # a text that only looks like an amount


def _references(bank: str | None) -> tuple[str, ...]:
    written = (bank or "").strip()
    is_key = " " not in written and sum(map(str.isdigit, written)) >= _REFERENCE_DIGITS_MIN
    key = reference("servicer", written) if is_key else None
    return (key,) if key else ()


def _balance(item: Field) -> tuple[Decimal | None, date | None, str | None]:
    content = item.lines[0].replace(" ", "")
    parts = _BALANCE.fullmatch(content)
    if parts is None:
        if not content or "null" in content.lower():  # an empty value in the bank's own program
            return None, None, None
        raise MalformedFile("line {line}: a balance that cannot be read.", line=item.line)
    try:
        amount = _amount(parts["amount"])
    except ValueError as error:
        raise MalformedFile(
            "line {line}: a balance with {reason}.", line=item.line, reason=message(str(error))
        ) from None
    try:
        day = _short_date(parts["date"][-6:])
    except ValueError:
        day = None  # 000000: a balance without a date
    return -amount if parts["mark"].upper() in ("D", "RC") else amount, day, parts["currency"]


def _amount(written: str) -> Decimal:
    """The amount; the decimal mark is the comma, except in files that write points and no commas. Raises ValueError."""
    return parse_amount(written, "," if "," in written else ".")


@lru_cache(maxsize=4096)
def _short_date(written: str) -> date:
    """The date in the form YYMMDD; years from 80 are in the last century, and 30 February is the last day of February.
    Raises ValueError."""
    year, month, day = int(written[:2]), int(written[2:4]), int(written[4:])
    try:
        return day_or_month_end(year + (1900 if year >= 80 else 2000), month, day)
    except ValueError:
        raise ValueError("a date that does not exist") from None


@lru_cache(maxsize=4096)
def _booking_date(entry: str | None, value_date: date) -> date:
    """The booking date: MMDD in the year that makes it nearest to the value date; without it, or for a day that no year
    has, the value date."""
    if not entry or not entry.strip():
        return value_date
    days = []
    for year in (value_date.year - 1, value_date.year, value_date.year + 1):
        try:
            days.append(day_or_month_end(year, int(entry[:2]), int(entry[2:])))
        except ValueError:
            return value_date
    return min(days, key=lambda day: abs(day - value_date))
