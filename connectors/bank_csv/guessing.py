"""Guessing of an unknown layout, as the last resort: columns known by words or content, only without doubt."""

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import get_args

from analytics.messages import Message, message
from analytics.minor_digits import minor_digits
from connectors.bank_csv.amounts_and_dates import (
    FORMATS,
    date_formats,
    decimal_mark,
    figure,
    fitting_formats,
    read_amount,
)
from connectors.bank_csv.cell_kinds import is_booking, kinds
from connectors.bank_csv.column_places import cells_of, references
from connectors.bank_csv.guessed_currency import is_mixed, only_currency, settle_currency, take_foreign_currency
from connectors.bank_csv.profile import JOINED, Mark, Profile, comparable
from connectors.bank_csv.vocabulary import (
    CREDIT_WORDS,
    DEBIT_WORDS,
    PENDING_WORDS,
    SKIP_WORDS,
    column_currency,
    column_field,
)
from connectors.bank_csv.whose_account import settle_accounts
from connectors.connector import UnsupportedFile
from connectors.text import currency_code

Row = Sequence[str]
_SAMPLE_ROWS = 400
_FLAGS = {"true", "false", "-", "+", "in", "s", "d", "c", "k"}  # occur in other columns, too
_CODE = re.compile(r"\b[A-Z]{3}\b")
_AVAILABLE = re.compile("availab|disponib|verfugbar")  # in the name of a balance that includes the overdraft
_OWN = re.compile("account|konto|rachunk|uctu|local|billing|booking|buchung|posted|settlement")  # its currency
UNKNOWN = "The CSV layout is unknown: {reason}. A profile of your own can say it: docs/csv-profiles.md."


class Undecided(UnsupportedFile):
    """Something that makes a difference to money may mean two things, so no other way to read the table is tried;
    `profile` is what was guessed of the rest."""

    def __init__(self, reason: Message, profile: Profile) -> None:
        super().__init__(reason)
        self.profile = profile


def generic_profile(header: Row, rows: Sequence[Row], preamble: Sequence[Row], delimiter: str) -> tuple[Profile, str]:
    """A profile named "generic", made from the words of a header row, and a text for people that says what was
    recognised. `preamble` are the rows above the header. Raises UnsupportedFile with the reason."""
    fields = _fields(header)
    if "date" not in fields and "value_date" in fields:
        fields["date"] = fields.pop("value_date")
    data = [row for row in rows[:_SAMPLE_ROWS] if sum(1 for cell in row if cell.strip()) > 1]
    if "date" not in fields:
        raise UnsupportedFile(UNKNOWN, reason=message("no column is recognised as the booking date"))
    if "amount" in fields and "debit" in fields and "credit" in fields:
        del fields["debit"], fields["credit"]  # the signed column contains both
    if "amount" in fields:
        fields.pop("debit", None)
        fields.pop("credit", None)
    elif not ("debit" in fields and "credit" in fields):
        raise UnsupportedFile(UNKNOWN, reason=message("no column is recognised as the amount"))
    home, doubts = take_foreign_currency(fields, header, data)
    stated, open_currency = settle_currency(fields, header, data, preamble)
    doubts += [*open_currency, *settle_accounts(fields, header, data, preamble)]
    debit_words, credit_words = _indicator(fields, header, data)
    amounts = [
        cell
        for field in ("amount", "debit", "credit")
        for cell in cells_of(fields.get(field, ()), header, data)
        if "amount" in kinds(cell)
    ]
    mark = _mark(amounts, _codes([*preamble, header, amounts], data), delimiter)
    dates = [cell for cell in cells_of(fields["date"], header, data) if any(character.isdigit() for character in cell)]
    formats = _formats([cell for cell in dates if "date" in kinds(cell)])
    if dates and not formats:
        raise UnsupportedFile(UNKNOWN, reason=message("the dates have no known format"))
    profile = Profile(
        name="generic",
        columns=fields,
        header=tuple((comparable(name),) for name in header if name.strip()),
        date=tuple(formats or ("YYYY-MM-DD",)),
        decimal=mark,
        currency=stated or home or only_currency(fields, header, data),
        debit_words=debit_words,
        credit_words=credit_words,
        pending={fields["status"][0]: tuple(PENDING_WORDS)} if "status" in fields else {},
        skip={fields["status"][0]: tuple(SKIP_WORDS)} if "status" in fields else {},
        is_account_per_currency="currency" in fields and "account" not in fields and is_mixed(fields, header, data),
    )
    if doubts:
        raise Undecided(Message(UNKNOWN, reason=message(doubts[0])), profile)
    return profile, f'its words name {", ".join(sorted(fields))}; dates are {profile.date[0]}, decimals "{mark}"'


