"""What a single cell looks like: a date, an amount, a currency, an IBAN, digits, a mark, text."""

import re
from collections.abc import Sequence

_DATE = re.compile(
    r"(?:[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})|[0-9]{4}[./ -][0-9]{1,2}[./ -][0-9]{1,2}\.?|"
    r"(?:19|20)[0-9]{6}|[0-9]{1,2}\.?[ /-][^\W\d_]{3,9}\.?[ /-][0-9]{2,4}|[^\W\d_]{3,9}\.? [0-9]{1,2},? [0-9]{4})"
    r"(?:(?:[ ,]+|T)[0-9]{1,2}:.*)?"
)
_AMOUNT = re.compile(
    r"(?:[^\W\d_]{3} )?[+−-]?\(?[$€£]?\s*[+−-]?[0-9]{1,3}(?:[.,'’ \u00a0]?[0-9]{3})*(?:[.,][0-9]{1,5})?\)?[-+]?\s*"
    r"(?:[$€£]|zł|Kč|kr|[A-Z]{3})?"
)
_CURRENCY = re.compile(r"[A-Z]{3}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,40}")
_MARK = re.compile(r"[A-Za-z]{1,8}|[+-]|[A-Z]{1,2}\.?")


def kinds(cell: str) -> set[str]:
    """Every kind that a cell may be."""
    text = cell.strip()
    found = {"any", "blank" if not text else "text"}
    if _DATE.fullmatch(text):
        found.add("date")
    if text and any(character.isdigit() for character in text) and _AMOUNT.fullmatch(text):
        found.add("amount")
    if _CURRENCY.fullmatch(text):
        found.add("currency")
    if _IBAN.fullmatch(text):
        found.add("iban")
    if text.isascii() and text.isdigit():
        found.add("digits")
    if _MARK.fullmatch(text):
        found.add("mark")
    return found


def fits(row: Sequence[str], shape: Sequence[str]) -> bool:
    """Whether a row has this shape; blank cells may be missing at its end."""
    if len(row) > len(shape):
        row = row[: len(shape)] if not any(cell.strip() for cell in row[len(shape) :]) else row
    if len(row) > len(shape):
        return False
    padded = [*row, *[""] * (len(shape) - len(row))]
    return all(
        kind in kinds(cell) or (kind == "text" and not cell.strip()) for kind, cell in zip(shape, padded, strict=True)
    )


def is_booking(row: Sequence[str]) -> bool:
    """Whether a row holds a date, an amount with a decimal mark or sign, and something more."""
    found = [kinds(cell) for cell in row]
    has_amount = any("amount" in cell and "date" not in cell and "digits" not in cell for cell in found)
    return len(row) > 2 and has_amount and any("date" in cell for cell in found)
