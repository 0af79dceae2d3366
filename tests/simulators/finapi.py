"""finAPI, written from its published descriptions: Access v2 and Web Form 2.0 on one port of this machine.

Users, their bank connections, the form in which they sign in at a bank, tasks that fetch fresh data, accounts, paged
bookings and what is pending. `python -m tests.simulators finapi` serves it; opening the form's address in a browser is
the sign-in at the bank.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

from tests.simulators.web_bank import Asked, Said, WebBank

CLIENT, SECRET = "client-of-tests", "secret-of-client"
Reply = tuple[int, Any]


@dataclass(kw_only=True)
class Account:
    """An account with its bookings; each of them has an `importDate`, by which it is asked for."""

    id: int
    name: str
    iban: str | None
    balance: Decimal
    kind: str = "Checking"
    currency: str = "EUR"
    status: str = "UPDATED"
    bookings: list[dict[str, Any]] = field(default_factory=list)
    pending: list[dict[str, Any]] = field(default_factory=list)


@dataclass(kw_only=True)
class FinApi:
    """The service, one bank and what its customer has there. Tests change any of it between two syncs.

    `broken` are answers by a part of the path with its page (/api/v2/transactions?page=2), each used once.
    `task` is how tasks end: COMPLETED, WEB_FORM_REQUIRED or COMPLETED_WITH_ERROR with `error_code`.
    """

    accounts: list[Account]
    today: date = date(2026, 11, 20)
    bank: str = "Beispielbank"
    consent_until: str | None = "2027-02-18 12:00:00.000"
    page_size: int = 500
    polls: int = 1  # looks at a task until it is done
    task: str = "COMPLETED"
    error_code: str | None = None
    is_action_required: bool = False
    update_status: str = "READY"
    is_locked: int = 0  # so many updates are answered with 423
    broken: dict[str, Said] = field(default_factory=dict)
    url: str = ""
    users: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, str | None] = field(default_factory=dict)  # access token -> user, None for the client's own
    connections: set[int] = field(default_factory=set)
    forms: dict[str, str] = field(default_factory=dict)
    tasks: dict[str, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(101))

    def sign_in(self, form: str | None = None) -> None:
        """The person signs in at the bank, in the form that is open (or in this one)."""
        for each in [form] if form else list(self.forms):
            if self.forms[each] != "COMPLETED":
                self.forms[each] = "COMPLETED"
                self.task, self.is_action_required = "COMPLETED", False
                if not self.connections:
                    self.connections.add(next(self.numbers))

    def expire_tokens(self) -> None:
        """Every access token is over, in the middle of whatever goes on."""
        self.tokens.clear()

    def answer(self, asked: Asked) -> Reply:
        """Status and document for a request."""
        method, path, query = asked.method, asked.path, asked.query
        assert asked.headers["x-request-id"], "finAPI's support asks for it"
        if path == "/api/v2/oauth/token":
            return self._token(dict(parse_qsl(asked.body.decode())))
        token = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.tokens:
            return 401, _errors("UNAUTHORIZED", "The access token is invalid.")
        user = self.tokens[token]
        document = asked.document() if asked.body else {}
        if (method, path) == ("POST", "/api/v2/users"):
            return (201, self._user(document)) if user is None else (403, _errors("FORBIDDEN", "client token"))
        if user is None:
            return 403, _errors("FORBIDDEN", "user token")
        if (method, path) == ("DELETE", "/api/v2/users"):
            del self.users[user]
            return 200, {}
        return self._of_user(method, path, query, document)

    def _token(self, form: dict[str, str]) -> Reply:
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT, SECRET):
            return 401, {"error": "invalid_client", "error_description": "Bad client credentials"}
        user: str | None = None
        if form["grant_type"] == "password":
            user = form["username"]
            if self.users.get(user) != form["password"]:
                return 400, {"error": "invalid_grant", "error_description": "Bad credentials"}
        token = f"token-{next(self.numbers)}"
        self.tokens[token] = user
        kept = {"refresh_token": f"refresh-{next(self.numbers)}"} if user else {}
        return 200, {"access_token": token, "token_type": "bearer", "expires_in": 3600, **kept}

    def _user(self, document: dict[str, Any]) -> dict[str, Any]:
        name = document.get("id") or f"user-{next(self.numbers)}"
        self.users[name] = document.get("password") or f"password-{next(self.numbers)}"
        return {"id": name, "password": self.users[name], "email": None, "phone": None, "isAutoUpdateEnabled": False}

    def _of_user(self, method: str, path: str, query: Mapping[str, str], document: dict[str, Any]) -> Reply:
        last = path.rpartition("/")[2]
        match method, path.removesuffix(f"/{last}"):
            case "POST", "/api/webForms" if last == "bankConnectionImport":
                return 201, self._form(next(self.numbers))
            case "GET", "/api/webForms":
                return 200, self._form_as(last)
            case "POST", "/api/tasks" if last == "backgroundUpdate":
                return self._begin(document)
            case "GET", "/api/tasks":
                return 200, self._task(last)
            case "GET", "/api/v2/bankConnections" if last.isdigit():
                return self._connection(int(last))
            case "DELETE", "/api/v2/bankConnections":
                self.connections.discard(int(last))
                return 200, {}
            case "GET", "/api/v2":
                return self._data(last, query)
        return 404, _errors("ENTITY_NOT_FOUND", path)

    def _form(self, number: int) -> dict[str, Any]:
        self.forms[str(number)] = "NOT_YET_OPENED"
        return self._form_as(str(number))

    def _form_as(self, form: str) -> dict[str, Any]:
        status = self.forms[form]
        made = max(self.connections) if status == "COMPLETED" and self.connections else None
        return {
            "id": form,
            "url": f"{self.url}/webForm/{form}",
            "type": "BANK_CONNECTION_IMPORT",
            "status": status,
            "payload": {"bankConnectionId": made, "errorCode": None},
        }

    def _begin(self, document: dict[str, Any]) -> Reply:
        if self.is_locked:
            self.is_locked -= 1
            return 423, _errors("LOCKED", "An update of this bank connection is running.")
        if document.get("bankConnectionId") not in self.connections:
            return 404, _errors("ENTITY_NOT_FOUND", "bankConnectionId")
        task = f"task-{next(self.numbers)}"
        self.tasks[task] = self.polls
        return 201, {"id": task, "type": "BANK_CONNECTION_UPDATE", "status": "NOT_YET_STARTED", "payload": {}}

    def _task(self, task: str) -> dict[str, Any]:
        self.tasks[task] -= 1
        payload: dict[str, Any] = {"bankConnectionId": max(self.connections), "webForm": None, "errorCode": None}
        status = "IN_PROGRESS" if self.tasks[task] >= 0 and self.polls else self.task
        if status == "WEB_FORM_REQUIRED":
            open_form = next((each for each, state in self.forms.items() if state == "NOT_YET_OPENED"), None)
            form = open_form or self._form(next(self.numbers))["id"]
            payload["webForm"] = {"id": form, "url": f"{self.url}/webForm/{form}", "status": self.forms[form]}
        if status == "COMPLETED_WITH_ERROR":
            payload["errorCode"] = self.error_code
        return {"id": task, "type": "BANK_CONNECTION_UPDATE", "status": status, "payload": payload}

    def _connection(self, number: int) -> Reply:
        if number not in self.connections:
            return 404, _errors("ENTITY_NOT_FOUND", "bank connection")
        consent = {"status": "PRESENT", "expiresAt": self.consent_until}
        interface = {"bankingInterface": "XS2A", "aisConsent": consent, "userActionRequired": self.is_action_required}
        return 200, {
            "id": number,
            "bank": {"id": 277672, "name": self.bank},
            "name": None,
            "updateStatus": self.update_status,
            "interfaces": [interface],
        }

    def _data(self, kind: str, query: Mapping[str, str]) -> Reply:
        if kind == "accounts":
            return 200, {"accounts": [_account_as(each, self.today) for each in self.accounts]}
        account = next(each for each in self.accounts if str(each.id) == query["accountIds"])
        if kind == "pendingTransactions":
            return 200, {"pendingTransactions": account.pending}
        if kind != "transactions" or query.get("view") != "bankView" or query.get("order") != "id,asc":
            return 400, _errors("BAD_REQUEST", "view and order")
        since = query.get("minBankBookingDate", "")
        rows = sorted(
            (each for each in account.bookings if each["bankBookingDate"] >= since), key=lambda each: each["id"]
        )
        size, page = min(int(query.get("perPage", 20)), self.page_size), int(query.get("page", 1))
        pages = max(1, -(-len(rows) // size))
        paging = {"page": page, "perPage": size, "pageCount": pages, "totalCount": len(rows)}
        return 200, {"transactions": rows[(page - 1) * size : page * size], "paging": paging}


def booking(number: int, day: date, amount: str, name: str, purpose: str, **further: Any) -> dict[str, Any]:
    """A booking as finAPI shows it, imported on its own day unless said otherwise."""
    moment = f"{day} 00:00:00.000"
    return {
        "id": number,
        "parentId": None,
        "amount": Decimal(amount),
        "currency": "EUR",
        "valueDate": moment,
        "bankBookingDate": moment,
        "finapiBookingDate": moment,
        "counterpartName": name,
        "purpose": purpose,
        "isPotentialDuplicate": False,
        "isAdjustingEntry": False,
        "children": [],
        "importDate": str(day),
        **further,
    }


def pending(day: date, amount: str, name: str, purpose: str) -> dict[str, Any]:
    """What the bank announces."""
    return {"amount": Decimal(amount), "valueDate": str(day), "counterpartyName": name, "purpose": purpose}


def _account_as(account: Account, today: date) -> dict[str, Any]:
    return {
        "id": account.id,
        "accountName": account.name,
        "iban": account.iban,
        "accountCurrency": account.currency,
        "accountType": account.kind,
        "balance": account.balance,
        "availableFunds": account.balance + 500,
        "interfaces": [
            {"bankingInterface": "XS2A", "status": account.status, "lastSuccessfulUpdate": f"{today} 06:30:00.000"}
        ],
    }


def _errors(code: str, message: str) -> dict[str, Any]:
    return {"errors": [{"message": message, "code": code, "type": "BUSINESS"}], "requestId": "r"}


class FinApiHost(WebBank):
    """Access and Web Form on one port; opening the address of a form is the sign-in at the bank."""

    def __init__(self, service: FinApi, port: int = 0) -> None:
        super().__init__(port)
        self.service = service
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Said:
        with self._lock:
            if asked.path.startswith("/webForm/"):
                self.service.sign_in(asked.path.rpartition("/")[2])
                return Said(text="<html>Signed in.</html>", content_type="text/html")
            self.service.url = self.address
            page = f"{asked.path}?page={asked.query.get('page')}"
            broken = next((part for part in self.service.broken if part in page), None)
            if broken is not None:
                return self.service.broken.pop(broken)
            status, document = self.service.answer(asked)
            return Said(status=status, text=json.dumps(document, default=float))


def example(today: date) -> FinApi:
    """Two accounts, one of them without an IBAN, and two weeks of bookings."""
    days = [today - timedelta(days=back) for back in (12, 9, 3, 3)]
    bookings = [
        booking(1, days[0], "2500.00", "Muster GmbH", "Gehalt"),
        booking(2, days[1], "-780.00", "Hausverwaltung Süd", "Miete"),
        booking(3, days[2], "-4.20", "Kiosk am Markt", "Kaffee"),
        booking(4, days[3], "-4.20", "Kiosk am Markt", "Kaffee"),
    ]
    current = Account(
        id=81,
        name="Girokonto",
        iban="DE89370400440532013000",
        balance=Decimal("1812.40"),
        bookings=bookings,
        pending=[pending(today, "-31.99", "Buchladen", "vorgemerkt")],
    )
    card = Account(id=82, name="Kreditkarte", iban=None, kind="CreditCard", balance=Decimal("-120.50"))
    consent = datetime(today.year, today.month, today.day) + timedelta(days=90)  # noqa: DTZ001 - as finAPI writes it
    return FinApi(accounts=[current, card], today=today, consent_until=f"{consent:%Y-%m-%d %H:%M:%S}.000")


def serve(port: int) -> None:
    """The example, until Ctrl-C."""
    host = FinApiHost(example(datetime.now(UTC).date()), port)
    print(
        f"BANKDATA_FINAPI_URL={host.address}\nBANKDATA_FINAPI_WEBFORM_URL={host.address}\n"
        f"BANKDATA_FINAPI_CLIENT={CLIENT}\nin the file of BANKDATA_FINAPI_SECRET_FILE: {SECRET}",
        flush=True,
    )
    host.serve_forever()
