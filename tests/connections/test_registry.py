"""Bank names by IBAN, where a source does not name the bank."""

from datetime import date
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.reference.bank_names import bank_name, with_bank_names


@pytest.mark.requirement("import.bank-names")
@pytest.mark.parametrize(
    ("iban", "name"),
    [
        ("DE02120300000000202051", "Deutsche Kreditbank Berlin"),
        ("de02 1203 0000 0000 2020 51", "Deutsche Kreditbank Berlin"),
        ("NL91ABNA0417164300", "ABN AMRO BANK N.V."),
        ("XX00", None),
        ("ZZ99999999999999999999", None),
        ("", None),
        (None, None),
    ],
)
def test_the_registry_names_the_bank_of_an_iban(iban: str | None, name: str | None) -> None:
    assert bank_name(iban) == name


@pytest.mark.requirement("import.bank-names")
def test_what_the_source_says_itself_wins() -> None:
    dkb = "DE02120300000000202051"
    own, named = (
        AccountRecord(stable_key="k", currency="EUR", iban=dkb, bank_name=name) for name in (None, "Meine Bank")
    )
    row = TransactionRecord(amount=Decimal(1), currency="EUR", booking_date=date(2026, 11, 20), counterpart_iban=dkb)
    read = list(with_bank_names(iter([own, named, row, StatementRecord()])))
    assert [getattr(record, "bank_name", None) for record in read[:2]] == ["Deutsche Kreditbank Berlin", "Meine Bank"]
    assert isinstance(read[2], TransactionRecord)
    assert read[2].counterpart_bank_name == "Deutsche Kreditbank Berlin"
