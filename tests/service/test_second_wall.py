"""Behind the second wall an operation that asks for another user is told nothing, whatever it says."""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.concurrency import run_in_threadpool
from starlette.testclient import TestClient

from auth.principal import PAGE
from auth.scopes import ALL_SCOPES, SCOPES
from connectors.ways.email import Mail, mail_server
from handlers.mcp.tools import TOOLS
from handlers.operations import OPERATIONS, Read
from handlers.server import application
from handlers.web.app import CONTRACT_FILE
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import Need
from handlers.work.services import Services, open_services
from storage import accounts, connections, users
from storage.database import Database
from storage.engines.postgresql_session import Statements
from storage.row_owners import OF_USERS
from tests.engines import APP_ROLE, ENGINE
from tests.imports.test_accounts import mt940

pytestmark = [pytest.mark.engine("one server"), pytest.mark.requirement("postgresql.second-wall")]

OWNERS = "SELECT user_id, count(*) AS found FROM transactions GROUP BY user_id"
Asked = Callable[[str], dict[str, int]]
STATEMENT = mt940("28020050/1426292700", ("0102", "C", "10,00", "Words of the bank"))
OF_FILES = {"content-type": "application/octet-stream"}


def _found(database: Database, user_id: str) -> dict[str, int]:
    """Whose bookings a statement finds that names nobody, and how many one finds that names this user."""
    seen = {row["user_id"]: row["found"] for row in database.rows(OWNERS)}
    with database.transaction() as session:
        rows = session.rows("SELECT count(*) AS found FROM transactions WHERE user_id = $1", user_id)
    return {**seen, "asked for": rows[0]["found"]}


def kept(services: Services, request: Request, _reading: Any, **arguments: Any) -> Answer:
    return Answer(body=plain(services, request, **arguments))


def plain(services: Services, request: Request, **arguments: Any) -> dict[str, Any]:
    return _found(services.of(request.principal.user_id), arguments["account_ids"])


async def awaited(services: Services, request: Request, **arguments: Any) -> dict[str, Any]:
    return await run_in_threadpool(plain, services, request, **arguments)


@pytest.fixture
def services(copied: Callable[[], Path]) -> Iterator[Services]:
    with closing(open_services(ENGINE.settings(copied(), RATE_LIMIT="off"))) as opened:
        yield opened


@pytest.mark.parametrize("operation", [kept, plain, awaited])
def test_an_operation_that_asks_with_the_id_of_another_user_gets_no_rows(
    services: Services, monkeypatch: pytest.MonkeyPatch, operation: Any
) -> None:
    monkeypatch.setitem(OPERATIONS, "getSnapshot", Read(operation, Need.FIGURES) if operation is kept else operation)
    demo, other = (users.get_by_name(services.everybody, name) for name in ("demo", "globe"))
    before = _found(services.everybody, other.id)
    assert before["asked for"] > 0, "who signs in, the worker and commands are not asked for one user"
    token = services.authorization.issue_token(demo.id, frozenset(SCOPES), timedelta(hours=1))
    with TestClient(application(services), base_url=services.settings.public_url) as client:
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.get("/api/v1/snapshot", params={"accountIds": other.id}, headers=headers).json()
    assert answer == {demo.id: before[demo.id], "asked for": 0}


def test_a_start_with_a_role_that_sees_everything_is_refused(copied: Callable[[], Path]) -> None:
    settings = ENGINE.settings(copied())
    with pytest.raises(Exception, match="bankdata is none: make one that owns no table"):
        open_services(ENGINE.settings(settings.data_dir, DATABASE_APP_URL=settings.database_url))


@dataclass(frozen=True)
class Ran:
    """A statement, the role that ran it, and the user for whom."""

    role: str
    user_id: str
    sql: str

    @property
    def tables(self) -> set[str]:
        """The tables of users that it names, but that of the users themselves, which signing in reads too."""
        return set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE|COPY) ([a-z_]+)", self.sql)) & (OF_USERS.keys() - {"users"})


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Ran]:
    """Everything that is asked of the database, each time with what the database itself says of who asks."""
    seen: list[Ran] = []
    who = "SELECT current_user, coalesce(current_setting('app.user_id', true), '')"

    def note(statements: Any, sql: str) -> None:
        row = statements._connection.execute(who.encode(), prepare=False).fetchone()
        seen.append(Ran(row[0], row[1], sql))

    run, copy = Statements._run, Statements._copy

    def noted_run(statements: Any, sql: str, given: Any, *more: Any) -> Any:
        note(statements, sql)
        return run(statements, sql, given, *more)

    def noted_copy(statements: Any, table: str, rows: Any) -> None:
        note(statements, f"COPY {table}")
        copy(statements, table, rows)

    monkeypatch.setattr(Statements, "_run", noted_run)
    monkeypatch.setattr(Statements, "_copy", noted_copy)
    return seen


