"""What statements prove by what they told: a chain needs no days, and everything that is missing is said once."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise, permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analytics.statements.told import number
from tests.analytics.ledger_evidence import Row, Said, at, booking, day, judged, problems, statement
from tests.conftest import examples

pytestmark = pytest.mark.requirement("import.gaps")


def told(
    first: int, last: int, opening: str, closing: str, *places: int, came: int = 40, sequence: str | None = None
) -> Row:
    """A statement that told the bookings at these places of the ledger."""
    said = statement(first, last, opening, closing, sequence=sequence)
    return {**said, "told": " ".join(map(str, places)), "received_at": at(came)}


MOVED = [booking(3, "-10"), booking(10, "-20"), booking(10, "-5"), booking(14, "-1")]


def in_any_order(stated: Sequence[Row], moved: list[Row]) -> list[Said]:
    """The problems, which are the same in whatever order the statements came."""
    found = {tuple(problems([*order], moved)) for order in permutations(stated)}
    assert len(found) == 1
    return [*found.pop()]


@pytest.mark.parametrize(
    "evening",
    [
        told(10, 20, "70", "64", 2, 3),
        told(10, 20, "90", "64", 1, 2, 3),
        told(1, 20, "100", "64", 0, 1, 2, 3),
        told(9, 20, "90", "64", 1, 2, 3),
    ],
    ids=["goes on", "tells the day again", "tells all again", "opens with the day before"],
)
def test_a_file_taken_at_noon_goes_on_with_that_evening(evening: Row) -> None:
    noon = told(1, 10, "100", "70", 0, 1)
    assert in_any_order([noon, evening], MOVED) == []
    assert in_any_order([noon], MOVED) == []


def test_a_statement_goes_on_from_the_former_issue_of_the_one_before_until_it_is_issued_again_too() -> None:
    former, newer = told(1, 10, "100", "70", 0, 1, came=11), told(1, 10, "100", "69", 0, 1, came=30)
    moved = [booking(3, "-10"), booking(10, "-21"), booking(14, "-1")]  # the second one has been corrected
    next_ = told(10, 20, "70", "69", 2, came=21)
    assert in_any_order([former, newer, next_], moved) == []
    assert in_any_order([newer, next_], moved) == [("gap", 10, 10, "1")]  # nothing says that it was another one


@pytest.mark.parametrize("places", [(1,), (0,), ()], ids=["the last", "the first", "none"])
def test_a_statement_that_goes_on_longer_than_another_one_and_told_less_contradicts_it(places: tuple[int, ...]) -> None:
    moved = [booking(2, "-10"), booking(3, "-2")]
    amounts = [Decimal(10), Decimal(2)]
    closing = str(100 - sum(amounts[each] for each in places))
    stated = [told(1, 5, "100", "88", 0, 1), told(1, 10, "100", closing, *places)]
    assert in_any_order(stated, moved) == [("gap", 5, 5, str(Decimal(closing) - 88))]


def test_bookings_that_two_statements_of_a_day_told_which_another_parts_are_missing_once() -> None:
    stated = [told(3, 3, "100", "90", 0), told(3, 3, "90", "80", 1), told(3, 3, "80", "70", 0)]
    assert in_any_order(stated, [booking(3, "-10"), booking(3, "-10")]) == [("statement_differs", 3, 3, "-10")]


def test_what_noon_and_evening_both_lack_is_a_gap_of_that_day() -> None:
    stated = [told(1, 10, "100", "70", 0, 1), told(10, 20, "65", "64", 3)]
    assert in_any_order(stated, [*MOVED[:2], booking(30, "-5"), MOVED[3]]) == [("gap", 10, 10, "-5")]
    assert in_any_order(stated, MOVED) == []  # another source told it


def test_a_booking_of_a_day_outside_its_statement_is_its_own() -> None:
    moved = [booking(3, "-10"), booking(12, "-20"), booking(11, "-5"), booking(9, "-1")]
    stated = [told(1, 10, "100", "70", 0, 1), told(11, 20, "70", "64", 2, 3)]
    assert in_any_order(stated, moved) == []
    assert in_any_order(stated[:1], moved[:2]) == []
    assert in_any_order(stated[1:], moved[2:]) == []


def test_a_booking_that_no_statement_of_a_chain_told_is_too_many() -> None:
    stated = [told(1, 10, "100", "90", 0), told(11, 20, "90", "70", 1)]
    assert in_any_order(stated, [booking(3, "-10"), booking(13, "-20"), booking(5, "-7")]) == [
        ("statement_differs", 1, 10, "7")
    ]
    at_the_end_of_one = [booking(3, "-10"), booking(13, "-20"), booking(10, "-7")]
    assert in_any_order(stated, at_the_end_of_one) == [("statement_differs", 1, 10, "7")]
    for neutral in (1, 20, 25):  # before the first one or after the last
        assert in_any_order(stated, [*at_the_end_of_one[:2], booking(neutral, "-7")]) == []


def test_a_booking_with_an_earlier_day_that_the_next_opening_contains_is_no_difference() -> None:
    stated = [told(1, 10, "100", "90", 0), told(11, 20, "83", "63", 1)]
    assert in_any_order(stated, [booking(3, "-10"), booking(13, "-20"), booking(8, "-7")]) == []


def test_of_two_issues_of_a_statement_the_newer_counts() -> None:
    moved = [booking(3, "-10"), booking(5, "-20"), booking(9, "-5")]
    first, again = told(1, 10, "100", "65", 0, 1, 2), told(1, 10, "100", "70", 0, 1, came=41)
    following = told(11, 20, "70", "70")
    assert in_any_order([first, again, following], moved[:2]) == []
    assert in_any_order([first, again, following], moved) == [("statement_differs", 1, 10, "5")]
    assert in_any_order([first, told(11, 20, "65", "65")], moved) == []


def test_a_statement_whose_bookings_were_corrected_since_is_no_evidence() -> None:
    assert in_any_order([told(1, 10, "100", "70", 0, 1)], [booking(3, "-10"), booking(5, "-21")]) == []


def test_what_two_statements_both_told_is_missing_once_where_they_follow_each_other() -> None:
    stated = [told(1, 10, "100", "90", 0), told(10, 20, "90", "80", 0)]  # two equal bookings, taken for one
    assert in_any_order(stated, [booking(10, "-10")]) == [("gap", 10, 10, "-10")]


CHAINS: dict[str, list[tuple[int, int, int, int] | tuple[int, int, int, int, str]]] = {
    "each opens on the day the last one closed": [(10, 1, 20, 2), (20, 2, 30, 3), (30, 3, 5, 4)],
    "each opens on the day after": [(10, 1, 20, 2), (20, 3, 30, 4)],
    "two of one day by their balances": [(10, 1, 20, 1), (20, 2, 30, 2), (30, 2, 5, 2)],
    "two of one day by their numbers": [(20, 2, 30, 2, "9"), (30, 2, 20, 2, "10"), (20, 3, 1, 3)],
    "no order can be told": [(10, 2, 20, 2), (50, 2, 60, 2)],
    "a day without a booking": [(10, 1, 20, 1), (20, 2, 20, 2), (20, 3, 5, 3)],
}


def chained(name: str) -> tuple[list[Row], list[Row]]:
    """Statements of one booking each, and the bookings."""
    stated, moved = list[Row](), list[Row]()
    for opening, first, closing, last, *sequence in CHAINS[name]:
        places = [len(moved)] if closing != opening else []
        moved += [booking(last, str(closing - opening)) for _ in places]
        stated.append(told(first, last, str(opening), str(closing), *places, sequence=str(*sequence) or None))
    return stated, moved


@pytest.mark.parametrize("name", CHAINS)
def test_no_gap_is_claimed_in_whatever_order_they_come(name: str) -> None:
    assert in_any_order(*chained(name)) == []


def test_a_missing_statement_is_one_gap() -> None:
    (first, _, third), moved = chained("each opens on the day the last one closed")
    assert in_any_order([first, third], [moved[0], booking(40, "0"), moved[2]]) == [("gap", 2, 2, "10")]


def test_a_missing_statement_of_a_numbered_day_is_one_gap() -> None:
    stated = [told(2, 2, "10", "20", 0, sequence="1"), told(2, 2, "30", "40", 1, sequence="3")]
    assert in_any_order(stated, [booking(2, "10"), booking(2, "10")]) == [("gap", 2, 2, "10")]


@pytest.mark.requirement("import.balance")
def test_numbers_of_statements_are_compared_part_by_part() -> None:
    ordered = [None, "9", "10", "12/2", "12/10", "13/1"]
    assert sorted(ordered, key=number) == ordered


FILES = st.lists(st.tuples(st.integers(0, 15), st.integers(1, 6)), min_size=1, max_size=6)


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(-9, 9).filter(bool), min_size=21, max_size=21),
    st.lists(st.integers(0, 2), min_size=21, max_size=21),
    FILES,
)
def test_what_is_missing_between_files_is_what_the_obvious_sum_lacks(
    amounts: list[int], steps: list[int], files: list[tuple[int, int]]
) -> None:
    """Each file tells the bookings from one place of the history to another; a hole is what is in none of them."""
    days = [1 + sum(steps[: place + 1]) for place in range(len(amounts))]
    balances = [Decimal(100 + sum(amounts[:place])) for place in range(len(amounts) + 1)]
    inside = sorted({place for first, count in files for place in range(first, first + count)})
    stated = [
        told(
            days[first],
            days[first + count - 1],
            str(balances[first]),
            str(balances[first + count]),
            *map(inside.index, range(first, first + count)),
            came=place,
        )
        for place, (first, count) in enumerate(files)
    ]
    holes = [(one, other) for one, other in pairwise(inside) if other > one + 1]
    missing = [balances[other] - balances[one + 1] for one, other in holes]
    assume(all(missing))
    assume(len({balances[place] for place in range(inside[0], inside[-1] + 2)}) == inside[-1] + 2 - inside[0])
    assume(all(days[one] < days[other] for one, other in holes))  # else their order may be unclear
    found = judged(stated, [booking(days[place], str(amounts[place])) for place in inside]).problems
    assert [(one.kind, one.amount) for one in found] == [("gap", amount) for amount in missing]
    assert all(
        day(days[one]) <= gap.first <= gap.last <= day(days[other])
        for gap, (one, other) in zip(found, holes, strict=True)
    )
