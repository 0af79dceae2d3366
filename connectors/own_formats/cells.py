"""A booking and its account as named texts, for the formats that contain every field of a record.

Names are those of the columns of our CSV (connectors.own_formats.csv); an absent value is None.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from typing import cast, get_args

from analytics.records import TEXTS, AccountKind, AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.classified_records import WORDS
from connectors.connector import LimitExceeded, MalformedFile
from connectors.limits import CODE_CHARACTERS_MAX, ENTRIES_MAX, KEY_CHARACTERS_MAX, STATEMENTS_MAX
from connectors.text import clean, clean_purpose, compact_iban, parse_amount, parse_bic, parse_date

ACCOUNT_COLUMNS = ("account", "iban", "account_name", "account_type", "account_currency", "bank_name", "bic")
READ_AS: dict[str, Callable[[str | None], str | None]] = {
    "counterpart_iban": compact_iban,
    "counterpart_bic": parse_bic,
    "purpose": clean_purpose,
    "bank_transaction_code": partial(clean, characters=CODE_CHARACTERS_MAX),
    "purpose_code": partial(clean, characters=CODE_CHARACTERS_MAX),
}
"""The function that reads a column, for columns that `clean` does not fit."""
YES = "true"

Cells = Mapping[str, str | None]


def account_cells(account: AccountRecord) -> dict[str, str | None]:
    """The facts about an account, by column."""
    values = (
        account.stable_key, account.iban, account.name, account.kind, account.currency, account.bank_name, account.bic
    )  # fmt: skip
    return dict(zip(ACCOUNT_COLUMNS, values, strict=True))


def booking_cells(row: TransactionRecord) -> dict[str, str | None]:
    """The source's facts about a booking, by column."""
    texts: dict[str, str | None] = {name: getattr(row, name) for name in TEXTS}
    return texts | {
        "booking_date": row.booking_date.isoformat(),
        "value_date": row.value_date.isoformat() if row.value_date else None,
        "amount": f"{row.amount:f}",
        "currency": row.currency,
        "original_amount": f"{row.original_amount:f}" if row.original_amount is not None else None,
        "is_reversal": YES if row.is_reversal else None,
        "is_return": YES if row.is_return else None,
        "record": row.status,
        "references": "\n".join(row.references) or None,
    }


def account_of(cells: Cells) -> AccountRecord:
    """The account that these cells describe. Raises `ValueError` where they describe none."""
    key, kind = clean(cells["account"], KEY_CHARACTERS_MAX), cells["account_type"]
    if key is None:
        raise ValueError("no key")
    if kind is not None and kind not in get_args(AccountKind):
        raise ValueError("an unknown kind of account")
    return AccountRecord(
        stable_key=key,
        currency=required_text(cells, "account_currency"),
        iban=compact_iban(cells["iban"]),
        name=clean(cells["account_name"]),
        kind=cast(AccountKind | None, kind),
        bank_name=clean(cells["bank_name"]),
        bic=parse_bic(cells["bic"]),
    )


def booking_of(cells: Cells) -> TransactionRecord:
    """The booking that these cells describe, each read by its type. Raises `ValueError` where they describe none."""
    texts = {name: READ_AS.get(name, clean)(cells.get(name)) for name in TEXTS}
    original, references = cells.get("original_amount"), cells.get("references")
    return TransactionRecord(
        amount=parse_amount(required_text(cells, "amount")),
        currency=required_text(cells, "currency"),
        booking_date=parse_date(required_text(cells, "booking_date")),
        value_date=day_of(cells.get("value_date")),
        status="pending" if cells.get("record") == "pending" else "booked",
        references=tuple(references.split("\n")) if references else (),
        original_amount=parse_amount(original) if original else None,
        is_reversal=cells.get("is_reversal") == YES,
        is_return=cells.get("is_return") == YES,
        is_potential_duplicate=False,  # determined anew by the import
        words=_words_of(cells),
        detail=0,  # each row is a booking of its own
        **texts,
    )


def _words_of(cells: Cells) -> str | None:
    """The owner's words on the booking, as the JSON text that an import takes over; None where there are none."""
    note, tags, category, splits, own = (cells.get(name) for name in WORDS)
    if not (note or tags or category or splits):
        return None
    try:
        lists = {name: json.loads(text) if text else [] for name, text in (("tags", tags), ("splits", splits))}
    except RecursionError as error:
        raise ValueError("lists in lists") from error
    return json.dumps({"note": note, "category": category, "ownCategory": own, **lists}, ensure_ascii=False)


def records_of(rows: Iterable[Cells | None], place: str) -> Iterator[Record]:
    """The records of rows that each contain their account and its balance; adjusting entries are left out, because an
    import makes them anew (decision 50). Rows of one account have to follow each other; None stands for a line of the
    file that is no row. Raises MalformedFile that names
    the row by `place` ("Line", "Row") and number, LimitExceeded for too many."""
    account: Cells | None = None
    number = accounts = 0
    try:
        for number, row in enumerate(rows, 1):
            if number > ENTRIES_MAX:
                raise LimitExceeded("The file holds more than {limit} transactions.", limit=ENTRIES_MAX)
            if row is None:
                continue
            if account is None or any(row[name] != account[name] for name in ACCOUNT_COLUMNS):
                if account is not None:
                    yield _closing(account)
                accounts += 1
                if accounts > STATEMENTS_MAX:
                    raise LimitExceeded("The file holds more than {limit} accounts.", limit=STATEMENTS_MAX)
                yield account_of(row)
            account = row
            if row.get("is_adjusting_entry") != YES:
                yield booking_of(row)
        if account is not None:
            yield _closing(account)
    except (ValueError, ArithmeticError, KeyError, TypeError) as error:
        raise MalformedFile(f"{place} {{line}}: cannot be read.", line=number, detail=type(error).__name__) from error


def _closing(row: Cells) -> StatementRecord:
    if row["balance"] is None:
        return StatementRecord()
    return StatementRecord(closing=parse_amount(row["balance"]), closing_date=day_of(row["balance_date"]))


def required_text(cells: Cells, name: str) -> str:
    """A text that must be there. Raises ValueError."""
    value = cells[name]
    if value is None:
        raise ValueError(f"{name} is empty")
    return value


def day_of(text: str | None) -> date | None:
    """The day in the text; None where it is empty."""
    return parse_date(text) if text else None
