"""What rows add up to: counted as in the cashflow, as a whole and by one or two keys."""

from collections.abc import Callable, Collection
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, cast

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.cashflow import monthly_cashflow
from analytics.frames import RATES, SEARCHED
from analytics.refunds import refund_ids
from analytics.searching.comparison import Shift
from analytics.searching.filters import Query
from analytics.searching.totals import Group, Key, Named, Sums, Totals, top_groups, totals
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, Row, frame, quotes, rate_rows, searched, searched_rows

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


def said(sums: Sums) -> tuple[int, str, str, str]:
    return sums.count, f"{sums.income:.2f}", f"{sums.expenses:.2f}", f"{sums.net:.2f}"


def added(rows: pl.DataFrame, *group_by: Key, selection: Collection[str], **named: Any) -> Totals:
    """The totals of all these rows."""
    refunds = refund_ids(rows, rows, selection=selection)
    return totals(rows, Query(), refunds=refunds, selection=selection, currency="EUR", group_by=group_by, **named)


def in_groups(found: Totals) -> list[tuple[Named, int, str, str, str]]:
    groups, _ = top_groups(found, None, limit=1000)
    return [(group.named, *said(group.sums)) for group in groups]


@pytest.mark.requirement("totals.figures")
def test_own_transfers_and_adjusting_entries_are_left_out_and_told() -> None:
    found = added(searched(LEDGER), selection=("a", "b"))
    assert said(found.whole) == (4, "2502.99", "52.99", "2450.00")
    assert found.left_out == {"adjusting_entry": 1, "transfer": 2}


@pytest.mark.requirement("totals.figures")
def test_a_transfer_that_leaves_the_selection_counts() -> None:
    found = added(searched(LEDGER).filter(pl.col("account_id") == "a"), selection=("a",))
    assert said(found.whole) == (4, "2502.99", "112.99", "2390.00")
    assert found.left_out == {"adjusting_entry": 1}


@pytest.mark.requirement("totals.groups")
def test_categories_come_by_expenses_and_rows_without_one_are_other() -> None:
    found = added(searched(LEDGER), "category", selection=("a", "b"))
    assert in_groups(found) == [
        (("RENT",), 1, "0.00", "40.00", "-40.00"),
        (("SHOPPING",), 2, "2.99", "12.99", "-10.00"),
        (("OTHER",), 1, "2500.00", "0.00", "2500.00"),
    ]


@pytest.mark.requirement("totals.groups")
def test_two_keys_come_by_the_first_and_then_by_the_second() -> None:
    found = added(searched(LEDGER), "category", "day", selection=("a", "b"))
    assert [named for named, *_ in in_groups(found)] == [
        ("RENT", "2026-03-07"),
        ("SHOPPING", "2026-03-05"),
        ("SHOPPING", "2026-03-06"),
        ("OTHER", "2026-03-28"),
    ]
    weeks = added(searched(LEDGER), "week", "account", selection=("a", "b"))
    assert [named for named, *_ in in_groups(weeks)] == [
        ("2026-W10", "b"),
        ("2026-W10", "a"),
        ("2026-W13", "a"),
    ]


@pytest.mark.requirement("totals.groups")
def test_each_key_comes_by_what_it_adds_up_to_in_all_groups_also_where_few_are_listed() -> None:
    rows = searched("""
        booking_date | amount | category | merchant_name
        2026-03-05   | -9.00  | RENT     | Huber
        2026-03-06   | -8.00  | RENT     | Maier
        2026-03-07   | -5.00  | DINING   | maier
        2026-03-08   | -3.00  | DINING   |
    """)
    found = added(rows, "category", "merchant", selection=("a",))
    assert [named for named, *_ in in_groups(found)] == [
        ("RENT", "maier"),
        ("RENT", "Huber"),
        ("DINING", "maier"),
        ("DINING", None),
    ]
    first, rest = top_groups(found, None, limit=3)
    assert [group.named[0] for group in first] == ["RENT", "RENT", "DINING"]
    assert said(rest.sums) == (1, "0.00", "3.00", "-3.00")


def grouped(counts: str) -> Totals:
    """Totals by category: a table of `category | count`, each row one euro."""
    lines = (line.split("|") for line in counts.strip().splitlines())
    rows = [f"2026-03-05 | -1.00 | {name}" for name, count in lines for _ in range(int(count))]
    return added(searched("\n".join(["booking_date | amount | category", *rows])), "category", selection=("a",))


