"""What is stored keeps the bounds of the contract, whatever a source says."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.rows import CHARACTERS_MAX

CONTRACT = json.loads((Path(__file__).resolve().parents[2] / "openapi.json").read_text())["components"]["schemas"]
FIELDS = {  # stored column -> field of the interface
    "counterpart_name": "counterpartName",
    "counterpart_iban": "counterpartIban",
    "counterpart_bic": "counterpartBic",
    "counterpart_bank_name": "counterpartBankName",
    "creditor_id": "counterpartCreditorId",
    "debitor_id": "counterpartDebitorId",
    "mandate_reference": "counterpartMandateReference",
    "purpose": "purpose",
    "bank_transaction_code": "bankTransactionCode",
    "purpose_code": "sepaPurposeCode",
    "source_merchant_name": "merchantName",
}


def stated_bounds(schema: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for part in schema.get("allOf", [schema]):
        for name, field in part.get("properties", {}).items():
            if "maxLength" in field:
                yield name, field["maxLength"]


@pytest.mark.requirement("contract.bounds")
def test_the_bounds_are_those_of_the_contract() -> None:
    stated = dict(stated_bounds(CONTRACT["Transaction"])) | dict(stated_bounds(CONTRACT["TransactionDetail"]))
    assert {FIELDS[column]: length for column, length in CHARACTERS_MAX.items()} == {
        name: stated[name] for name in FIELDS.values()
    }


@pytest.mark.requirement("contract.bounds")
def test_longer_texts_are_cut_at_the_bound(new_bank: Callable[..., Any]) -> None:
    texts: dict[str, Any] = {name: "ä" * 30_000 for name in FIELDS if name != "source_merchant_name"}
    plain = TransactionRecord(
        amount=Decimal(1), currency="EUR", booking_date=date(2026, 1, 1), merchant_name="ä" * 30_000
    )
    bank = new_bank()
    bank.bring([replace(plain, **texts)])
    (row,) = bank.rows()
    assert {name: len(row[name]) for name in FIELDS} == CHARACTERS_MAX
    assert len(row["merchant_name"]) <= CHARACTERS_MAX["source_merchant_name"]