@pytest.fixture
def demo(services: Services) -> str:
    return users.get_by_name(services.everybody, "demo").id


def by_app_role(ran: list[Ran], user_id: str) -> int:
    """How many statements about a user's rows were run: all of them by the role of requests, for this user."""
    about = [each for each in ran if each.tables]
    assert [each for each in about if (each.role, each.user_id) != (APP_ROLE, user_id)] == []
    return len(about)


def headers_of(services: Services, user_id: str, resource: Any) -> dict[str, str]:
    token = services.authorization.issue_token(user_id, frozenset(ALL_SCOPES), timedelta(hours=1), resource=resource)
    return {"Authorization": f"Bearer {token}"}


def test_every_operation_asks_as_the_role_of_requests(services: Services, demo: str, ran: list[Ran]) -> None:
    contract = orjson.loads(CONTRACT_FILE.read_bytes())
    owned = [each.id for each in accounts.of_user(services.everybody, demo)]
    booking = services.everybody.rows("SELECT id FROM transactions WHERE user_id = $1 LIMIT 1", demo)[0]["id"]
    every = {"accountIds": ",".join(owned)}
    bodies: dict[str, dict[str, Any]] = {
        "createImport": {"params": {"filename": "a.sta"}, "content": STATEMENT, "headers": OF_FILES},
        "createRule": {"json": {"field": "purpose", "operator": "contains", "value": "zzz", "category": "RENT"}},
        "changeAnnotation": {"json": {"note": "one", "tags": ["one"], "category": "RENT"}},
        "correctSome": {"json": {"filter": {"search": "zzz"}, "expected": 0, "category": "RENT"}},
        "changeRule": {"json": {"value": "zzzz"}},
        "createOwnCategory": {"json": {"name": "Kita", "category": "OTHER"}},
        "renameOwnCategory": {"json": {"name": "Hort"}},
        "setTarget": {"json": {"category": "OTHER", "amount": 5, "period": "month", "from": "2026-10"}},
        "changeNotice": {"json": {"state": "read"}},
        "setNoticeSettings": {
            "json": {"language": "en", "timeZone": "UTC", "quietHours": None, "digest": "off", "kinds": {}}
        },
        "createNoticeTarget": {"json": {"email": "eva@example.org"}},
        "confirmNoticeTarget": {"json": {"code": "12345678"}},
        "orderRules": {"json": {"ids": []}},
        "createCorrection": {"json": {"transactionId": booking, "category": "RENT"}},
        "addSubscription": {
            "json": {
                "name": "Musikschule",
                "amount": 45,
                "frequency": "yearly",
                "nextExpected": services.clock.today().isoformat(),
                "accountId": owned[0],
            }
        },
        "confirmSubscription": {"json": {"confirmation": "confirmed"}},
        "changeAccount": {"json": {"name": "Mine"}},
        "sayBalance": {"json": {"date": "2026-01-01", "amount": 1}},
        "mergeAccount": {"json": {"into": owned[1]}},
        "deleteAccount": {"params": {"name": "Mine"}},
        "changeProfile": {"json": {"homeCurrency": "CHF"}},
        "startSync": {"json": {}},
        "createWebhook": {"json": {"url": "https://app.example.org/hook"}},
        "exportTransactions": {"params": {**every, "format": "csv"}},
    }
    ids = {
        "/notices/targets": "ntt_none",
        "/notices": "ntc_none",
        "/accounts": owned[0],
        "/transactions": booking,
        "/cashflow": "2026-10",
    }
    last = ("mergeAccount", "separateAccount", "deleteAccount")
    services.everybody.execute("UPDATE accounts SET iban = NULL, kind = NULL WHERE id = $1", owned[0])
    services.sends_webhooks = True
    services.ways = {"email": Mail(mail_server("smtp://127.0.0.1"), "bank@example.org")}
    of_page = services.authorization.grants.issue_alone(
        user_id=demo, client_id=PAGE, scopes=frozenset(ALL_SCOPES), lifetime=timedelta(hours=1)
    )
    services.connection_keys.get_ready()  # whether a first key may be made is asked once, and of the whole store
    described = [
        (path, method, operation["operationId"])
        for path, item in contract["paths"].items()
        for method, operation in item.items()
        if method in ("get", "post", "put", "patch", "delete")
        and operation["operationId"] != "listenToEvents"  # has no end; it looks through the store of its user
        and operation["operationId"] != "getPushKey"  # the key is the store's, and nobody's data
        and not path.startswith("/shares")  # of this server's page alone: an app is refused before anything is asked
    ]
    with closing(TestClient(application(services), base_url=services.settings.public_url)) as client:
        client.headers.update(headers_of(services, demo, "data"))
        listed = client.get("/api/v1/subscriptions/details", params=every)
        assert listed.status_code == 200, listed.text
        recurring = listed.json()["subscriptions"][0]["id"]
        ids["/subscriptions"], silent = recurring, []
        for path, method, name in sorted(described, key=lambda each: each[2] in last and last.index(each[2]) + 1):
            id_ = next((id_ for start, id_ in ids.items() if path.startswith(start)), "GROCERIES")
            ran.clear()
            services.reader.cache.clear()
            sent = bodies.get(name, {"params": every})
            if path.startswith("/notices/"):
                sent = {**sent, "headers": {"Authorization": f"Bearer {of_page}"}}
            answer = client.request(method, f"/api/v1{re.sub('{[^}]+}', id_, path)}", **sent)
            assert answer.status_code < 500, (name, answer.text)
            by_app_role(ran, demo)
            if not any(each.role == APP_ROLE for each in ran):
                silent.append(f"{name}: {answer.status_code}")
        assert silent == []