@pytest.mark.requirement("totals.groups")
@pytest.mark.parametrize(
    ("counts", "listed", "rest"),
    [
        ("RENT | 3\n DINING | 4", ["DINING", "RENT"], 0),
        ("RENT | 2\n HEALTH | 1\n DINING | 3", ["DINING"], 3),
        ("RENT | 2\n HEALTH | 4\n DINING | 3", ["HEALTH"], 5),  # else the rest would be RENT alone
        ("RENT | 1\n DINING | 1", [], 2),
    ],
)
def test_groups_of_too_few_rows_belong_to_the_rest_which_never_is_one_of_them_alone(
    counts: str, listed: list[str], rest: int
) -> None:
    groups, others = top_groups(grouped(counts), None, limit=10, least=3)
    assert [group.named[0] for group in groups] == listed
    assert others.sums.count == rest


@pytest.mark.requirement("totals.groups")
def test_a_group_of_too_few_rows_in_the_compared_span_belongs_to_the_rest() -> None:
    now, before = grouped("RENT | 3\n DINING | 9\n HEALTH | 5"), grouped("RENT | 1\n DINING | 7\n SHOPPING | 4")
    groups, others = top_groups(now, before, limit=10, least=3)
    assert [group.named[0] for group in groups] == ["DINING", "HEALTH"]
    assert others.compared is not None
    assert (others.sums.count, others.compared.count) == (3, 5)


@pytest.mark.requirement("totals.groups")
def test_months_come_in_their_order() -> None:
    found = added(searched(LEDGER), "month", selection=("a", "c"))
    assert [named for named, *_ in in_groups(found)] == [("2026-02",), ("2026-03",)]


@pytest.mark.requirement("totals.groups")
def test_a_merchant_is_one_in_whatever_case_and_is_spelled_as_the_newest_row_has_it() -> None:
    rows = searched("""
        booking_date | amount | merchant_name | counterpart_name
        2026-03-05   | -2.00  | REWE          | Rewe Markt
        2026-03-06   | -3.00  |               | rewe
        2026-03-07   | -4.00  | Rewe          |
        2026-03-08   | -1.00  |               |
    """)
    found = added(rows, "merchant", selection=("a",))
    assert [(named, count) for named, count, *_ in in_groups(found)] == [(("Rewe",), 3), ((None,), 1)]
    of_days = in_groups(added(rows, "merchant", "day", selection=("a",)))
    assert [named[0] for named, *_ in of_days] == ["Rewe", "Rewe", "Rewe", None]


@pytest.mark.requirement("totals.refunds")
def test_refunds_are_part_of_the_income_and_are_not_capped() -> None:
    rows = searched("""
        booking_date | amount | category | merchant_name
        2026-03-05   | -2.00  | SHOPPING | Shop
        2026-03-06   | 30.00  | SHOPPING | SHOP
        2026-03-07   | 4.00   | SHOPPING | Other
        2026-03-08   | 500.00 | SALARY   | Shop
    """)
    whole = added(rows, selection=("a",)).whole
    assert (said(whole), whole.refunds) == ((4, "534.00", "2.00", "532.00"), Decimal(30))
    assert (whole.first, whole.last) == (date(2026, 3, 5), date(2026, 3, 8))


@pytest.mark.requirement("totals.figures")
def test_nothing_adds_up_to_nothing() -> None:
    found = added(searched(LEDGER).clear(), "month", selection=("a",))
    assert (found.whole, found.left_out) == (Sums(), {})
    assert top_groups(found, found, limit=1) == ([], Group((), Sums(), Sums()))


@pytest.mark.requirement("totals.figures")
@pytest.mark.requirement("decision 19")
def test_a_currency_without_a_rate_is_left_out_and_named() -> None:
    rows = searched("""
        booking_date | amount | currency
        2026-03-05   | -2.00  | USD
        2026-03-05   | -3.00  | XXX
        2026-03-05   | -1.00  | EUR
    """)
    rates = quotes("currency | day | rate\n USD | 2026-03-04 | 2")
    found = added(rows, selection=("a",), rates=rates)
    assert said(found.whole) == (2, "0.00", "2.00", "-2.00")
    assert (found.left_out, found.unconverted) == ({"no_rate": 1}, ["XXX"])


