"""Writes MT940 as German banks did: one statement per account, structured :86: fields chopped at 27 characters.

Left out, because the format has no place for it: announced bookings, names and kinds of accounts, the bank's name, the
counterpart's bank name, debitor ids of credits, merchant names and category codes, original amounts, the flag of a
return (its GVC says so), bank transaction codes (the GVC stands for them), names beyond 54 and purposes beyond what 14
fields hold. A question mark in a text becomes a full stop, because it separates the fields. An account whose balance
its source does not state has neither an opening nor a closing balance. Readers doubt that the GVC of an account
without a German number is one.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import BinaryIO

from analytics.records import AccountRecord, Record, TransactionRecord
from connectors.blocks import Block, blocks

FIELD_CHARACTERS_MAX = 27
TEXT_FIELDS = (*range(20, 30), *range(60, 64))
NAME_FIELDS = (32, 33)
FIELDS_PER_LINE = 2  # a line of :86: holds 65 characters
REFERENCE_CHARACTERS_MAX = 16
UNSPECIFIC_GVC = "999"
SWIFT_CODE = "NMSC"


def write(records: Iterable[Record], stream: BinaryIO) -> None:
    """The booked records as one file in UTF-8; rows wait on disk until their balances are known."""
    for block in blocks(records, _booking):
        stream.write(_head(block).encode())
        block.copy_rows(stream)
        found = block.balances()
        if found is not None:
            closing_date = block.statement.closing_date or block.last or block.statement.opening_date
            stream.write(f":62F:{_balance(found[1], closing_date, block.account.currency)}\r\n".encode())
        stream.write(b"-\r\n")


def _head(block: Block) -> str:
    account, found = block.account, block.balances()
    lines = [
        f":20:STARTUMS{block.number}",
        f":25:{account.iban or account.stable_key}",
        f":28C:{block.statement.sequence or f'{block.number}/1'}",
    ]
    if found is not None:
        opening_date = block.statement.opening_date or block.first or block.statement.closing_date
        lines.append(f":60F:{_balance(found[0], opening_date, account.currency)}")
    return "".join(f"{line}\r\n" for line in lines)


def _balance(amount: Decimal, day: date | None, currency: str) -> str:
    assert day is not None  # a balance has a day, and a block with rows has one, too
    return f"{'D' if amount < 0 else 'C'}{day:%y%m%d}{currency}{_amount(amount)}"


def _booking(_: AccountRecord, row: TransactionRecord) -> str:
    if row.status == "pending":
        return ""
    mark = "D" if row.amount < 0 else "C"
    if row.is_reversal:
        mark = "RC" if row.amount < 0 else "RD"
    value_date = row.value_date or row.booking_date
    kind = row.swift_code if row.swift_code and len(row.swift_code) == 4 else SWIFT_CODE
    reference = f"//{_bank_reference(row)}" if _bank_reference(row) else ""
    return (
        f":61:{value_date:%y%m%d}{row.booking_date:%m%d}{mark}{_amount(row.amount)}{kind}NONREF{reference}\r\n"
        f":86:{_information(row)}\r\n"
    )


def _bank_reference(row: TransactionRecord) -> str:
    servicer = next(
        (key for kind, _, key in (text.partition(":") for text in row.references) if kind == "servicer"), ""
    )
    key = row.provider_id or servicer
    return key if len(key) <= REFERENCE_CHARACTERS_MAX else ""  # half a key would be another one


def _information(row: TransactionRecord) -> str:
    """The structured field :86:, two subfields a line; a booking that says nothing of itself is free text."""
    if row.gvc is None and row.counterpart_name is None and row.counterpart_iban is None and row.bank_text is None:
        return _free(row.purpose or "")
    fields = [_field(0, (row.bank_text or "")[:FIELD_CHARACTERS_MAX])]
    fields += _numbered(TEXT_FIELDS, _tagged(row))
    fields += [_field(30, row.counterpart_bic), _field(31, row.counterpart_iban)]
    fields += _numbered(NAME_FIELDS, [_free(row.counterpart_name or "")])
    written = [field for field in fields if field]
    lines = ["".join(written[index : index + FIELDS_PER_LINE]) for index in range(0, len(written), FIELDS_PER_LINE)]
    return (row.gvc or UNSPECIFIC_GVC) + "\r\n".join(lines)


def _tagged(row: TransactionRecord) -> list[str]:
    parts = (
        ("EREF+", row.end_to_end_id),
        ("MREF+", row.mandate_reference),
        ("CRED+", row.creditor_id),
        ("DEBT+", row.debitor_id),
        ("PURP+", row.purpose_code),
        ("SVWZ+", row.purpose),
    )
    return [f"{tag}{_free(text)}" for tag, text in parts if text]


def _numbered(numbers: Iterable[int], texts: Iterable[str]) -> Iterator[str]:
    chunks = (chunk for text in texts for chunk in _chopped(text))
    yield from (_field(number, chunk) for number, chunk in zip(numbers, chunks, strict=False))


def _chopped(text: str) -> Iterator[str]:
    for start in range(0, len(text), FIELD_CHARACTERS_MAX):
        yield text[start : start + FIELD_CHARACTERS_MAX]


def _field(number: int, text: str | None) -> str:
    return f"?{number:02d}{text}" if text else ""


def _free(text: str) -> str:
    return text.replace("?", ".")


def _amount(amount: Decimal) -> str:
    whole, _, fraction = f"{abs(amount):f}".partition(".")
    return f"{whole},{fraction}"
