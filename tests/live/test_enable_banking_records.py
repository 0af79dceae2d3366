"""What Enable Banking says, as records: nothing derived, nothing lost, and no sign that nobody told."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import ProviderUnavailable
from connectors.sources.enable_banking.answers import moment
from connectors.sources.enable_banking.records import account_facts, currency_of, name_of, records

pytestmark = pytest.mark.requirement("live.enable_banking")

ACCOUNT = {
    "uid": "07cc67f4",
    "identification_hash": "WwpbCiJh",
    "account_id": {"iban": "DE89 3704 0044 0532 0130 00"},
    "account_servicer": {"bic_fi": "COBADEFFXXX", "name": "Beispielbank"},
    "name": "Eva Muster",
    "details": "Girokonto",
    "product": "Giro Plus",
    "cash_account_type": "CACC",
    "currency": "EUR",
}
DEBIT = {
    "transaction_id": "another one at every call",
    "entry_reference": "5561990681",
    "merchant_category_code": "4900",
    "transaction_amount": {"currency": "EUR", "amount": "49.90"},
    "creditor": {"name": "Stadtwerke  Beispiel GmbH"},
    "creditor_account": {"iban": "DE02120300000000202051"},
    "creditor_agent": {"bic_fi": "BYLADEM1001", "name": "Deutsche Kreditbank Berlin"},
    "debtor": {"name": "Eva Muster"},
    "debtor_account": {"iban": "DE89370400440532013000"},
    "bank_transaction_code": {"code": "RDDT", "sub_code": "ESDD", "description": "Lastschrift"},
    "credit_debit_indicator": "DBIT",
    "status": "BOOK",
    "booking_date": "2026-11-17",
    "value_date": "2026-11-18",
    "remittance_information": ["EREF+E-1 MREF+M-17", "CRED+DE98ZZZ09999999999 Abschlag  November"],
}
CREDIT = {
    "entry_reference": None,
    "transaction_amount": {"currency": "EUR", "amount": "2500.00"},
    "debtor": {"name": "Arbeit AG"},
    "debtor_account": {"iban": "DE02120300000000202051"},
    "creditor": {"name": "Eva Muster"},
    "credit_debit_indicator": "CRDT",
    "status": "BOOK",
    "booking_date": "2026-11-16",
}
AVAILABLE = {"balance_type": "CLAV", "balance_amount": {"currency": "EUR", "amount": "9999.00"}}


def balance(kind: str, amount: str, *, currency: str = "EUR", day: str | None = "2026-11-19") -> dict[str, Any]:
    return {
        "balance_type": kind,
        "balance_amount": {"currency": currency, "amount": amount},
        "reference_date": day,
    }


FIRST, TODAY = date(2026, 10, 16), date(2026, 11, 20)


def stated(closing: Decimal | None, closing_date: date | None) -> StatementRecord:
    """What is said of the account as a whole when all of its days have been told."""
    return StatementRecord(
        closing=closing, closing_date=closing_date, told_from=FIRST, told_until=TODAY, is_pending_complete=True
    )


def told(*rows: Any, account: Any = ACCOUNT, balances: Any = (), told_from: date | None = FIRST) -> list[Record]:
    return list(
        records(
            account_facts(account),
            balances,
            rows,
            key="WwpbCiJh",
            currency="EUR",
            bank_name="Beispielbank",
            told_from=told_from,
            today=TODAY,
        )
    )


def bookings(*rows: Any) -> list[TransactionRecord]:
    return [each for each in told(*rows) if isinstance(each, TransactionRecord)]


def test_an_account_is_known_by_its_lasting_hash_and_called_as_its_holder_calls_it() -> None:
    assert told(balances=[AVAILABLE, balance("CLBD", "812.40")]) == [
        AccountRecord(
            stable_key="WwpbCiJh",
            currency="EUR",
            iban="DE89370400440532013000",
            name="Girokonto",
            kind="checking",
            bank_name="Beispielbank",
            bic="COBADEFFXXX",
        ),
        stated(Decimal("812.40"), date(2026, 11, 19)),
    ]


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ({"details": "Girokonto", "name": "Eva Muster", "product": "Giro Plus"}, "Girokonto"),
        ({"details": None, "name": "Eva Muster", "product": "Giro Plus"}, "Eva Muster"),
        ({"name": " ", "product": "Giro Plus"}, "Giro Plus"),
        ({}, None),
    ],
)
def test_an_account_is_named_by_its_details_else_by_its_name_else_by_its_product(
    said: dict[str, Any], name: str | None
) -> None:
    assert name_of(account_facts(said)) == name


def test_an_account_of_which_nothing_is_told_has_a_key_and_a_currency() -> None:
    assert told(account={}, told_from=None) == [
        AccountRecord(stable_key="WwpbCiJh", currency="EUR", bank_name="Beispielbank"),
        StatementRecord(),
    ]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("CACC", "checking"),
        ("TRAN", "checking"),
        ("CASH", "checking"),
        ("SVGS", "savings"),
        ("CARD", "credit_card"),
        ("LOAN", "loan"),
        ("OTHR", None),
        (None, None),
    ],
)
def test_the_kind_of_an_account_is_that_of_iso_20022(code: str | None, kind: str | None) -> None:
    account = told(account={**ACCOUNT, "cash_account_type": code})[0]
    assert isinstance(account, AccountRecord)
    assert account.kind == kind


@pytest.mark.parametrize(
    ("balances", "closing", "day"),
    [
        ([balance("XPCD", "1.00"), balance("ITBD", "2.00"), balance("CLBD", "3.00")], Decimal("3.00"), 19),
        ([balance("XPCD", "1.00"), balance("ITBD", "2.00")], Decimal("2.00"), 19),
        ([AVAILABLE, balance("XPCD", "-1.00", day=None)], Decimal("-1.00"), 20),
        ([balance("CLBD", "3.00", currency="USD"), balance("ITBD", "2.00")], Decimal("2.00"), 19),
        ([AVAILABLE], None, None),
        ([], None, None),
    ],
)
def test_the_balance_is_the_best_booked_one_in_the_currency_of_the_account(
    balances: list[Any], closing: Decimal | None, day: int | None
) -> None:
    closing_date = date(2026, 11, day) if day else None
    assert told(balances=balances)[-1] == stated(closing, closing_date)


def test_a_debit_leaves_the_account_and_keeps_every_word_of_the_bank() -> None:
    assert bookings(DEBIT) == [
        TransactionRecord(
            amount=Decimal("-49.90"),
            currency="EUR",
            booking_date=date(2026, 11, 17),
            value_date=date(2026, 11, 18),
            provider_id="5561990681",
            counterpart_name="Stadtwerke Beispiel GmbH",
            counterpart_iban="DE02120300000000202051",
            counterpart_bic="BYLADEM1001",
            counterpart_bank_name="Deutsche Kreditbank Berlin",
            mandate_reference="M-17",
            creditor_id="DE98ZZZ09999999999",
            end_to_end_id="E-1",
            purpose="EREF+E-1 MREF+M-17 CRED+DE98ZZZ09999999999 Abschlag November",
            bank_transaction_code="PMNT-RDDT-ESDD",
            mcc="4900",
            bank_text="Lastschrift",
        )
    ]


def test_a_credit_comes_from_its_debtor() -> None:
    assert bookings(CREDIT) == [
        TransactionRecord(
            amount=Decimal("2500.00"),
            currency="EUR",
            booking_date=date(2026, 11, 16),
            counterpart_name="Arbeit AG",
            counterpart_iban="DE02120300000000202051",
        )
    ]


@pytest.mark.parametrize(
    ("indicator", "told", "amount"),
    [
        ("DBIT", "10.00", "-10.00"),
        ("DBIT", "-10.00", "-10.00"),
        ("CRDT", "10.00", "10.00"),
        ("CRDT", "-10.00", "-10.00"),
        ("CRDT", Decimal("10.50"), "10.50"),
    ],
)
def test_a_debit_is_negative_whether_or_not_the_bank_writes_a_minus(indicator: str, told: Any, amount: str) -> None:
    row = {
        **CREDIT,
        "credit_debit_indicator": indicator,
        "transaction_amount": {"currency": "EUR", "amount": told},
    }
    assert [each.amount for each in bookings(row)] == [Decimal(amount)]


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ("BOOK", ["booked"]),
        ("OTHR", ["booked"]),
        (None, ["booked"]),
        ("PDNG", ["pending"]),
        ("HOLD", ["pending"]),
        ("SCHD", []),
        ("RJCT", []),
        ("CNCL", []),
    ],
)
def test_what_is_scheduled_rejected_or_cancelled_is_no_booking(status: str | None, found: list[str]) -> None:
    assert [each.status for each in bookings({**CREDIT, "status": status})] == found


def test_a_reference_is_an_id_where_one_booking_alone_has_it_and_it_says_something() -> None:
    references = ["r1", "r2", "r2", "0", "NOTPROVIDED", None]
    found = bookings(*({**CREDIT, "entry_reference": each} for each in references))
    assert [each.provider_id for each in found] == ["r1", None, None, None, None, None]


@pytest.mark.parametrize(
    ("days", "booking_date"),
    [
        ({"booking_date": "2026-11-16", "transaction_date": "2026-11-15", "value_date": "2026-11-17"}, 16),
        ({"booking_date": None, "transaction_date": "2026-11-15", "value_date": "2026-11-17"}, 15),
        ({"booking_date": "", "value_date": "2026-11-17T00:00:00Z"}, 17),
    ],
)
def test_a_booking_is_of_its_booking_date_else_of_the_purchase_else_of_the_value_date(
    days: dict[str, Any], booking_date: int
) -> None:
    row = {name: value for name, value in CREDIT.items() if name != "booking_date"}
    assert [each.booking_date for each in bookings({**row, **days})] == [date(2026, 11, booking_date)]


@pytest.mark.parametrize("status", ["BOOK", "PDNG"])
def test_a_booking_that_the_bank_has_not_dated_is_a_pending_one_of_today(status: str) -> None:
    (found,) = bookings({**CREDIT, "status": status, "booking_date": None})
    assert (found.status, found.booking_date) == ("pending", TODAY)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ({"code": "RDDT", "sub_code": "ESDD"}, "PMNT-RDDT-ESDD"),
        ({"code": "RDDT", "sub_code": None}, None),
        ({"code": "105", "sub_code": "ESDD"}, None),
        (None, None),
    ],
)
def test_a_code_is_one_of_iso_20022_in_both_parts_or_none(code: Any, found: str | None) -> None:
    assert [each.bank_transaction_code for each in bookings({**CREDIT, "bank_transaction_code": code})] == [found]


@pytest.mark.parametrize(("code", "found"), [("5411", "5411"), ("54110", None), ("food", None), ("", None)])
def test_a_merchant_category_has_four_digits(code: str, found: str | None) -> None:
    assert [each.mcc for each in bookings({**CREDIT, "merchant_category_code": code})] == [found]


@pytest.mark.parametrize(
    ("account", "balances", "rows", "currency"),
    [
        ({"currency": "SEK"}, [balance("CLBD", "1.00")], [CREDIT], "SEK"),
        ({}, [balance("CLBD", "1.00", currency="NOK")], [CREDIT], "NOK"),
        ({"currency": ""}, [{"balance_type": "CLBD"}], [CREDIT], "EUR"),
        ({}, [], [], ""),
    ],
)
def test_the_currency_is_that_of_the_account_else_of_what_it_holds(
    account: dict[str, Any], balances: list[Any], rows: list[Any], currency: str
) -> None:
    assert currency_of(account_facts(account), balances, rows) == currency


@pytest.mark.parametrize(
    "spoilt",
    [
        {"transaction_amount": None},
        {"transaction_amount": "12.00"},
        {"transaction_amount": {"currency": "EUR", "amount": "NaN"}},
        {"transaction_amount": {"currency": "EUR", "amount": True}},
        {"transaction_amount": {"currency": 978, "amount": "1.00"}},
        {"credit_debit_indicator": None},
        {"credit_debit_indicator": "debit"},
        {"booking_date": "yesterday"},
        {"booking_date": 20261116},
        {"value_date": "2026-11-31"},
        {"debtor": {"name": 7}},
        {"debtor": ["Arbeit AG"]},
        {"remittance_information": "Lohn"},
        {"remittance_information": ["Lohn", 11]},
        {"entry_reference": 5561990681},
    ],
)
def test_a_booking_that_is_not_what_is_described_refuses_the_answer(spoilt: dict[str, Any]) -> None:
    with pytest.raises(ProviderUnavailable) as refused:
        told({**CREDIT, **spoilt})
    assert str(refused.value) == "Enable Banking sent a damaged answer."


@pytest.mark.parametrize("spoilt", [{"product": 7}, {"account_id": "DE89370400440532013000"}, {"currency": 978}])
def test_an_account_that_is_not_what_is_described_refuses_the_answer(spoilt: dict[str, Any]) -> None:
    with pytest.raises(ProviderUnavailable) as refused:
        account_facts({**ACCOUNT, **spoilt})
    assert str(refused.value) == "Enable Banking sent a damaged answer."


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("2027-02-14T10:00:00+02:00", "2027-02-14T08:00:00"),
        ("2027-02-14T10:00:00.000Z", "2027-02-14T10:00:00"),
        ("2027-02-14T10:00:00", "2027-02-14T10:00:00"),
        ("9999-12-31T23:59:59-12:00", None),
        ("some day", None),
        (None, None),
    ],
)
def test_the_end_of_a_consent_is_a_point_in_time_in_utc_or_nothing(told: Any, found: str | None) -> None:
    at = moment(told)
    assert (at and at.isoformat()) == found
