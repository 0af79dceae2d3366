"""Whether a ledger proves itself: what is missing is found to the day and the cent, and nothing else is claimed."""

from decimal import Decimal

import pytest

from tests.analytics.ledger_evidence import Row, at, booking, day, judged, problems, said, statement, told

pytestmark = pytest.mark.requirement("integrity")


def test_statements_that_add_up_are_periods_without_a_problem() -> None:
    found = judged(
        [statement(1, 10, "100", "90"), statement(11, 20, "90", "70")],
        [booking(1, "-4"), booking(10, "-6"), booking(11, "-20")],
    )
    assert found.is_sound
    assert [(one.first, one.last, one.bookings, one.difference) for one in found.periods] == [
        (day(1), day(10), Decimal(-10), Decimal(0)),
        (day(11), day(20), Decimal(-20), Decimal(0)),
    ]


def test_a_statement_that_is_missing_is_a_gap_of_its_days_and_what_nobody_knows_of_them() -> None:
    stated = [statement(1, 10, "100", "90"), statement(21, 30, "40", "35")]
    moved = [booking(5, "-10"), booking(15, "-20"), booking(25, "-5")]
    assert problems(stated, moved) == [("gap", 11, 20, "-30")]
    assert problems([*stated, statement(11, 20, "90", "40")], [*moved, booking(16, "-30")]) == []
    assert problems(stated, [*moved, booking(16, "-30")]) == []


def test_a_gap_between_two_statements_that_follow_each_other_is_of_the_day_between_them() -> None:
    stated = [statement(1, 10, "100", "90"), statement(11, 20, "80", "80")]
    assert problems(stated, [booking(5, "-10")]) == [("gap", 10, 10, "-10")]
    assert problems([stated[0], statement(10, 20, "80", "80")], [booking(5, "-10")]) == [("gap", 10, 10, "-10")]


def test_one_cent_is_a_difference_of_the_statement() -> None:
    stated = [statement(1, 10, "100", "90"), statement(11, 20, "90", "70"), statement(21, 30, "70", "70")]
    moved = [booking(5, "-10"), booking(15, "-20")]
    assert problems(stated, moved) == []
    changed = [moved[0], booking(15, "-20.01")]
    assert problems(stated, changed) == [("statement_differs", 11, 20, "0.01")]
    assert problems(stated, [*moved, moved[1]]) == [("statement_differs", 11, 20, "20")]
    assert problems(stated, moved[:1]) == [("statement_differs", 11, 20, "-20")]


@pytest.mark.parametrize("first", [10, 11])
def test_the_day_on_which_a_statement_opens_may_be_that_of_the_one_before(first: int) -> None:
    stated = [statement(1, 10, "100", "90"), statement(first, 20, "90", "70")]
    moved = [booking(5, "-4"), booking(10, "-6"), booking(15, "-20")]
    assert problems(stated, moved) == []
    assert problems(stated, moved[:2]) == [("statement_differs", first, 20, "-20")]


def test_the_statements_of_one_day_share_its_bookings() -> None:
    stated = [
        statement(5, 5, "100", "90", sequence="1"),
        statement(5, 5, "90", "70", sequence="2"),
        statement(6, 6, "70", "70", sequence="3"),
    ]
    moved = [booking(5, "-10"), booking(5, "-20")]
    assert problems(stated, moved) == []
    assert problems(stated, moved[:1]) == [("statement_differs", 5, 5, "-20")]
    assert [one.opening for one in judged(stated, moved).periods] == [100, 70]  # the day is one period


def test_an_empty_statement_of_a_day_that_others_share_is_sound() -> None:
    stated = [statement(5, 5, "100", "100", sequence="1"), statement(5, 9, "100", "70", sequence="2")]
    assert problems(stated, [booking(5, "-30")]) == []
    assert problems([stated[0]], [booking(5, "-30")]) == []  # it may have been taken in the morning


def test_a_statement_that_contradicts_itself_is_said_and_is_no_gap_beside() -> None:
    stated = [
        statement(1, 10, "100", "90"),
        statement(11, 20, "90", "70", adds_up=False),
        statement(21, 30, "70", "65"),
    ]
    moved = [booking(5, "-10"), booking(15, "-15"), booking(25, "-5")]
    assert problems(stated, moved) == [("statement_differs", 11, 20, "-5")]


def test_of_a_gap_with_a_spoilt_statement_at_either_end_the_rest_is_the_gap() -> None:
    outer = [statement(1, 10, "100", "90"), statement(31, 40, "40", "40")]
    moved = [booking(5, "-10"), booking(15, "-15")]
    at_first = statement(11, 20, "90", "70", adds_up=False)
    assert problems([*outer, at_first], moved) == [("gap", 21, 30, "-30"), ("statement_differs", 11, 20, "-5")]
    at_last = statement(21, 30, "60", "40", adds_up=False)
    assert problems([*outer, at_last], [moved[0], booking(25, "-15")]) == [
        ("gap", 11, 20, "-30"),
        ("statement_differs", 21, 30, "-5"),
    ]


@pytest.mark.parametrize("adds_up", [None, False])
def test_a_report_that_ends_within_a_day_proves_nothing(adds_up: bool | None) -> None:
    said_of = [] if adds_up is None else [("statement_differs", 5, 5, "-10")]
    assert problems([statement(5, 5, "100", "60", adds_up=adds_up)], [booking(5, "-30")]) == said_of


