"""What was booked once and is no more: the balances that a bank told until then are true of what it was."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.integrity import integrity
from analytics.records import StatementRecord
from storage import accounts
from storage.integrity import evidence
from tests.storage.conftest import Bank, bookings
from tests.storage.test_complete_windows import sync, told

pytestmark = pytest.mark.requirement("integrity.corrections")

SHOP = "2026-11-08 | -5.00 | Shop | Brot | provider_id=s"
CORRECTED = "2026-11-08 | -5.50 | Shop | Brot | provider_id=s"
CAFE = "2026-11-03 | -2.80 | Cafe | Kaffee | provider_id=c"


def differences(bank: Bank) -> list[Decimal | None]:
    """By how much the account's ledger is said to differ."""
    ids = [each.id for each in accounts.of_user(bank.database, bank.user.id)]
    with bank.database.transaction() as session:
        (found,) = integrity(ids, evidence(session, bank.user.id, ids), today=bank.now.date())
    return [each.amount for each in found.problems if each.is_unsound]


def former(bank: Bank) -> list[tuple[str, str]]:
    rows = bank.database.rows("SELECT booking_date, amount FROM former_amounts WHERE user_id = $1", bank.user.id)
    return sorted((f"{row['booking_date']:%m-%d}", f"{row['amount']:.2f}") for row in rows)


def on(bank: Bank, day: int, table: str, balance: str) -> list[str]:
    """What the sync of this day did, which tells these bookings of all November, and this balance."""
    bank.now = bank.now.replace(year=2026, month=11, day=day)
    return sync(bank, table, told("2026-11-01", f"2026-11-{day:02}", balance))


def test_a_correction_contradicts_no_balance_from_before_it(bank: Bank) -> None:
    on(bank, 6, CAFE, "100")
    on(bank, 10, f"{CAFE}\n{SHOP}", "95")
    assert on(bank, 12, f"{CAFE}\n{CORRECTED}", "94.50") == ["modified"]
    assert former(bank) == [("11-08", "-5.00"), ("11-08", "5.50")]
    assert differences(bank) == []
    on(bank, 14, f"{CAFE}\n{CORRECTED}", "90")
    assert differences(bank) == [Decimal("-4.50")]


def test_what_was_taken_back_and_comes_back_was_away_only_between(bank: Bank) -> None:
    on(bank, 6, CAFE, "100")
    on(bank, 10, f"{CAFE}\n{SHOP}", "95")
    assert on(bank, 12, CAFE, "100") == ["removed"]
    assert differences(bank) == []
    assert on(bank, 14, f"{CAFE}\n{SHOP}", "95") == ["added"]
    assert former(bank) == [("11-08", "-5.00"), ("11-08", "5.00")]
    assert differences(bank) == []


def test_what_was_pending_when_a_balance_of_its_day_was_told_is_not_in_it(bank: Bank) -> None:
    on(bank, 6, CAFE, "100")
    on(bank, 8, f"{CAFE}\n{SHOP};status=pending", "100")
    on(bank, 10, f"{CAFE}\n{SHOP}", "95")
    assert differences(bank) == []
    on(bank, 12, f"{CAFE}\n{SHOP}", "96")
    assert differences(bank) == [Decimal(1)]


def test_a_statement_that_tells_the_last_day_of_another_again_leaves_no_gap(bank: Bank) -> None:
    bank.now = bank.now.replace(year=2026, month=11, day=20)

    def bring(table: str, first: int, last: int, opening: str, closing: str) -> None:
        stated = StatementRecord(
            opening=Decimal(opening),
            opening_date=date(2026, 11, first),
            closing=Decimal(closing),
            closing_date=date(2026, 11, last),
            is_authoritative=True,
        )
        bank.now += timedelta(hours=1)
        bank.bring(bookings(table), statement=stated)

    bring(f"{CAFE}\n{SHOP}", 1, 8, "100", "92.20")
    bring(f"{SHOP}\n2026-11-09 | -1.00 | Kiosk | Zeitung", 8, 9, "97.20", "91.20")
    assert differences(bank) == []
    assert len(bank.ids()) == 3  # no adjusting entry
