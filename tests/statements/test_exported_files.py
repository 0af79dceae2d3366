"""JSON lines and Beancount ledgers that bankdata wrote, and what others make of them: a sentence, and nothing else."""

import io
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors import limits
from connectors.classified_records import without_classes
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.formats import format_name, read_records
from connectors.own_formats import beancount_reader as beancount_reading
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import cells
from connectors.own_formats import csv as csv_statement

LINE: dict[str, Any] = {
    "id": "txn_00000000000000000000000000000001",
    "amount": -3.5,
    "currency": "EUR",
    "bookingDate": "2026-03-01T00:00:00.000Z",
    "valueDate": None,
    "merchantName": "Coffee house",
    "counterpartName": None,
    "counterpartIban": None,
    "counterpartMandateReference": None,
    "type": "card_payment",
    "category": "DINING",
    "purpose": "Coffee",
    "bankAccount": {
        "id": "acc_1",
        "iban": "DE89370400440532013000",
        "accountName": "Giro",
        "bankConnection": {"bankName": "Bank"},
    },
    "counterpartBic": None,
    "counterpartBankName": None,
    "counterpartCreditorId": None,
    "counterpartDebitorId": None,
    "bankTransactionCode": None,
    "sepaPurposeCode": None,
    "isPotentialDuplicate": False,
    "isAdjustingEntry": False,
    "createdAt": "2026-11-20T12:00:00.000Z",
    "account": {
        "key": "DE89370400440532013000",
        "accountType": "checking",
        "currency": "EUR",
        "bic": None,
        "balance": 96.5,
        "balanceDate": "2026-03-31",
    },
    "source": {},
}
NUMBER = "a number as it is written"


def line(number: str = "-3.5", **changes: Any) -> bytes:
    """One line of an export, with another amount as it is written and other members."""
    told = json.dumps(LINE | changes | {"amount": NUMBER} if "amount" not in changes else LINE | changes)
    return told.replace(f'"{NUMBER}"', number).encode() + b"\n"


def read(data: bytes) -> list[Record]:
    return list(read_records(io.BytesIO(data)))


@pytest.mark.requirement("export.jsonl")
def test_a_line_is_a_booking_with_its_account_and_balance() -> None:
    assert format_name(io.BytesIO(line())) == "jsonl"
    assert read(line()) == [
        AccountRecord(
            stable_key="DE89370400440532013000",
            iban="DE89370400440532013000",
            currency="EUR",
            name="Giro",
            kind="checking",
            bank_name="Bank",
        ),
        TransactionRecord(
            amount=Decimal("-3.5"),
            currency="EUR",
            booking_date=date(2026, 3, 1),
            provider_id="txn_00000000000000000000000000000001",
            purpose="Coffee",
        ),
        StatementRecord(closing=Decimal("96.5"), closing_date=date(2026, 3, 31)),
    ]


@pytest.mark.requirement("export.jsonl")
def test_an_amount_has_the_digits_that_were_written() -> None:
    """Binary floating point has 0.1 + 0.2, and 15 digits only by luck."""
    for number in ("-1234567890123.45", "0.10", "100", "0.12345"):
        _, booking, _ = read(line(number))
        assert isinstance(booking, TransactionRecord)
        assert str(booking.amount) == number


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    "first",
    [
        b'{"a": 1}\n',
        b'{"transactions": [], "pagination": {}}',
        b'{\n  "indented": true\n}',
        line(account=None),
        line(account={"key": "1"}),
        line().replace(b'"source": {}', b'"origin": {}'),
        line()[:-20],
        b'{"id":' + b"[" * 50_000,
        b'{"id":' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001,
    ],
)
def test_json_of_others_is_refused_by_name(first: bytes) -> None:
    with pytest.raises(UnsupportedFile, match=r"^not JSON lines that bankdata exported\.$"):
        read(first)


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    "second",
    [
        line("NaN"),
        line("-Infinity"),
        line("1e5"),
        line("1e999999999"),
        line("9" * 16),
        line("9" * 5000),
        line("null"),
        line('"3.50"'),
        line("true"),
        line(bookingDate="2026-02-30T00:00:00.000Z"),
        line(bookingDate="9999-01-01"),
        line(bookingDate=None),
        line(bookingDate=20260301),
        line(purpose=["Coffee"]),
        line(isAdjustingEntry="no"),
        line(source={"isReversal": 1}),
        line(account=LINE["account"] | {"accountType": "treasure"}),
        line(account=LINE["account"] | {"key": "\u202e"}),
        line(account=LINE["account"] | {"balance": "96.5"}),
        line()[:-30],
        b"\n",
        b"\xff\xfe\n",
        b"\0\n",
        b"[" * 50_000 + b"\n",
    ],
)
def test_a_line_that_is_no_booking_is_named(second: bytes) -> None:
    with pytest.raises(MalformedFile, match=r"^Line 2: (cannot be read|a NUL byte in a text file)\.$"):
        read(line() + second)


