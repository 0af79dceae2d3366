"""Monthly cashflow: signs, months, the border of the selection, and the rows behind each figure."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cashflow import MonthOutsideHistory, month_transactions, monthly_cashflow
from analytics.frames import BOOKINGS, RATES
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, booking_rows, bookings, frame, quotes, rate_rows

SELECTIONS = st.sets(st.sampled_from(ACCOUNTS), min_size=1)


def figures(rows: pl.DataFrame, *selection: str, months: int = 2) -> list[tuple[str, str, str, str]]:
    """Month, income, expenses and net as text."""
    cashflow = monthly_cashflow(rows, selection=selection or ("a",), months=months, today=TODAY, currency="EUR")
    return [
        (f"{month:%Y-%m}", f"{income:.2f}", f"{expenses:.2f}", f"{net:.2f}")
        for month, income, expenses, net, _ in cashflow.rows()
    ]


@pytest.mark.requirement("cashflow.net")
@pytest.mark.requirement("decision 13")
def test_income_and_expenses_are_both_positive_and_net_is_their_difference() -> None:
    rows = bookings("""
        booking_date | amount
        2026-01-31   | 2500.00
        2026-02-01   | -12.99
        2026-02-28   | 10.00
        2026-02-28   | 0.00
        2026-03-01   | -0.01
        2026-03-31   | -7.00
    """)
    assert figures(rows, months=3) == [
        ("2026-01", "2500.00", "0.00", "2500.00"),
        ("2026-02", "10.00", "12.99", "-2.99"),
        ("2026-03", "0.00", "7.01", "-7.01"),
    ]


@pytest.mark.requirement("cashflow.months")
def test_there_are_exactly_as_many_months_as_asked_empty_ones_as_zeros() -> None:
    rows = bookings("booking_date | amount\n 2026-01-31 | 5\n 2026-04-01 | 7")
    assert figures(rows, months=1) == [("2026-03", "0.00", "0.00", "0.00")]
    assert figures(rows, months=3)[0] == ("2026-01", "5.00", "0.00", "5.00")
    assert len(figures(rows.clear(), months=120)) == 120


@pytest.mark.requirement("decision 3")
def test_a_thousand_years_are_asked_cheaply_and_hide_nothing() -> None:
    rows = bookings("booking_date | amount\n 2010-05-31 | 5")
    listed = figures(rows, months=10**30)
    assert listed[0] == ("2010-05", "5.00", "0.00", "5.00")
    assert len(listed) == 16 * 12 - 1


@pytest.mark.requirement("decision 14")
def test_a_transfer_counts_only_where_it_crosses_the_border_of_the_selection() -> None:
    rows = bookings("""
        account_id | booking_date | amount  | transfer_account_id
        a          | 2026-02-27   | -100.00 | b
        b          | 2026-03-02   | 100.00  | a
        a          | 2026-03-03   | -30.00  | c
    """)
    assert figures(rows, "a", "b") == [("2026-02", "0.00", "0.00", "0.00"), ("2026-03", "0.00", "30.00", "-30.00")]
    assert figures(rows, "a") == [("2026-02", "0.00", "100.00", "-100.00"), ("2026-03", "0.00", "30.00", "-30.00")]
    assert figures(rows, "b")[1] == ("2026-03", "100.00", "0.00", "100.00")


@pytest.mark.requirement("decision 15")
def test_adjusting_entries_are_never_summed() -> None:
    rows = bookings("booking_date | amount | is_adjusting_entry\n 2026-03-01 | 5 | yes\n 2026-03-01 | 2 |")
    assert figures(rows, months=1) == [("2026-03", "2.00", "0.00", "2.00")]


@pytest.mark.requirement("decision 19")
def test_several_currencies_are_never_added_up_without_rates() -> None:
    rows = bookings("booking_date | amount | currency\n 2026-03-01 | 5 | USD\n 2026-03-01 | 2 | EUR")
    without = monthly_cashflow(rows, selection=["a"], months=2, today=TODAY, currency="EUR")
    assert without.select("income", "unconverted").rows() == [(0, []), (2, ["USD"])]
    rates = quotes("currency | day | rate\n USD | 2026-02-27 | 1.25")
    cashflow = monthly_cashflow(rows, selection=["a"], months=1, today=TODAY, currency="EUR", rates=rates)
    assert cashflow.select("income", "unconverted").row(0) == (Decimal(6), [])


@pytest.mark.requirement("decision 19")
def test_months_that_are_not_asked_need_no_rates() -> None:
    rows = bookings("booking_date | amount | currency\n 2026-02-28 | 5 | XAU\n 2026-03-01 | 2 | EUR")
    assert figures(rows, months=1) == [("2026-03", "2.00", "0.00", "2.00")]


@pytest.mark.requirement("explanations.month")
def test_every_row_of_a_month_says_how_it_counts_or_why_not() -> None:
    rows = bookings("""
        id | account_id | booking_date | amount | transfer_account_id | is_adjusting_entry
        1  | a          | 2026-02-28   | 9      |                     |
        2  | a          | 2026-03-01   | 50     |                     |
        3  | a          | 2026-03-01   | -20    |                     |
        4  | a          | 2026-03-31   | -7     | b                   |
        5  | b          | 2026-03-31   | 7      | a                   |
        6  | a          | 2026-03-01   | 1000   |                     | yes
        7  | c          | 2026-03-01   | 3      |                     |
        8  | a          | 2026-04-01   | 3      |                     |
        11 | a          | 2026-03-01   | 0      |                     |
    """)
    pending = bookings("id | booking_date | amount\n 9 | 2026-03-31 | -4\n 10 | 2026-04-01 | -4")
    behind = month_transactions(
        rows, selection=["a", "b"], month=date(2026, 3, 1), today=TODAY, currency="EUR", pending=pending
    )
    assert behind.select("id", "counted_as", "left_out", "counted_amount").rows() == [
        ("9", None, "pending", Decimal(0)),
        ("5", None, "transfer", Decimal(0)),
        ("4", None, "transfer", Decimal(0)),
        ("6", None, "adjusting_entry", Decimal(0)),
        ("3", "expenses", None, Decimal(-20)),
        ("2", "income", None, Decimal(50)),
        ("11", "income", None, Decimal(0)),
    ]


@pytest.mark.requirement("explanations.month")
@pytest.mark.parametrize(
    ("month", "is_known"),
    [
        (date(2026, 3, 1), True),
        (date(2026, 4, 1), False),
        (date(2016, 4, 1), True),  # the 120th month is listed without any booking
        (date(2016, 3, 1), False),
    ],
)
def test_a_month_that_no_cashflow_lists_is_outside_the_history(month: date, *, is_known: bool) -> None:
    nothing = bookings("amount")
    if is_known:
        assert month_transactions(nothing, selection=["a"], month=month, today=TODAY, currency="EUR").is_empty()
    else:
        with pytest.raises(MonthOutsideHistory, match=r"^month: lies outside the history"):
            month_transactions(nothing, selection=["a"], month=month, today=TODAY, currency="EUR")


def test_older_months_belong_to_the_history_once_something_was_booked_before() -> None:
    rows = bookings("booking_date | amount\n 2010-05-31 | 5")
    for month, count in ((date(2010, 5, 1), 1), (date(2010, 6, 1), 0)):
        behind = month_transactions(rows, selection=["a"], month=month, today=TODAY, currency="EUR")
        assert behind.height == count
    with pytest.raises(MonthOutsideHistory):
        month_transactions(rows, selection=["a"], month=date(2010, 4, 1), today=TODAY, currency="EUR")


@given(st.data())
@pytest.mark.requirement("cashflow.figures")
def test_cashflow_agrees_with_the_reference_to_the_last_digit(data: st.DataObject) -> None:
    first = date(2025, 9, 1)
    currencies = data.draw(st.sampled_from([("EUR",), ("EUR", "USD", "JPY", "KWD", "DEM")]))  # none for marks
    rows = data.draw(booking_rows(currencies=currencies, first=first, last=TODAY + timedelta(days=5)))
    rates = data.draw(rate_rows(currencies=("USD", "JPY", "KWD"), first=first))
    selection = data.draw(SELECTIONS)
    months = data.draw(st.sampled_from([1, 2, 7, 120, 121]))
    home = data.draw(st.sampled_from(currencies))
    expected = reference.monthly_cashflow(
        rows, selection=selection, months=months, today=TODAY, currency=home, rates=rates
    )
    computed = monthly_cashflow(
        frame(rows, BOOKINGS),
        selection=selection,
        months=months,
        today=TODAY,
        currency=home,
        rates=frame(rates, RATES),
    )
    assert computed.rows() == expected


@given(booking_rows(currencies=("EUR", "JPY", "DEM"), first=date(2025, 11, 1)), SELECTIONS)
@pytest.mark.requirement("explanations.month")
def test_the_rows_behind_a_month_add_up_to_its_figures(rows: list[dict[str, object]], selection: set[str]) -> None:
    ledger = frame(rows, BOOKINGS)
    rates = quotes("currency | day | rate\n JPY | 2020-01-01 | 160.35")
    cashflow = monthly_cashflow(ledger, selection=selection, months=5, today=TODAY, currency="EUR", rates=rates)
    for month, income, expenses, net, unconverted in cashflow.rows():
        behind = month_transactions(ledger, selection=selection, month=month, today=TODAY, currency="EUR", rates=rates)
        assert behind["counted_amount"].sum() == net
        assert behind.filter(left_out="no_rate")["currency"].unique().sort().to_list() == unconverted
        assert behind.filter(counted_as="income")["counted_amount"].sum() == income
        assert behind.filter(counted_as="expenses")["counted_amount"].sum() == -expenses
        assert behind.filter(pl.col("counted_as").is_null() == pl.col("left_out").is_null()).is_empty()


@st.composite
def paired_ledgers(draw: st.DrawFn) -> list[dict[str, object]]:
    """Rows of the usual kind, and transfers whose two legs are both there."""
    rows = list(draw(booking_rows(currencies=("EUR",), first=date(2025, 1, 1))))
    for row in rows:
        row["transfer_id"] = None
    for number in range(draw(st.integers(0, 8))):
        source, target = draw(st.permutations(ACCOUNTS))[:2]
        left_on = draw(st.dates(date(2025, 1, 1), TODAY - timedelta(days=4)))
        arrived_on = left_on + timedelta(days=draw(st.integers(0, 4)))
        amount = Decimal(draw(st.integers(1, 10**20 - 1))).scaleb(-5)
        for side, other, day, signed in ((source, target, left_on, -amount), (target, source, arrived_on, amount)):
            rows.append(
                {
                    "id": f"t{number}{side}",
                    "account_id": side,
                    "booking_date": day,
                    "amount": signed,
                    "currency": "EUR",
                    "is_adjusting_entry": False,
                    "transfer_account_id": other,
                    "transfer_id": f"t{number}{other}",
                }
            )
    return rows


@given(paired_ledgers(), SELECTIONS)
@pytest.mark.requirement("decision 14")
def test_the_sum_of_net_is_the_change_of_the_selections_booked_balance(
    rows: list[dict[str, object]], selection: set[str]
) -> None:
    cashflow = monthly_cashflow(frame(rows, BOOKINGS), selection=selection, months=10**30, today=TODAY, currency="EUR")
    change = sum(
        (
            reference.home_amount(row, "EUR", []) or Fraction(0)
            for row in rows
            if row["account_id"] in selection and not row["is_adjusting_entry"]
        ),
        Fraction(0),
    )
    assert sum((Fraction(net) for net in cashflow["net"]), Fraction(0)) == change
