"""What is checked of a batch before anything of it is stored, whichever source brings it."""

from datetime import date
from decimal import Decimal

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, InvalidRecord, Record, StatementRecord, TransactionRecord
from storage.importing.batches import read_batch

TODAY = date(2026, 11, 20)
ACCOUNT = AccountRecord(stable_key="1", currency="EUR")


def booking(amount: str = "1", *, currency: str = "EUR", original: str | None = None) -> TransactionRecord:
    return TransactionRecord(
        amount=Decimal(amount),
        currency=currency,
        booking_date=TODAY,
        original_amount=None if original is None else Decimal(original),
    )


def check(*records: Record) -> None:
    read_batch(Batch(id="b", records=iter(records)), today=TODAY)


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([booking(), ACCOUNT], "A transaction stands before its account."),
        ([StatementRecord()], "A transaction stands before its account."),
        ([AccountRecord(stable_key="1", currency="EURO")], "A currency is not a code of three capital letters."),
        ([ACCOUNT, booking(currency="eur")], "A currency is not a code of three capital letters."),
        ([ACCOUNT, booking("NaN")], "An amount is not a number."),
        ([ACCOUNT, booking(original="Infinity")], "An amount is not a number."),
        ([ACCOUNT, booking("1e15")], "An amount has more than 15 digits or more than 5 decimals."),
        ([ACCOUNT, booking("0.000001")], "An amount has more than 15 digits or more than 5 decimals."),
        ([ACCOUNT, booking(original="1e15")], "An amount has more than 15 digits or more than 5 decimals."),
    ],
)
def test_what_no_source_may_say_is_refused_in_a_sentence(records: list[Record], reason: str) -> None:
    with pytest.raises(InvalidRecord) as refusal:
        check(*records)
    assert str(refusal.value) == reason


@pytest.mark.requirement("contract.bounds")
def test_the_largest_and_the_smallest_amount_that_can_be_kept_are_kept() -> None:
    check(ACCOUNT, booking("999999999999999.99999", original="0.00001"))


@pytest.mark.requirement("readers.camt")
def test_the_bookings_of_one_row_are_one_entry_of_the_statement() -> None:
    parts = [replace(booking("1"), detail=0), replace(booking("2"), detail=1), booking("4")]
    (statement,) = read_batch(Batch(id="b", records=iter([ACCOUNT, *parts])), today=TODAY).statements
    assert (len(statement.places), statement.entries, statement.booked_amount) == (3, 2, Decimal(7))


@pytest.mark.requirement("import.nul")
def test_no_text_that_is_kept_contains_nul() -> None:
    account = AccountRecord(stable_key="k\0", currency="EUR", name="G\0iro")
    booking = TransactionRecord(
        amount=Decimal("-1"), currency="EUR", booking_date=TODAY, purpose="a\0b\\u0000", references=("r:\x001",)
    )
    batch = Batch(id="b", records=iter([account, booking, StatementRecord(closing=Decimal(1), sequence="1\0")]))
    read = read_batch(batch, today=TODAY)
    (statement,) = read.statements
    assert (statement.account.stable_key, statement.account.name, statement.statement.sequence) == ("k", "Giro", "1")
    (kept,) = read.spool.records([0])
    assert (kept.purpose, kept.references) == ("ab\\u0000", ("r:1",))
