"""Bookings that look like one another and that statements prove are not said to be there twice."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from analytics.records import StatementRecord, TransactionRecord
from tests.storage.conftest import Bank, bookings, files_of

COFFEE = "| Kiosk am Ring | Kaffee und Zeitung"


def bring(files: Bank, table: str, opening: str, closing: str, first: int, last: int) -> None:
    """A statement of these days of January."""
    told: list[TransactionRecord] = bookings(table)
    files.now += timedelta(minutes=1)
    said = StatementRecord(
        opening=Decimal(opening),
        opening_date=date(2026, 1, first),
        closing=Decimal(closing),
        closing_date=date(2026, 1, last),
        is_authoritative=True,
    )
    files.bring(told, statement=said)


def flags(files: Bank) -> list[bool]:
    return [row["is_potential_duplicate"] for row in files.rows("is_potential_duplicate, booking_date, amount, id")]


@pytest.mark.requirement("isPotentialDuplicate")
def test_equal_bookings_of_two_statements_that_follow_each_other_are_two(bank: Bank) -> None:
    files = files_of(bank)
    bring(files, f"2026-01-30 | -2.80 {COFFEE}", "100", "97.20", 1, 30)
    bring(files, f"2026-01-31 | -2.80 {COFFEE}", "97.20", "94.40", 31, 31)
    assert flags(files) == [False, False]


@pytest.mark.requirement("isPotentialDuplicate")
def test_the_flag_goes_when_a_statement_tells_both_and_stays_where_one_is_told_by_none(bank: Bank) -> None:
    files = files_of(bank)
    files.bring(bookings(f"2026-01-29 | -2.80 {COFFEE}"))
    files.now += timedelta(minutes=1)
    files.bring(bookings(f"2026-01-30 | -2.80 {COFFEE}"))
    assert flags(files) == [False, True]
    bring(files, f"2026-01-30 | -2.80 {COFFEE}", "100", "97.20", 30, 31)
    assert flags(files) == [False, True]
    both = f"2026-01-29 | -2.80 {COFFEE}\n2026-01-30 | -2.80 {COFFEE}"
    bring(files, both, "102.80", "97.20", 1, 31)
    assert flags(files) == [False, False]
