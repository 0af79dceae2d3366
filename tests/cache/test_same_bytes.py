"""Answers from memory are those of the store, byte for byte, whatever is asked."""

from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.work.cache.user_data import Need, NotLoaded
from handlers.work.services import Services
from storage import accounts
from tests.cache.conftest import Operations

USERS = ["demo", "solo", "globe", "empty", "lapsed"]
WORDS = ["re", "REWE", "ä", "müller", "%", "_", "'", "rent miete", "a e", "  ", "", "\\", "e", "elastic net", "ß"]
CATEGORIES = ["GROCERIES", "SALARY", "OTHER", "TRANSFER", "RENT", None, None]
TODAY = date(2026, 11, 20)
PAGE: dict[str, Any] = {
    **dict.fromkeys(("account_ids", "category", "date_from", "date_to", "search")),
    "page": 1,
    "per_page": 1,
}

SEARCH: dict[str, Any] = {
    **dict.fromkeys(("amount_min", "amount_max", "direction", "categories", "types", "merchant", "counterpart_iban")),
    **dict.fromkeys(("words", "flag")),
    "status": "booked",
    "counted": False,
}
GROUPS: dict[str, Any] = {"group_by": None, "limit": 50, "compare_with": None}


@pytest.mark.requirement("cache.same_bytes")
@pytest.mark.requirement("cache.one_reading")
@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("listAccounts", {}),
        ("listTransactions", {**PAGE, "search": "re", "per_page": 7}),
        ("listTransactions", {**PAGE, "page": 10**30}),
        ("searchTransactions", {**PAGE, **SEARCH, "words": "re", "sort": "-amount", "per_page": 7}),
        ("sumTransactions", {**dict.fromkeys(list(PAGE)[:5]), **SEARCH, **GROUPS, "group_by": "month"}),
        ("getSnapshot", {}),
        ("listSubscriptionDetails", {}),
        ("listCashflowTransactions", {"month": "2026-10"}),
        ("listCategoryTransactions", {"category": "GROCERIES"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_answer_of_each_kind_is_the_same(
    opened: Services,
    kept: Operations,
    forgetful: Operations,
    slow: Operations,
    user_ids: dict[str, str],
    name: str,
    asked: dict[str, Any],
) -> None:
    accounts = {} if name == "listAccounts" else {"account_ids": named(opened, user_ids["globe"], 62)}
    is_the_same(kept, slow, name, user_ids["globe"], **asked | accounts)
    is_the_same(forgetful, slow, name, user_ids["globe"], **asked | accounts)


@pytest.mark.requirement("cache.first_answers")
@pytest.mark.parametrize("user", ["demo", "solo", "globe", "empty"])
def test_first_answers_are_those_of_the_tables(
    opened: Services, forgetful: Operations, slow: Operations, user_ids: dict[str, str], user: str
) -> None:
    owned = [account.id for account in accounts.of_user(opened.everybody, user_ids[user])]
    is_the_same(forgetful, slow, "listAccounts", user_ids[user])
    for chosen in (owned, owned[:1], owned[1:]):
        named = {"account_ids": ",".join(chosen) if chosen else None}
        for months in (1, 24, 1_000):
            is_the_same(forgetful, slow, "getCashflow", user_ids[user], **named, months=months)
            is_the_same(forgetful, slow, "getCashflowCategories", user_ids[user], **named, months=months)
        is_the_same(forgetful, slow, "getSnapshot", user_ids[user], **named)
        is_the_same(forgetful, slow, "listSubscriptions", user_ids[user], **named)
        is_the_same(forgetful, slow, "listSubscriptionDetails", user_ids[user], **named, status="all", direction="all")
        for page in ({}, {"per_page": 50}, {"page": 2, "per_page": 50}, {"page": 3, "per_page": 50}, {"page": 90}):
            is_the_same(forgetful, slow, "listTransactions", user_ids[user], **PAGE | named | page)


@st.composite
def selections(draw: st.DrawFn) -> tuple[str, int]:
    """A user, and which of the accounts are named, as bits; all bits set names an account of somebody else too."""
    return draw(st.sampled_from(USERS)), draw(st.integers(0, 63))


def named(opened: Services, user_id: str, bits: int) -> str | None:
    owned = [account.id for account in accounts.of_user(opened.everybody, user_id)]
    if bits == 63:
        owned.append("acc_of_somebody_else")
    chosen = [id_ for place, id_ in enumerate(owned) if bits >> place & 1]
    return ",".join(chosen) if chosen else None


days = st.one_of(st.none(), st.integers(0, 800).map(lambda back: TODAY - timedelta(days=back)))


FILTERS = st.fixed_dictionaries(
    {
        "category": st.sampled_from(CATEGORIES),
        "date_from": days,
        "date_to": days,
        "search": st.one_of(st.none(), st.sampled_from(WORDS), st.text(max_size=6)),
    }
)


def is_the_same(kept: Operations, slow: Operations, name: str, user_id: str, **asked: Any) -> None:
    """Holds the answer from memory, when it is made and when it was kept, against the one without any."""
    query = urlencode({key: value for key, value in asked.items() if value is not None})
    expected = slow.ask(name, user_id, query=query, **asked)
    assert kept.ask(name, user_id, query=query, **asked) == expected
    assert kept.ask(name, user_id, query=query, **asked) == expected


@pytest.mark.requirement("cache.same_bytes")
@given(
    who=selections(),
    filters=FILTERS,
    page=st.one_of(st.integers(1, 40), st.just(10**30)),
    per_page=st.sampled_from([1, 7, 50, 100]),
)
def test_pages_are_the_same(
    opened: Services,
    kept: Operations,
    slow: Operations,
    user_ids: dict[str, str],
    who: tuple[str, int],
    filters: dict[str, Any],
    page: int,
    per_page: int,
) -> None:
    user_id = user_ids[who[0]]
    ids = named(opened, user_id, who[1])
    is_the_same(kept, slow, "listTransactions", user_id, account_ids=ids, **filters, page=page, per_page=per_page)


SEARCHES = st.fixed_dictionaries(
    {
        "amount_min": st.sampled_from([None, None, "10", "50.00"]),
        "amount_max": st.sampled_from([None, None, "86.5"]),
        "direction": st.sampled_from([None, "in", "out"]),
        "categories": st.sampled_from([None, None, "GROCERIES,OTHER", " DINING ,"]),
        "types": st.sampled_from([None, None, "card_payment", "fee,transfer"]),
        "merchant": st.sampled_from([None, None, "rewe", "Stadtwerke"]),
        "counterpart_iban": st.sampled_from([None, None, None, "DE44 9992 0000 9653 1256 20"]),
        "words": st.one_of(st.none(), st.sampled_from(WORDS), st.text(max_size=6)),
        "status": st.sampled_from(["booked", "booked", "pending", "all"]),
        "flag": st.sampled_from(
            [None, None, None, "possible_duplicate", "unconverted", "uncategorised", "new_payee", "refunded"]
        ),
        "counted": st.booleans(),
    }
)


@pytest.mark.requirement("cache.same_bytes")
@pytest.mark.requirement("search.filters")
@given(
    who=selections(),
    filters=FILTERS,
    search=SEARCHES,
    sort=st.sampled_from(["-bookingDate", "bookingDate", "-amount", "amount"]),
    page=st.one_of(st.integers(1, 40), st.just(10**30)),
    per_page=st.sampled_from([1, 7, 100]),
)
def test_searches_are_the_same(
    opened: Services,
    kept: Operations,
    slow: Operations,
    user_ids: dict[str, str],
    who: tuple[str, int],
    filters: dict[str, Any],
    search: dict[str, Any],
    **asked: Any,
) -> None:
    user_id = user_ids[who[0]]
    ids = named(opened, user_id, who[1])
    is_the_same(kept, slow, "searchTransactions", user_id, account_ids=ids, **filters, **search, **asked)


@pytest.mark.requirement("cache.same_bytes")
@given(
    who=selections(),
    filters=FILTERS,
    search=SEARCHES,
    group_by=st.sampled_from([None, "category", "month", "merchant,year", "week,type", "account,day"]),
    limit=st.sampled_from([1, 5, 50]),
    compare_with=st.sampled_from([None, "previousPeriod", "previousYear"]),
)
def test_totals_are_the_same(
    opened: Services,
    kept: Operations,
    slow: Operations,
    user_ids: dict[str, str],
    who: tuple[str, int],
    filters: dict[str, Any],
    search: dict[str, Any],
    **groups: Any,
) -> None:
    user_id = user_ids[who[0]]
    ids = named(opened, user_id, who[1])
    is_the_same(kept, slow, "sumTransactions", user_id, account_ids=ids, **filters, **search, **groups)


@pytest.mark.requirement("cache.same_bytes")
@given(who=selections(), months=st.one_of(st.integers(1, 40), st.sampled_from([119, 120, 121, 10**9])))
def test_figures_are_the_same(
    opened: Services, kept: Operations, slow: Operations, user_ids: dict[str, str], who: tuple[str, int], months: int
) -> None:
    user_id = user_ids[who[0]]
    ids = named(opened, user_id, who[1])
    asked_for: tuple[tuple[str, dict[str, Any]], ...] = (
        ("listAccounts", {}),
        ("getCashflow", {"account_ids": ids, "months": months}),
        ("getSnapshot", {"account_ids": ids}),
        ("listSubscriptions", {"account_ids": ids}),
        ("listSubscriptionDetails", {"account_ids": ids}),
    )
    for name, asked in asked_for:
        is_the_same(kept, slow, name, user_id, **asked)


@pytest.mark.requirement("cache.same_bytes")
@given(
    who=selections(),
    months_back=st.one_of(st.integers(-1, 30), st.just(130)),
    category=st.sampled_from([*filter(None, CATEGORIES), "DINING"]),
)
def test_explanations_are_the_same(
    opened: Services,
    kept: Operations,
    slow: Operations,
    user_ids: dict[str, str],
    who: tuple[str, int],
    months_back: int,
    category: str,
) -> None:
    user_id = user_ids[who[0]]
    ids = named(opened, user_id, who[1])
    month = (opened.clock.today() - timedelta(days=30 * months_back)).isoformat()[:7]
    for name, asked in (
        ("listCashflowTransactions", {"account_ids": ids, "month": month}),
        ("listCategoryTransactions", {"account_ids": ids, "category": category}),
    ):
        is_the_same(kept, slow, name, user_id, **asked)


@pytest.mark.requirement("cache.same_bytes")
@pytest.mark.parametrize("operation", ["getTransaction", "explainTransaction"])
@pytest.mark.parametrize("name", USERS)
@pytest.mark.sampled
def test_single_transactions_are_the_same_and_nobody_elses(
    opened: Services, kept: Operations, slow: Operations, user_ids: dict[str, str], name: str, operation: str
) -> None:
    rows = opened.everybody.rows("SELECT user_id, id FROM transactions ORDER BY id LIMIT 60 OFFSET 500")
    for _ in range(2):  # alone from the store, then, with the list in memory, from there
        answers = [
            (kept.ask(operation, user_ids[name], query=row["id"], id=row["id"]), row["user_id"] == user_ids[name])
            for row in rows
            for _ in range(2)
        ]
        assert all((status == 200) == is_own for (status, _, _), is_own in answers)
        assert [answer for answer, _ in answers[::2]] == [
            slow.ask(operation, user_ids[name], query=row["id"], id=row["id"]) for row in rows
        ]
        kept.ask("listTransactions", user_ids[name], **PAGE)


@pytest.mark.requirement("cache.first_answers")
def test_a_first_snapshot_reads_no_bookings(forgetful: Operations, user_ids: dict[str, str]) -> None:
    today = forgetful.services.clock.today()
    with forgetful.services.reader.open(user_ids["demo"], Need.ACCOUNTS) as reading:
        recent = reading.figures_since(today - timedelta(days=29))
        assert not reading.has(Need.FIGURES)
        assert 0 < recent.height < 400
        with pytest.raises(NotLoaded):
            reading.figures_since(today - timedelta(days=70))
