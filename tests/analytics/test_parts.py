"""Parts of bookings: where the money went, to the cent, while every sum of whole bookings stays as it is."""

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cashflow import monthly_cashflow
from analytics.cashflow_categories import monthly_categories
from analytics.frames import BALANCES, BOOKINGS, RATES, SEARCHED
from analytics.minor_digits import in_digits, minor_digits
from analytics.refunds import refund_ids
from analytics.searching.filters import Query, matching_rows
from analytics.searching.parts import PARTS, apart, fit, shares
from analytics.searching.totals import Totals, top_groups, totals
from analytics.snapshot import category_transactions, snapshot
from tests.analytics.ledgers import ACCOUNTS, TODAY, Row, frame, rate_rows, searched_rows

CATEGORIES = ("OTHER", "SHOPPING", "RENT", "SALARY", "GROCERIES")
CURRENCIES = ("EUR", "USD", "JPY")
FIRST = TODAY.replace(year=2025, month=12, day=1)
SELECTION = ("a", "b")


@st.composite
def split_rows(draw: st.DrawFn, rows: Sequence[Row]) -> list[Row]:
    """Rows of PARTS for some of these rows."""
    parts: list[Row] = []
    for row in rows:
        currency, amount = str(row["currency"]), row["amount"]
        assert isinstance(amount, Decimal)
        digits = minor_digits(currency)
        units = int(Fraction(in_digits(amount, currency)) * 10**digits)
        count = draw(st.sampled_from([0, 2, 2, 3, 5]))
        if not 0 < count <= abs(units):
            continue
        cuts = draw(st.sets(st.integers(1, abs(units) - 1), min_size=count - 1, max_size=count - 1))
        borders = [0, *sorted(cuts), abs(units)]
        for one, next_one in pairwise(borders):
            part = Decimal((units < 0, tuple(map(int, str(next_one - one))), -digits))
            leaf = draw(st.sampled_from([None, "BAKERY"]))
            place = {"category": draw(st.sampled_from(CATEGORIES)), "detailed_category": leaf}
            parts.append({"id": row["id"], "amount": part, **place})
    return parts


