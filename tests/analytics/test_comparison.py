"""With which days a span is compared."""

from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.periods import last_day
from analytics.searching.comparison import CompareWith, Span, comparison

LONG_AGO = date(2000, 1, 1)


def said(
    first: str, last: str, how: CompareWith, *, today: str = "2026-11-25", known_from: date | None = LONG_AGO
) -> str:
    asked = Span(date.fromisoformat(first), date.fromisoformat(last))
    found = comparison(asked, how, today=date.fromisoformat(today), known_from=known_from)
    return "nothing" if found is None else " ".join(str(day) for span in (found.span, found.earlier) for day in span)


@pytest.mark.requirement("totals.compared")
@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (("2026-10-01", "2026-10-31", "previousPeriod"), "2026-10-01 2026-10-31 2026-09-01 2026-09-30"),
        (("2026-01-01", "2026-03-31", "previousPeriod"), "2026-01-01 2026-03-31 2025-10-01 2025-12-31"),
        (("2026-02-01", "2026-02-28", "previousYear"), "2026-02-01 2026-02-28 2025-02-01 2025-02-28"),
        (("2025-02-01", "2025-02-28", "previousYear"), "2025-02-01 2025-02-28 2024-02-01 2024-02-29"),
        (("2026-10-10", "2026-10-19", "previousPeriod"), "2026-10-10 2026-10-19 2026-09-30 2026-10-09"),
        (("2026-10-10", "2026-11-09", "previousYear"), "2026-10-10 2026-11-09 2025-10-10 2025-11-09"),
    ],
)
def test_whole_months_are_compared_with_months_and_days_with_as_many(
    asked: tuple[str, str, CompareWith], expected: str
) -> None:
    assert said(*asked) == expected


@pytest.mark.requirement("totals.compared")
def test_what_is_to_come_is_in_neither_span() -> None:
    assert said("2026-11-01", "2026-11-30", "previousPeriod") == "2026-11-01 2026-11-25 2026-10-01 2026-10-25"
    assert said("2026-01-01", "2026-12-31", "previousYear") == "2026-01-01 2026-11-25 2025-01-01 2025-11-25"
    march = said("2026-03-01", "2026-03-31", "previousPeriod", today="2026-03-30")
    assert march == "2026-03-01 2026-03-28 2026-02-01 2026-02-28"


@pytest.mark.requirement("totals.compared")
def test_days_from_the_first_of_a_month_until_today_are_months_begun() -> None:
    assert said("2026-11-01", "2026-11-25", "previousPeriod") == "2026-11-01 2026-11-25 2026-10-01 2026-10-25"
    assert said("2026-10-01", "2026-11-25", "previousPeriod") == "2026-10-01 2026-11-25 2026-08-01 2026-09-25"
    assert said("2026-01-01", "2026-11-25", "previousPeriod") == "2026-01-01 2026-11-25 2025-01-01 2025-11-25"
    january = said("2026-01-01", "2026-01-25", "previousPeriod", today="2026-01-25")
    assert january == "2026-01-01 2026-01-25 2025-12-01 2025-12-25"
    assert said("2026-11-02", "2026-11-25", "previousPeriod") == "2026-11-02 2026-11-25 2026-10-09 2026-11-01"
    assert said("2026-11-01", "2026-11-24", "previousPeriod") == "2026-11-01 2026-11-24 2026-10-08 2026-10-31"


@pytest.mark.requirement("totals.compared")
def test_what_lies_before_the_first_booking_is_in_neither_span() -> None:
    year = said("2025-01-01", "2025-12-31", "previousYear", known_from=date(2024, 3, 11))
    assert year == "2025-03-12 2025-12-31 2024-03-11 2024-12-30"  # a leap year
    assert said("2026-10-01", "2026-10-31", "previousPeriod", known_from=date(2026, 10, 1)) == "nothing"
    assert said("2026-10-01", "2026-10-31", "previousPeriod", known_from=None) == "nothing"


@pytest.mark.requirement("totals.compared")
def test_where_the_calendar_ends_nothing_is_compared() -> None:
    assert said("0001-01-05", "0001-02-05", "previousYear") == "nothing"
    assert said("0001-01-05", "9999-12-31", "previousPeriod") == "nothing"
    assert said("2027-01-05", "2027-02-05", "previousYear") == "nothing"


@pytest.mark.requirement("totals.compared")
@given(
    first=st.dates(date(2020, 1, 1), date(2026, 12, 31)),
    length=st.integers(0, 800),
    how=st.sampled_from(["previousPeriod", "previousYear"]),
    today=st.dates(date(2024, 1, 1), date(2026, 12, 31)),
    known_from=st.dates(date(2018, 1, 1), date(2026, 12, 31)),
)
def test_both_spans_are_as_long_unless_they_are_whole_months(
    first: date, length: int, how: CompareWith, today: date, known_from: date
) -> None:
    asked = Span(first, date.fromordinal(first.toordinal() + length))
    found = comparison(asked, how, today=today, known_from=known_from)
    if found is None:
        return
    assert asked.first <= found.span.first <= found.span.last <= min(asked.last, today)
    assert known_from <= found.earlier.first <= found.earlier.last < found.span.last
    is_whole = found.span == asked and asked.first.day == 1 and asked.last == last_day(asked.last.replace(day=1))
    assert is_whole or found.span.days == found.earlier.days
    moved = pl.select(found.shift.of(pl.lit(found.earlier.first))).item()
    assert abs((moved - found.span.first).days) <= 3  # months are not all as long