def generic_shape(rows: Sequence[Row]) -> tuple[Profile, int, str] | None:
    """A profile, the index of the first booking and an explanation for a file without header whose columns can be read
    in only one way; None in doubt. Raises UnsupportedFile where only the decimal mark, or day and month, cannot be told
    apart."""
    start = next((index for index, row in enumerate(rows[:40]) if is_booking(row)), None)
    if start is None:
        return None
    data = [row for row in rows[start : start + _SAMPLE_ROWS] if is_booking(row)]
    width = max(map(len, data))
    if any(len(row) != len(data[0]) for row in data) or len(data) * 2 < len([row for row in rows[start:] if row]):
        return None
    columns = [[row[index] for row in data] for index in range(width)]
    all_kinds = [set.intersection(*(kinds(cell) for cell in column)) for column in columns]
    dates = [index for index, each in enumerate(all_kinds) if "date" in each]
    amounts = [
        index
        for index, each in enumerate(all_kinds)
        if "amount" in each and "date" not in each and any(mark in cell for cell in columns[index] for mark in ",.-+")
    ]
    if not dates or not 1 <= len(amounts) <= 2:
        return None
    if any(_is_amount_at_times(columns[index]) for index in range(width) if index not in (*dates, *amounts)):
        return None  # the amount may be the column that is not filled in every row
    formats = _formats(columns[dates[0]])
    written = [cell for index in amounts for cell in columns[index]]
    mark = _mark(written, _codes([written], data))
    if not formats:
        return None
    if len(amounts) == 2 and not is_balance(columns[amounts[0]], columns[amounts[1]], mark):
        return None
    fields: dict[str, tuple[str, ...]] = {"date": (f"@{dates[0] + 1}",), "amount": (f"@{amounts[0] + 1}",)}
    if len(amounts) == 2:
        fields["balance"] = (f"@{amounts[1] + 1}",)
    if len(dates) == 2:
        fields["value_date"] = (f"@{dates[1] + 1}",)
    texts: list[str] = []
    debit_words: tuple[str, ...] = ()
    credit_words: tuple[str, ...] = ()
    for index in range(width):
        words = {comparable(cell) for cell in columns[index]}
        if index in dates or index in amounts:
            continue
        if words <= DEBIT_WORDS | CREDIT_WORDS and words & DEBIT_WORDS and "indicator" not in fields:
            fields["indicator"] = (f"@{index + 1}",)
            debit_words, credit_words = tuple(sorted(words & DEBIT_WORDS)), tuple(sorted(words & CREDIT_WORDS))
        elif len(words) == 1 and currency_code(columns[index][0]) and "currency" not in fields:
            fields["currency"] = (f"@{index + 1}",)
        elif any(character.isalpha() for cell in columns[index] for character in cell):
            texts.append(f"@{index + 1}")
    if texts:
        fields["purpose"] = tuple(texts)
    profile = Profile(
        name="generic", columns=fields, shape=("any",) * width, date=tuple(formats), decimal=mark,
        debit_words=debit_words, credit_words=credit_words,
    )  # fmt: skip
    return (
        profile,
        start,
        f"no header; column {dates[0] + 1} can only be the date and column {amounts[0] + 1} the amount",
    )


def _fields(header: Row) -> dict[str, tuple[str, ...]]:
    """The columns of each field. Where two columns fit a field, the first one counts, but an available balance only
    where there is no other; those of purpose and of id are joined, and a second date is the value date, unless a value
    date came before. An amount whose name tells its currency ("Amount (EUR)", "booking amount") counts before one
    without, which becomes the original amount if no column is that; so do currencies beside an original amount."""
    fields: dict[str, tuple[str, ...]] = {}
    named: dict[tuple[str, bool], str] = {}  # of a field the first column whose name says whose currency it has
    for reference, cell in references(header):
        name, field = comparable(cell), column_field(cell)
        if field is None:
            continue
        named.setdefault((field, bool(_OWN.search(name) or column_currency(cell))), reference)
        if field not in fields or (field == "balance" and _AVAILABLE.search(fields[field][0])):
            fields[field] = (reference,)
        elif field in JOINED:
            fields[field] += (reference,)
        elif field == "date":
            fields.setdefault("value_date", (reference,))
    for field, original in (("amount", "original_amount"), ("currency", "original_currency")):
        if {(field, True), (field, False)} <= named.keys() and (field == "amount" or "original_amount" in fields):
            fields[field] = (named[field, True],)
            fields.setdefault(original, (named[field, False],))
    return fields


