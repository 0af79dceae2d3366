"""What the CSV tests share: a text read into accounts, bookings and statements."""

import io
from collections.abc import Callable, Sequence

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.profile import Profile

Parsed = tuple[list[AccountRecord], list[TransactionRecord], list[StatementRecord]]


def _read(text: str, encoding: str = "utf-8", profiles: Sequence[Profile] | None = None) -> Parsed:
    parsed: Parsed = ([], [], [])
    for record in csv_statements.read(io.BytesIO(text.encode(encoding)), profiles):
        match record:
            case AccountRecord():
                parsed[0].append(record)
            case TransactionRecord():
                parsed[1].append(record)
            case StatementRecord():
                parsed[2].append(record)
    return parsed


@pytest.fixture(scope="session")
def read_csv() -> Callable[..., Parsed]:
    """The accounts, the bookings and the statements of a CSV text, each in its order."""
    return _read
