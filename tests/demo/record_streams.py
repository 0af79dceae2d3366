"""Streams of records as banks tell them, for the tests that write them into files and read them back."""

import io
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import BinaryIO

from hypothesis import strategies as st
from msgspec.structs import fields, replace

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.reference.gvc import bank_transaction_code_of
from connectors.sources.demo.identifiers import creditor_id, german_iban

WORDS = st.text("abcXYZäÖß019%_'&<>\"=+@-.,/*;|{}\\", min_size=1, max_size=12)


def _sentences(characters: int) -> st.SearchStrategy[str]:
    return st.lists(WORDS, min_size=1, max_size=30).map(lambda words: " ".join(words)[:characters].strip())


@st.composite
def transaction_records(draw: st.DrawFn) -> TransactionRecord:
    """Bookings as banks word them: one line of text each, keys that are no placeholders, codes that agree."""
    cents = draw(st.integers(1, 10**9)) * draw(st.sampled_from([1, -1]))
    day = draw(st.dates(date(2024, 1, 1), date(2026, 12, 31)))
    is_debit = cents < 0
    has_party = draw(st.booleans())
    is_foreign = draw(st.booleans())
    gvc = draw(st.sampled_from([None, "105", "116"])) if is_debit else draw(st.sampled_from([None, "166"]))
    number = draw(st.integers(0, 10**9))
    return TransactionRecord(
        amount=Decimal(cents).scaleb(-2),
        currency="EUR",
        booking_date=day,
        value_date=day + timedelta(days=draw(st.integers(-20, 20))),
        provider_id=draw(st.sampled_from([None, f"P{number:010d}"])),
        counterpart_name=f"Jo{draw(_sentences(52))}" if has_party else None,
        counterpart_iban=german_iban("99920000", str(number)) if has_party else None,
        counterpart_bic="BEISDEDAXXX" if has_party else None,
        creditor_id=creditor_id(f"{number:011d}") if is_debit and has_party and gvc else None,
        mandate_reference=f"M{number}" if is_debit and gvc else None,
        end_to_end_id=draw(st.sampled_from([None, f"E{number}"])) if gvc else None,
        purpose=draw(_sentences(190)),
        bank_transaction_code=bank_transaction_code_of(gvc, is_credit=not is_debit),
        gvc=gvc,
        mcc=draw(st.sampled_from([None, "5411", "0742"])),
        bank_text=draw(st.sampled_from(["LASTSCHRIFT", "ÜBERTRAG"])) if gvc else None,
        original_amount=Decimal("12.34") if is_foreign else None,
        original_currency="USD" if is_foreign else None,
        is_reversal=draw(st.booleans()),
    )


@st.composite
def record_streams(draw: st.DrawFn) -> list[Record]:
    """One to three accounts, each with its rows and a statement that adds up."""
    records: list[Record] = []
    for number in range(draw(st.integers(1, 3))):
        iban = german_iban("99910000", str(number))
        rows = draw(st.lists(transaction_records(), max_size=6))
        opening = Decimal(draw(st.integers(-(10**8), 10**8))).scaleb(-2)
        records += [
            AccountRecord(stable_key=iban, iban=iban, currency="EUR", name=f"Konto {number}", kind="checking"),
            *rows,
            StatementRecord(
                opening=opening,
                opening_date=date(2023, 12, 31),
                closing=opening + sum((row.amount for row in rows), Decimal(0)),
                closing_date=date(2027, 2, 1),
                is_authoritative=True,
            ),
        ]
    return records


def rendered(write: Callable[[Iterator[Record], BinaryIO], None], records: Sequence[Record]) -> io.BytesIO:
    """The file, ready to be read."""
    stream = io.BytesIO()
    write(iter(records), stream)
    stream.seek(0)
    return stream


def carried(records: Sequence[Record], *, lost: Sequence[str]) -> list[Record]:
    """The records without the fields that the format has no place for."""
    defaults = {
        field.name: field.default
        for kind in (AccountRecord, TransactionRecord, StatementRecord)
        for field in fields(kind)
    }
    return [replace(record, **{name: defaults[name] for name in lost if hasattr(record, name)}) for record in records]
