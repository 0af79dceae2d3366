"""From balance to balance: bookings of the edges may be in or out, and nothing is claimed that they could explain."""

from datetime import timedelta
from decimal import Decimal
from itertools import accumulate, combinations, pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.day_totals import DayTotals
from analytics.frames import FORMER, MOVED
from analytics.statements.balance_chain import DOUBTFUL_MAX, OVERTAKEN_MAX, ReportedBalance, between_balances
from tests.analytics.ledger_evidence import Row, at, booking, day, frame, problems, statement, told
from tests.conftest import examples

pytestmark = pytest.mark.requirement("integrity.edges")


def test_what_became_known_after_a_balance_of_its_day_is_not_in_it() -> None:
    stated = [told(5, "100"), told(10, "80")]
    assert problems(stated, [booking(5, "-20", known=at(5, 15))]) == []
    assert problems(stated, [booking(5, "-7"), booking(5, "-20", known=at(5, 15)), booking(8, "1")]) == [
        ("balance_differs", 6, 10, "-1")
    ]


def test_a_booking_that_is_told_with_a_balance_but_not_in_it_is_decided_by_the_next_one() -> None:
    lagging = [told(5, "100"), told(10, "100")]
    moved = [booking(10, "-30")]
    assert problems(lagging, moved) == []
    assert problems([*lagging, told(20, "70")], moved) == []
    assert problems([*lagging, told(20, "100")], moved) == [("balance_differs", 6, 20, "30")]


def test_the_first_balance_may_lack_what_was_told_with_it_and_a_proven_one_may_not() -> None:
    assert problems([told(5, "100"), told(10, "70")], [booking(5, "-30")]) == []
    proven = [told(1, "130"), told(5, "100"), told(10, "70")]
    assert problems(proven, [booking(5, "-30"), booking(2, "1"), booking(3, "-1")]) == [
        ("balance_differs", 6, 10, "-30")
    ]


def test_a_late_booking_of_an_earlier_day_moves_no_balance_before_it_was_known() -> None:
    stated = [told(5, "100"), told(10, "90"), told(12, "60")]
    moved = [booking(8, "-10"), booking(9, "-30", known=at(12))]
    assert problems(stated, moved) == []
    assert problems(stated, moved[:1]) == [("balance_differs", 11, 12, "-30")]


def test_a_booking_of_months_before_is_in_the_opening_and_no_difference() -> None:
    stated = [told(50, "100"), told(60, "90")]
    assert problems(stated, [booking(55, "-10"), booking(3, "-44", known=at(70))]) == []


def test_a_balance_that_holds_what_is_pending_contradicts_nothing() -> None:
    stated = [told(5, "100"), told(10, "80")]
    assert problems(stated, [booking(1, "1")], [booking(10, "-20")]) == []
    booked = [booking(1, "1"), booking(12, "-20", known=at(9))]
    assert problems([*stated, told(20, "80")], booked) == []
    assert problems([*stated, told(20, "79")], booked) == [("balance_differs", 6, 20, "-1")]


@pytest.mark.parametrize(("count", "is_said"), [(DOUBTFUL_MAX, False), (DOUBTFUL_MAX + 1, True)])
def test_very_many_bookings_of_an_edge_explain_something_only_as_a_whole(count: int, is_said: bool) -> None:
    moved = [booking(10, f"-{place}.01") for place in range(1, count + 1)]
    everything = sum((Decimal(str(row["amount"])) for row in moved), Decimal(0))
    lacks_one = [told(5, "100"), told(10, str(100 + everything + Decimal("1.01")))]
    assert bool(problems(lacks_one, moved)) == is_said
    assert problems([told(5, "100"), told(10, "100")], moved) == []


def test_balances_from_before_a_correction_are_said_until_later_ones_add_up_with_those_before_them() -> None:
    stated, corrected = [told(5, "100"), told(10, "95"), told(12, "95"), told(15, "94.50")], [booking(8, "-5.50")]
    assert problems(stated, corrected) == []
    assert problems(stated[:3], corrected) == [("balance_differs", 6, 10, "0.5")]


def test_the_balance_of_a_statement_is_not_overtaken() -> None:
    stated = [told(5, "100"), statement(10, 10, "95", "95"), told(15, "94.50")]
    assert problems(stated, [booking(8, "-5.50")]) == [
        ("balance_differs", 6, 10, "0.5"),
        ("balance_differs", 11, 15, "-0.5"),
    ]
    earlier = [told(5, "100"), told(7, "95"), statement(10, 10, "95", "95"), told(15, "94.50")]
    assert bool(problems(earlier, [booking(6, "-5.50")]))


@pytest.mark.parametrize(("count", "is_said"), [(OVERTAKEN_MAX, False), (OVERTAKEN_MAX + 1, True)])
def test_only_so_many_balances_are_overtaken(count: int, is_said: bool) -> None:
    between = [told(10 + place, "95") for place in range(count)]
    stated = [told(5, "100"), *between, told(25, "94.50")]
    assert bool(problems(stated, [booking(8, "-5.50")])) == is_said


def test_what_may_be_in_either_of_two_balances_proves_neither() -> None:
    late = booking(8, "-20", known=at(14))
    moved = [booking(8, "3"), late, booking(9, "-50"), booking(12, "-1")]
    assert problems([told(8, "100"), told(9, "53"), told(14, "32")], moved) == []