def largest_remainders(whole: Fraction, weights: Sequence[Fraction], unit: Fraction) -> list[Fraction]:
    """The whole, of so many units, shared out one unit after the other to whom it is owed most."""
    given_out = [whole * weight / sum(weights) // unit * unit for weight in weights]
    owed = [whole * weight / sum(weights) - share for weight, share in zip(weights, given_out, strict=True)]
    while sum(given_out) < whole:
        place = owed.index(max(owed))
        given_out[place], owed[place] = given_out[place] + unit, Fraction(-1)
    return given_out


@pytest.mark.no_cover
@pytest.mark.requirement("words.parts")
@given(st.data())
def test_random_parts_are_to_the_cent_what_plain_sums_are(data: st.DataObject) -> None:
    said = data.draw(searched_rows(currencies=CURRENCIES, first=FIRST))
    quoted = data.draw(rate_rows(currencies=("USD", "JPY"), first=FIRST))
    rows, rates = frame(said, SEARCHED), frame(quoted, RATES)
    rows, rates = rows.filter(pl.col("account_id").is_in(SELECTION)), rates.sort("currency", "day")
    parts = frame(data.draw(split_rows(rows.to_dicts())), PARTS)
    refunds = refund_ids(rows, rows, selection=SELECTION)
    named: dict[str, Any] = {"selection": SELECTION, "currency": "EUR", "rates": rates}
    judged = matching_rows(rows, Query(), **named).collect()

    plain: dict[tuple[str, str], Fraction] = defaultdict(Fraction)  # by category and kind
    spent: dict[tuple[str, Any], Fraction] = defaultdict(Fraction)  # by category and month
    recent: dict[str, list[Fraction]] = {}  # expenses and refunds of the last 30 days
    bookings: dict[str, set[str]] = {}
    for row in judged.iter_rows(named=True):
        if row["left_out"] is not None or row["home_amount"] is None:
            continue
        home, of_row = Fraction(row["home_amount"]), parts.filter(pl.col("id") == row["id"]).to_dicts()
        weights = [abs(Fraction(part["amount"])) for part in of_row]
        shared = largest_remainders(abs(home), weights, Fraction(1, 100)) if of_row else [abs(home)]
        is_refund = row["id"] in refunds.to_list()
        for place, share in zip(of_row or [row], shared, strict=True):
            category = place["category"] or "OTHER"
            is_expense = row["amount"] < 0
            plain[category, "expenses" if is_expense else "income"] += share
            plain[category, "refunds"] += share if is_refund else 0
            bookings.setdefault(category, set()).add(row["id"])
            if is_expense:
                spent[category, row["booking_date"].replace(day=1)] += share
            if (TODAY - row["booking_date"]).days < 30:
                costs = recent.setdefault(category, [Fraction(0), Fraction(0)])
                costs[0] += share if is_expense else 0
                costs[1] += share if is_refund else 0

    grouped = totals(rows, Query(), refunds=refunds, group_by=("category",), parts=parts, **named)
    groups = {group.named[0]: group.sums for group in top_groups(grouped, None, limit=100)[0]}
    for category, sums in groups.items():
        assert category is not None
        for kind in ("income", "expenses", "refunds"):
            assert Fraction(getattr(sums, kind)) == plain[category, kind], (category, kind)
        assert sums.count == len(bookings[category])
    assert set(groups) == set(bookings)
    [first, *_], rest = top_groups(grouped, None, limit=1) if groups else ([None], None)
    if first is not None and rest is not None:
        assert rest.sums.count == len(set().union(*(each for name, each in bookings.items() if name != first.named[0])))
    alone = totals(rows, Query(), refunds=refunds, group_by=("month",), **named)
    both = totals(rows, Query(), refunds=refunds, group_by=("month",), parts=parts, **named)
    assert (top_groups(both, None, limit=100), both.left_out) == (top_groups(alone, None, limit=100), alone.left_out)
    assert both.unconverted == alone.unconverted
    assert grouped.whole == both.whole == alone.whole
    some: Totals = totals(rows, Query(categories=CATEGORIES[1:3]), refunds=refunds, parts=parts, **named)
    assert Fraction(some.whole.expenses) == sum(plain[each, "expenses"] for each in CATEGORIES[1:3])
    wanted: set[str] = set().union(*(bookings.get(each, set()) for each in CATEGORIES[1:3]))
    assert some.whole.count == len(wanted)

    whole = rows.select(*BOOKINGS)
    cashflow = monthly_cashflow(whole, months=4, today=TODAY, **named)
    months = monthly_categories(whole, months=cashflow["month"].to_list(), parts=parts, **named)
    told = {(category, month): Fraction(amount) for month, each in months.items() for category, amount in each}
    assert told == {key: amount for key, amount in spent.items() if key in told}
    assert {month: sum(amount for _, amount in each) for month, each in months.items()} == dict(
        cashflow.select("month", "expenses").iter_rows()
    )

    held = frame([{"id": account, "currency": "EUR", "balance": Decimal(0)} for account in SELECTION], BALANCES)
    shown = snapshot(held, whole, today=TODAY, currency="EUR", rates=rates, parts=parts)
    left = {category: max(Fraction(0), costs[0] - costs[1]) for category, costs in recent.items()}
    assert Fraction(shown.total_expenses) == sum(left.values())
    for row in shown.top_categories.iter_rows(named=True):
        assert Fraction(row["amount"]) == left[row["category"]]
    for category, amount in left.items():
        behind = category_transactions(whole, category=category, today=TODAY, parts=parts, **named)
        assert behind["id"].is_unique().all()
        assert -Fraction(behind["counted_amount"].sum()) == amount


def test_a_whole_is_shared_out_to_the_last_unit() -> None:
    thirds = [Decimal("-1.00")] * 3
    assert shares(Decimal("-1.00"), thirds, currency="EUR") == [Decimal(each) for each in ("-0.34", "-0.33", "-0.33")]
    assert shares(Decimal(2), thirds, currency="JPY") == [1, 1, 0]
    five = [Decimal("0.50")] * 5
    assert sum(shares(Decimal("2.22"), five, currency="EUR")) == Decimal("2.22")


def test_parts_fit_what_they_add_up_to_in_digits_of_the_currency() -> None:
    halves = [Decimal("-0.50"), Decimal("-0.50")]
    assert fit(halves, amount=Decimal("-1.00"), currency="EUR")
    assert fit(halves, amount=Decimal("-1.00400"), currency="EUR")
    for amounts, amount, currency in (
        (halves, "-1.01", "EUR"),
        (halves, "1.00", "EUR"),
        (halves, "-1.00", "JPY"),
        ([Decimal("-2"), Decimal("1")], "-1.00", "EUR"),
        ([Decimal("-1"), Decimal("0")], "-1.00", "EUR"),
    ):
        assert not fit(amounts, amount=Decimal(amount), currency=currency)


def test_what_is_not_booked_yet_has_no_parts_and_nothing_changes_without_any() -> None:
    row: Row = {"id": "1", "account_id": ACCOUNTS[0], "booking_date": TODAY, "amount": Decimal(-2), "currency": "EUR"}
    rows = frame([{**row, "is_pending": pending, "category": "RENT"} for pending in (True, False)], SEARCHED)
    rows = rows.with_columns(home_amount=pl.col("amount"), is_adjusting_entry=False)
    parts = frame([{"id": "1", "amount": Decimal(-1), "category": each} for each in ("DINING", "HEALTH")], PARTS)
    seen = apart(rows.lazy(), parts, currency="EUR", may_be_pending=True).collect()
    assert seen.select("is_pending", "category").rows() == [(True, "RENT"), (False, "DINING"), (False, "HEALTH")]
    assert apart(rows.lazy(), parts.clear(), currency="EUR").collect().equals(rows)