def _indicator(
    fields: dict[str, tuple[str, ...]], header: Row, data: Sequence[Row]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The debit and the credit words in the indicator column, if its cells contain only such words and there is a
    column of amounts. Otherwise both are empty, and the column, if there is one, becomes a text (`bank_text`) in
    `fields`."""
    if "indicator" not in fields and not _has_sign_words(fields, header, data):
        return (), ()
    words = {comparable(cell) for cell in cells_of(fields["indicator"], header, data)}
    if "amount" in fields and words and words <= DEBIT_WORDS | CREDIT_WORDS:
        return tuple(sorted(words & DEBIT_WORDS)), tuple(sorted(words & CREDIT_WORDS)) or ("credit",)
    fields.setdefault("bank_text", fields["indicator"])
    del fields["indicator"]
    return (), ()


def _has_sign_words(fields: dict[str, tuple[str, ...]], header: Row, data: Sequence[Row]) -> bool:
    """Whether amounts without signs are beside a column of words such as "spent" and "received"; that column then
    becomes the indicator in `fields`, whatever its name."""
    amounts = cells_of(fields.get("amount", ()), header, data)
    if not amounts or any(mark in cell for cell in amounts for mark in "+-−–("):
        return False
    for cell in header:
        name = comparable(cell)
        words = {comparable(word) for word in cells_of((name,), header, data)}
        if words & DEBIT_WORDS - _FLAGS and words <= (DEBIT_WORDS | CREDIT_WORDS) - _FLAGS:
            fields["indicator"] = (name,)
            return True
    return False


def _codes(lines: Sequence[Row], data: Sequence[Row]) -> set[str]:
    """What may be currency codes: words in capitals of these lines, and whole cells of the table; a word in a purpose
    may be anything."""
    words = {code for line in lines for cell in line for code in _CODE.findall(cell)}
    return words | {cell.strip() for row in data for cell in row if _CODE.fullmatch(cell.strip())}


def _mark(amounts: Sequence[str], codes: Collection[str], delimiter: str | None = None) -> Mark:
    """The decimal mark of the amounts, by their cells, else by what separates the columns: a comma with semicolons
    (`delimiter`; None for a file without a header), else a point. Raises UnsupportedFile where the amounts use two
    marks; and where each has three digits behind a mark that may be either, unless a currency of three decimals is
    named: then that is the decimal mark, whichever it is."""
    try:
        mark = decimal_mark(amounts)
    except ValueError:
        raise UnsupportedFile(UNKNOWN, reason=message("amounts use two decimal marks")) from None
    if mark is not None:
        return mark
    usual: Mark = "," if delimiter == ";" else "."
    marks: list[Mark] = [each for each in get_args(Mark) if any(each in figure(cell) for cell in amounts)]
    if any(minor_digits(code) == 3 for code in codes):
        return marks[0] if len(marks) == 1 else usual
    if usual in marks or (marks and delimiter is None):
        raise UnsupportedFile(UNKNOWN, reason=message("decimals and thousands of the amounts cannot be told apart"))
    return usual


def _formats(dates: Sequence[str]) -> list[str]:
    best = max(FORMATS, key=lambda text: sum(bool(date_formats([cell], [text])) for cell in dates))
    usual = [cell for cell in dates if date_formats([cell], [best])]
    if len(usual) * 2 <= len(dates):
        return []
    try:
        return fitting_formats(FORMATS, usual)[:1]  # a date in another format is refused by the reader, with its line
    except ValueError:
        raise UnsupportedFile(UNKNOWN, reason=message("day and month of the dates cannot be told apart")) from None


def _is_amount_at_times(cells: Sequence[str]) -> bool:
    """Whether a column has amounts with a mark or sign in some rows and nothing in the others."""
    filled = [cell for cell in cells if cell.strip()]
    return (
        0 < len(filled) < len(cells)
        and all("amount" in kinds(cell) and "date" not in kinds(cell) for cell in filled)
        and any(mark in cell for cell in filled for mark in ",.-+")
    )


def is_balance(amounts: Sequence[str], balances: Sequence[str], mark: Mark) -> bool:
    """Whether the second column is the running balance of the first one, upwards or downwards, in at least three rows
    and with no amount of zero."""
    if len(amounts) < 3:
        return False
    try:
        moves = [read_amount(cell, mark)[0] for cell in amounts]
        totals = [read_amount(cell, mark)[0] for cell in balances]
    except ValueError:
        return False
    pairs = range(len(moves) - 1)
    down = sum(totals[i] - moves[i] == totals[i + 1] for i in pairs)
    up = sum(totals[i] + moves[i + 1] == totals[i + 1] for i in pairs)
    return max(down, up) == len(pairs) and Decimal(0) not in moves
