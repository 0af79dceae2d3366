"""Gaps between statements, found day by day and found by comparing each statement with all before it."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.statements.gaps import OF_ONE_DAY_MAX, Stated, gaps, number
from tests.conftest import examples

DAY = date(2026, 11, 1)
DAYS = st.integers(0, 4).map(lambda days: DAY + timedelta(days=days))
MONEY = st.integers(0, 3).map(Decimal)
STATEMENTS = st.lists(
    st.builds(
        Stated,
        sequence=st.sampled_from([None, "1", "2", "3", "10/2"]),
        opening=MONEY,
        opening_date=DAYS,
        closing=MONEY,
        closing_date=DAYS,
    ),
    max_size=7,
)


@pytest.mark.requirement("import.gaps")
@settings(max_examples=examples(200))
@given(STATEMENTS)
def test_gaps_are_those_of_the_obvious_way(statements: list[Stated]) -> None:
    assert list(gaps(statements)) == list(slow_gaps(statements))


@pytest.mark.requirement("import.gaps")
@pytest.mark.parametrize(("count", "found"), [(OF_ONE_DAY_MAX, OF_ONE_DAY_MAX - 1), (OF_ONE_DAY_MAX + 1, 0)])
def test_between_more_than_a_hundred_statements_of_one_day_no_gap_is_claimed(count: int, found: int) -> None:
    told = [
        Stated(
            sequence=str(place),
            opening=Decimal(3 * place),
            opening_date=DAY,
            closing=Decimal(3 * place + 1),
            closing_date=DAY,
        )
        for place in range(1, count + 1)
    ]
    assert len(list(gaps(told))) == found


def slow_gaps(statements: Sequence[Stated]) -> Iterator[tuple[Stated, Stated]]:
    """Each statement compared with all before it."""
    ordered = sorted(statements, key=lambda one: (one.closing_date, number(one.sequence), one.opening_date))
    days = [one.closing_date for one in ordered]
    earliest = list(accumulate(reversed([one.opening_date for one in ordered]), min, initial=date.max))[::-1]
    seen = set()
    for later in ordered:
        beginning = (later.opening_date, later.opening)
        place = bisect_right(days, later.opening_date)
        if beginning in seen or earliest[place] < later.opening_date:
            continue  # another begins like this one, or a longer one covers its beginning
        seen.add(beginning)
        earlier = _before(ordered[:place], later)
        if earlier is not None:
            yield earlier, later


def _before(candidates: Sequence[Stated], later: Stated) -> Stated | None:
    """The statement before `later` that leaves a gap; None where there is none or it cannot be told."""
    last: Stated | None = None
    for one in reversed(candidates):
        if last is not None and one.closing_date < last.closing_date:
            break
        if one is later:
            continue
        if one.closing_date == later.closing_date and not _precedes(one, later):
            is_tail = one.closing == later.closing and one.opening_date < later.opening_date
            if is_tail or not _precedes(later, one):
                return None
            continue
        if one.closing == later.opening:
            return None
        last = last or one
    return last


def _precedes(one: Stated, other: Stated) -> bool:
    """Of two that close on one day."""
    first, second = number(one.sequence)[0], number(other.sequence)[0]
    return one.closing == other.opening or bool(first and second and first < second and other.closing != one.opening)
