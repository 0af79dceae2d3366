"""Calendar spans, at their borders."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.periods import (
    InvalidMonth,
    last_30_days,
    last_day,
    month_of,
    months_back,
    shown_months,
    six_months_before,
)


@pytest.mark.requirement("decision 10")
def test_the_30_days_are_today_and_the_29_before() -> None:
    assert last_30_days(date(2026, 3, 1)) == (date(2026, 1, 31), date(2026, 3, 1))


@pytest.mark.requirement("decision 10")
@pytest.mark.parametrize(
    ("today", "begin"),
    [
        (date(2026, 3, 15), date(2025, 9, 15)),
        (date(2026, 8, 31), date(2026, 2, 28)),
        (date(2024, 8, 31), date(2024, 2, 29)),
        (date(2026, 3, 31), date(2025, 9, 30)),
        (date(2026, 6, 30), date(2025, 12, 30)),
    ],
)
def test_six_months_begin_on_the_same_day_or_the_last_of_a_shorter_month(today: date, begin: date) -> None:
    assert six_months_before(today) == begin


@pytest.mark.requirement("cashflow.months")
def test_months_are_listed_oldest_first_across_the_turn_of_the_year() -> None:
    assert months_back(date(2026, 2, 28), 3) == [date(2025, 12, 1), date(2026, 1, 1), date(2026, 2, 1)]


@pytest.mark.requirement("decision 3")
@pytest.mark.parametrize(
    ("asked", "first_booking", "rows"),
    [
        (1, None, 1),
        (120, None, 120),
        (121, None, 120),
        (10**30, None, 120),
        (10**30, date(2026, 1, 31), 120),
        (120, date(2000, 1, 1), 120),
        (10**30, date(2016, 4, 1), 120),  # the 120th month back
        (10**30, date(2016, 3, 31), 121),
        (121, date(2000, 1, 1), 121),
        (10**30, date(2000, 1, 31), 315),
    ],
)
def test_beyond_120_months_only_those_since_the_first_booking_are_listed(
    asked: int, first_booking: date | None, rows: int
) -> None:
    shown = shown_months(date(2026, 3, 31), asked, first_booking=first_booking)
    assert len(shown) == rows
    assert shown[-1] == date(2026, 3, 1)


@pytest.mark.requirement("explanations.month")
def test_a_month_is_written_with_four_and_two_digits() -> None:
    assert month_of("2026-01") == date(2026, 1, 1)
    assert month_of("2026-12") == date(2026, 12, 1)


@pytest.mark.requirement("explanations.month")
@pytest.mark.parametrize(
    "text",
    ["", "2026", "2026-00", "2026-13", "2026-1", "0000-01", "2026-01-01", " 2026-01", "2026-01\n", "２０２６-01"],
)
def test_anything_else_is_no_month(text: str) -> None:
    with pytest.raises(InvalidMonth, match=r"^month: must be a calendar month written YYYY-MM\.$"):
        month_of(text)


@given(st.dates(date(200, 1, 1), date(9998, 12, 31)), st.integers(1, 300))
def test_months_follow_each_other_without_gap(today: date, count: int) -> None:
    months = months_back(today, count)
    assert len(months) == count
    assert months[-1] <= today <= last_day(months[-1])
    assert all((after - last_day(before)).days == 1 for before, after in pairwise(months))