@pytest.mark.requirement("readers.limits")
def test_a_line_longer_than_allowed_is_refused() -> None:
    room = limits.LINE_CHARACTERS_MAX - len(line(purpose=""))
    assert len(read(line(purpose="A" * room))) == 3
    with pytest.raises(LimitExceeded, match="Line 1: longer"):
        read(line(purpose="A" * (room + 1)))


@pytest.mark.requirement("readers.limits")
@pytest.mark.parametrize("limit", ["ENTRIES_MAX", "STATEMENTS_MAX"])
def test_more_bookings_or_accounts_than_allowed_are_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = line() + line(account=LINE["account"] | {"key": "2"})
    monkeypatch.setattr(cells, limit, 2)
    assert len(read(data)) == 6
    monkeypatch.setattr(cells, limit, 1)
    with pytest.raises(LimitExceeded, match="The file holds more than 1 "):
        read(data)


@pytest.mark.requirement("readers.hostile")
def test_texts_are_cleaned_like_those_of_any_file() -> None:
    _, booking, _ = read(line(purpose="\u202eCof\x07fee\ud800", counterpartName="\u200b", merchantName="\x00"))
    assert isinstance(booking, TransactionRecord)
    assert (booking.purpose, booking.counterpart_name) == ("Coffee", None)


@pytest.mark.requirement("export.adjusting-entries")
def test_an_adjusting_entry_is_no_booking_but_its_account_is_one() -> None:
    account, closing = read(line(isAdjustingEntry=True))
    assert isinstance(account, AccountRecord)
    assert isinstance(closing, StatementRecord)


GIRO = AccountRecord(stable_key="4711", currency="EUR", name="Giro", bank_name="Bank")
RENT = TransactionRecord(amount=Decimal("-890.00"), currency="EUR", booking_date=date(2026, 1, 2), purpose="Rent")
STATED = StatementRecord(closing=Decimal("110.00"), closing_date=date(2026, 1, 31))


def ledger(*records: Record) -> bytes:
    stream = io.BytesIO()
    beancount.write(without_classes(records or (GIRO, RENT, RENT, STATED)), stream)
    return stream.getvalue()


@pytest.mark.requirement("export.beancount")
def test_a_ledger_keeps_the_merchant_apart_from_the_counterpart_and_texts_as_they_were() -> None:
    row = replace(RENT, purpose='a "quote" \\n \\', merchant_name="Shop", counterpart_name="Payment service")
    data = ledger(GIRO, row, replace(row, counterpart_name=None), replace(RENT, purpose=None), STATED)
    assert format_name(io.BytesIO(data)) == "beancount"
    assert b'"Shop" "a \\"quote\\" \\\\n \\\\"\n' in data
    assert read(data)[1:4] == [row, replace(row, counterpart_name=None), replace(RENT, purpose=None)]


