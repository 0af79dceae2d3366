"""What a usual period comes to."""

from datetime import date
from decimal import Decimal

import pytest

from analytics.searching.per_period import usual, whole_periods

MONTHS = [date(2026, month, 1) for month in range(1, 7)]


@pytest.mark.requirement("totals.usual")
@pytest.mark.parametrize(
    ("kind", "first", "last", "expected"),
    [
        ("month", "2026-01-01", "2026-03-31", ["2026-01-01", "2026-02-01", "2026-03-01"]),
        ("month", "2026-01-02", "2026-03-30", ["2026-02-01"]),
        ("quarter", "2026-01-01", "2026-09-29", ["2026-01-01", "2026-04-01"]),
        ("quarter", "2025-12-01", "2026-03-31", ["2026-01-01"]),
        ("year", "2024-01-01", "2026-11-29", ["2024-01-01", "2025-01-01"]),
        ("week", "2026-11-09", "2026-11-29", ["2026-11-09", "2026-11-16", "2026-11-23"]),
        ("week", "2026-11-10", "2026-11-22", ["2026-11-16"]),
    ],
)
def test_only_whole_periods_count(kind: str, first: str, last: str, expected: list[str]) -> None:
    found = whole_periods(kind, date.fromisoformat(first), date.fromisoformat(last))
    assert [day.isoformat() for day in found] == expected


@pytest.mark.requirement("totals.usual")
def test_a_period_without_bookings_is_zero_and_one_far_off_is_named() -> None:
    spent = dict(zip(MONTHS, map(Decimal, (100, 150, 60, 90, 2000)), strict=False))
    found = usual(spent, MONTHS)
    assert (found.mean, found.median) == (Decimal(400), Decimal(95))
    assert (found.outliers, found.mean_of_others) == ([date(2026, 5, 1)], Decimal(80))


@pytest.mark.requirement("totals.usual")
def test_of_three_periods_none_is_far_off() -> None:
    found = usual(dict(zip(MONTHS, map(Decimal, (1, 1, 900)), strict=False)), MONTHS[:3])
    assert (found.outliers, found.mean_of_others) == ([], found.mean)
