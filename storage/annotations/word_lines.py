"""The lines of an export of words: their JSON, and the parts that several kinds of lines share (accounts, bookings,
amounts, moments)."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson

from analytics.classification.rules import InvalidRule
from analytics.messages import Saying, message
from storage.annotations import anchors
from storage.annotations.anchors import Anchor
from storage.importing.rows import AMOUNT_END

Json = Mapping[str, Any]
UNIT = Decimal("0.00001")  # of amounts in the store

OF_BOOKINGS = ("ownCategory", "rule", "correction", "target", "annotation")
OF_ACCOUNTS = ("account", "balance")
OF_PAYMENTS = ("recurring", "addedRecurring")
KINDS = frozenset((*OF_BOOKINGS, *OF_ACCOUNTS, *OF_PAYMENTS))
"""What a line may be about; see `portable` for OF_BOOKINGS, `account_words` for the others."""
CANNOT_BE_READ = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What a line raises whose members are not those of its kind."""


class InvalidWords(Saying):
    """A line is not one of an export of words."""


class SeenWords(NamedTuple):
    """What of all that was said may be exported: its `kinds`, of accounts whose ids `account` lets through, and of
    corrections those whose keys `correction` does."""

    kinds: Collection[str] = KINDS
    account: Callable[[str], bool] = lambda _: True
    correction: Callable[[str], bool] = lambda _: True


ALL = SeenWords()


def write(kind: str, entry: Json) -> str:
    """The line of this kind."""
    return json.dumps({"kind": kind, **entry}, ensure_ascii=False)


def parse(text: str) -> Iterator[tuple[int, str, Json]]:
    """The number, kind and members of each line that is not blank. Raises InvalidWords."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, *_parse_line(number, line)


def invalid(number: int, error: Exception) -> InvalidWords:
    """The refusal of the line of this number for one of CANNOT_BE_READ."""
    return InvalidWords("line {line}: {reason}", line=number, reason=message(_reason(error)))


def booking_members(anchor: Anchor) -> Json:
    """The members that describe a booking beside its account."""
    return {
        "bookingDate": anchor.booking_date.isoformat(),
        "amount": f"{anchor.amount:f}",
        "currency": anchor.currency,
        "counterpart": anchor.counterpart,
        "place": anchor.place,
        "equalOnes": anchor.equal_ones,
    }


def booking(entry: Json, account_id: str) -> Anchor:
    """The anchor of the booking of this account that a line describes. Raises CANNOT_BE_READ."""
    return Anchor(
        account_id,
        date.fromisoformat(entry["bookingDate"]),
        money(entry["amount"]),
        str(entry["currency"]),
        _two_lines(entry["counterpart"]),
        _check_count(entry["place"]),
        _check_count(entry["equalOnes"]),
    )


def money(text: str) -> Decimal:
    """An amount as the store keeps it. Raises ValueError and ArithmeticError."""
    amount = Decimal(text).quantize(UNIT)
    if not abs(amount) < AMOUNT_END:
        raise ValueError("not an amount")
    return amount


def moment(text: str) -> datetime:
    """The moment as the store keeps it, in UTC without a zone; another zone could lead beyond what calendars have."""
    read = datetime.fromisoformat(text)
    if read.tzinfo is not None:
        raise ValueError("not a moment")
    return read


def _parse_line(number: int, line: str) -> tuple[str, Json]:
    try:
        entry = orjson.loads(line)  # which takes no half of a letter
        kind = entry.pop("kind")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidWords("line {line}: not a line of `bankdata words export`", line=number) from error
    if kind not in KINDS:
        raise InvalidWords("line {line}: not a line of `bankdata words export`", line=number)
    return kind, entry


def _two_lines(text: str) -> str:
    if text.count(anchors.PARTING) != 1:
        raise ValueError("not a counterpart")
    return text


def _check_count(number: object) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise ValueError("not a number")
    return number


def _reason(error: Exception) -> str:
    if isinstance(error, InvalidRule):
        return error.reason  # whose line is that of the rule alone
    if isinstance(error, KeyError):
        return f"lacks {error}"
    return str(error) if isinstance(error, ValueError) else "cannot be read"
