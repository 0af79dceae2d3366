"""The service as an app meets it that speaks SimpleFIN: a setup token, its exchange, and the address behind it."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from handlers.server import application
from handlers.work.services import open_services
from storage.oauth.grants import EVERYTHING, Terms
from tests.engines import ENGINE
from tests.explanations.conftest import NOON, Holder, Service, demo_at_noon

ADDRESS = "http://127.0.0.1:8000"
GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")
CASH = AccountRecord(stable_key="cash", name="Cash", currency="EUR")
Json = dict[str, Any]


@dataclass
class App:
    """An app that has exchanged its setup token."""

    http: TestClient
    url: str
    auth: tuple[str, str]

    def get(self, query: str = "") -> Any:
        """The answer to a request for accounts."""
        return self.http.get(f"/simplefin/accounts?{query}", auth=self.auth)

    def read(self, query: str = "") -> Json:
        """The body of one that has to be 200."""
        answer = self.get(query)
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def rows(self, query: str = "start-date=0") -> list[Json]:
        """All transactions of all accounts."""
        return [row for account in self.read(query)["accounts"] for row in account["transactions"]]


def bare(service: Service, address: str = "192.0.2.1") -> TestClient:
    """A program at this address of the network."""
    return TestClient(
        service.app, base_url=ADDRESS, follow_redirects=False, raise_server_exceptions=False, client=(address, 50_000)
    )


def setup_token(
    service: Service, user_id: str, *, terms: Terms = EVERYTHING, name: str = "Actual", days: int | None = None
) -> str:
    """What a person pastes into an app."""
    lifetime = timedelta(days=days) if days is not None else None
    return service.services.authorization.simplefin.setup_token(user_id, name, terms=terms, lifetime=lifetime)


def claim_path(token: str) -> str:
    """Where a setup token is exchanged, without the host."""
    return urlsplit(base64.b64decode(token, validate=True).decode()).path


def connected(service: Service, user_id: str, *, terms: Terms = EVERYTHING, days: int | None = None) -> App:
    """An app of this user."""
    http = bare(service)
    answer = http.post(claim_path(setup_token(service, user_id, terms=terms, days=days)))
    assert answer.status_code == 200, answer.text
    return app_at(http, answer.text)


def app_at(http: TestClient, url: str) -> App:
    """An app that has exchanged its token for this address."""
    parts = urlsplit(url)
    assert parts.username is not None
    assert parts.password is not None
    return App(http, url, (parts.username, parts.password))


def booked(day: str, amount: str, purpose: str | None = "Words of the bank", **further: Any) -> TransactionRecord:
    """A booking."""
    said = {"currency": "EUR", **further}
    return TransactionRecord(booking_date=date.fromisoformat(day), amount=Decimal(amount), purpose=purpose, **said)


def balance(amount: str, day: str = "2026-11-20") -> StatementRecord:
    """What a statement says at its end."""
    return StatementRecord(closing_date=date.fromisoformat(day), closing=Decimal(amount))


def served(folder: Path, **settings: str) -> Service:
    """A service with these settings at the noon of these tests."""
    services = open_services(ENGINE.settings(folder, **settings))
    services.clock.offset = NOON - services.clock.now_in_utc()
    return Service(services, application(services, validate_responses=False))


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service without limits, with the data of the demo."""
    made = served(demo_at_noon(tmp_path_factory), RATE_LIMIT="off")
    yield made
    made.services.close()


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Service]:
    """A service of one's own with its limits."""
    made = served(tmp_path / "data")
    yield made
    made.services.close()


@pytest.fixture
def holder(service: Service) -> Holder:
    """A user without accounts."""
    return service.newcomer()
