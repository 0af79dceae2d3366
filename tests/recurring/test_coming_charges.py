"""Which charges the next thirty days bring (docs/analytics.md, "What is reported about a recurring payment")."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.recurring.history import Charge, history

TODAY = date(2026, 11, 20)


def coming(last: date, frequency: str, days: int) -> list[str]:
    """What comes after three charges so many days apart."""
    paid = [Charge(id=str(n), day=last - timedelta(days=n * days), amount=Decimal("25.00")) for n in range(3)]
    told = history(paid, frequency=frequency, currency="EUR", today=TODAY)
    assert told.coming[:1] in ([], [told.next_expected])
    return [due.isoformat() for due in told.coming]


@pytest.mark.requirement("explanations.subscriptions")
def test_a_weekly_payment_comes_as_often_as_it_is_due_within_thirty_days() -> None:
    assert coming(date(2026, 11, 17), "weekly", 7) == ["2026-11-24", "2026-12-01", "2026-12-08", "2026-12-15"]
    assert coming(date(2026, 11, 13), "weekly", 7) == [
        *("2026-11-20", "2026-11-27", "2026-12-04", "2026-12-11", "2026-12-18")
    ]
    assert coming(date(2026, 11, 17), "biweekly", 14) == ["2026-12-01", "2026-12-15"]


@pytest.mark.requirement("explanations.subscriptions")
@pytest.mark.parametrize(("last", "due"), [("2025-12-20", ["2026-12-20"]), ("2025-12-21", [])])
def test_thirty_days_include_the_thirtieth_and_no_further_one(last: str, due: list[str]) -> None:
    assert coming(date.fromisoformat(last), "yearly", 365) == due


@pytest.mark.requirement("explanations.subscriptions")
@pytest.mark.parametrize(
    ("last", "due"), [("2026-10-15", ["2026-11-15", "2026-12-15"]), ("2026-10-14", ["2026-12-14"])]
)
def test_what_is_overdue_is_still_to_come_until_it_counts_as_missed(last: str, due: list[str]) -> None:
    assert coming(date.fromisoformat(last), "monthly", 30)[:2] == due


@pytest.mark.requirement("explanations.subscriptions")
@pytest.mark.parametrize(
    ("days", "due", "incoming"),
    [
        # rent on the first: a holiday or a weekend puts it off in most of these months
        ("2024-01-02 2024-02-01 2024-03-01 2024-04-02 2024-05-02 2024-06-03 2024-07-01 2024-08-01 2024-09-02 2024-10-01"
         " 2024-11-01 2024-12-02 2025-01-02 2025-02-03", "2025-03-03", False),
        # pay on the 27th that came 15 days late once
        ("2024-09-27 2024-10-25 2024-11-27 2024-12-27 2025-01-27 2025-02-27 2025-03-27 2025-05-12 2025-05-27",
         "2025-06-27", True),
    ],
)  # fmt: skip
def test_a_payment_keeps_its_day_though_weekends_put_it_off_and_it_came_late_once(
    days: str, due: str, incoming: bool
) -> None:
    paid = [Charge(id=day, day=date.fromisoformat(day), amount=Decimal(900)) for day in days.split()]
    told = history(paid, frequency="monthly", currency="EUR", today=paid[-1].day, incoming=incoming)
    assert told.next_expected.isoformat() == due
