"""The whole service in this process: the demo's store, and an empty one into which tests import ledgers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from auth.scopes import SCOPES
from handlers.commands import demo
from handlers.server import application
from handlers.work.services import Services, open_services
from storage import accounts, connections, users
from storage.connections import StoredConnection
from storage.database import Transaction
from storage.importing import ingest
from storage.importing.batches import read_batch
from storage.users import User
from tests.engines import ENGINE, made_once

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=UTC)


class Silent:
    """A report that nobody reads."""

    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


@dataclass
class Service:
    """An open store behind the real application."""

    services: Services
    app: ASGIApp
    _numbers: Iterator[int] = field(default_factory=count)

    def client(self, user_id: str, scopes: frozenset[str] = frozenset(SCOPES)) -> TestClient:
        """A client with a token of this user; paths are those of the contract."""
        token = self.services.authorization.issue_token(user_id, scopes, timedelta(hours=1))
        return TestClient(
            self.app,
            base_url="http://127.0.0.1:8000/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            raise_server_exceptions=False,
        )

    def named(self, name: str) -> TestClient:
        """A client of the user of this name."""
        return self.client(users.get_by_name(self.services.everybody, name).id)

    def newcomer(self, home_currency: str = "EUR") -> "Holder":
        """A user with a connection and no accounts yet."""
        database, name = self.services.everybody, f"holder{next(self._numbers)}"
        now = self.services.clock.now()
        user = users.add(
            database, name=name, password_hash=None, has_subscription=True, home_currency=home_currency, now=now
        )
        connection = database.atomically(
            lambda session: connections.add(
                session,
                user_id=user.id,
                user_name=name,
                connector="uploads",
                bank_name="Bank",
                settings={},
                now=now,
            )
        )
        return Holder(self, user, connection, self.client(user.id))


@dataclass
class Holder:
    """A user whose ledger a test writes, through the import core that files and banks go through."""

    service: Service
    user: User
    connection: StoredConnection
    client: TestClient
    _numbers: Iterator[int] = field(default_factory=count)

    def bring(
        self,
        account: AccountRecord,
        records: Sequence[TransactionRecord],
        statement: StatementRecord | None = None,
    ) -> None:
        """Import one batch of one account."""
        number = next(self._numbers)
        flat: list[Record] = [account, *records, *([statement] if statement else [])]
        batch = read_batch(Batch(id=f"batch{number}", records=iter(flat)), today=self.service.services.clock.today())
        database = self.service.services.everybody
        now = self.service.services.clock.now()

        def store(session: Transaction) -> None:
            ingest.store(
                session, user=self.user, connection=self.connection, job_id=f"job{number}", batch=batch, now=now
            )
            accounts.mark_synced(session, user_id=self.user.id, connection_id=self.connection.id, now=now)

        database.atomically(store)

    def account_ids(self) -> list[str]:
        """Ids of the accounts, in the order in which they came."""
        return [account["id"] for account in self.get("/accounts")["accounts"]]

    def get(self, path: str, **query: object) -> Any:
        """The body of an answer that has to be 200."""
        return body_of(self.client, path, **query)


def body_of(client: TestClient, path: str, **query: object) -> Any:
    """The body of an answer that has to be 200."""
    answer = client.get(path, params={name: str(value) for name, value in query.items()})
    assert answer.status_code == 200, answer.text
    return answer.json()


def opened(folder: Path, *, validate_responses: bool = True) -> Service:
    services = open_services(ENGINE.settings(folder, RATE_LIMIT="off"))
    services.clock.offset = NOON - services.clock.now_in_utc()
    return Service(services, application(services, validate_responses=validate_responses))


def demo_at_noon(factory: pytest.TempPathFactory) -> Path:
    """A copy of the store that `bankdata demo` makes, on the day of these tests."""

    def make(folder: Path) -> None:
        service = opened(folder)
        service.services.clock.offset -= timedelta(hours=1)  # whoever copies it may sync at once
        demo.prepare(service.services, Silent())
        service.services.close()

    return ENGINE.copy(made_once(factory.getbasetemp(), "noon", make), factory.mktemp("demo") / "data")


@pytest.fixture(scope="session")
def demo_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The store that `bankdata demo` makes; every answer is held against the contract."""
    service = opened(demo_at_noon(tmp_path_factory))
    yield service
    service.services.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A store of nobody; its answers are not held against the contract, which takes longer than they do."""
    made = opened(tmp_path_factory.mktemp("store") / "data", validate_responses=False)
    yield made
    made.services.close()


@pytest.fixture
def holder(demo_service: Service) -> Holder:
    """A user without accounts, in the store whose answers are held against the contract."""
    return demo_service.newcomer()


@pytest.fixture
def new_holder(service: Service) -> Callable[[], Holder]:
    """Makes users, for tests that need one per example."""
    return service.newcomer