def test_a_booking_that_is_missing_between_two_balances_is_said_with_its_amount() -> None:
    stated = [told(5, "100"), told(10, "70"), told(20, "60")]
    moved = [booking(7, "-30"), booking(15, "-10")]
    assert problems(stated, moved) == []
    assert problems(stated, moved[1:]) == [("balance_differs", 6, 10, "-30")]
    assert problems(stated, [*moved, moved[1]]) == [("balance_differs", 11, 20, "10")]


def test_a_statement_ends_with_its_day_and_a_balance_may_follow_it() -> None:
    stated = [statement(1, 10, "100", "90"), told(20, "70")]
    moved = [booking(5, "-4"), booking(10, "-6", known=at(30)), booking(15, "-20")]
    assert problems(stated, moved) == []
    assert problems(stated, moved[:2]) == [("balance_differs", 11, 20, "-20")]


def test_what_statements_say_is_missing_balances_do_not_say_again() -> None:
    stated = [told(1, "100", hour=1), statement(3, 10, "100", "90"), statement(21, 30, "40", "35"), told(31, "35")]
    moved = [booking(5, "-10"), booking(25, "-5")]
    assert problems(stated, moved) == [("gap", 11, 20, "-50")]
    spoilt = [told(1, "100", hour=1), statement(3, 10, "100", "90", adds_up=False), told(20, "90")]
    assert problems(spoilt, [booking(5, "-4")]) == [("statement_differs", 3, 10, "-6")]


def test_of_several_balances_of_a_day_the_statement_holds_else_the_last_that_was_told() -> None:
    moved = [booking(7, "-30"), booking(10, "-5")]
    assert problems([told(5, "100"), told(10, "70"), told(10, "65", hour=18)], moved) == []
    assert problems([told(5, "100"), told(10, "1"), statement(10, 10, "70", "65")], moved) == []
    halves = [statement(10, 10, "70", "68"), statement(10, 10, "68", "65")]
    assert problems([told(5, "100"), *halves], [*moved[:1], booking(10, "-2"), booking(10, "-3")]) == []
    issues = [statement(10, 10, "12", "7"), statement(10, 10, "70", "65")]
    assert problems([told(5, "100"), *issues], moved) == []


def test_a_depot_that_never_tells_a_booking_contradicts_nothing() -> None:
    assert problems([told(5, "100"), told(10, "70")], []) == []


def test_marked_bookings_and_those_that_stay_pending_are_told_and_sound() -> None:
    flagged: list[Row] = [
        booking(9, "3", is_adjusting_entry=True),
        booking(4, "-5", is_potential_duplicate=True),
        booking(3, "-5", is_potential_duplicate=True),
    ]
    waiting = [booking(17, "-1"), booking(16, "-2"), booking(15, "-3")]
    found = judged([], [], flagged, waiting)
    assert found.is_sound
    assert [(said(each), list(each.transaction_ids)) for each in found.problems] == [
        (("adjusting_entry", 9, 9, "3"), ["0"]),
        (("possible_duplicate", 3, 3, "-5"), ["2"]),
        (("possible_duplicate", 4, 4, "-5"), ["1"]),
        (("old_pending", 15, 15, "-3"), ["2"]),
        (("old_pending", 16, 16, "-2"), ["1"]),
    ]


WINDOWS = [told(5, "100", since=-30), told(125, "40", since=36)]


def test_days_that_a_source_could_not_tell_any_more_are_a_gap_until_a_file_fills_it() -> None:
    moved = [booking(5, "-1"), booking(20, "-20"), booking(40, "-15")]
    assert problems(WINDOWS, [moved[0], moved[2]]) == [("gap", 6, 35, "-45")]
    assert problems(WINDOWS, moved) == [("gap", 6, 35, "-25")]
    assert problems(WINDOWS, [*moved, booking(21, "-25", known=at(130))]) == []


def test_days_that_nobody_told_and_in_which_nothing_moved_are_no_gap() -> None:
    assert problems([told(5, "100", since=-30), told(125, "100", since=36)], [booking(5, "-1")]) == []


def test_windows_that_touch_or_overlap_leave_no_gap() -> None:
    follows = [told(5, None, since=-30), told(30, None, since=6), told(31, None, since=-20), told(60, None, since=32)]
    assert problems(follows, [booking(5, "-1")]) == []
    assert problems([*follows, told(90, None, since=62)], [booking(5, "-1")]) == [("gap", 61, 61, None)]


def test_where_no_balance_tells_bookings_that_came_later_fill_the_gap() -> None:
    silent = [told(5, None, since=-30), told(125, None, since=36)]
    assert problems(silent, [booking(5, "-1")]) == [("gap", 6, 35, None)]
    assert problems(silent, [booking(5, "-1"), booking(20, "-2", known=at(100))]) == [("gap", 6, 35, None)]
    assert problems(silent, [booking(5, "-1"), booking(20, "-2", known=at(126))]) == []


def test_a_source_that_begins_after_the_last_statement_leaves_a_gap_between_them() -> None:
    stated = [statement(1, 10, "100", "90"), told(60, "70", since=21)]
    moved = [booking(5, "-10"), booking(30, "-5")]
    assert problems(stated, moved) == [("gap", 11, 20, "-15")]
    assert problems([*stated, statement(11, 20, "90", "75")], [*moved, booking(15, "-15")]) == []


def test_a_difference_elsewhere_is_none_of_a_gap() -> None:
    stated = [told(-5, "120", since=-40), told(5, "100", since=-30), told(125, "40", since=36)]
    moved = [booking(-2, "-10"), booking(20, "-60", known=at(130))]
    assert problems(stated, moved) == [("balance_differs", -4, 5, "-10")]
