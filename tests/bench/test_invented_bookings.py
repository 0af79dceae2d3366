"""The invented bookings: as many as asked for, the same in every run, in the order of the store."""

from datetime import date, datetime, time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.benchmarks.bench import data
from tests.benchmarks.bench.data import Size

TODAY = date(2026, 11, 22)
NOW = datetime.combine(TODAY, time())


def made(numbers: range, rows_each: int) -> pl.DataFrame:
    return data.bookings(numbers, rows_each, today=TODAY, now=NOW)


@pytest.mark.requirement("bench.data")
def test_every_user_has_as_many_as_asked_for_and_the_same_in_every_run() -> None:
    rows = made(range(3), 200)
    assert rows.group_by("user_id").len().sort("user_id").rows() == [(data.user_id(number), 200) for number in range(3)]
    assert sorted(rows.filter(user_id=data.user_id(1))["id"]) == sorted(data.transaction_ids(1, 200))
    assert_frame_equal(rows.filter(user_id=data.user_id(1)), made(range(1, 2), 200))
    assert rows["id"].n_unique() == 600


@pytest.mark.requirement("bench.data")
def test_they_stand_in_the_order_of_the_store() -> None:
    rows = made(range(8, 18), 100)
    assert_frame_equal(rows, rows.sort("user_id", "booking_date", "id", descending=[False, True, True]))


@pytest.mark.requirement("bench.data")
def test_salary_and_rent_come_once_a_month_and_nothing_lies_in_the_future() -> None:
    rows = made(range(1), 1000)
    salaries = rows.filter(category="SALARY")
    assert salaries["amount"].unique().to_list() == [2875]
    assert salaries.height == 24
    assert rows.filter(category="RENT")["booking_date"].dt.day().unique().to_list() == [22]
    assert rows["booking_date"].max() == TODAY
    assert rows["booking_date"].min() >= date(2024, 11, 1)  # type: ignore[operator]  # a day, as the frame has no null
    assert set(rows["category"]) == set(data.CATEGORIES)


@pytest.mark.requirement("bench.data")
@pytest.mark.parametrize(("rows", "rows_each", "users"), [(2000, 1000, 2), (2999, 1000, 2), (10, 1000, 1), (7, 1, 7)])
def test_the_number_of_users_follows_from_the_rows(rows: int, rows_each: int, users: int) -> None:
    size = Size(rows=rows, rows_each=rows_each)
    assert size.users == users
    assert [number for piece in data.user_numbers(size) for number in piece] == list(range(users))


@pytest.mark.requirement("bench.data")
def test_pieces_hold_about_a_hundred_thousand_rows() -> None:
    assert [len(piece) for piece in data.user_numbers(Size(rows=250_000, rows_each=1000))] == [100, 100, 50]
    assert len(list(data.user_numbers(Size(rows=400_000, rows_each=200_000)))) == 2
