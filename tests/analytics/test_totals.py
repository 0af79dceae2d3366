"""What bookings add up to: counted as in the cashflow, as a whole and by category or month."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cashflow import monthly_cashflow
from analytics.frames import BOOKINGS, RATES
from analytics.totals import GroupBy, Sums, totals
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, Row, booking_rows, bookings, frame, quotes, rate_rows

SELECTIONS = st.sets(st.sampled_from(ACCOUNTS), min_size=1)
LEDGER = """
    account_id | booking_date | amount  | category  | transfer_account_id | is_adjusting_entry
    a          | 2026-02-27   | -100.00 | TRANSFER  | b                   |
    b          | 2026-03-02   | 100.00  | TRANSFER  | a                   |
    a          | 2026-03-05   | -12.99  | SHOPPING  |                     |
    a          | 2026-03-06   | 2.99    | SHOPPING  |                     |
    b          | 2026-03-07   | -40.00  | RENT      |                     |
    a          | 2026-03-28   | 2500.00 |           |                     |
    a          | 2026-03-29   | 7.00    | OTHER     |                     | yes
"""


def said(sums: Sums) -> tuple[str, int, str, str, str]:
    return sums.key, sums.count, f"{sums.income:.2f}", f"{sums.expenses:.2f}", f"{sums.net:.2f}"


@pytest.mark.requirement("totals.figures")
def test_own_transfers_and_adjusting_entries_are_left_out_and_told() -> None:
    found = totals(bookings(LEDGER), selection=("a", "b"), currency="EUR")
    assert said(found.whole) == ("", 4, "2502.99", "52.99", "2450.00")
    assert found.left_out == {"adjusting_entry": 1, "transfer": 2}
    assert list(found.groups) == []


@pytest.mark.requirement("totals.figures")
def test_a_transfer_that_leaves_the_selection_counts() -> None:
    of_a = [row for row in bookings(LEDGER).rows(named=True) if row["account_id"] == "a"]
    found = totals(frame(of_a, BOOKINGS), selection=("a",), currency="EUR")
    assert said(found.whole) == ("", 4, "2502.99", "112.99", "2390.00")
    assert found.left_out == {"adjusting_entry": 1}


@pytest.mark.requirement("totals.groups")
def test_categories_come_by_expenses_and_rows_without_one_are_other() -> None:
    found = totals(bookings(LEDGER), selection=("a", "b"), currency="EUR", group_by="category")
    assert [said(group) for group in found.groups] == [
        ("RENT", 1, "0.00", "40.00", "-40.00"),
        ("SHOPPING", 2, "2.99", "12.99", "-10.00"),
        ("OTHER", 1, "2500.00", "0.00", "2500.00"),
    ]


@pytest.mark.requirement("totals.groups")
def test_months_come_in_their_order() -> None:
    found = totals(bookings(LEDGER), selection=("a", "c"), currency="EUR", group_by="month")
    assert [group.key for group in found.groups] == ["2026-02", "2026-03"]


@pytest.mark.requirement("totals.figures")
def test_nothing_adds_up_to_nothing() -> None:
    found = totals(bookings(LEDGER).clear(), selection=("a",), currency="EUR", group_by="month")
    assert (said(found.whole), list(found.groups), found.left_out) == (("", 0, "0.00", "0.00", "0.00"), [], {})


@pytest.mark.requirement("totals.figures")
@pytest.mark.requirement("decision 19")
def test_a_currency_without_a_rate_is_left_out_and_named() -> None:
    rows = bookings("""
        booking_date | amount | currency
        2026-03-05   | -2.00  | USD
        2026-03-05   | -3.00  | XXX
        2026-03-05   | -1.00  | EUR
    """)
    rates = quotes("currency | day | rate\n USD | 2026-03-04 | 2")
    found = totals(rows, selection=("a",), currency="EUR", rates=rates)
    assert said(found.whole) == ("", 2, "0.00", "2.00", "-2.00")
    assert (found.left_out, found.unconverted) == ({"no_rate": 1}, ["XXX"])


KEYS: dict[GroupBy | None, Callable[[Row], str]] = {
    None: lambda _row: "",
    "category": reference.category,
    "month": lambda row: f"{reference.day_of(row):%Y-%m}",
}


@pytest.mark.requirement("totals.figures")
@pytest.mark.requirement("totals.groups")
@given(data=st.data(), selection=SELECTIONS, group_by=st.sampled_from([None, "category", "month"]))
def test_totals_are_those_of_the_slow_reference(
    data: st.DataObject, selection: set[str], group_by: GroupBy | None
) -> None:
    currencies, first = ("EUR", "USD", "JPY"), TODAY - timedelta(days=100)
    drawn = data.draw(booking_rows(currencies=currencies, first=first))
    rows = [row for row in drawn if row["account_id"] in selection]
    rates = data.draw(rate_rows(currencies=("USD", "JPY"), first=TODAY - timedelta(days=60)))
    sums: dict[str, list[Fraction]] = {}
    counts: dict[str, int] = {}
    left_out: dict[str, int] = {}
    for row in rows:
        amount = reference.home_amount(row, "EUR", rates)
        if row["is_adjusting_entry"] or not reference.crosses_border(row, selection) or amount is None:
            is_inside = not reference.crosses_border(row, selection)
            reason = "adjusting_entry" if row["is_adjusting_entry"] else "transfer" if is_inside else "no_rate"
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        key = KEYS[group_by](row)
        counts[key] = counts.get(key, 0) + 1
        place = 1 if reference.amount_of(row) < 0 else 0
        sums.setdefault(key, [Fraction(0), Fraction(0)])[place] += abs(amount)
    found = totals(
        frame(rows, BOOKINGS), selection=selection, currency="EUR", group_by=group_by, rates=frame(rates, RATES)
    )
    assert found.left_out == left_out
    assert found.whole.count + sum(left_out.values()) == len(rows)
    assert found.whole.count == sum(counts.values())
    assert found.whole.net == sum(income - expenses for income, expenses in sums.values())
    if group_by is not None:
        assert {each.key: (each.count, [Fraction(each.income), Fraction(each.expenses)]) for each in found.groups} == {
            key: (counts[key], sums[key]) for key in sums
        }
        expenses = [each.expenses for each in found.groups]
        keys = [each.key for each in found.groups]
        assert keys == sorted(keys) if group_by == "month" else expenses == sorted(expenses, reverse=True)


@pytest.mark.requirement("totals.month")
@given(rows=booking_rows(currencies=("EUR",), first=date(2026, 3, 1)), selection=SELECTIONS)
def test_the_totals_of_a_month_are_its_cashflow(rows: list[Row], selection: set[str]) -> None:
    ledger = frame([row for row in rows if row["account_id"] in selection], BOOKINGS)
    month = monthly_cashflow(ledger, selection=selection, months=1, today=TODAY, currency="EUR").row(0, named=True)
    whole = totals(ledger, selection=selection, currency="EUR").whole
    assert (whole.income, whole.expenses, whole.net) == (month["income"], month["expenses"], month["net"])
    assert isinstance(whole.net, Decimal)
