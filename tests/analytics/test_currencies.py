"""Conversion by dated reference rates, exact and rounded once."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.currencies import reporting_currency
from analytics.frames import BOOKINGS, FIGURE, RATES
from analytics.minor_digits import minor_digits
from tests.analytics import reference
from tests.analytics.ledgers import TODAY, booking_rows, bookings, converted, frame, quotes, rate_rows

RATES_OF_JANUARY = quotes("""
    currency | day        | rate
    USD      | 2026-01-02 | 1.25
    USD      | 2026-01-05 | 1.6
    JPY      | 2026-01-02 | 160
    KWD      | 2026-01-02 | 0.32
    RUB      | 2026-01-02 | 80
    RUB      | 2026-01-05 |
""")


def home_amounts(text: str, *, currency: str) -> list[str]:
    """What `convert` makes of a table, in full."""
    amounts = converted(bookings(text), currency=currency, rates=RATES_OF_JANUARY)
    assert amounts.dtype == FIGURE
    return [str(amount) for amount in amounts]


@pytest.mark.requirement("decision 19")
def test_the_rate_is_the_booking_days_or_the_last_one_before_it() -> None:
    assert home_amounts(
        """
        booking_date | amount | currency
        2026-01-02   | -10.00 | USD
        2026-01-04   | -10.00 | USD
        2026-01-05   | -10.00 | USD
        2026-02-28   | -10.00 | USD
        2026-01-04   | -10.00 | EUR
        """,
        currency="EUR",
    ) == ["-8.00000", "-8.00000", "-6.25000", "-6.25000", "-10.00000"]


@pytest.mark.requirement("decision 19")
def test_cross_rates_go_through_the_euro_and_are_rounded_once() -> None:
    """1.01 USD / 1.25 * 160 = 129.28 JPY; by way of 0.81 EUR it would be 129.60, which is 130."""
    assert home_amounts("booking_date | amount | currency\n 2026-01-02 | 1.01 | USD", currency="JPY") == ["129.00000"]


@pytest.mark.requirement("decision 19")
@pytest.mark.parametrize(
    ("amount", "currency", "home", "expected"),
    [
        ("0.00625", "USD", "EUR", "0.00000"),  # half a cent, down to the even 0.00
        ("0.01875", "USD", "EUR", "0.02000"),  # a cent and a half, up to the even 0.02
        ("0.03125", "USD", "EUR", "0.02000"),
        ("-0.00625", "USD", "EUR", "0.00000"),
        ("-0.01875", "USD", "EUR", "-0.02000"),
        ("-0.01876", "USD", "EUR", "-0.02000"),
        ("-0.01874", "USD", "EUR", "-0.01000"),
        ("1", "EUR", "JPY", "160.00000"),
        ("0.00625", "EUR", "JPY", "1.00000"),
        ("0.003125", "EUR", "JPY", "0.00000"),
        ("1.01", "EUR", "KWD", "0.32300"),
        ("160", "JPY", "KWD", "0.32000"),
    ],
)
def test_halves_go_to_the_even_digit_of_the_target_currency(
    amount: str, currency: str, home: str, expected: str
) -> None:
    rows = bookings(f"booking_date | amount | currency\n 2026-01-02 | {amount} | {currency}")
    assert [str(value) for value in converted(rows, currency=home, rates=RATES_OF_JANUARY)] == [expected]


@pytest.mark.requirement("decision 19")
@pytest.mark.parametrize(
    ("day", "source", "home"),
    [
        ("2026-01-01", "USD", "EUR"),
        ("2026-01-02", "XAU", "EUR"),
        ("2026-01-02", "EUR", "XAU"),
        ("2026-01-05", "RUB", "EUR"),  # no longer quoted
        ("2026-01-05", "USD", "RUB"),
    ],
)
def test_without_a_rate_of_either_currency_there_is_no_amount(day: str, source: str, home: str) -> None:
    rows = bookings(f"booking_date | amount | currency\n {day} | 1 | {source}\n {day} | 1 | {home}")
    assert converted(rows, currency=home, rates=RATES_OF_JANUARY).to_list() == [None, 1]


def test_what_is_in_the_currency_already_counts_as_it_is_listed() -> None:
    counted = home_amounts(
        """
        booking_date | amount | currency
        2026-01-02   | 1.5    | JPY
        2026-01-02   | 2.5    | JPY
        2026-01-02   | -2.51  | JPY
        """,
        currency="JPY",
    )
    assert counted == ["2.00000", "2.00000", "-3.00000"]


def test_the_largest_amounts_and_rates_do_not_overflow() -> None:
    rates = quotes("""
        currency | day        | rate
        AAA      | 2026-01-01 | 99999999.999999
        BBB      | 2026-01-01 | 0.000001
    """)
    row = bookings("booking_date | amount | currency\n 2026-01-02 | -999999999999999.99999 | BBB")
    (amount,) = converted(row, currency="AAA", rates=rates)
    assert str(amount) == "-99999999999998999999000000000.00000"  # (10^20 - 1) (10^14 - 1) / 10^5, in cents


@pytest.mark.requirement("decision 19")
def test_figures_are_in_the_only_currency_of_the_accounts_else_in_the_home_currency() -> None:
    assert reporting_currency(["USD", "USD"], home="EUR") == "USD"
    assert reporting_currency(["USD", "EUR"], home="CHF") == "CHF"
    assert reporting_currency([], home="EUR") == "EUR"


def test_minor_units_follow_iso_4217() -> None:
    assert [minor_digits(currency) for currency in ("EUR", "JPY", "KWD", "CLF", "ISK", "HUF")] == [2, 0, 3, 4, 0, 2]


@given(st.data())
def test_conversion_agrees_with_exact_fractions(data: st.DataObject) -> None:
    first = TODAY - timedelta(days=100)
    currencies = ("USD", "JPY", "KWD")
    rates = data.draw(rate_rows(currencies=currencies, first=first))
    rows = data.draw(booking_rows(currencies=("EUR", *currencies), first=first))
    home = data.draw(st.sampled_from(["EUR", *currencies]))
    amounts = converted(frame(rows, BOOKINGS), currency=home, rates=frame(rates, RATES))
    assert amounts.to_list() == [reference.home_amount(row, home, rates) for row in rows]


def test_a_frame_without_rows_needs_no_rates() -> None:
    assert converted(bookings("amount"), currency="EUR").is_empty()