def test_every_tool_asks_as_the_role_of_requests(services: Services, demo: str, ran: list[Ran]) -> None:
    booking = services.everybody.rows(
        "SELECT id FROM transactions WHERE user_id = $1 AND amount > 0 AND amount < 1 LIMIT 1", demo
    ) or services.everybody.rows("SELECT id FROM transactions WHERE user_id = $1 LIMIT 1", demo)
    arguments: dict[str, dict[str, object]] = {
        "explain_figure": {"kind": "category", "key": "GROCERIES"},
        "get_transaction": {"id": booking[0]["id"]},
        "refresh_bank_data": {"waitSeconds": 0},
        "annotate_transaction": {"id": booking[0]["id"], "addTags": ["one"], "dryRun": False},
    }
    with closing(TestClient(application(services), base_url=services.settings.public_url)) as client:
        client.headers.update(headers_of(services, demo, "mcp"))
        for tool in TOOLS:
            ran.clear()
            services.reader.cache.clear()
            params = {"name": tool, "arguments": arguments.get(tool, {})}
            answer = client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            assert not answer.json()["result"]["isError"], answer.text
            assert by_app_role(ran, demo) > 0, tool


def test_a_file_that_is_sent_is_read_and_stored_by_the_role_of_requests(
    services: Services, demo: str, ran: list[Ran]
) -> None:
    with closing(TestClient(application(services), base_url=services.settings.public_url)) as client:
        client.headers.update(headers_of(services, demo, "data"))
        ran.clear()
        answer = client.post("/api/v1/imports", params={"filename": "a.sta"}, content=STATEMENT, headers=OF_FILES)
    assert answer.json()["error"] is None, answer.text
    assert by_app_role(ran, demo) > 0
    assert any("contributions" in each.tables for each in ran)


def test_a_sync_that_nobody_reads_acts_for_the_user_of_its_connection(
    services: Services, demo: str, ran: list[Ran]
) -> None:
    (connection, *_) = connections.of_user(services.everybody, demo)
    job = services.sync_engine.start(connection, is_first=True).job
    assert job is not None
    ran.clear()
    step = services.sync_engine.advance(job)
    assert step is not None
    step.result(60)
    in_thread = [each for each in ran if each.tables and "job_leases" in each.sql]
    assert {(each.role, each.user_id) for each in in_thread} == {(APP_ROLE, demo)}
    with services.sync_engine.leases.keep(job):
        ran.clear()
        services.sync_engine.leases.renew()
    assert by_app_role(ran, demo) > 0
