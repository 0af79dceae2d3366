"""What each month went to; the categories of a month add up to its cashflow."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cashflow import monthly_cashflow
from analytics.cashflow_categories import monthly_categories
from analytics.frames import BOOKINGS, RATES
from tests.analytics.ledgers import ACCOUNTS, TODAY, booking_rows, bookings, frame, rate_rows


@pytest.mark.requirement("categories.month")
def test_expenses_count_by_sign_and_the_dearest_category_comes_first() -> None:
    rows = bookings("""
        account_id | booking_date | amount   | category  | transfer_account_id | is_adjusting_entry
        a          | 2026-02-28   | -100.00  | RENT      |                     |
        a          | 2026-03-01   | -12.99   | SHOPPING  |                     |
        a          | 2026-03-02   | 12.99    | SHOPPING  |                     |
        a          | 2026-03-03   | -12.99   | GROCERIES |                     |
        a          | 2026-03-04   | -700.00  |           |                     |
        a          | 2026-03-05   | -1.00    | TRANSFER  | b                   |
        b          | 2026-03-06   | -2.00    | OTHER     |                     | yes
        c          | 2026-03-07   | -4.00    | OTHER     |                     |
        a          | 2026-04-01   | -5.00    | OTHER     |                     |
    """)
    months = [date(2026, 2, 1), date(2026, 3, 1)]
    assert monthly_categories(rows, selection=("a", "b"), months=months, currency="EUR") == {
        date(2026, 2, 1): [("RENT", Decimal("100.00000"))],
        date(2026, 3, 1): [
            ("OTHER", Decimal("700.00000")),
            ("GROCERIES", Decimal("12.99000")),
            ("SHOPPING", Decimal("12.99000")),
        ],
    }


@pytest.mark.requirement("categories.month")
@given(
    rows=booking_rows(currencies=("EUR", "USD", "JPY"), first=TODAY - timedelta(days=100)),
    rates=rate_rows(currencies=("USD", "JPY"), first=TODAY - timedelta(days=60)),
    selection=st.sets(st.sampled_from(ACCOUNTS), min_size=1),
)
def test_they_add_up_to_the_cashflow(
    rows: list[dict[str, object]], rates: list[dict[str, object]], selection: set[str]
) -> None:
    ledger, quoted = frame(rows, BOOKINGS), frame(rates, RATES)
    figures = monthly_cashflow(ledger, selection=selection, months=4, today=TODAY, currency="EUR", rates=quoted)
    found = monthly_categories(
        ledger, selection=selection, months=figures["month"].to_list(), currency="EUR", rates=quoted
    )
    assert {month: sum((amount for _, amount in spent), Decimal(0)) for month, spent in found.items()} == dict(
        zip(figures["month"], figures["expenses"], strict=True)
    )
