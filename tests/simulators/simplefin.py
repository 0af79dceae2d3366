"""A SimpleFIN bridge, written from the published protocol: tokens that are claimed once, access that can be revoked."""

import base64
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from secrets import token_urlsafe
from typing import Any

from tests.simulators.web_bank import Asked, Said, WebBank


def at_noon(day: date) -> int:
    """A moment of the day, as the protocol writes it."""
    return int(datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp())


def booking(id_: str, day: date | None, amount: str, description: str, **more: Any) -> dict[str, Any]:
    """A booking; without a day it is pending and was transacted whenever `more` says."""
    posted = {"posted": at_noon(day)} if day is not None else {"posted": 0, "pending": True}
    return {"id": id_, **posted, "amount": amount, "description": description, **more}


def account(id_: str, balance: str, *bookings: dict[str, Any], day: date, **more: Any) -> dict[str, Any]:
    """An account of the one bank, with its balance of a day."""
    return {
        "id": id_,
        "name": f"Account {id_}",
        "conn_id": "CON-1",
        "currency": "USD",
        "balance": balance,
        "balance-date": at_noon(day),
        "transactions": list(bookings),
        **more,
    }


@dataclass(kw_only=True)
class Customer:
    """Whose access it is, and what the bridge tells with it."""

    token: str
    password: str
    accounts: list[dict[str, Any]] = field(default_factory=list)
    errlist: list[dict[str, str]] = field(default_factory=list)
    is_claimed: bool = False
    is_revoked: bool = False

    def account(self, id_: str, balance: str, *bookings: dict[str, Any], day: date, **more: Any) -> None:
        """What the bridge tells of an account from now on."""
        told = account(id_, balance, *bookings, day=day, **more)
        self.accounts = [*(each for each in self.accounts if each["id"] != id_), told]


class SimpleFinBridge(WebBank):
    """Any number of customers, each with a token of their own."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.customers: dict[str, Customer] = {}

    def customer(self) -> Customer:
        """A new customer who has just made a token."""
        key = token_urlsafe(8)
        token = base64.b64encode(f"{self.address}/simplefin/claim/{key}".encode()).decode()
        self.customers[key] = Customer(token=token, password=f"secret{token_urlsafe(12)}")
        return self.customers[key]

    def answer(self, asked: Asked) -> Said:
        key = asked.path.removeprefix("/simplefin/claim/")
        if asked.method == "POST" and key in self.customers:
            return self._claimed(self.customers[key], key)
        if asked.path == "/simplefin/accounts":
            return self._accounts(asked)
        return Said(status=403, text="Forbidden", content_type="text/plain")

    def _claimed(self, customer: Customer, key: str) -> Said:
        if customer.is_claimed:
            return Said(status=403, text="Forbidden", content_type="text/plain")
        customer.is_claimed = True
        address = self.address.replace("//", f"//{key}:{customer.password}@")
        return Said(text=f"{address}/simplefin", content_type="text/plain")

    def _accounts(self, asked: Asked) -> Said:
        scheme, _, encoded = asked.headers.get("authorization", "").partition(" ")
        user, _, password = base64.b64decode(encoded).decode().partition(":") if scheme == "Basic" else ("", "", "")
        customer = self.customers.get(user)
        if customer is None or customer.password != password or customer.is_revoked:
            return Said(status=403, text="Forbidden", content_type="text/plain")
        start, end = int(asked.query["start-date"]), int(asked.query["end-date"])
        assert end - start <= 90 * 86_400, "the bridge would cut the rest off"
        return Said(
            document={
                "errlist": customer.errlist,
                "errors": [each["msg"] for each in customer.errlist],
                "connections": [{"conn_id": "CON-1", "name": "My Bank", "org_id": "INST-1", "org_name": "First Bank"}],
                "accounts": [
                    {
                        **account,
                        "transactions": [
                            each
                            for each in account["transactions"]
                            if start <= each["posted"] < end or (each["posted"] == 0 and asked.query["pending"] == "1")
                        ],
                    }
                    for account in customer.accounts
                ],
            }
        )


def serve(port: int) -> None:
    """A bridge with one customer, until Ctrl-C."""
    bridge, today = SimpleFinBridge(port), datetime.now(UTC).date()
    customer = bridge.customer()
    customer.account(
        "checking",
        "1234.56",
        booking("t1", today, "-12.50", "Corner Cafe"),
        booking("t2", today, "2500.00", "Payroll"),
        booking("t3", None, "-40.00", "Gas Station", transacted_at=at_noon(today)),
        day=today,
    )
    print(f"BANKDATA_SIMPLEFIN_URL={bridge.address}\ntoken {customer.token}", flush=True)
    bridge.serve_forever()
