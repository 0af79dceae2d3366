"""A credit of cents from somebody never paid is what an attack costs: flagged, withheld in lists, shown alone."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, TransactionRecord
from auth.scopes import SCOPES
from tests.explanations.conftest import Holder, Service, opened
from tests.mcp.conftest import ADDRESS, Assistant

FRIEND, MALLORY = "DE89370400440532013000", "GB82WEST12345698765432"
DAY = date(2026, 11, 10)


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holder]:
    service: Service = opened(tmp_path_factory.mktemp("cents") / "data", validate_responses=False)
    yield service.newcomer()
    service.services.close()


def booking(amount: str, name: str | None, iban: str | None, purpose: str) -> TransactionRecord:
    return TransactionRecord(
        amount=Decimal(amount),
        currency="EUR",
        booking_date=DAY,
        counterpart_name=name,
        counterpart_iban=iban,
        purpose=purpose,
    )


@pytest.mark.requirement("mcp.orders")
def test_cents_from_strangers_are_withheld_in_lists_and_nothing_else_is(holder: Holder) -> None:
    told = [
        booking("-20.00", "Jana Friend", FRIEND, "dinner"),
        booking("-9.00", "Corner Shop", None, "card"),
        booking("0.99", "Jana Friend", FRIEND, "rest of the dinner"),
        booking("0.50", "corner shop", None, "refund"),
        booking("0.99", "Mallory", MALLORY, "a word from a stranger"),
        booking("0.02", "Jana Friend", MALLORY, "a name that is known"),
        booking("0.01", "Nobody", None, "no number at all"),
        booking("1.00", "Mallory", MALLORY, "a whole euro"),
        booking("0.03", None, None, "interest"),
    ]
    holder.bring(AccountRecord(stable_key="giro", currency="EUR", iban="DE02120300000000202051", name="Giro"), told)
    token = holder.service.services.authorization.issue_token(
        holder.user.id, frozenset(SCOPES), timedelta(hours=1), resource="mcp"
    )
    http = TestClient(holder.service.app, base_url=ADDRESS, headers={"Authorization": f"Bearer {token}"})
    someone = Assistant(http, holder.client)
    rows = someone.answer("search_transactions", perPage=50)["transactions"]
    withheld = [row for row in rows if "cents_from_stranger" in row["flags"]]
    assert sorted(row["amount"] for row in withheld) == [0.01, 0.02, 0.99]
    assert {text for row in withheld for text in row["bank_text"].values()} == {"«withheld: cents_from_stranger»"}
    assert len(rows) == len(told)
    purposes = set()
    for row in withheld:
        shown = someone.answer("get_transaction", id=row["ref"])["transaction"]
        assert shown["flags"] == ["cents_from_stranger"]
        purposes.add(shown["bank_text"]["purpose"])
    assert purposes == {"«a word from a stranger»", "«a name that is known»", "«no number at all»"}