@pytest.mark.requirement("export.beancount")
def test_what_moved_without_a_booking_is_in_the_ledger_and_in_no_booking() -> None:
    stated = replace(STATED, opening=Decimal("900.00"), opening_date=date(2026, 1, 1))
    data = ledger(GIRO, RENT, stated)
    assert b'* "Balance adjustment"\n  Assets:Bank:Giro  100.00 EUR\n  Equity:Adjustments  -100.00 EUR\n' in data
    assert b"open Equity:Adjustments\n" in data
    assert read(data) == [GIRO, RENT, stated]


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    "theirs",
    [
        b"1970-01-01 open Equity:Opening-Balances\n1970-01-01 open Assets:Bank:Giro EUR\n",
        b'2026-01-02 * "Rent"\n  Assets:Bank  -890.00 EUR\n  Expenses:Rent  890.00 EUR\n',
        b'option "title" "Mine"\n\n2014-05-01 open Liabilities:Card USD\n',
        b'; mine\n2026-01-02 txn "Shop" "Rent" #tag\n  Assets:Bank  -890.00 EUR\n  Expenses:Rent\n',
        b"\n" + ledger(),
    ],
)
def test_a_ledger_of_others_is_refused_by_name(theirs: bytes) -> None:
    with pytest.raises(UnsupportedFile, match=r"^not a Beancount ledger that bankdata exported\.$"):
        read(theirs)


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("written", "found", "number"),
    [
        ("  Expenses:Other  890.00 EUR\n", "", 8),
        ("  Expenses:Other  890.00 EUR\n", "  Expenses:Other  890.01 EUR\n", 8),
        ("  Expenses:Other  890.00 EUR\n", "  Expenses:Other  890.00 USD\n", 8),
        ("  Expenses:Other  890.00 EUR\n", "  Expenses:Other  1e3 EUR\n", 10),
        ("  Expenses:Other  890.00 EUR\n", "  Expenses:Other  890.00 EUR\n" * 2, 11),
        ("  Assets:Bank:Giro  -890.00", "  Assets:Bank:Other  -890.00", 8),
        ("890.00 EUR", "8900000000000000.00 EUR", 9),
        ('* "Rent"', '* "Rent', 8),
        ('* "Rent"', '* "Rent" ^link', 8),
        ("2026-01-02 *", "2026-02-30 *", 8),
        ("2026-01-02 *", "2026-01-02 !", 8),
        ("2026-01-02 *", "Once *", 8),
        ('  account: "4711"', '  account: "4711"\n  account: "4711"', 4),
        ('  account: "4711"', '  number: "4711"', 3),
        ('  account: "4711"', "  account: 4711", 2),
        ('  account-currency: "EUR"\n', "", 2),
        ("balance Assets:Bank:Giro", "balance Assets:Bank:Other", 20),
        ("  110.00 EUR", "  much EUR", 20),
        ('* "Rent"\n', '* "Rent"\n  id: 5\n', 8),
        ('* "Rent"\n', '* "Rent"\n  account-name: "Giro"\n', 8),
        ('* "Rent"\n', '* "Rent"\n  original-amount: "NaN"\n', 8),
        ('* "Rent"\n', '* "Rent"\0\n', 8),
    ],
)
def test_a_directive_that_is_not_as_we_write_it_is_named(written: str, found: str, number: int) -> None:
    data = ledger().decode()
    assert written in data
    with pytest.raises(MalformedFile, match=rf"^Line {number}: (cannot be read|a NUL byte in a text file)\.$"):
        read(data.replace(written, found, 1).encode())


@pytest.mark.requirement("readers.refusal")
def test_a_ledger_cut_off_anywhere_is_refused_or_tells_whole_bookings() -> None:
    data = ledger()
    outcomes = [told_or_refused(data[:end]) for end in range(len(data))]
    assert {len(told) for told in outcomes} == {0, 2, 3, 4}
    for told in outcomes:
        assert told[1:-1] == [RENT] * (len(told) - 2)


def told_or_refused(data: bytes) -> list[Record]:
    """The records; a refusal is none."""
    try:
        return read(data)
    except SourceError:
        return []


@pytest.mark.requirement("readers.limits")
@pytest.mark.parametrize("limit", ["ENTRIES_MAX", "STATEMENTS_MAX"])
def test_a_ledger_of_more_than_is_allowed_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = ledger(GIRO, RENT, STATED, replace(GIRO, stable_key="4712"), RENT, STATED)
    monkeypatch.setattr(beancount_reading, limit, 2)
    assert len(read(data)) == 6
    monkeypatch.setattr(beancount_reading, limit, 1)
    with pytest.raises(LimitExceeded, match="The file holds more than 1 "):
        read(data)


@pytest.mark.requirement("export.csv")
def test_a_ledger_with_a_header_alone_holds_nothing() -> None:
    assert list(csv_statement.read(io.BytesIO(",".join(csv_statement.COLUMNS).encode() + b"\n"))) == []
