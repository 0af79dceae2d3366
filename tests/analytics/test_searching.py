"""What a search finds, and in which order: each filter against a slow reference."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.frames import RATES, SEARCHED, frame_of
from analytics.searching.filters import Query, Sort, in_order, is_uncategorised, matching_rows, query_words
from tests.analytics import reference
from tests.analytics.ledgers import ACCOUNTS, TODAY, Row, frame, rate_rows, searched, searched_rows

FIRST = TODAY - timedelta(days=100)
CURRENCIES = ("EUR", "USD", "JPY", "KWD")
WORDS = [
    "",
    "strom",
    "STROM",
    "Lind",
    "mueller",
    "müller",
    "a b",
    "_",
    "11 abschlag",
    "shop",
    "Friend bank",
    "strom 26",
]
SIZES = st.one_of(st.none(), st.sampled_from([Decimal(0), Decimal("0.5"), Decimal(10), Decimal("150.25")]))
QUERIES: st.SearchStrategy[Mapping[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "amount_min": SIZES,
        "amount_max": SIZES,
        "direction": st.sampled_from([None, "in", "out"]),
        "categories": st.sampled_from([(), ("OTHER",), ("SHOPPING", "RENT")]),
        "types": st.sampled_from([(), ("fee",), ("card_payment", "transfer")]),
        "merchant": st.sampled_from([None, "shop", "Bank", "nobody"]),
        "counterpart_iban": st.sampled_from([None, "IBAN1"]),
        "flag": st.sampled_from([None, "possible_duplicate", "adjusting_entry", "unconverted", "uncategorised"]),
        "counted": st.booleans(),
    },
)


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[Row], list[Row], set[str], Query, str]:
    """Rows, rates, the selected accounts, a query and its words as they are typed."""
    selection = draw(st.sets(st.sampled_from(ACCOUNTS), min_size=1))
    drawn = draw(searched_rows(currencies=CURRENCIES, first=FIRST))
    rates = draw(rate_rows(currencies=CURRENCIES[1:], first=TODAY - timedelta(days=60)))
    wanted = draw(st.sampled_from(WORDS))
    query = Query(**draw(QUERIES), words=query_words(wanted))
    return [row for row in drawn if row["account_id"] in selection], rates, selection, query, wanted


@pytest.mark.requirement("search.filters")
@given(asked=asked())
def test_a_search_finds_what_the_slow_reference_finds(asked: tuple[list[Row], list[Row], set[str], Query, str]) -> None:
    rows, rates, selection, query, wanted = asked
    ids = (
        matching_rows(frame(rows, SEARCHED), query, selection=selection, currency="EUR", rates=frame(rates, RATES))
        .collect()["id"]
        .to_list()
    )
    assert ids == [
        row["id"]
        for row in rows
        if reference.is_found(row, query, wanted, selection=selection, currency="EUR", rates=rates)
    ]


@pytest.mark.requirement("search.order")
@given(asked=asked(), sort=st.sampled_from(["-bookingDate", "bookingDate", "-amount", "amount"]))
def test_rows_come_in_the_order_of_the_slow_reference(
    asked: tuple[list[Row], list[Row], set[str], Query, str], sort: Sort
) -> None:
    rows, rates, selection, _, _ = asked
    listed = frame(rows, SEARCHED)
    judged = matching_rows(listed, Query(), selection=selection, currency="EUR", rates=frame(rates, RATES))
    expected = sorted(rows, key=lambda row: str(row["id"]), reverse=True)
    expected.sort(key=reference.day_of, reverse=sort != "bookingDate")
    if sort.endswith("amount"):
        sizes = {row["id"]: reference.home_amount(row, "EUR", rates) for row in rows}
        sign = -1 if sort == "-amount" else 1
        expected.sort(key=lambda row: (sizes[row["id"]] is None, sign * abs(sizes[row["id"]] or Fraction(0))))
    assert in_order(judged, sort).collect()["id"].to_list() == [row["id"] for row in expected]


LEDGER = """
    booking_date | amount  | currency | merchant_name | counterpart_name | purpose
    2026-03-01   | -5.004  | EUR      | Stadtwerke    | Stadtwerke Köln  | Stromabschlag 11/26
    2026-03-02   | -5.00   | EUR      |               | Lindström        | Miete
    2026-03-03   | 5.01    | EUR      | REWE          | Rewe Markt 4711  |
    2026-03-04   | -5.4    | JPY      | rewe          |                  | E-Strom
"""


def ids(**query: Any) -> list[str]:
    rows = searched(LEDGER)
    query["words"] = query_words(query.get("words", ""))
    told = matching_rows(rows, Query(**query), selection=("a",), currency="EUR")
    return sorted(told.collect()["id"].to_list())


@pytest.mark.requirement("search.filters")
def test_amounts_are_compared_as_they_are_listed() -> None:
    assert ids(amount_min=Decimal(5), amount_max=Decimal("5.00")) == ["1", "2", "4"]
    assert ids(amount_min=Decimal("5.001")) == ["3"]


@pytest.mark.requirement("search.filters")
def test_a_search_without_a_condition_finds_all_rows_of_a_long_history() -> None:
    row = searched(LEDGER)[:1]
    found = matching_rows(pl.concat([row] * 20_000), Query(), selection=("a",), currency="EUR").pipe(frame_of)
    assert found.height == 20_000


@pytest.mark.requirement("search.words")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Strom", ["1", "4"]),
        ("strom koln", ["1"]),
        ("Köln, Abschlag", []),
        ("11", ["1"]),
        ("lindstro", ["2"]),
        ("%", ["1", "2", "3", "4"]),
        ("e strom", ["4"]),
    ],
)
def test_each_word_begins_a_word(words: str, expected: list[str]) -> None:
    assert ids(words=words) == expected


@pytest.mark.requirement("search.filters")
def test_a_merchant_is_the_merchant_or_else_the_counterpart_in_any_case() -> None:
    assert (ids(merchant="Rewe"), ids(merchant="lindström"), ids(merchant="Stadtwerke Köln")) == (["3", "4"], ["2"], [])


@pytest.mark.requirement("search.filters")
def test_a_category_that_nothing_speaks_for_is_none() -> None:
    rules = [
        ("OTHER", "default:other"),
        ("OTHER", "type:fee"),
        ("RENT", "default:other"),
        (None, None),
        ("OTHER", None),
    ]
    rows = pl.DataFrame(rules, schema={"category": pl.String, "category_rule": pl.String}, orient="row")
    assert rows.select(is_uncategorised()).to_series().to_list() == [True, False, False, True, False]