def was(number: int, amount: str, *, until: int, known: int | None = None) -> Row:
    """What was booked of this day until its correction came to be known on another one."""
    return {**booking(number, amount, known=at(known or number, 8)), "ended_at": at(until, 12)}


def test_a_balance_from_before_a_correction_holds_the_amount_that_was_booked_then() -> None:
    stated = [told(5, "100"), told(10, "95"), told(15, "94.50")]
    former = [was(8, "-5", until=15), was(8, "5.50", until=15)]
    assert problems(stated[:2], [booking(8, "-5.50")], former=former) == []
    assert problems(stated, [booking(8, "-5.50")], former=former) == []
    assert problems([*stated[:2], told(15, "93")], [booking(8, "-5.50")], former=former) == [
        ("balance_differs", 11, 15, "-1.5")
    ]


def test_the_first_balance_is_one_from_before_a_correction_too() -> None:
    former = [was(4, "-5", until=10), was(4, "5.50", until=10)]
    assert problems([told(5, "100"), told(10, "99.50")], [booking(4, "-5.50")], former=former) == []
    assert problems([told(5, "100"), told(10, "99")], [booking(4, "-5.50")], former=former) == [
        ("balance_differs", 6, 10, "-0.5")
    ]


def test_what_was_taken_back_is_in_the_balances_until_then() -> None:
    stated = [told(5, "100"), told(10, "70"), told(15, "100")]
    assert problems(stated, [booking(1, "1")], former=[was(8, "-30", until=15)]) == []
    assert problems(stated, [booking(1, "1")]) == []  # overtaken, where nobody wrote down what was there
    assert problems(stated[:2], [booking(1, "1")], former=[was(8, "-30", until=15)]) == []
    assert problems(stated[:2], [booking(1, "1")]) == [("balance_differs", 6, 10, "-30")]


def test_a_bank_may_have_corrected_before_it_told_so() -> None:
    former = [was(8, "-5", until=15), was(8, "5.50", until=15)]
    assert problems([told(5, "100"), told(10, "94.50"), told(15, "94.50")], [booking(8, "-5.50")], former=former) == []


@pytest.mark.parametrize(("balance", "first"), [("100", 6), ("70", 2)], ids=["without it", "with it"])
def test_what_was_pending_on_the_day_of_a_balance_is_in_it_or_not(balance: str, first: int) -> None:
    moved, former = [booking(5, "-30", known=at(4)), booking(7, "-1")], [was(5, "30", until=8, known=4)]
    assert problems([told(1, "100"), told(5, balance), told(8, "69")], moved, former=former) == []
    wrong = problems([told(1, "100"), told(5, balance), told(8, "60")], moved, former=former)
    assert wrong == [("balance_differs", first, 8, "-9")]


def test_a_statement_that_tells_the_last_day_of_another_again_leaves_no_gap() -> None:
    stated = [statement(1, 5, "100", "80"), statement(5, 9, "95", "70")]
    moved = [booking(3, "-5"), booking(5, "-15"), booking(8, "-10")]
    assert problems(stated, moved) == []
    assert problems([stated[0], statement(5, 9, "96", "71")], moved) == [("gap", 5, 5, "1")]


def test_no_balance_and_one_balance_prove_nothing() -> None:
    totals = DayTotals(frame([], MOVED), frame([], FORMER))
    assert between_balances([], totals, []) == []
    assert between_balances([ReportedBalance(day=day(1), balance=Decimal(1), known_at=None)], totals, []) == []


QUIET = st.lists(st.tuples(st.integers(0, 9), st.integers(-500, 500)), max_size=12)


@settings(max_examples=examples(200))
@given(QUIET, st.lists(st.integers(-2000, 2000), min_size=2, max_size=5))
def test_between_quiet_days_a_difference_is_what_the_obvious_sum_lacks(
    amounts: list[tuple[int, int]], cents: list[int]
) -> None:
    """Balances of every twentieth day, bookings in the days from five to fourteen after one."""
    moved: list[Row] = [
        {"booking_date": day(20 * place % 80 + 5 + offset), "amount": Decimal(cent) / 100, "created_at": at(1, 1)}
        for place, (offset, cent) in enumerate(amounts)
    ]
    moved = [{**row, "created_at": at(0) + timedelta(days=(row["booking_date"] - day(1)).days)} for row in moved]  # type: ignore[operator]  # a date
    balances = [
        ReportedBalance(day=day(20 * place), balance=Decimal(cent) / 100, known_at=at(20 * place))
        for place, cent in enumerate(cents)
    ]
    found = between_balances(balances, DayTotals(frame(moved, MOVED), frame([], FORMER)), [])
    expected = []
    for earlier, later in pairwise(balances):
        total = Decimal(0)
        for row in moved:
            if earlier.day < row["booking_date"] <= later.day:  # type: ignore[operator]  # a date
                total += Decimal(str(row["amount"]))
        expected.append(later.balance - earlier.balance - total)
    off = list(accumulate(expected, initial=Decimal(0)))
    assume(
        all(
            len({*off[first : last + 1]}) == 1
            for first, last in combinations(range(len(off)), 2)
            if off[first] == off[last]
        )
    )
    assert [one.difference for one in found] == expected
