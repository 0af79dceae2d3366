"""Balances over time, counted back from what accounts hold now."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.balances import POINTS_MAX, BalanceSeries, Every, balance_series, shown_days
from analytics.frames import BALANCES, BOOKINGS, HOLDINGS, RATES
from analytics.snapshot import snapshot
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, Row, booking_rows, bookings, frame, quotes, rate_rows, table

LEDGER = """
    account_id | booking_date | amount
    a          | 2026-03-30   | -20.00
    b          | 2026-03-25   | 5.00
    b          | 2026-03-28   | -7.00
"""
HELD = """
    id | balance | balance_date
    a  | 100.00  | 2026-03-31
    b  | 50.00   | 2026-03-25
"""


def said(found: BalanceSeries) -> list[tuple[str, str]]:
    return [(day.isoformat()[5:], f"{balance:.2f}") for day, balance in found.points]


def march(*days: int) -> list[date]:
    return [date(2026, 3, day) for day in days]


@pytest.mark.requirement("balances.points")
def test_a_balance_is_that_of_now_without_what_was_booked_later() -> None:
    found = balance_series(
        table(HELD, HOLDINGS), bookings(LEDGER), days=march(24, 25, 29, 30, 31), today=TODAY, currency="EUR"
    )
    assert said(found) == [
        ("03-24", "165.00"),
        ("03-25", "170.00"),
        ("03-29", "170.00"),
        ("03-30", "150.00"),
        ("03-31", "150.00"),
    ]
    assert found.left_out == []


@pytest.mark.requirement("balances.points")
def test_adjusting_entries_count_and_what_is_dated_ahead_does_not() -> None:
    rows = bookings("""
        booking_date | amount | is_adjusting_entry
        2026-03-30   | 3.00   | yes
        2026-04-02   | -9.00  |
    """)
    held = table("id | balance\n a | 10.00", HOLDINGS)
    found = balance_series(held, rows, days=march(29, 30, 31), today=TODAY, currency="EUR")
    assert said(found) == [("03-29", "7.00"), ("03-30", "10.00"), ("03-31", "10.00")]


@pytest.mark.requirement("balances.age")
def test_a_balance_is_old_when_its_day_is_more_than_a_week_ago() -> None:
    held = table(
        """
        id | balance | balance_date | currency
        a  | 1.00    | 2026-03-24   | EUR
        b  | 2.00    | 2026-03-23   | EUR
        c  |         | 2018-12-31   | EUR
        d  | 4.00    |              | EUR
        e  | 5.00    | 2026-04-02   | EUR
        f  | 6.00    | 2018-12-31   | XXX
        """,
        HOLDINGS,
    )
    found = balance_series(held, bookings(LEDGER).clear(), days=march(31), today=TODAY, currency="EUR")
    assert [(each.account_id, f"{each.day}", f"{each.balance}", each.is_old) for each in found.accounts] == [
        ("a", "2026-03-24", "1.00000", False),
        ("b", "2026-03-23", "2.00000", True),
        ("d", "2026-03-31", "4.00000", False),
        ("e", "2026-03-31", "5.00000", False),
        ("f", "2018-12-31", "None", True),
    ]
    assert said(found) == [("03-31", "12.00")]


@pytest.mark.requirement("balances.points")
def test_an_account_without_balance_is_left_out_and_named() -> None:
    held = table("id | balance\n a | \n b | 50.00", HOLDINGS)
    found = balance_series(held, bookings(LEDGER), days=march(24, 31), today=TODAY, currency="EUR")
    assert said(found) == [("03-24", "52.00"), ("03-31", "50.00")]
    assert found.left_out == [("a", "no_balance")]


@pytest.mark.requirement("balances.points")
def test_no_account_holds_nothing() -> None:
    none = frame([], HOLDINGS)
    found = balance_series(none, bookings(LEDGER).clear(), days=march(30, 31), today=TODAY, currency="EUR")
    assert said(found) == [("03-30", "0.00"), ("03-31", "0.00")]


@pytest.mark.requirement("balances.rates")
def test_other_currencies_count_at_the_rate_of_each_day_and_begin_with_the_first() -> None:
    held = table("id | balance | currency\n a | 10.00 | EUR\n b | 100.00 | USD\n c | 7.00 | XXX", HOLDINGS)
    rows = bookings("""
        account_id | booking_date | amount | currency
        b          | 2026-03-30   | 50.00  | USD
        b          | 2026-03-31   | 10.00  | EUR
        a          | 2026-03-31   | -4.00  | XXX
    """)
    rates = quotes("currency | day | rate\n USD | 2026-03-28 | 2\n USD | 2026-03-31 | 1.25")
    found = balance_series(held, rows, days=march(27, 28, 29, 30, 31), today=TODAY, currency="EUR", rates=rates)
    # 10 euro of the 31st are 12.50 dollars; before them there were 87.50, and 37.50 before the 30th
    assert said(found) == [("03-28", "28.75"), ("03-29", "28.75"), ("03-30", "53.75"), ("03-31", "90.00")]
    assert found.left_out == [("c", "no_rate")]


@pytest.mark.requirement("balances.days")
@pytest.mark.parametrize(
    ("every", "first", "expected"),
    [
        ("day", "2026-03-29", ["03-29", "03-30", "03-31"]),
        ("week", "2026-03-15", ["03-15", "03-22", "03-29", "03-31"]),
        ("week", "2026-03-16", ["03-22", "03-29", "03-31"]),
        ("month", "2026-01-31", ["01-31", "02-28", "03-31"]),
        ("month", "2026-02-01", ["02-28", "03-31"]),
        ("day", "2026-03-31", ["03-31"]),
        ("day", "2026-04-01", []),
    ],
)
def test_periods_end_on_sundays_and_last_days_and_the_last_day_is_there(
    every: Every, first: str, expected: list[str]
) -> None:
    days = shown_days(every, first=date.fromisoformat(first), last=TODAY)
    assert [day.isoformat()[5:] for day in days] == expected


@pytest.mark.requirement("balances.days")
def test_the_latest_points_are_given_where_there_are_too_many() -> None:
    for more in (0, 1):
        days = shown_days("day", first=TODAY - timedelta(days=POINTS_MAX - 1 + more), last=TODAY)
        assert (len(days), days[-1]) == (POINTS_MAX, TODAY)


@pytest.mark.requirement("balances.rates")
@pytest.mark.parametrize(("balance", "known"), [("-999.99", 2), ("-1000.00", 1)])
def test_a_balance_that_nobody_has_is_unknown_in_another_currency(balance: str, known: int) -> None:
    """1,000 yen on a dollar account were 10^17 - 1,000 dollars by these rates, which it lacked two days before."""
    held = table(f"id | balance | currency\n a | {balance} | USD", HOLDINGS)
    rows = bookings("account_id | booking_date | amount | currency\n a | 2026-03-30 | 1000.00 | JPY")
    rates = quotes("currency | day | rate\n JPY | 2026-03-01 | 0.000001\n USD | 2026-03-01 | 99999999.999999")
    found = balance_series(held, rows, days=march(29, 31), today=TODAY, currency="EUR", rates=rates)
    assert [f"{day:%d}" for day, _ in found.points] == ["29", "31"][-known:]


def of_day(account: Row, rows: list[Row], day: date, rates: list[Row]) -> Fraction | None:
    """The balance of one account in euro, rounded as it is listed; None without a rate."""
    balance = Fraction(Decimal(str(account["balance"])))
    until = account["balance_date"] or TODAY
    assert isinstance(until, date)
    for row in rows:
        if row["account_id"] == account["id"] and day < reference.day_of(row) <= min(until, TODAY):
            if row["currency"] == account["currency"]:
                balance -= Fraction(reference.amount_of(row))
            else:
                balance -= reference.home_amount(row, str(account["currency"]), rates) or 0
    return reference.converted(balance, source=str(account["currency"]), target="EUR", day=day, rates=rates)


@pytest.mark.requirement("balances.points")
@pytest.mark.requirement("balances.rates")
@given(data=st.data())
def test_balances_are_those_of_the_slow_reference_and_end_with_the_snapshot(data: st.DataObject) -> None:
    currencies, first = ("EUR", "USD", "JPY"), TODAY - timedelta(days=40)
    rows = data.draw(booking_rows(currencies=currencies, first=first))
    rates = data.draw(rate_rows(currencies=("USD", "JPY"), first=first))
    held: list[Row] = [
        {
            "id": account,
            "currency": data.draw(st.sampled_from(currencies)),
            "balance": data.draw(st.none() | st.decimals(-(10**6), 10**6, places=2)),
            "balance_date": data.draw(st.none() | st.dates(first, TODAY + timedelta(days=3))),
        }
        for account in ACCOUNTS
    ]
    days = shown_days("day", first=first, last=TODAY)
    found = balance_series(
        frame(held, HOLDINGS), frame(rows, BOOKINGS), days=days, today=TODAY, currency="EUR", rates=frame(rates, RATES)
    )
    known = [account for account in held if account["balance"] is not None]
    counted = [account for account in known if of_day(account, rows, TODAY, rates) is not None]
    assert {account for account, _ in found.left_out} == {str(each["id"]) for each in held if each not in counted}
    expected: list[tuple[date, Fraction]] = []
    for day in days:
        balances = [of_day(account, rows, day, rates) for account in counted]
        expected = [] if None in balances else [*expected, (day, sum((each for each in balances if each), Fraction(0)))]
    assert [(day, Fraction(balance)) for day, balance in found.points] == expected
    now = snapshot(frame(held, BALANCES), frame(rows, BOOKINGS), today=TODAY, currency="EUR", rates=frame(rates, RATES))
    assert found.points[-1] == (TODAY, now.total_balance)
