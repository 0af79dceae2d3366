"""JSON lines: one booking each, in the form of the API's TransactionDetail, with its account and the source's own
facts.

`account` and `source` are additions: facts about the account that are neither in the booking nor in its `bankAccount`,
and facts about the booking that the API does not show but a new store derives from. Amounts have all their digits. An
account without a booking has no line. Derived values (type, category, merchant) are for people: importing derives them
anew. A line with a `kind` is one of an export of words.
"""

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import BinaryIO, NoReturn

import orjson
from msgspec import Struct

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import Json, MalformedFile, UnsupportedFile
from connectors.lines import Lines
from connectors.own_formats.cells import YES, records_of

BEGINNING = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"')
BOOKING = {
    "provider_id": "id",
    "booking_date": "bookingDate",
    "value_date": "valueDate",
    "counterpart_name": "counterpartName",
    "counterpart_iban": "counterpartIban",
    "counterpart_bic": "counterpartBic",
    "counterpart_bank_name": "counterpartBankName",
    "creditor_id": "counterpartCreditorId",
    "debitor_id": "counterpartDebitorId",
    "mandate_reference": "counterpartMandateReference",
    "purpose": "purpose",
    "bank_transaction_code": "bankTransactionCode",
    "purpose_code": "sepaPurposeCode",
    "currency": "currency",
}
SOURCE = {
    "end_to_end_id": "endToEndId",
    "gvc": "gvc",
    "swift_code": "swiftCode",
    "mcc": "mcc",
    "bank_text": "bankText",
    "merchant_name": "merchantName",
    "original_currency": "originalCurrency",
}
FLAGS = {"is_reversal": "isReversal", "is_return": "isReturn"}
"""The cells of a booking with their names: BOOKING in the line itself, SOURCE and FLAGS in `source`, where they are
neither null nor false."""


class WordsLine(Struct, frozen=True):
    """A line of an export of words: what a person has said, which belongs to no account."""

    text: str


class Number(str):
    """A number as it was written, so that it never becomes a binary floating-point number."""

    __slots__ = ()


def line(detail: Json, account: AccountRecord, closing: StatementRecord, row: TransactionRecord) -> bytes:
    """One booking as a line of JSON, with its line end: its TransactionDetail (`detail`) with all digits of the amount
    in `row` and the source's name of the account, and beside it `account` (key, kind, currency, BIC, and the balance in
    `closing`) and `source` (facts of `row` that the API does not show)."""
    day = closing.closing_date
    members = {
        **detail,
        "amount": _exact_number(row.amount),
        "bankAccount": {**_object(detail["bankAccount"]), "accountName": account.name},  # the name in the source
        "account": {
            "key": account.stable_key,
            "accountType": account.kind,
            "currency": account.currency,
            "bic": account.bic,
            "balance": None if closing.closing is None else _exact_number(closing.closing),
            "balanceDate": day.isoformat() if day else None,
        },
        "source": _source(row),
    }
    return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)


def detect(head: bytes) -> bool:
    """Whether a file begins like a JSON object; `read` says whether it is ours."""
    return BEGINNING.match(head) is not None


def read(stream: BinaryIO, on_words: Callable[[WordsLine], None] = lambda _: None) -> Iterator[Record]:
    """The records of JSON lines that bankdata wrote; `on_words` gets the lines of an export of words among them. Raises
    UnsupportedFile for others, MalformedFile naming the line."""
    return records_of(_rows(stream, on_words), "Line")


def _rows(stream: BinaryIO, on_words: Callable[[WordsLine], None]) -> Iterator[dict[str, str | None] | None]:
    lines = Lines(stream)
    for text in lines:
        try:
            members = _object(json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_refuse))
            row = None if "kind" in members else _cells(members)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if lines.number == 1:
                raise UnsupportedFile("not JSON lines that bankdata exported.") from error
            raise MalformedFile(
                "Line {line}: cannot be read.", line=lines.number, detail=type(error).__name__
            ) from error
        if row is None:
            on_words(WordsLine(text))
        yield row


def _cells(members: Json) -> dict[str, str | None]:
    """The cells of one line, by the names that our formats share. Raises `TypeError` or `KeyError` where it is not
    ours."""
    bank_account, account, source = (_object(members[name]) for name in ("bankAccount", "account", "source"))
    return {
        "account": _text(account["key"]),
        "iban": _text(bank_account["iban"]),
        "account_name": _text(bank_account["accountName"]),
        "account_type": _text(account["accountType"]),
        "account_currency": _text(account["currency"]),
        "bank_name": _text(_object(bank_account["bankConnection"])["bankName"]),
        "bic": _text(account["bic"]),
        "balance": _number(account["balance"]),
        "balance_date": _text(account["balanceDate"]),
        "amount": _number(members["amount"]),
        "original_amount": _number(source.get("originalAmount")),
        "is_adjusting_entry": _flag(members["isAdjustingEntry"]),
        "note": _text(members.get("note")),
        "tags": json.dumps(members["tags"]) if "tags" in members else None,
        "chosen_category": _text(members.get("chosenCategory")),
        "own_category": _text(members.get("ownCategory")),
        "splits": json.dumps(members["splits"]) if "splits" in members else None,
        **{cell: _text(members[name]) for cell, name in BOOKING.items()},
        **{cell: _text(source.get(name)) for cell, name in SOURCE.items()},
        **{cell: _flag(source.get(name, False)) for cell, name in FLAGS.items()},
    }


def _source(row: TransactionRecord) -> dict[str, object]:
    facts: dict[str, object] = {name: getattr(row, cell) for cell, name in (SOURCE | FLAGS).items()}
    if row.original_amount is not None:
        facts["originalAmount"] = _exact_number(row.original_amount)
    return {name: value for name, value in facts.items() if value is not None and value is not False}


def _exact_number(amount: Decimal) -> orjson.Fragment:
    """A JSON number with all digits of the amount."""
    return orjson.Fragment(f"{amount:f}")


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _text(value: object) -> str | None:
    if value is None or type(value) is str:
        return value
    raise TypeError("not a text")


def _number(value: object) -> str | None:
    if value is None or isinstance(value, Number):
        return value
    raise TypeError("not a number")


def _flag(value: object) -> str | None:
    if not isinstance(value, bool):
        raise TypeError("not a flag")
    return YES if value else None


def _refuse(_constant: str) -> NoReturn:
    raise ValueError("NaN and infinity are not numbers")
