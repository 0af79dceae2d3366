"""The snapshot: balances, the last 30 days by category, refunds, percentages, and the rows behind a category."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.frames import BALANCES, BOOKINGS, RATES
from analytics.snapshot import category_transactions, percentage, snapshot
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, balances, booking_rows, bookings, frame, quotes, rate_rows

ACCOUNT = balances("id | bank_name | balance\n a | Bank | 100")
NO_BOOKINGS = bookings("amount")


def top(rows: pl.DataFrame, *, accounts: pl.DataFrame = ACCOUNT) -> list[tuple[str, str, int]]:
    """Category, amount as text, percentage."""
    categories = snapshot(accounts, rows, today=TODAY, currency="EUR").top_categories
    return [(category, f"{amount:.2f}", share) for category, amount, share in categories.rows()]


@pytest.mark.requirement("snapshot.totalBalance")
@pytest.mark.requirement("decision 18")
def test_the_total_is_the_sum_of_the_listed_balances_and_liabilities_are_negative() -> None:
    accounts = balances("""
        id | name     | bank_name | balance
        a  | Giro     | Bank A    | 1200.50
        b  | Loan     | Bank B    | -5000.00
        c  | Unknown  | Bank C    |
        d  | Nothing  | Bank C    | 0
    """)
    seen = snapshot(accounts, NO_BOOKINGS, today=TODAY, currency="EUR")
    assert seen.total_balance == Decimal("-3799.50")
    assert seen.accounts.rows() == [
        ("Giro", "Bank A", Decimal("1200.50"), "EUR"),
        ("Loan", "Bank B", Decimal("-5000.00"), "EUR"),
        ("Nothing", "Bank C", Decimal(0), "EUR"),
    ]


@pytest.mark.requirement("decision 7")
def test_without_accounts_everything_is_empty_and_zero() -> None:
    seen = snapshot(ACCOUNT.clear(), NO_BOOKINGS, today=TODAY, currency="EUR")
    assert (seen.total_balance, seen.total_expenses) == (Decimal(0), Decimal(0))
    assert seen.accounts.is_empty()
    assert seen.top_categories.is_empty()


@pytest.mark.requirement("decision 20")
def test_a_nameless_account_is_called_by_iban_then_by_type_then_account() -> None:
    accounts = balances("""
        id | name | iban | kind    | bank_name | balance
        a  | Giro | DE1  | savings | Bank      | 1
        b  |      | DE2  | savings | Bank      | 1
        c  |      |      | savings | Bank      | 1
        d  |      |      |         | Bank      | 1
    """)
    blank = accounts.with_columns(pl.col("name").fill_null("  "))
    for frame_ in (accounts, blank):
        names = snapshot(frame_, NO_BOOKINGS, today=TODAY, currency="EUR").accounts["name"]
        assert names.to_list() == ["Giro", "DE2", "savings", "Account"]


@pytest.mark.requirement("decision 19")
def test_balances_of_several_currencies_are_converted_by_todays_rate() -> None:
    accounts = balances("""
        id | currency | bank_name | balance
        a  | EUR      | Bank      | 10.00
        b  | USD      | Bank      | 10.00
    """)
    rates = quotes("currency | day | rate\n USD | 2026-03-27 | 1.25\n USD | 2026-04-01 | 2")
    seen = snapshot(accounts, NO_BOOKINGS, today=TODAY, currency="EUR", rates=rates)
    assert seen.total_balance == Decimal("18.00")
    assert seen.accounts["balance"].to_list() == [Decimal(10), Decimal(10)]
    assert seen.unconverted == []
    without = snapshot(accounts, NO_BOOKINGS, today=TODAY, currency="EUR")
    assert (without.total_balance, without.unconverted) == (Decimal(10), ["USD"])
    assert without.accounts["balance"].to_list() == [Decimal(10), Decimal(10)]  # each is listed in its own currency


@pytest.mark.requirement("snapshot.last30Days")
@pytest.mark.requirement("decision 10")
def test_the_window_is_today_and_the_29_days_before() -> None:
    rows = bookings("""
        booking_date | amount | category
        2026-03-01   | -1     | RENT
        2026-03-02   | -2     | RENT
        2026-03-31   | -4     | RENT
        2026-04-01   | -8     | RENT
    """)
    assert top(rows) == [("RENT", "6.00", 100)]


@pytest.mark.requirement("decision 17")
def test_at_most_five_categories_by_amount_then_name_and_missing_ones_are_other() -> None:
    rows = bookings("""
        booking_date | amount | category
        2026-03-31   | -10    | TRANSPORT
        2026-03-31   | -20    | RENT
        2026-03-31   | -10    | DINING
        2026-03-31   | -3     |
        2026-03-31   | -7     | OTHER
        2026-03-31   | -10    | HEALTH
        2026-03-31   | -9     | SHOPPING
    """)
    assert [category for category, *_ in top(rows)] == ["RENT", "DINING", "HEALTH", "OTHER", "TRANSPORT"]
    assert snapshot(ACCOUNT, rows, today=TODAY, currency="EUR").total_expenses == Decimal(69)


@pytest.mark.requirement("decision 17")
@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        ("750", "1850", 41),
        ("0.005", "1", 1),
        ("0.00499", "1", 0),
        ("1", "8", 13),
        ("5", "1000", 1),
        ("1", "1", 100),
        ("0", "0", 0),
        ("99999999999999999999999999999.99999", "199999999999999999999999999999.99998", 50),
        ("99999999999999999999999999998.99999", "200000000000000000000000000000.00000", 50),
    ],
)
def test_percentages_are_whole_and_halves_go_up(part: str, whole: str, expected: int) -> None:
    assert percentage(Decimal(part), Decimal(whole)) == expected


@pytest.mark.requirement("decision 14")
def test_a_transfer_within_the_selection_is_no_expense_and_one_out_of_it_is() -> None:
    rows = bookings("""
        account_id | booking_date | amount | category | transfer_account_id
        a          | 2026-03-31   | -100   | TRANSFER | b
        b          | 2026-03-31   | 100    | TRANSFER | a
        a          | 2026-03-31   | -30    | TRANSFER | c
        a          | 2026-03-31   | -50    | TRANSFER |
    """)
    both = balances("id | bank_name | balance\n a | Bank | 1\n b | Bank |")
    assert top(rows, accounts=both) == [("TRANSFER", "80.00", 100)]
    assert top(rows) == [("TRANSFER", "180.00", 100)]


@pytest.mark.requirement("decision 15")
def test_adjusting_entries_are_no_expenses() -> None:
    assert top(bookings("booking_date | amount | is_adjusting_entry\n 2026-03-31 | -5 | yes")) == []


@pytest.mark.requirement("decision 16")
@pytest.mark.parametrize(
    ("credit", "left"),
    [
        ("2026-03-31 | 30 | SHOPPING | Shop  |      |      ", "70.00"),
        ("2026-03-31 | 30 | SHOPPING | SHOP  |      |      ", "70.00"),
        ("2026-03-20 | 30 | SHOPPING | Shop  |      |      ", "70.00"),  # on the day of the payment
        ("2026-03-19 | 30 | SHOPPING | Shop  |      |      ", "100.00"),  # before it
        ("2026-03-31 | 30 | SHOPPING | Other | IB1  |      ", "70.00"),
        ("2026-03-31 | 30 | SHOPPING | Other |      | Brand", "70.00"),
        ("2026-03-31 | 30 | SHOPPING | Other | IB2  | Else ", "100.00"),
        ("2026-03-31 | 30 | SHOPPING |       |      |      ", "100.00"),
        ("2026-03-31 | 30 | SALARY   | Shop  |      |      ", "100.00"),
        ("2026-03-31 | 30 | TRANSFER | Shop  |      |      ", "100.00"),
        ("2026-03-31 | 30 | OTHER    | Shop  |      |      ", "100.00"),  # reduces OTHER, where nothing was spent
        ("2026-04-01 | 30 | SHOPPING | Shop  |      |      ", "100.00"),
    ],
)
def test_a_refund_of_a_paid_counterpart_reduces_its_category(credit: str, left: str) -> None:
    rows = bookings(f"""
        booking_date | amount | category | counterpart_name | counterpart_iban | merchant_name
        2026-03-20   | -100   | SHOPPING | Shop             | IB1              | Brand
        {credit}
    """)
    assert top(rows) == [("SHOPPING", left, 100)]


@pytest.mark.requirement("decision 16")
@pytest.mark.parametrize(("paid_as", "rent"), [("TRANSFER", "1000.00"), ("RENT", "600.00")])
def test_what_somebody_pays_for_a_room_is_no_refund_of_the_own_rent(paid_as: str, rent: str) -> None:
    rows = bookings(f"""
        booking_date | amount | category  | counterpart_name
        2026-03-01   | -20    | {paid_as} | Flatmate
        2026-03-03   | -1000  | RENT      | Landlord
        2026-03-05   | 400    | RENT      | Flatmate
    """)
    assert {name: amount for name, amount, _share in top(rows)}["RENT"] == rent


@pytest.mark.requirement("decision 16")
def test_the_payment_of_a_refund_may_be_years_old_and_of_a_category_nothing_is_left_below_zero() -> None:
    rows = bookings("""
        booking_date | amount | category | counterpart_name
        2024-01-01   | -100   | SHOPPING | Shop
        2026-03-30   | -40    | SHOPPING | Market
        2026-03-30   | -5     | DINING   | Inn
        2026-03-31   | 60     | SHOPPING | Shop
    """)
    assert top(rows) == [("DINING", "5.00", 100)]


@pytest.mark.requirement("decision 16")
@pytest.mark.parametrize(
    "payment",
    [
        "a | -100 |      |      | ",  # names that are empty are not equal names
        "a | -100 | Shop | b    | ",  # an own transfer inside the selection pays nobody
        "a | -100 | Shop |      | yes",
        "c | -100 | Shop |      | ",  # not a selected account
        "a | 100  | Shop |      | ",
    ],
)
def test_a_credit_of_a_counterpart_that_was_never_paid_is_no_refund(payment: str) -> None:
    rows = bookings(f"""
        account_id | amount | counterpart_name | transfer_account_id | is_adjusting_entry | booking_date | category
        {payment}                                                                          | 2026-03-01   | SHOPPING
        a          | 30     | Shop             |                     |                    | 2026-03-31   | SHOPPING
        a          | 30     |                  |                     |                    | 2026-03-31   | SHOPPING
        a          | -80    | Market           |                     |                    | 2026-03-31   | SHOPPING
    """)
    both = balances("id | bank_name | balance\n a | Bank | 1\n b | Bank | 1")
    blank = rows.with_columns(pl.col("counterpart_name").fill_null(""))
    assert top(rows, accounts=both) == top(blank, accounts=both) == [("SHOPPING", "80.00", 100)]


@pytest.mark.requirement("decision 16")
def test_refunds_beyond_the_expenses_count_nothing() -> None:
    rows = bookings("""
        id | booking_date | amount | category | counterpart_name
        1  | 2026-03-10   | -50    | DINING   | Inn
        2  | 2026-03-11   | 50     | DINING   | Inn
        3  | 2026-03-12   | 30     | DINING   | Inn
        4  | 2026-03-13   | 20     | DINING   | Inn
    """)
    behind = category_transactions(rows, selection=["a"], category="DINING", today=TODAY, currency="EUR")
    assert behind["counted_amount"].to_list() == [Decimal(0), Decimal(0), Decimal(50), Decimal(-50)]
    assert behind["counted_as"].to_list() == ["refund", "refund", "refund", "expenses"]


@pytest.mark.requirement("explanations.category")
def test_every_row_of_a_category_says_how_it_counts_or_why_not() -> None:
    rows = bookings("""
        id | account_id | booking_date | amount | category | counterpart_name | transfer_account_id | is_adjusting_entry
        1  | a          | 2026-03-10   | -50    |          | Shop             |                     |
        2  | a          | 2026-03-11   | 30     | OTHER    | Shop             |                     |
        3  | a          | 2026-03-12   | 30     | OTHER    | Shop             |                     |
        4  | a          | 2026-03-13   | 7      | OTHER    | Stranger         |                     |
        5  | a          | 2026-03-14   | -9     | OTHER    |                  | b                   |
        6  | a          | 2026-03-15   | 99     | OTHER    |                  |                     | yes
        7  | a          | 2026-03-15   | -1     | RENT     |                  |                     |
        8  | c          | 2026-03-15   | -1     | OTHER    |                  |                     |
        9  | a          | 2026-03-01   | -1     | OTHER    |                  |                     |
    """)
    pending = bookings("id | booking_date | amount | category\n 10 | 2026-03-31 | -4 |\n 11 | 2026-03-31 | -4 | RENT")
    behind = category_transactions(
        rows, selection=["a", "b"], category="OTHER", today=TODAY, currency="EUR", pending=pending
    )
    assert behind.select("id", "counted_as", "left_out", "counted_amount").rows() == [
        ("10", None, "pending", Decimal(0)),
        ("6", None, "adjusting_entry", Decimal(0)),
        ("5", None, "transfer", Decimal(0)),
        ("4", None, "income", Decimal(0)),
        ("3", "refund", None, Decimal(20)),
        ("2", "refund", None, Decimal(30)),
        ("1", "expenses", None, Decimal(-50)),
    ]


def ledgers(currencies: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, object]]]:
    """Rows around the window of 30 days."""
    return booking_rows(currencies=currencies, first=TODAY - timedelta(days=40), last=TODAY + timedelta(days=2))


@given(st.data(), st.sets(st.sampled_from(ACCOUNTS)))
@pytest.mark.requirement("snapshot.figures")
def test_the_snapshot_agrees_with_the_reference_to_the_last_digit(data: st.DataObject, selection: set[str]) -> None:
    currencies = data.draw(st.sampled_from([("EUR",), ("EUR", "USD", "JPY", "KWD", "DEM")]))  # none for marks
    rows = data.draw(ledgers(currencies))
    rates = data.draw(rate_rows(currencies=("USD", "JPY", "KWD"), first=date(2026, 1, 1)))
    home = data.draw(st.sampled_from(currencies))
    accounts: list[dict[str, object]] = [
        {
            "id": account,
            "currency": data.draw(st.sampled_from(currencies)),
            "balance": data.draw(st.one_of(st.none(), st.just(Decimal("12.34")))),
            "bank_name": "Bank",
        }
        for account in sorted(selection)
    ]
    seen = snapshot(
        frame(accounts, BALANCES), frame(rows, BOOKINGS), today=TODAY, currency=home, rates=frame(rates, RATES)
    )
    costs = reference.category_costs(rows, selection=selection, today=TODAY, currency=home, rates=rates)
    assert seen.top_categories.rows() == reference.top_categories(costs)
    assert seen.total_expenses == sum(costs.values(), Fraction(0))
    assert seen.total_balance == sum(
        (
            reference.converted(
                account["balance"], source=str(account["currency"]), target=home, day=TODAY, rates=rates
            )
            or Fraction(0)
            for account in accounts
            if isinstance(account["balance"], Decimal)
        ),
        Fraction(0),
    )


@given(ledgers(("EUR", "JPY", "DEM")), st.sets(st.sampled_from(ACCOUNTS), min_size=1))
@pytest.mark.requirement("explanations.category")
def test_the_rows_behind_a_category_add_up_to_its_amount(rows: list[dict[str, object]], selection: set[str]) -> None:
    ledger = frame(rows, BOOKINGS)
    rates = quotes("currency | day | rate\n JPY | 2020-01-01 | 160.35")
    costs = reference.category_costs(
        rows, selection=selection, today=TODAY, currency="EUR", rates=rates.rows(named=True)
    )
    for category in ("OTHER", "SHOPPING", "RENT", "SALARY", "TRANSFER"):
        behind = category_transactions(
            ledger, selection=selection, category=category, today=TODAY, currency="EUR", rates=rates
        )
        assert -Fraction(behind["counted_amount"].sum()) == costs.get(category, 0)
        assert behind.filter(pl.col("counted_as").is_null() == pl.col("left_out").is_null()).is_empty()
        assert behind.filter(pl.col("counted_as").is_null(), pl.col("counted_amount") != 0).is_empty()
