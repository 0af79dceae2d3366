"""What the service answers stays within the contract's bounds, whatever a bank or a file says."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from starlette.testclient import TestClient

from analytics.records import AccountRecord, Batch, InvalidRecord, Record, StatementRecord, TransactionRecord
from auth.scopes import SCOPES
from connectors import limits
from connectors.camt import writer as camt053
from connectors.classified_records import without_classes
from connectors.ofx import writer as ofx
from connectors.own_formats import beancount_writer as beancount
from connectors.own_formats import csv as csv_statement
from connectors.sources.demo.households import USERS
from handlers.commands.control_socket import CommandError
from handlers.commands.imports import import_files
from handlers.commands.table import perform
from handlers.server import application
from handlers.settings import load
from handlers.web.app import CONTRACT_FILE
from handlers.work.services import Services, open_services
from storage import users
from storage.importing.batches import read_batch
from tests.clients.calls import all_calls
from tests.conftest import NOW
from tests.contract.demo_server import Answer, Demo
from tests.statements import mt940_writer as mt940

CONTRACT: dict[str, Any] = json.loads(CONTRACT_FILE.read_bytes())
SCHEMAS = CONTRACT["components"]["schemas"]
LONG = "Überlänge-" * 120
MADE = datetime(2026, 11, 20, 12, 0, 0)  # noqa: DTZ001 - writers take the store's UTC without zone
ANN = {"name": "ann", "password": "vier alte Fahrräder", "is_generated": False, "has_subscription": True}


class Silent:
    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


@dataclass(frozen=True)
class InProcess(Demo):
    """The same calls without a process; an answer outside the contract is a 500."""

    services: Services
    client: TestClient

    def token(self, user: str, scope: str = " ".join(SCOPES)) -> str:
        owner = users.get_by_name(self.services.everybody, user)
        return self.services.authorization.issue_token(owner.id, frozenset(scope.split()), timedelta(hours=1))

    def call(self, method: str, path: str, token: str) -> Answer:
        answer = self.client.request(method, f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
        return Answer(answer.status_code, dict(answer.headers), answer.json())


@contextmanager
def in_process(folder: Path, prepare: Callable[[Services], None]) -> Iterator[InProcess]:
    environment = {"BANKDATA_RATE_LIMIT": "off", "BANKDATA_SYNC_COOLDOWN_SECONDS": "0"}
    services = open_services(load({**environment, "BANKDATA_DATA_DIR": str(folder)}))
    prepare(services)
    app = application(services, validate_responses=True)
    origin = services.settings.public_url
    with TestClient(app, base_url=origin, raise_server_exceptions=False) as client:
        yield InProcess(origin, folder, services, client)
    services.close()


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize(
    ("cap", "schema", "field"),
    [
        (limits.NAME_CHARACTERS_MAX, "Account", "accountName"),
        (limits.NAME_CHARACTERS_MAX, "BankName", "bankName"),
        (limits.NAME_CHARACTERS_MAX, "Transaction", "merchantName"),
        (limits.NAME_CHARACTERS_MAX, "Transaction", "counterpartName"),
        (limits.PURPOSE_CHARACTERS_MAX, "Transaction", "purpose"),
        (limits.KEY_CHARACTERS_MAX, "Transaction", "counterpartMandateReference"),
        (limits.NAME_CHARACTERS_MAX, "TransactionDetail", "counterpartBankName"),
        (limits.KEY_CHARACTERS_MAX, "TransactionDetail", "counterpartCreditorId"),
        (limits.KEY_CHARACTERS_MAX, "TransactionDetail", "counterpartDebitorId"),
        (limits.CODE_CHARACTERS_MAX, "TransactionDetail", "bankTransactionCode"),
        (limits.NAME_CHARACTERS_MAX, "SnapshotAccount", "name"),
        (limits.NAME_CHARACTERS_MAX, "DetectedSubscription", "merchantName"),
    ],
)
def test_what_readers_let_through_fits_the_contract(cap: int, schema: str, field: str) -> None:
    parts = [SCHEMAS[schema], *SCHEMAS[schema].get("allOf", [])]
    [described] = [part["properties"][field] for part in parts if field in part.get("properties", {})]
    assert cap <= described["maxLength"]


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize("user", [user.name for user in USERS])
@pytest.mark.sampled
def test_every_operation_answers_every_demo_user_within_the_contract(copied: Callable[[], Path], user: str) -> None:
    with in_process(copied(), lambda _: None) as served:
        token = served.token(user)
        for call in all_calls(served, CONTRACT, token):
            accounts = call.arguments.get("accountIds")
            answer = served.call(call.method, call.path + (f"?accountIds={accounts}" if accounts else ""), token)
            assert answer.status < 500, call.operation_id


def hostile(**more: Any) -> list[Record]:
    """An account, a booking and a balance whose every text is far too long."""
    texts = {
        name: LONG
        for name in TransactionRecord.__struct_fields__
        if TransactionRecord.__annotations__[name] in OPTIONAL
    }
    return [
        AccountRecord(stable_key=LONG, currency="EUR", iban=None, name=LONG, bank_name=LONG),
        TransactionRecord(
            amount=Decimal("-1.00"), currency="EUR", booking_date=date(2026, 11, 2), **{**texts, **FIXED, **more}
        ),
        StatementRecord(closing=Decimal("5.00"), closing_date=date(2026, 11, 2)),
    ]


OPTIONAL = (str | None, "str | None")
FIXED: Mapping[str, Any] = {
    "purpose": "Wort " * 4200,
    "original_currency": None,
    "gvc": None,
    "mcc": None,
    "swift_code": None,
}
WRITERS: Mapping[str, Any] = {
    "camt.xml": partial(camt053.write, created=MADE),
    "statement.csv": lambda records, stream: csv_statement.write(without_classes(records), stream),
    "statement.sta": mt940.write,
    "statement.ofx": partial(ofx.write, created=MADE, today=MADE.date()),
    "ledger.beancount": lambda records, stream: beancount.write(without_classes(records), stream),
}


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.sampled
def test_a_file_of_endless_texts_is_answered_within_the_contract(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    with file.open("wb") as stream:
        WRITERS[name](hostile(), stream)

    def prepare(services: Services) -> None:
        perform(services, "users add", ANN, Silent())
        import_files(services, Silent(), user=users.get_by_name(services.everybody, "ann"), files=[str(file)])

    with in_process(tmp_path / "data", prepare) as served:
        token = served.token("ann")
        for path in ("/accounts", "/transactions", "/snapshot", "/cashflow", "/subscriptions"):
            assert served.call("GET", path, token).status == 200, path
        [transaction] = served.read("/transactions", token)["transactions"]
        for path in (f"/transactions/{transaction['id']}", f"/transactions/{transaction['id']}/explanation"):
            assert served.call("GET", path, token).status == 200, path


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize("currency", ["EURO", "eur", "€", "E R", ""])
def test_a_currency_that_is_no_code_is_refused_at_the_import(currency: str) -> None:
    account, booking, closing = hostile()
    assert isinstance(account, AccountRecord)
    assert isinstance(booking, TransactionRecord)
    in_euros: list[Record] = [account, booking, closing]
    in_none: list[list[Record]] = [
        [replace(account, currency=currency), booking, closing],
        [account, replace(booking, currency=currency), closing],
    ]
    for records in in_none:
        with pytest.raises(InvalidRecord, match="currency"):
            read_batch(Batch(id="b", records=iter(records)), today=NOW.date())
    read_batch(Batch(id="b", records=iter(in_euros)), today=NOW.date())


@pytest.mark.requirement("contract.bounds")
@pytest.mark.parametrize("command", ["connect", "connect folder", "import"])
def test_the_name_of_a_bank_is_as_short_as_those_that_readers_let_through(tmp_path: Path, command: str) -> None:
    def prepare(services: Services) -> None:
        perform(services, "users add", ANN, Silent())
        name = "x" * 141
        arguments: dict[str, dict[str, Any]] = {
            "connect": {"connector": "demo", "bank": name, "settings": {}, "fault": None},
            "connect folder": {"folder": str(tmp_path), "bank": name},
            "import": {"files": [], "connection": name, "account": None, "is_dry_run": False, "is_json": False},
        }
        with pytest.raises(CommandError, match="at most 140 characters"):
            perform(services, command, {"user": "ann", **arguments[command]}, Silent())

    with in_process(tmp_path / "data", prepare) as served:
        assert served.read("/accounts", served.token("ann")) == {"accounts": []}
