"""What is written comes back: render, read, equal on every field that the format carries."""

import io
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from lxml import etree
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.camt import reader as camt
from connectors.camt import writer as camt053
from connectors.classified_records import without_classes
from connectors.mt940 import reader as mt940
from connectors.ofx import reader as ofx
from connectors.ofx import writer as ofx_statement
from connectors.own_formats import csv as csv_statement
from tests.demo.record_streams import carried, record_streams, rendered
from tests.statements import mt940_writer as mt940_statement

MADE = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
USER_NAMES = ["demo", "solo", "lapsed", "globe"]
Fetch = Callable[..., list[Record]]


def as_camt(records: Sequence[Record]) -> io.BytesIO:
    """A camt.053 file."""
    return rendered(lambda found, stream: camt053.write(found, stream, created=MADE), records)


def as_ofx(records: Sequence[Record]) -> io.BytesIO:
    """An OFX file."""
    return rendered(lambda found, stream: ofx_statement.write(found, stream, created=MADE, today=MADE.date()), records)


@cache
def schema() -> etree.XMLSchema:
    """The schema of camt.053.001.08 as ISO 20022 publishes it."""
    return etree.XMLSchema(etree.parse(Path(__file__).parent / "camt.053.001.08.xsd"))


CSV_LOST = ("is_pending_complete",)


@pytest.mark.requirement("export.csv")
@given(record_streams())
def test_csv_gives_everything_back(records: list[Record]) -> None:
    assert (
        list(csv_statement.read(rendered(lambda some, file: csv_statement.write(without_classes(some), file), records)))
        == records
    )


@pytest.mark.requirement("export.csv")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_csv_gives_the_demo_histories_back(user: str, fetched: Fetch) -> None:
    records = fetched(user)
    back = list(
        csv_statement.read(rendered(lambda some, file: csv_statement.write(without_classes(some), file), records))
    )
    assert back == carried(records, lost=CSV_LOST)


CAMT_LOST = ("is_pending_complete", "provider_id", "references")


def with_servicer_reference(records: Sequence[Record]) -> list[Record]:
    """As camt says it: the bank's id of a booking is a reference, which the format does not promise to be unique."""
    return [
        replace(record, provider_id=None, references=(f"servicer:{record.provider_id}",))
        if isinstance(record, TransactionRecord) and record.provider_id
        else record
        for record in records
    ]


def read_back(file: BinaryIO) -> list[Record]:
    """What the file says, but for when it was written."""
    return [
        replace(record, issued_at=None) if isinstance(record, StatementRecord) else record for record in camt.read(file)
    ]


@pytest.mark.requirement("export.camt053")
@given(record_streams())
def test_camt_gives_everything_back_and_is_valid(records: list[Record]) -> None:
    stream = as_camt(records)
    schema().assertValid(etree.fromstring(stream.getvalue()))
    assert read_back(stream) == with_servicer_reference(records)


@pytest.mark.requirement("export.camt053")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_camt_gives_the_demo_histories_back_and_is_valid(user: str, fetched: Fetch) -> None:
    records = with_servicer_reference(fetched(user))
    stream = as_camt(fetched(user))
    schema().assertValid(etree.fromstring(stream.getvalue()))
    back = read_back(stream)
    assert back == [
        replace(record, kind=None) if isinstance(record, AccountRecord) and record.kind == "membership" else record
        for record in carried(records, lost=("is_pending_complete",))
    ]


OFX_LOST = (
    "name", "bank_name", "provider_id", "references", "bank_transaction_code", "gvc", "swift_code", "bank_text",
    "counterpart_bank_name", "creditor_id", "debitor_id", "mandate_reference", "end_to_end_id", "purpose_code",
    "is_return", "is_reversal", "original_amount", "original_currency", "opening", "opening_date",
    "is_pending_complete", "is_authoritative",
)  # fmt: skip


def by_account(records: Sequence[Record]) -> list[list[Record]]:
    """Blocks in the order of their keys: OFX writes cards after bank accounts."""
    blocks: list[list[Record]] = []
    for record in records:
        if isinstance(record, AccountRecord):
            blocks.append([])
        blocks[-1].append(record)
    return sorted(blocks, key=lambda block: getattr(block[0], "stable_key", ""))


@pytest.mark.requirement("export.ofx")
@given(record_streams())
def test_ofx_gives_back_what_it_carries(records: list[Record]) -> None:
    etree.fromstring(as_ofx(records).getvalue())  # OFX 2 is XML
    back = list(ofx.read(as_ofx(records)))
    assert by_account(carried(back, lost=OFX_LOST)) == by_account(carried(records, lost=OFX_LOST))


@pytest.mark.requirement("export.ofx")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_ofx_gives_the_booked_demo_histories_back(user: str, fetched: Fetch) -> None:
    booked = [record for record in fetched(user) if getattr(record, "status", "booked") == "booked"]
    back = list(ofx.read(as_ofx(fetched(user))))
    lost = (*OFX_LOST, "kind", "bic")  # a card has no BIC there, and a membership is an account like others
    assert by_account(carried(back, lost=lost)) == by_account(carried(booked, lost=lost))


@pytest.mark.requirement("export.ofx")
def test_ofx_ids_are_those_of_the_bank_and_stay_apart_for_twins(fetched: Fetch) -> None:
    back = [record for record in ofx.read(as_ofx(fetched("solo"))) if isinstance(record, TransactionRecord)]
    ids = [record.provider_id for record in back]
    assert len(set(ids)) == len(ids)
    wanted = [record.provider_id for record in fetched("solo") if isinstance(record, TransactionRecord)]
    assert all((id_ or "").startswith(want) for id_, want in zip(ids, wanted, strict=False) if want)


MT940_LOST = (
    "name", "kind", "bank_name", "bic", "swift_code", "counterpart_bank_name", "mcc", "original_amount",
    "original_currency", "sequence", "is_pending_complete", "is_authoritative",
)  # fmt: skip


@pytest.mark.requirement("export.mt940")
@given(record_streams())
def test_mt940_gives_back_what_it_carries(records: list[Record]) -> None:
    coded = [record for record in records if not isinstance(record, TransactionRecord) or record.gvc]
    coded = [record for record in coded if not isinstance(record, StatementRecord)]
    back = list(mt940.read(rendered(mt940_statement.write, coded))) if coded else []
    back = [record for record in back if not isinstance(record, StatementRecord)]
    assert carried(back, lost=MT940_LOST) == carried(with_servicer_reference(coded), lost=MT940_LOST)


@pytest.mark.requirement("export.mt940")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_mt940_gives_the_booked_demo_histories_back(user: str, fetched: Fetch) -> None:
    booked = [record for record in fetched(user) if getattr(record, "status", "booked") == "booked"]
    back = list(mt940.read(rendered(mt940_statement.write, fetched(user))))
    lost = (*MT940_LOST, "gvc", "bank_transaction_code")  # of a card's account, which has no German number
    assert carried(back, lost=lost) == carried(with_servicer_reference(booked), lost=lost)
