"""Which charges a stream gets, from charges and lattices that are made by hand: a month is one, a day 1/30 of it."""

from collections.abc import Sequence
from typing import Any

import pytest

from analytics.recurring.choice import DatedCharge, Placed, complete_streams, further_charges, join_successors, place
from analytics.recurring.evidence import Candidate, ChargeGroup, Fit

pytestmark = pytest.mark.requirement("subscriptions.evidence")

MONTHS = (1.0, 2.0, 3.0, 4.0)


def candidate(group: int = 1, *, phase: float = 0.0, frequency: str = "monthly", part: float = 1.0) -> Candidate:
    """A group of the only payee, without a contract."""
    fit: dict[str, Any] = {"axis": "months", "period": 1.0, "unit_days": 30.0, "tolerance_days": 4.0}
    fit |= {"phase": phase, "frequency": frequency}
    known: dict[str, Any] = {"group": group, "part": part, "contract": False}
    return Candidate(
        ChargeGroup._make(known.get(name, 0) for name in ChargeGroup._fields),
        Fit._make(fit.get(name, 0) for name in Fit._fields),
        score=1.0,
    )


def charge(row: int, month: float, price: float = 10.0) -> DatedCharge:
    return DatedCharge(row, 1, price, days=month * 30.44, business=0.0, months=month)


def stream(rows: Sequence[int], months: Sequence[float] = MONTHS, **of_candidate: Any) -> list[Placed]:
    chosen = candidate(**of_candidate)
    return [place(charge(row, month), chosen) for row, month in zip(rows, months, strict=True)]


def test_a_second_collection_a_new_price_and_a_trial_month_belong_to_a_stream() -> None:
    left = [
        charge(11, 2.03),  # a day after the second one
        charge(12, 5.0, 12.0),
        charge(13, 0.0, 5.0),
        charge(14, 3.0, 7.0),  # another price in a month that is paid
        charge(15, 6.0, 100.0),
        charge(16, -1.0, 50.0),
    ]
    assert [each.charge.row for each in further_charges(stream([1, 2, 3, 4]), left)] == [11, 12, 13]


def test_second_collections_of_more_than_a_quarter_of_a_stream_are_not_its_own() -> None:
    assert further_charges(stream([1, 2, 3, 4]), [charge(11, 2.03), charge(12, 3.03)]) == []


def test_a_charge_that_two_streams_may_have_belongs_to_the_nearest() -> None:
    later = [month + 0.1 for month in MONTHS]  # three days
    charges = {row: charge(row, month) for row, month in enumerate([*MONTHS, *later, 5.04, 6.07])}
    candidates = {1: candidate(1), 2: candidate(2, phase=0.1)}
    streams, odd = complete_streams(charges, {1: range(4), 2: range(4, 8)}, candidates)
    assert {group: [each.charge.row for each in placed] for group, placed in streams.items()} == {
        1: [0, 1, 2, 3, 8],
        2: [4, 5, 6, 7, 9],
    }
    assert odd == set()


def test_what_never_comes_on_its_day_is_no_stream_where_other_things_are_bought() -> None:
    charges = {row: charge(row, month) for row, month in enumerate([1.3, 2.3, 3.3])}
    assert complete_streams(charges, {1: range(3)}, {1: candidate(part=0.5)}) == ({}, set())


def test_streams_of_two_frequencies_are_not_joined() -> None:
    monthly, weekly = stream([1, 2, 3, 4]), stream([5, 6], [5.0, 5.25], group=2, frequency="weekly")
    assert join_successors({1: monthly, 2: weekly}) == {1: monthly, 2: weekly}
    again = stream([5, 6], [5.0, 6.0], group=2)
    assert join_successors({1: monthly, 2: again}) == {2: [*monthly, *again]}
