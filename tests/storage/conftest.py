"""A user with a bank connection, statements as tables of text, and imports through the real core."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from storage import connections, jobs, users
from storage.connections import StoredConnection
from storage.database import Row
from storage.importing import ingest
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.ingest import ImportReport
from storage.users import User
from tests.checked_commits import checked_commits
from tests.engines import OpenStore, tables_of

__all__ = ["checked_commits"]  # for these tests, too

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")


def bookings(table: str, **common: object) -> list[TransactionRecord]:
    """Records from lines `day | amount | name | purpose | further=..;..`, everything after the amount optional."""
    return [_booking(line, common) for line in table.strip().splitlines() if line.strip()]


def _booking(line: str, common: dict[str, object]) -> TransactionRecord:
    day, amount, name, purpose, further, *_ = [part.strip() for part in line.split("|")] + [""] * 5
    record = TransactionRecord(
        booking_date=date.fromisoformat(day),
        amount=Decimal(amount),
        currency="EUR",
        counterpart_name=name or None,
        purpose=purpose or None,
    )
    given: dict[str, object] = dict(common)
    for pair in filter(None, (part.strip() for part in further.split(";"))):
        key, _, value = pair.partition("=")
        given[key] = (value,) if key == "references" else value
    return replace(record, **given)  # field names and types as the table gives them


@dataclass
class Bank:
    """One user's connection; `bring` imports a batch as one job and says what it did."""

    database: OpenStore
    user: User
    connection: StoredConnection
    now: datetime
    count: int = field(default=0)

    def bring(
        self,
        records: Iterable[TransactionRecord],
        *,
        account: AccountRecord = GIRO,
        statement: StatementRecord | None = None,
        id_: str | None = None,
    ) -> ImportReport:
        """One batch of bookings of one account."""
        self.count += 1
        flat: list[Record] = [account, *records, *([statement] if statement else [])]
        return self.store(read_batch(Batch(id=id_ or f"batch-{self.count}", records=iter(flat)), today=self.now.date()))

    def store(self, batch: ReadBatch) -> ImportReport:
        """Import a batch that is read already."""
        return self.database.atomically(
            lambda session: ingest.store(
                session,
                user=self.user,
                connection=self.connection,
                job_id=f"job-{self.count}",
                batch=batch,
                now=self.now,
            )
        )

    def rows(self, columns: str = "*", table: str = "transactions") -> list[Row]:
        """What is stored for the user, oldest first."""
        return self.database.rows(
            f"SELECT {columns} FROM {table} WHERE user_id = $1 ORDER BY booking_date, amount, id", self.user.id
        )

    def ids(self) -> set[str]:
        """Ids of the booked transactions."""
        return {row["id"] for row in self.rows("id, booking_date, amount")}


def make_bank(database: OpenStore, now: datetime, name: str = "eva", bank_name: str = "Testbank") -> Bank:
    """A user (made when there is none of this name) with a connection."""
    user = users.find_by_name(database, name) or users.add(
        database, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=now
    )
    connection = database.atomically(
        lambda session: connections.add(
            session,
            user_id=user.id,
            user_name=user.name,
            connector="demo",
            bank_name=bank_name,
            settings={},
            now=now,
        )
    )
    return Bank(database, user, connection, now)


def files_of(bank: Bank) -> Bank:
    """The same user's statement files."""
    added = bank.database.atomically(
        lambda session: connections.add(
            session,
            user_id=bank.user.id,
            user_name=bank.user.name,
            connector="files",
            bank_name="Statement files",
            settings={},
            now=bank.now,
        )
    )
    return dataclasses.replace(bank, connection=added, count=100)


NewBank = Callable[..., Bank]


@pytest.fixture
def new_bank(database: OpenStore, now: datetime) -> NewBank:
    """Makes banks: new_bank("eva", "Testbank")."""
    return partial(make_bank, database, now)


@pytest.fixture
def bank(new_bank: NewBank) -> Bank:
    """The connection of the user eva."""
    return new_bank()


@pytest.fixture
def job(bank: Bank) -> jobs.Job:
    """A running job of eva's connection."""
    started = bank.database.atomically(
        lambda session: jobs.start(
            session,
            user_id=bank.user.id,
            connection_id=bank.connection.id,
            cooldown=timedelta(minutes=30),
            now=bank.now,
        )
    )
    assert started is not None
    return started


def dump(database: OpenStore) -> dict[str, list[str]]:
    """Everything that is stored."""
    tables = tables_of(database)
    return {table: sorted(map(str, database.rows(f"SELECT * FROM {table}"))) for table in tables}
