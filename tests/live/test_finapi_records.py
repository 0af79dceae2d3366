"""What finAPI says, as records: nothing derived, nothing lost, nothing that finAPI made up itself."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import ProviderUnavailable
from connectors.sources.finapi.records import records

ACCOUNT = {
    "id": 81,
    "accountName": "Girokonto",
    "iban": "DE89 3704 0044 0532 0130 00",
    "accountCurrency": "EUR",
    "accountType": "Checking",
    "balance": Decimal("812.40"),
    "availableFunds": Decimal("2812.40"),
    "interfaces": [
        {"bankingInterface": "XS2A", "lastSuccessfulUpdate": "2026-11-19 06:30:00.000"},
        {"bankingInterface": "FINTS_SERVER", "lastSuccessfulUpdate": None},
    ],
}
BOOKING = {
    "id": 9001,
    "accountId": 81,
    "amount": Decimal("-49.90"),
    "currency": "EUR",
    "valueDate": "2026-11-18 00:00:00.000",
    "bankBookingDate": "2026-11-17 00:00:00.000",
    "finapiBookingDate": "2026-11-18 00:00:00.000",
    "counterpartName": "Stadtwerke Beispiel GmbH",
    "counterpartIban": "DE02120300000000202051",
    "counterpartBic": "BYLADEM1001",
    "counterpartBankName": "Deutsche Kreditbank Berlin",
    "counterpartMandateReference": "M-17",
    "counterpartCreditorId": "DE98ZZZ09999999999",
    "endToEndReference": "NOTPROVIDED",
    "purpose": "Abschlag  November",
    "bankTransactionCode": "PMNT-RDDT-ESDD",
    "sepaPurposeCode": "ELEC",
    "typeCodeZka": "105",
    "type": "Lastschrift",
}


def told(account: Any = ACCOUNT, *booked: Any, pending: Any = None) -> list[Record]:
    return list(records(account, booked, pending, bank_name="Beispielbank"))


def bookings(*booked: Any, pending: Any = None) -> list[TransactionRecord]:
    return [each for each in told(ACCOUNT, *booked, pending=pending) if isinstance(each, TransactionRecord)]


@pytest.mark.requirement("live.finapi")
def test_an_account_is_known_by_its_number_and_its_balance_is_the_booked_one() -> None:
    assert told() == [
        AccountRecord(
            stable_key="81",
            currency="EUR",
            iban="DE89370400440532013000",
            name="Girokonto",
            kind="checking",
            bank_name="Beispielbank",
        ),
        StatementRecord(
            closing=Decimal("812.40"),
            closing_date=date(2026, 11, 19),
            told_from=date(2026, 8, 22),
            told_until=date(2026, 11, 19),
        ),
    ]


@pytest.mark.requirement("live.finapi")
def test_a_booking_keeps_its_lasting_id_and_every_word_of_the_bank() -> None:
    assert bookings(BOOKING) == [
        TransactionRecord(
            amount=Decimal("-49.90"),
            currency="EUR",
            booking_date=date(2026, 11, 17),  # the bank's day, not finAPI's
            value_date=date(2026, 11, 18),
            provider_id="9001",
            counterpart_name="Stadtwerke Beispiel GmbH",
            counterpart_iban="DE02120300000000202051",
            counterpart_bic="BYLADEM1001",
            counterpart_bank_name="Deutsche Kreditbank Berlin",
            creditor_id="DE98ZZZ09999999999",
            mandate_reference="M-17",
            purpose="Abschlag November",
            bank_transaction_code="PMNT-RDDT-ESDD",
            purpose_code="ELEC",
            gvc="105",
            bank_text="Lastschrift",
        )
    ]


@pytest.mark.requirement("live.finapi")
def test_what_is_pending_has_no_id_and_the_set_is_complete() -> None:
    announced = {
        "id": 55,
        "amount": Decimal("-5.00"),
        "valueDate": "2026-11-20",
        "counterpartyName": "Kiosk",
        "counterpartyIban": "DE02120300000000202051",
        "endToEndId": "E-1",
    }
    *_, pending, statement = told(ACCOUNT, pending=[announced])
    assert pending == TransactionRecord(
        amount=Decimal("-5.00"),
        currency="EUR",
        booking_date=date(2026, 11, 20),
        value_date=date(2026, 11, 20),
        status="pending",
        counterpart_name="Kiosk",
        counterpart_iban="DE02120300000000202051",
        end_to_end_id="E-1",
    )
    assert isinstance(statement, StatementRecord)
    assert statement.is_pending_complete


@pytest.mark.requirement("live.finapi")
def test_what_is_pending_without_a_day_is_of_the_day_on_which_the_bank_was_asked() -> None:
    *_, pending, statement = told(ACCOUNT, pending=[{"id": 55, "amount": Decimal("-5.00"), "valueDate": None}])
    assert isinstance(pending, TransactionRecord)
    assert isinstance(statement, StatementRecord)
    assert pending.booking_date == statement.closing_date


@pytest.mark.requirement("live.finapi")
def test_finapis_own_adjustments_and_the_parts_of_a_split_are_left_out_and_its_hint_of_a_duplicate_is_kept() -> None:
    of_finapi = {name: value for name, value in BOOKING.items() if name != "id"}
    found = bookings(
        {**of_finapi, "isAdjustingEntry": True},
        {**BOOKING, "id": 2, "children": [3]},
        {**BOOKING, "id": 3, "parentId": 2},
        {**BOOKING, "id": 4, "isPotentialDuplicate": True},
    )
    assert [(each.provider_id, each.is_potential_duplicate) for each in found] == [("2", False), ("4", True)]


@pytest.mark.requirement("live.finapi")
@pytest.mark.parametrize(
    "spoilt",
    [
        {"amount": 1.5},
        {"amount": True},
        {"amount": None},
        {"amount": Decimal("NaN")},
        {"amount": Decimal("1e999999999")},
        {"bankBookingDate": None, "finapiBookingDate": None, "valueDate": None},
        {"bankBookingDate": "yesterday"},
        {"counterpartName": 7},
        {"id": ...},
    ],
)
def test_an_answer_that_is_not_what_finapi_describes_refuses_the_account_whole(spoilt: dict[str, Any]) -> None:
    booking = {name: value for name, value in {**BOOKING, **spoilt}.items() if value is not ...}
    with pytest.raises(ProviderUnavailable):
        bookings(booking)
