"""The HTTP loop over the real contract, with operations that answer constants: what fails here is the loop's fault."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from auth.errors import InvalidToken
from auth.principal import Principal
from handlers.web.app import CONTRACT_FILE, create_app
from handlers.web.errors import NotFound
from handlers.web.request import Answer, Operation, Request
from handlers.web.sockets.http_protocol import HttpProtocol
from handlers.web.sockets.peers import Peers
from handlers.web.steps.guard import Authenticate, guard
from handlers.web.steps.rate_limit import Limiter
from storage.boundary import is_failure
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too

ALL_SCOPES = frozenset({"read:accounts", "read:transactions", "read:cashflow"})
MOMENT = "2026-11-01T06:00:00.000Z"
ACCOUNT_ID, TRANSACTION_ID, SYNC_ID = "acc_1", "txn_1", "syn_1"

ACCOUNT = {
    "id": ACCOUNT_ID,
    "accountName": None,
    "iban": None,
    "accountType": "checking",
    "balance": 12.5,
    "currency": "EUR",
    "lastSyncedAt": None,
    "bankConnection": {"bankName": "Bank", "status": "ACTIVE"},
}
TRANSACTION = {
    "id": TRANSACTION_ID,
    "amount": -12.99,
    "currency": "EUR",
    "bookingDate": MOMENT,
    "valueDate": None,
    "merchantName": None,
    "counterpartName": None,
    "counterpartIban": None,
    "counterpartMandateReference": None,
    "type": None,
    "category": None,
    "purpose": None,
    "bankAccount": {"id": ACCOUNT_ID, "iban": None, "accountName": None, "bankConnection": {"bankName": "Bank"}},
}


def list_accounts(request: Request) -> dict[str, Any]:
    return {"accounts": [ACCOUNT]}


async def list_transactions(request: Request, *, page: int, per_page: int, **filters: Any) -> Answer:
    pagination = {"page": page, "perPage": per_page, "total": 1, "pageCount": 1}
    link = '</api/v1/transactions?page=1>; rel="first"'
    return Answer(body={"transactions": [TRANSACTION], "pagination": pagination}, headers={"Link": link})


def search_transactions(request: Request, *, page: int, per_page: int, **filters: Any) -> dict[str, Any]:
    pagination = {"page": page, "perPage": per_page, "total": 1, "pageCount": 1}
    return {"transactions": [{**TRANSACTION, "status": "booked"}], "pagination": pagination}


def sum_transactions(request: Request, *, group_by: str | None, **filters: Any) -> dict[str, Any]:
    days = {"first": "2026-11-02", "last": "2026-11-02"}
    sums = {"count": 1, "income": 0, "expenses": 12.99, "refunds": 0, "net": -12.99, **days}
    return {"currency": "EUR", **sums, "leftOut": {}}


def get_transaction(request: Request, *, id: str) -> dict[str, Any]:
    if id != TRANSACTION_ID:
        raise NotFound("Transaction not found")
    return {**TRANSACTION, "isPotentialDuplicate": False, "isAdjustingEntry": False, "createdAt": MOMENT}


def get_cashflow(request: Request, *, account_ids: str | None, months: int) -> dict[str, Any]:
    return {"cashflow": [{"month": "2026-11", "income": 1.0, "expenses": 0.5, "net": 0.5}]}


def get_snapshot(request: Request, *, account_ids: str | None) -> dict[str, Any]:
    last_30_days: dict[str, Any] = {"totalExpenses": 0, "topCategories": []}
    return {"totalBalance": 12.5, "accountCount": 0, "accounts": [], "last30Days": last_30_days}


def list_subscriptions(request: Request, *, account_ids: str | None) -> dict[str, Any]:
    return {"subscriptions": []}


def start_sync(request: Request, *, account_ids: str | None, body: dict[str, Any] | None) -> Answer:
    job = {"syncId": SYNC_ID, "status": "syncing", "error": None}
    location = f"/api/v1/sync/{SYNC_ID}"
    return Answer(body={"syncJobs": [job], "skippedConnections": 0}, status=202, headers={"Location": location})


def get_sync_job(request: Request, *, sync_id: str) -> dict[str, Any]:
    if sync_id != SYNC_ID:
        raise NotFound("Sync job not found")
    return {"syncId": sync_id, "status": "syncing", "error": None, "createdAt": MOMENT, "updatedAt": MOMENT}


def list_cashflow_transactions(request: Request, *, month: str, account_ids: str | None) -> dict[str, Any]:
    figures = {"month": month, "income": 0, "expenses": 0, "net": 0}
    return {**figures, "currency": "EUR", "transactions": []}


def list_category_transactions(request: Request, *, category: str, account_ids: str | None) -> dict[str, Any]:
    figures = {"amount": 0, "percentage": 0, "totalExpenses": 0, "since": MOMENT, "until": MOMENT}
    return {"category": category, "currency": "EUR", **figures, "transactions": []}


def list_subscription_details(
    request: Request, *, account_ids: str | None, status: str | None, direction: str | None, with_charges: bool
) -> dict[str, Any]:
    return {"subscriptions": []}


def get_subscription(request: Request, *, id: str, account_ids: str | None) -> dict[str, Any]:
    raise NotFound("Subscription not found")


def explain_transaction(request: Request, *, id: str, include: str | None) -> dict[str, Any]:
    if id != TRANSACTION_ID:
        raise NotFound("Transaction not found")
    why = {"value": None, "rule": None, "reason": "Nothing is known."}
    transfer = {"accountId": None, "transactionId": None, "rule": None, "reason": "Nothing is known."}
    return {"transactionId": id, "type": why, "category": why, "merchantName": why, "transfer": transfer}


def get_profile(request: Request) -> dict[str, Any]:
    said = {"name": "eva", "homeCurrency": "EUR", "timeZone": "Europe/Berlin", "today": "2026-11-20"}
    return {**said, "lastEventId": "evt_41007-1793512800-0123456789abcdef01234567"}


def get_balances(request: Request, **filters: Any) -> dict[str, Any]:
    return {"currency": "EUR", "accounts": [], "leftOut": [], "points": []}


def get_forecast(request: Request, **filters: Any) -> dict[str, Any]:
    return {"from": "2026-11-21", "until": "2027-02-18", "accounts": [], "currencies": [], "leftOut": []}


def get_cashflow_categories(request: Request, **filters: Any) -> dict[str, Any]:
    return {"currency": "EUR", "months": []}


def export_transactions(request: Request, **filters: Any) -> Answer:
    return Answer(body=b"", headers={"content-type": "application/octet-stream"})


def list_connections(request: Request) -> dict[str, Any]:
    return {"connections": []}


def get_integrity(request: Request, **filters: Any) -> dict[str, Any]:
    return {"checkedAt": "2026-11-01T06:00:00.000Z", "isSound": True, "accounts": []}


def list_imports(request: Request) -> dict[str, Any]:
    return {"imports": []}


def not_here(request: Request, **arguments: Any) -> dict[str, Any]:
    raise NotFound("Import not found")


OPERATIONS: dict[str, Operation] = {
    **dict.fromkeys(
        (
            *(
                "createCorrection",
                "listCorrections",
                "deleteCorrection",
                "createRule",
                "listRules",
                "deleteRule",
                "confirmSubscription",
                "addSubscription",
            ),
            *("createOwnCategory", "renameOwnCategory", "deleteOwnCategory", "listTargets", "setTarget"),
            *("listNotices", "changeNotice", "getNoticeSettings", "setNoticeSettings", "listNoticeTargets"),
            *("createNoticeTarget", "deleteNoticeTarget", "confirmNoticeTarget", "testNoticeTarget"),
            *("listNoticeDeliveries", "getPushKey"),
            *("changeRule", "orderRules", "proposeRule", "getAnnotation", "changeAnnotation", "listTags"),
            "correctSome",
            *("listWebhooks", "createWebhook", "getWebhook", "deleteWebhook", "testWebhook", "enableWebhook"),
            *("renewWebhookSecret", "listWebhookDeliveries", "retryWebhookDelivery"),
            *(
                "listHiddenAccounts",
                "changeAccount",
                "sayBalance",
                "mergeAccount",
                "separateAccount",
                "deleteAccount",
                "listMergedAccounts",
                "changeProfile",
            ),
        ),
        not_here,
    ),
    "createImport": not_here,
    "getImport": not_here,
    "listImports": list_imports,
    "undoImport": not_here,
    "listLayouts": not_here,
    "deleteLayout": not_here,
    "listShares": not_here,
    "offerShare": not_here,
    "changeShare": not_here,
    "endShare": not_here,
    "acceptShare": not_here,
    "getProfile": get_profile,
    "getOverview": not_here,
    "getBalances": get_balances,
    "getForecast": get_forecast,
    "getCashflowCategories": get_cashflow_categories,
    "listConnections": list_connections,
    "getIntegrity": get_integrity,
    "listAccounts": list_accounts,
    "listTransactions": list_transactions,
    "searchTransactions": search_transactions,
    "sumTransactions": sum_transactions,
    "exportTransactions": export_transactions,
    "listCategories": not_here,
    "listTakenBackTransactions": not_here,
    "listTransactionChanges": not_here,
    "listAccountChanges": not_here,
    "listenToEvents": not_here,
    "getTransaction": get_transaction,
    "getCashflow": get_cashflow,
    "getSnapshot": get_snapshot,
    "listSubscriptions": list_subscriptions,
    "startSync": start_sync,
    "getSyncJob": get_sync_job,
    "listCashflowTransactions": list_cashflow_transactions,
    "listCategoryTransactions": list_category_transactions,
    "listSubscriptionDetails": list_subscription_details,
    "getSubscription": get_subscription,
    "explainTransaction": explain_transaction,
}


async def authenticate(token: str) -> Principal:
    """Tokens of the tests: `good`, `lapsed`, or `scope+scope`; all others are refused."""
    scopes = ALL_SCOPES if token in ("good", "lapsed") else frozenset(f"read:{name}" for name in token.split("+"))
    if not scopes <= ALL_SCOPES:
        raise InvalidToken("unknown")
    return Principal(user_id="u1", client_id="c1", scopes=scopes, grant_id=None, has_subscription=token != "lapsed")


MakeApp = Callable[..., ASGIApp]
Connect = Callable[..., TestClient]
Live = Callable[[bytes], bytes]


@pytest.fixture(scope="session")
def make_app() -> MakeApp:
    """create_app with everything a test does not care about already given."""

    def make(
        operations: Mapping[str, Operation] | None = None,
        authenticate: Authenticate = authenticate,
        public_url: str = "http://127.0.0.1:8000",
        **arguments: Any,
    ) -> ASGIApp:
        given: dict[str, Any] = {
            "contract": CONTRACT_FILE.read_bytes(),
            "operations": OPERATIONS | dict(operations or {}),
            "guard": guard(authenticate, public_url=public_url, billing_url="https://billing.example/plans"),
            "public_url": public_url,
            "limiter": Limiter(rate=None),
            "validate_responses": True,
            "is_failure": is_failure,
        }
        return create_app(**(given | arguments))

    return make


@pytest.fixture(scope="session")
def app(make_app: MakeApp) -> ASGIApp:
    """The application of all tests that change nothing about it."""
    return make_app()


@pytest.fixture
def client(app: ASGIApp) -> TestClient:
    """A client in the process, with a token that may do everything."""
    return client_of(app)


def client_of(app: ASGIApp, *, token: str | None = "good") -> TestClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False)


@pytest.fixture(scope="session")
def connect() -> Connect:
    """A client of an application that a test made itself; `token` None sends none."""
    return client_of


@pytest.fixture(scope="session")
def live(app: ASGIApp) -> Iterator[Live]:
    """The application under a real uvicorn on loopback: bytes in, bytes out."""
    protocol: Any = partial(HttpProtocol, peers=Peers())
    server = uvicorn.Server(
        uvicorn.Config(app, http=protocol, ws="none", port=0, log_level="critical", proxy_headers=False, lifespan="off")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def send(request: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(request)
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
            return answer

    yield send
    server.should_exit = True
    thread.join(60)
