"""Kinds of single cells: a date, an amount, a figure (an amount or nothing), a currency, an IBAN, a text."""

import re
from collections.abc import Sequence

from connectors.bank_csv.amounts_and_dates import read_amount, without_weekday

_DATE = re.compile(
    r"(?:[0-9]{1,2}[./-][0-9]{1,2}[./-](?:[0-9]{4}|[0-9]{2})|[0-9]{1,2}\. [0-9]{1,2}\. [0-9]{2,4}|"
    r"[0-9]{4}(?:[./-]|\. | )[0-9]{1,2}(?:[./-]|\. | )[0-9]{1,2}\.?|"
    r"(?:19|20)[0-9]{6}|[0-9]{1,2}\.?[ /-][^\W\d_]{3,9}\.?[ /-][0-9]{2,4}|[^\W\d_]{3,9}\.? [0-9]{1,2},? [0-9]{4})"
    r"(?:(?:[ ,]+|T)[0-9]{1,2}:.*)?"
)
_AMOUNT = re.compile(
    r"(?:[^\W\d_]{3} )?[+−-]?\(?[$€£]?\s*[+−-]?[0-9]{1,3}(?:[.,'’ \u00a0]?[0-9]{3})*(?:[.,][0-9]{1,5})?\)?[-+]?\s*"
    r"(?:[$€£]|zł|Kč|kr|[A-Z]{3})?"
)
_AMOUNT_CHARACTERS_MAX = 50
_CURRENCY = re.compile(r"[A-Z]{3}")
_IBAN = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9 ]{11,40}")
_MARK = re.compile(r"[A-Za-z]{1,8}|[*+-]|[A-Z]{1,2}\.?")


def kinds(cell: str) -> set[str]:
    """All kinds that fit the cell: "any"; "blank" or "text"; and what its pattern says: "date", "amount", "figure" (an
    amount or nothing), "currency", "iban", "digits", "mark" (a short word or sign)."""
    text = cell.strip()
    fitting = {"any", "blank" if not text else "text"}
    if _DATE.fullmatch(text) or _DATE.fullmatch(without_weekday(text)):
        fitting.add("date")
    if not text:
        fitting.add("figure")
    elif any(character.isdigit() for character in text) and (_AMOUNT.fullmatch(text) or _is_amount(text)):
        fitting |= {"amount", "figure"}
    if _CURRENCY.fullmatch(text):
        fitting.add("currency")
    if _IBAN.fullmatch(text):
        fitting.add("iban")
    if text.isascii() and text.isdigit():
        fitting.add("digits")
    if _MARK.fullmatch(text):
        fitting.add("mark")
    return fitting


def _is_amount(text: str) -> bool:
    """Whether a cell is an amount with a unit beside it, a sign of its own, or the digits of a program's noise."""
    try:
        return len(text) <= _AMOUNT_CHARACTERS_MAX and bool(read_amount(text, "."))
    except ValueError:
        return False


def fits(row: Sequence[str], shape: Sequence[str]) -> bool:
    """Whether every cell of a row is of the kind that `shape` has in its place (a blank one is also a text), and at
    least one figure is filled where the shape has any. The row may have further blank cells at its end; cells may be
    missing there where the shape accepts any content or a blank one."""
    cells = list(row)
    while len(cells) > len(shape) and not cells[-1].strip():
        cells.pop()
    while len(cells) < len(shape) and shape[len(cells)] in ("any", "blank"):
        cells.append("")
    if len(cells) != len(shape):
        return False
    pairs = list(zip(shape, cells, strict=True))
    is_filled = "figure" not in shape or any(kind == "figure" and cell.strip() for kind, cell in pairs)
    return is_filled and all(kind in kinds(cell) or (kind == "text" and not cell.strip()) for kind, cell in pairs)


def is_booking(row: Sequence[str]) -> bool:
    """Whether a row has a date, an amount that is not digits alone, and a third cell."""
    cells = [kinds(cell) for cell in row]
    has_amount = any("amount" in cell and "date" not in cell and "digits" not in cell for cell in cells)
    return len(row) > 2 and has_amount and any("date" in cell for cell in cells)