NO_REST = Group((), Sums(), None)
KEYS: dict[Key, Callable[[Row], object]] = {
    "category": reference.category,
    "merchant": lambda row: (reference.merchant(row) or "").lower() or None,
    "account": lambda row: row["account_id"],
    "type": lambda row: row["type"],
    "day": lambda row: f"{reference.day_of(row):%Y-%m-%d}",
    "week": lambda row: f"{reference.day_of(row):%G-W%V}",
    "month": lambda row: f"{reference.day_of(row):%Y-%m}",
    "year": lambda row: f"{reference.day_of(row):%Y}",
}


@pytest.mark.requirement("totals.figures")
@pytest.mark.requirement("totals.groups")
@pytest.mark.requirement("totals.refunds")
@given(data=st.data(), selection=SELECTIONS, group_by=st.lists(st.sampled_from([*KEYS]), max_size=2, unique=True))
def test_totals_are_those_of_the_slow_reference(data: st.DataObject, selection: set[str], group_by: list[Key]) -> None:
    currencies, first = ("EUR", "USD", "JPY"), TODAY - timedelta(days=400)
    drawn = data.draw(searched_rows(currencies=currencies, first=first))
    every = [row for row in drawn if row["account_id"] in selection]
    rates = data.draw(rate_rows(currencies=("USD", "JPY"), first=TODAY - timedelta(days=60)))
    query = Query(direction=data.draw(st.sampled_from([None, "in"])), types=data.draw(st.sampled_from([(), ("fee",)])))
    sums: dict[Named, list[Fraction]] = {}
    days: dict[Named, list[date]] = {}
    left_out: dict[str, int] = {}
    for row in every:
        if not reference.is_found(row, query, "", selection=selection, currency="EUR", rates=rates):
            continue
        amount = reference.home_amount(row, "EUR", rates)
        if row["is_adjusting_entry"] or not reference.crosses_border(row, selection) or amount is None:
            is_inside = not reference.crosses_border(row, selection)
            reason = "adjusting_entry" if row["is_adjusting_entry"] else "transfer" if is_inside else "no_rate"
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        named = tuple(cast(str | None, KEYS[key](row)) for key in group_by)
        days.setdefault(named, []).append(reference.day_of(row))
        of_group = sums.setdefault(named, [Fraction(0)] * 3)
        of_group[1 if reference.amount_of(row) < 0 else 0] += abs(amount)
        of_group[2] += amount if reference.is_refund(row, every, selection) else 0
    whole = frame(every, SEARCHED)
    found = totals(
        whole,
        query,
        refunds=refund_ids(whole, whole, selection=selection),
        selection=selection,
        currency="EUR",
        group_by=group_by,
        rates=frame(rates, RATES),
    )
    assert found.left_out == left_out
    assert found.whole.count == sum(map(len, days.values()))
    assert found.whole.net == sum(income - expenses for income, expenses, _ in sums.values())
    limit = data.draw(st.integers(1, 30))
    groups, rest = top_groups(found, None, limit=limit) if group_by else ([Group((), found.whole, None)], NO_REST)
    for group in groups if days else []:
        named = tuple(
            value.lower() if value and key == "merchant" else value
            for key, value in zip(group_by, group.named, strict=True)
        )
        each, its_days = group.sums, days.pop(named)
        assert [Fraction(each.income), Fraction(each.expenses), Fraction(each.refunds)] == sums[named]
        assert (each.count, each.first, each.last) == (len(its_days), min(its_days), max(its_days))
    assert rest.sums.count == sum(map(len, days.values()))
    assert rest.sums.count == 0 or len(groups) == limit
    assert found.whole.refunds == sum(group.sums.refunds for group in [*groups, rest])


@pytest.mark.requirement("totals.month")
@given(rows=searched_rows(currencies=("EUR",), first=date(2026, 3, 1)), selection=SELECTIONS)
def test_the_totals_of_a_month_are_its_cashflow(rows: list[Row], selection: set[str]) -> None:
    ledger = frame([row for row in rows if row["account_id"] in selection], SEARCHED)
    month = monthly_cashflow(ledger, selection=selection, months=1, today=TODAY, currency="EUR").row(0, named=True)
    whole = added(ledger, selection=selection).whole
    assert (whole.income, whole.expenses, whole.net) == (month["income"], month["expenses"], month["net"])
    assert isinstance(whole.net, Decimal)


@pytest.mark.requirement("totals.compared")
def test_groups_of_an_earlier_span_are_those_of_the_days_they_are_compared_with() -> None:
    found = added(searched(LEDGER), "month", selection=("a", "b"), shift=Shift(months=12))
    assert [named for named, *_ in in_groups(found)] == [("2027-03",)]
