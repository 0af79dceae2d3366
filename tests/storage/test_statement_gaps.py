"""Where money moved between two statements, and where statements of one day or of different lengths leave no doubt."""

from datetime import date
from decimal import Decimal
from itertools import permutations

import pytest

from analytics.statements.gaps import Stated, gaps, number


def stated(opening: int, opened: int, closing: int, closed: int, sequence: str | None = None) -> Stated:
    """A statement of January by the days on which it opens and closes."""
    return Stated(
        sequence=sequence,
        opening=Decimal(opening),
        opening_date=date(2026, 1, opened),
        closing=Decimal(closing),
        closing_date=date(2026, 1, closed),
    )


CHAINS = {
    "each opens on the day the last one closed": [stated(10, 1, 20, 2), stated(20, 2, 30, 3), stated(30, 3, 5, 4)],
    "each opens on the day after": [stated(10, 1, 20, 2), stated(20, 3, 30, 4)],
    "two of one day by their balances": [stated(10, 1, 20, 1), stated(20, 2, 30, 2), stated(30, 2, 5, 2)],
    "two of one day by their numbers": [stated(20, 2, 30, 2, "9"), stated(30, 2, 20, 2, "10"), stated(20, 3, 1, 3)],
    "a report and the statement of a day": [stated(20, 2, 30, 2, "77"), stated(20, 2, 40, 2, "2"), stated(40, 3, 1, 3)],
    "a month and its days": [stated(10, 1, 50, 31), stated(10, 1, 20, 1), stated(20, 2, 25, 2), stated(45, 31, 50, 31)],
    "overlapping weeks": [stated(10, 1, 30, 7), stated(20, 5, 40, 12), stated(40, 12, 50, 19)],
    "no order can be told": [stated(10, 2, 20, 2), stated(50, 2, 60, 2)],
}  # fmt: skip


@pytest.mark.requirement("import.gaps")
@pytest.mark.parametrize("name", CHAINS)
def test_no_gap_is_claimed_in_whatever_order_they_come(name: str) -> None:
    for order in permutations(CHAINS[name]):
        assert list(gaps(order)) == []


@pytest.mark.requirement("import.gaps")
def test_a_missing_statement_is_one_gap() -> None:
    first, third = stated(10, 1, 20, 2), stated(30, 3, 40, 4)
    for order in permutations([first, third]):
        assert list(gaps(order)) == [(first, third)]
    assert list(gaps([first, third, stated(20, 2, 30, 3)])) == []


@pytest.mark.requirement("import.gaps")
def test_a_missing_statement_of_a_numbered_day_is_one_gap() -> None:
    first, third = stated(10, 2, 20, 2, "1"), stated(30, 2, 40, 2, "3")
    for order in permutations([first, third]):
        assert list(gaps(order)) == [(first, third)]


@pytest.mark.requirement("import.gaps")
def test_two_statements_that_begin_alike_share_a_gap() -> None:
    first, day, week = stated(10, 1, 20, 2), stated(30, 4, 40, 4), stated(30, 4, 70, 10)
    for order in permutations([first, day, week]):
        assert list(gaps(order)) == [(first, day)]


@pytest.mark.requirement("import.balance")
def test_numbers_of_statements_are_compared_part_by_part() -> None:
    ordered = [None, "9", "10", "12/2", "12/10", "13/1"]
    assert sorted(ordered, key=number) == ordered
