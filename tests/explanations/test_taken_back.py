"""What a bank takes back is said, counts no more, and can be seen."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from handlers import integrity_sentences
from storage import accounts, connections
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder, body_of
from tests.mcp.test_covered_accounts import Granted

GIRO = AccountRecord(stable_key="DE02120300000000202051", iban="DE02120300000000202051", currency="EUR", name="Giro")
SAVINGS = AccountRecord(stable_key="savings", currency="EUR", name="Savings")
SAID = "Giro: The bank has taken back the transaction of -5.00 EUR on 3 November 2026. No figure counts it any more."


def booked(day: str, amount: str, name: str) -> TransactionRecord:
    return TransactionRecord(
        amount=Decimal(amount), currency="EUR", booking_date=date.fromisoformat(day), counterpart_name=name
    )


CAFE, SHOP = booked("2026-11-02", "-2.80", "Cafe"), booked("2026-11-03", "-5.00", "Shop")


def november(balance: str) -> StatementRecord:
    """A live source's answer for these days, with its balance of the last one."""
    return StatementRecord(
        told_from=date(2026, 11, 1),
        told_until=date(2026, 11, 20),
        closing=Decimal(balance),
        closing_date=date(2026, 11, 20),
    )


@pytest.fixture
def holder(new_holder: Callable[[], Holder]) -> Holder:
    holder = new_holder()
    database, now = holder.service.services.everybody, holder.service.services.clock.now()
    holder.connection = database.atomically(
        lambda session: connections.add(
            session,
            user_id=holder.user.id,
            user_name=holder.user.name,
            connector="demo",
            bank_name="Live",
            settings={},
            now=now,
        )
    )
    return holder


@pytest.mark.requirement("import.complete-windows")
@pytest.mark.long
def test_a_booking_that_the_bank_takes_back_is_said_for_a_week_and_can_be_seen(holder: Holder) -> None:
    holder.bring(GIRO, [CAFE, SHOP], november("92.20"))
    holder.bring(SAVINGS, [booked("2026-11-04", "1.00", "Bank")])
    giro, savings = holder.account_ids()
    (shop,) = (each for each in holder.get("/transactions", accountIds=giro)["transactions"] if each["amount"] == -5)
    assert holder.get("/transactions/taken-back") == {"transactions": []}
    holder.bring(GIRO, [CAFE], november("97.20"))
    (seen,) = holder.get("/transactions/taken-back")["transactions"]
    assert seen == {**shop, "takenBackAt": seen["takenBackAt"]}
    assert seen["takenBackAt"].startswith("2026-11-20T12:")
    assert holder.get("/transactions/taken-back", accountIds=savings) == {"transactions": []}
    assert holder.get("/transactions", accountIds=giro)["pagination"]["total"] == 1
    assert [text for each in holder.get("/connections")["connections"] for text in each["warnings"]] == [SAID]
    database, user = holder.service.services.everybody, holder.user.id
    owned = accounts.of_user(database, user)
    for days, said in ((6, {giro: [SAID]}), (7, {})):
        today = date(2026, 11, 20) + timedelta(days=days)
        assert integrity_sentences.taken_back_lately(database, user, owned, today=today) == said
    database.execute("UPDATE taken_back_transactions SET taken_back_at = NULL WHERE user_id = $1", user)
    assert holder.get("/transactions/taken-back")["transactions"][0]["takenBackAt"] is None
    assert integrity_sentences.taken_back_lately(database, user, owned, today=date(2026, 11, 20)) == {}


@pytest.mark.requirement("grants.covered")
def test_an_app_sees_what_was_taken_back_of_its_accounts_alone_and_with_figures_only_nothing(holder: Holder) -> None:
    holder.bring(GIRO, [CAFE, SHOP], november("92.20"))
    holder.bring(SAVINGS, [booked("2026-11-04", "1.00", "Bank")])
    holder.bring(GIRO, [CAFE], november("97.20"))
    giro, savings = holder.account_ids()
    granted = Granted(holder.service, holder.user.id, [giro, savings], holder.client)
    path = "/transactions/taken-back"
    assert len(body_of(granted.rest(Terms(accounts=(giro,))), path)["transactions"]) == 1
    assert body_of(granted.rest(Terms(accounts=(savings,))), path) == {"transactions": []}
    figures = granted.rest(Terms(figures_only=True))
    assert figures.get(path).status_code == 403
    assert [text for each in body_of(figures, "/connections")["connections"] for text in each["warnings"]] == []
