"""What the tests of the demo bank share: its users' records and histories, made once."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache

import pytest

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import Connection
from connectors.sources.demo.connector import DemoBank
from connectors.sources.demo.households import USERS

TODAY = date(2026, 11, 20)

Fetch = Callable[..., list[Record]]
History = dict[str, list[TransactionRecord]]


@cache
def _fetched(user: str, today: date, since: date | None) -> tuple[Record, ...]:
    settings = next(found for found in USERS if found.name == user).connections
    records: list[Record] = []
    for number, setting in enumerate(settings):
        connection = Connection(id=f"con_{number}", user_id=user, bank_name=setting["bank_name"], settings=setting)
        cursor = {"day": since.isoformat()} if since else None
        for batch in DemoBank().fetch(connection, {}, cursor=cursor, today=today):
            records.extend(batch.records)
    return tuple(records)


@pytest.fixture
def today() -> date:
    return TODAY


@pytest.fixture(scope="session")
def fetched() -> Fetch:
    """The records of all connections of a demo user."""

    def fetch(user: str, today: date = TODAY, since: date | None = None) -> list[Record]:
        return list(_fetched(user, today, since))

    return fetch


@pytest.fixture
def history(fetched: Fetch) -> Callable[..., History]:
    """The booked rows of a demo user by account: its name, or its kind where it has none."""

    def by_account(user: str, today: date = TODAY) -> History:
        rows: History = {}
        for record in fetched(user, today):
            if isinstance(record, AccountRecord):
                current = rows.setdefault(record.name or f"unnamed {record.kind}", [])
            elif isinstance(record, TransactionRecord) and record.status == "booked":
                current.append(record)
        return rows

    return by_account


@pytest.fixture
def all_rows(history: Callable[..., History]) -> Callable[..., list[TransactionRecord]]:
    """The booked rows of a demo user, all accounts."""

    def rows(user: str = "demo", today: date = TODAY) -> list[TransactionRecord]:
        return [row for account in history(user, today).values() for row in account]

    return rows


@pytest.fixture
def blocks(fetched: Fetch) -> Callable[..., list[tuple[AccountRecord, Sequence[TransactionRecord], StatementRecord]]]:
    """Account, rows and statement of each account of a demo user."""

    def split(
        user: str, today: date = TODAY, since: date | None = None
    ) -> list[tuple[AccountRecord, Sequence[TransactionRecord], StatementRecord]]:
        found: list[tuple[AccountRecord, Sequence[TransactionRecord], StatementRecord]] = []
        for record in fetched(user, today, since):
            if isinstance(record, AccountRecord):
                account, rows = record, []
            elif isinstance(record, TransactionRecord):
                rows.append(record)
            else:
                found.append((account, rows, record))
        return found

    return split
