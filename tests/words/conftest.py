"""What a person says of their bookings, over HTTP, on either engine."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from starlette.testclient import TestClient

from analytics.records import AccountRecord, TransactionRecord
from auth.scopes import ALL_SCOPES
from tests.checked_commits import checked_commits
from tests.explanations.conftest import Holder
from tests.simplefin.conftest import holder, service

__all__ = ["checked_commits", "holder", "service"]  # fixtures of SimpleFIN's tests, for these too

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")
OTHER = AccountRecord(stable_key="DE88100900001234567892", iban="DE88100900001234567892", currency="EUR")


def writer(holder: Holder, scopes: Sequence[str] = ALL_SCOPES) -> TestClient:
    """A client that may do everything, or what these scopes say."""
    return holder.service.client(holder.user.id, frozenset(scopes))


def booked(day: str, amount: str, name: str | None = None, **further: Any) -> TransactionRecord:
    """A booking of November 2026."""
    said: dict[str, Any] = {"currency": "EUR", "counterpart_name": name, **further}
    return TransactionRecord(booking_date=date.fromisoformat(f"2026-11-{day}"), amount=Decimal(amount), **said)


def rows_of(holder: Holder, **query: str) -> list[dict[str, Any]]:
    """What the search finds, all that is booked when nothing is asked for."""
    found: list[dict[str, Any]] = writer(holder).get("/transactions/search", params=query).json()["transactions"]
    return found


def by_name(holder: Holder, **query: str) -> dict[str, dict[str, Any]]:
    """The same by the counterpart's name."""
    return {row["counterpartName"]: row for row in rows_of(holder, **query)}
