"""The demo bank's history: a pure function of seed, account and day that grows and never changes."""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.sources.demo.connector import history_start
from connectors.sources.demo.households import HOUSEHOLDS, USERS, household
from connectors.sources.demo.ledger import Ledger
from tests.conftest import examples

Blocks = Callable[..., list[tuple[AccountRecord, Sequence[TransactionRecord], StatementRecord]]]
USER_NAMES = [user.name for user in USERS]
DAYS = st.dates(date(2024, 1, 1), date(2027, 12, 31))


@pytest.mark.requirement("demo.deterministic")
@settings(max_examples=examples(25))
@given(st.sampled_from(sorted(HOUSEHOLDS)), DAYS, st.integers(0, 40), st.integers(0, 40))
def test_any_days_asked_for_give_the_rows_that_the_whole_range_gives(
    name: str, first: date, more: int, after: int
) -> None:
    last = first + timedelta(days=more)
    for account in household(name, seed="a seed"):
        whole = list(Ledger(account).bookings(first - timedelta(days=after), last + timedelta(days=after)))
        part = list(Ledger(account).bookings(first, last))
        assert part == [row for row in whole if first <= row.booking_date <= last]


@pytest.mark.requirement("demo.grows")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.sampled
def test_tomorrow_keeps_every_booking_of_today_and_adds_only_tomorrows(
    user: str, all_rows: Callable[..., list[TransactionRecord]], today: date
) -> None:
    before, after = all_rows(user, today), all_rows(user, today + timedelta(days=1))
    assert [row for row in after if row.booking_date <= today] == before
    assert all(row.booking_date == today + timedelta(days=1) for row in after if row not in before)


@pytest.mark.requirement("demo.grows")
def test_another_seed_makes_another_history_with_other_account_numbers() -> None:
    one, other = household("solo", seed="one")[0], household("solo", seed="other")[0]
    first, last = date(2025, 1, 1), date(2025, 6, 30)
    assert one.iban != other.iban
    assert list(Ledger(one).bookings(first, last)) != list(Ledger(other).bookings(first, last))


@pytest.mark.requirement("demo.balances")
@pytest.mark.parametrize("user", USER_NAMES)
@pytest.mark.parametrize("since", [None, date(2026, 10, 1)])
def test_closing_is_opening_plus_the_booked_rows_to_the_cent(user: str, since: date | None, blocks: Blocks) -> None:
    for account, rows, statement in blocks(user, since=since):
        if account.kind == "membership":
            assert (statement.opening, statement.closing) == (None, None)
            continue
        assert statement.opening is not None
        booked = sum((row.amount for row in rows if row.status == "booked"), Decimal(0))
        assert statement.closing == statement.opening + booked
        assert all(row.amount == row.amount.quantize(Decimal("0.01")) and row.amount != 0 for row in rows)


@pytest.mark.requirement("demo.balances")
def test_the_balance_of_a_day_does_not_depend_on_when_it_is_asked_for(blocks: Blocks) -> None:
    for day in (date(2025, 3, 31), date(2026, 11, 20)):
        for account in household("demo-one", seed="demo"):
            stated = next(found for found in blocks("demo", day) if found[0].iban == account.iban)[2].closing
            assert Ledger(account).balance(day) == stated


@pytest.mark.requirement("demo.history")
@pytest.mark.parametrize(
    ("today", "start"),
    [
        (date(2026, 11, 20), date(2024, 1, 1)),
        (date(2026, 1, 31), date(2024, 1, 1)),
        (date(2025, 12, 31), date(2023, 12, 1)),
        (date(2025, 3, 1), date(2023, 3, 1)),
    ],
)
def test_history_begins_in_2024_or_two_years_back(today: date, start: date) -> None:
    assert history_start(today) == start


@pytest.mark.requirement("demo.history")
def test_a_cursor_brings_ten_days_again_and_these_rows_are_the_same(blocks: Blocks, today: date) -> None:
    whole, recent = blocks("demo"), blocks("demo", since=today - timedelta(days=5))
    for (account, rows, statement), (same_account, overlapping, later) in zip(whole, recent, strict=True):
        assert account == same_account
        assert list(overlapping) == [
            row for row in rows if row.status == "pending" or row.booking_date >= today - timedelta(days=15)
        ]
        assert (later.closing, later.closing_date) == (statement.closing, today)
        assert later.opening_date == today - timedelta(days=16)


@pytest.mark.requirement("demo.history")
def test_a_cursor_of_a_later_day_is_taken_for_today(blocks: Blocks, today: date) -> None:
    assert blocks("solo", since=today + timedelta(days=90)) == blocks("solo", since=today)


@pytest.mark.requirement("demo.pending")
def test_every_announced_row_books_within_a_week_under_another_text_for_the_same_amount() -> None:
    card = household("demo-two", seed="demo")[1]
    ledger = Ledger(card)
    for day in (date(2026, 11, 20), date(2026, 2, 3), date(2025, 7, 14)):
        announced = list(ledger.pending_bookings(day))
        booked = list(ledger.bookings(day + timedelta(days=1), day + timedelta(days=8)))
        assert announced
        for row in announced:
            same = [later for later in booked if later.amount == row.amount]
            assert same
            assert same[0].purpose != row.purpose
            assert (row.provider_id, row.booking_date <= day) == (None, True)


@pytest.mark.requirement("demo.pending")
@pytest.mark.parametrize(("name", "number"), [("demo-two", 1), ("globe", 0)])
def test_something_is_announced_on_every_day(name: str, number: int) -> None:
    ledger = Ledger(household(name, seed=name.partition("-")[0])[number])
    for days in range(400):
        assert list(ledger.pending_bookings(date(2026, 1, 1) + timedelta(days=days)))


@pytest.mark.requirement("demo.size")
def test_demo_has_about_1600_bookings(
    all_rows: Callable[..., list[TransactionRecord]],
) -> None:
    assert 900 <= len(all_rows("demo")) <= 1700


@pytest.mark.requirement("demo.content")
def test_a_household_has_as_many_accounts_as_are_asked_for() -> None:
    count = len(household("solo", seed="solo"))
    more = household("solo", seed="solo", accounts=count + 2)
    assert [account.name for account in more[count:]] == [f"Konto {count + 1}", f"Konto {count + 2}"]
    assert [account.key for account in household("solo", seed="solo", accounts=1)] == [more[0].key]
