"""The HTTP loop over the real contract, with operations that answer constants: what fails here is the loop's fault."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import ASGIApp

from auth.errors import InvalidToken
from auth.principal import Principal
from handlers.app import CONTRACT_FILE, create_app
from handlers.errors import NotFound
from handlers.limits import Limiter
from handlers.request import Answer, Operation, Request

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


OPERATIONS: dict[str, Operation] = {
    "listAccounts": list_accounts,
    "listTransactions": list_transactions,
    "getTransaction": get_transaction,
    "getCashflow": get_cashflow,
    "getSnapshot": get_snapshot,
    "listSubscriptions": list_subscriptions,
    "startSync": start_sync,
    "getSyncJob": get_sync_job,
}


def authenticate(token: str) -> Principal:
    """Tokens of the tests: `good`, `lapsed`, or `scope+scope`; all others are refused."""
    scopes = ALL_SCOPES if token in ("good", "lapsed") else frozenset(f"read:{name}" for name in token.split("+"))
    if not scopes <= ALL_SCOPES:
        raise InvalidToken("unknown")
    return Principal(
        user_id="u1", client_id="c1", scopes=scopes, grant_id=None, has_subscription=token != "lapsed"
    )


MakeApp = Callable[..., ASGIApp]


@pytest.fixture
def make_app() -> MakeApp:
    """create_app with everything a test does not care about already given."""

    def make(operations: Mapping[str, Operation] | None = None, **arguments: Any) -> ASGIApp:
        given: dict[str, Any] = {
            "contract": CONTRACT_FILE.read_bytes(),
            "operations": OPERATIONS | dict(operations or {}),
            "authenticate": authenticate,
            "public_url": "http://127.0.0.1:8000",
            "billing_url": "https://billing.example/plans",
            "limiter": Limiter(),
            "rate": None,
            "validate_responses": True,
        }
        return create_app(**(given | arguments))

    return make


Client = Callable[..., httpx.AsyncClient]
