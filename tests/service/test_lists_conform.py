"""GET /accounts and GET /transactions, black box: shapes, order, pages, filters recomputed from the full list."""

import re
import unicodedata
from itertools import product

import httpx
import pytest

from tests.service.conftest import Json, Served, account_ids, everything, get

READERS = ["demo", "solo", "globe"]
ACCOUNT = {"id", "accountName", "iban", "accountType", "balance", "currency", "lastSyncedAt", "bankConnection"}
TRANSACTION = {
    "id", "amount", "currency", "bookingDate", "valueDate", "merchantName", "counterpartName", "counterpartIban",
    "counterpartMandateReference", "type", "category", "purpose", "bankAccount",
}  # fmt: skip
DETAIL = TRANSACTION | {
    "counterpartBic", "counterpartBankName", "counterpartCreditorId", "counterpartDebitorId", "bankTransactionCode",
    "sepaPurposeCode", "isPotentialDuplicate", "isAdjustingEntry", "createdAt",
}  # fmt: skip
TYPES = {
    "direct_debit", "transfer", "standing_order", "cash_withdrawal", "cash_deposit", "card_payment", "interest", "fee",
    "salary", "other",
}  # fmt: skip
CATEGORIES = [
    "GROCERIES", "RENT", "SALARY", "TRANSPORT", "SUBSCRIPTION", "ENTERTAINMENT", "TRANSFER", "INSURANCE", "HEALTH",
    "DINING", "SHOPPING", "SAVINGS", "OTHER",
]  # fmt: skip
KINDS = {"checking", "savings", "credit_card", "securities", "loan", "membership", "building_savings", "other", None}
STATUSES = {"ACTIVE", "REAUTH_REQUIRED", "EXPIRED", "REVOKED", "ERROR", "DISCONNECTED"}
DAY = re.compile(r"\d{4}-\d\d-\d\dT00:00:00\.000Z")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
DIGITS = re.compile(r'"amount":(-?\d+(?:\.\d+)?)[,}]')


@pytest.fixture(scope="module", params=READERS)
def client(request: pytest.FixtureRequest, service: Served) -> httpx.Client:
    return service.client(request.param)


@pytest.fixture(scope="module")
def rows(client: httpx.Client) -> list[Json]:
    """All transactions of the user, as the pages give them."""
    return everything(client)


def bare(text: str) -> str:
    """No accents, no case, ß as ss."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def squashed(text: str) -> str:
    """An umlaut spelled out with e is the bare vowel (decision 9: ü = u = ue)."""
    return re.sub("(?<=[aou])e+", "", bare(text))


def is_found(row: Json, search: str) -> bool:
    texts = [row[name] or "" for name in ("merchantName", "counterpartName", "purpose")]
    return all(
        any(bare(word) in bare(text) or squashed(word) in squashed(text) for text in texts) for word in search.split()
    )


@pytest.mark.requirement("interface 2.1")
@pytest.mark.requirement("decision 24")
def test_every_account_has_every_field_and_nothing_else(client: httpx.Client) -> None:
    accounts = get(client, "/accounts")["accounts"]
    assert accounts
    for account in accounts:
        assert account.keys() == ACCOUNT
        assert account["bankConnection"].keys() == {"bankName", "status"}
        assert account["bankConnection"]["status"] in STATUSES
        assert account["accountType"] in KINDS
        assert re.fullmatch("[A-Z]{3}", account["currency"])
        assert INSTANT.fullmatch(account["lastSyncedAt"])
        assert isinstance(account["balance"], int | float | None)


@pytest.mark.requirement("interface 2.4")
def test_every_transaction_has_every_field_and_nothing_else(client: httpx.Client, rows: list[Json]) -> None:
    accounts = {account["id"]: account for account in get(client, "/accounts")["accounts"]}
    for row in rows:
        assert row.keys() == TRANSACTION
        assert DAY.fullmatch(row["bookingDate"])
        assert row["valueDate"] is None or DAY.fullmatch(row["valueDate"])
        assert row["type"] in TYPES | {None}
        assert row["category"] in {*CATEGORIES, None}
        account = accounts[row["bankAccount"]["id"]]
        assert row["currency"] == account["currency"]
        assert row["bankAccount"] == {
            "id": account["id"],
            "iban": account["iban"],
            "accountName": account["accountName"],
            "bankConnection": {"bankName": account["bankConnection"]["bankName"]},
        }


@pytest.mark.requirement("decision 1")
def test_transactions_come_newest_first_then_by_id_and_none_twice(rows: list[Json]) -> None:
    keys = [(row["bookingDate"], row["id"]) for row in rows]
    assert keys == sorted(keys, reverse=True)
    assert len({row["id"] for row in rows}) == len(rows)


@pytest.mark.requirement("decision 2")
@pytest.mark.parametrize("per_page", [1, 7, 50, 99, 100])
def test_pages_of_any_size_concatenated_are_the_whole(client: httpx.Client, rows: list[Json], per_page: int) -> None:
    ids = ",".join(account_ids(client))
    count = -(-len(rows) // per_page)
    wanted = range(1, count + 1) if per_page >= 50 else [1, 2, 3, count // 2, count - 1, count]
    for page in wanted:
        body = get(client, "/transactions", accountIds=ids, perPage=per_page, page=page)
        assert body["transactions"] == rows[(page - 1) * per_page : page * per_page]
        assert body["pagination"] == {"page": page, "perPage": per_page, "total": len(rows), "pageCount": count}


@pytest.mark.requirement("decision 2")
@pytest.mark.parametrize("page", [9_999, 2**31, 2**63, 10**30])
def test_a_page_past_the_end_is_empty_and_no_error(client: httpx.Client, rows: list[Json], page: int) -> None:
    body = get(client, "/transactions", accountIds=",".join(account_ids(client)), page=page)
    assert body["transactions"] == []
    assert body["pagination"]["total"] == len(rows)


@pytest.mark.requirement("decision 2")
def test_no_match_has_no_pages(service: Served) -> None:
    body = get(service.client("solo"), "/transactions", search="qqqqqqqqqq")
    assert body == {"transactions": [], "pagination": {"page": 1, "perPage": 50, "total": 0, "pageCount": 0}}


@pytest.mark.requirement("interface 4.3 defaults")
def test_page_is_1_and_per_page_50_unless_said(service: Served) -> None:
    client = service.client("solo")
    assert get(client, "/transactions") == get(client, "/transactions", page=1, perPage=50)


@pytest.mark.requirement("interface 4.3 bounds")
@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("perPage", "1", 200), ("perPage", "100", 200), ("perPage", "0", 400), ("perPage", "101", 400),
        ("perPage", "x", 400), ("page", "1", 200), ("page", "0", 400), ("page", "-1", 400), ("page", "1.5", 400),
        ("category", "RENT", 200), ("category", "rent", 400), ("category", "NOTHING", 400),
        ("dateFrom", "2026-02-28", 200), ("dateFrom", "2026-02-29", 400), ("dateFrom", "yesterday", 400),
        ("dateTo", "2024-02-29", 200), ("dateTo", "2024-13-01", 400), ("limit", "200", 200),
    ],
)  # fmt: skip
def test_parameters_at_their_bounds_and_one_beyond(service: Served, name: str, value: str, status: int) -> None:
    answer = service.client("solo").get("/transactions", params={name: value})
    assert answer.status_code == status
    if status == 400:
        assert answer.json().keys() == {"error"}
        assert answer.json()["error"].startswith(f"{name}: ")


@pytest.mark.requirement("decision 5")
def test_a_date_range_includes_both_ends_and_never_runs_backwards(client: httpx.Client, rows: list[Json]) -> None:
    ids = ",".join(account_ids(client))
    days = sorted({row["bookingDate"][:10] for row in rows})
    for first, last in [(days[0], days[0]), (days[3], days[-4]), (days[10], days[20]), (days[-1], days[-1])]:
        found = everything(client, dateFrom=first, dateTo=last)
        assert found == [row for row in rows if first <= row["bookingDate"][:10] <= last]
        assert found
    assert everything(client, dateFrom=days[-3]) == [row for row in rows if row["bookingDate"][:10] >= days[-3]]
    assert everything(client, dateTo=days[2]) == [row for row in rows if row["bookingDate"][:10] <= days[2]]
    backwards = client.get("/transactions", params={"accountIds": ids, "dateFrom": days[1], "dateTo": days[0]})
    assert backwards.status_code == 400


@pytest.mark.requirement("interface 4.3 category")
def test_a_category_finds_exactly_its_rows(client: httpx.Client, rows: list[Json]) -> None:
    for category in CATEGORIES:
        assert everything(client, category=category) == [row for row in rows if row["category"] == category]


@pytest.mark.requirement("decision 9")
@pytest.mark.long
def test_a_search_finds_exactly_the_rows_that_hold_every_word(client: httpx.Client, rows: list[Json]) -> None:
    texts = {row[name] for row in rows for name in ("merchantName", "counterpartName", "purpose") if row[name]}
    words = sorted({word for text in texts for word in text.split() if len(word) > 2})
    some = words[:: max(1, len(words) // 12)]
    umlauts = [word for word in words if any(letter in word for letter in "äöüßéÜÖÄ'%_")][:6]
    for search in [*some, *umlauts, *(word.upper() for word in umlauts), f"{some[3]} {some[4]}", "%", "_", "'", "\\"]:
        found = everything(client, search=search)
        assert found == [row for row in rows if is_found(row, search)], search


@pytest.mark.requirement("decision 9")
def test_umlauts_may_be_written_in_three_ways(service: Served) -> None:
    client = service.client("demo")
    asked = [everything(client, search=search) for search in ("Übertrag", "UEBERTRAG", "ubertrag")]
    assert asked[0]
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.requirement("decision 6")
def test_account_ids_select_their_rows_however_they_are_written(client: httpx.Client, rows: list[Json]) -> None:
    ids = account_ids(client)
    for chosen in (ids[:1], ids[-1:], ids[:2], ids):
        expected = [row for row in rows if row["bankAccount"]["id"] in chosen]
        assert everything(client, accountIds=",".join(chosen)) == expected
        assert everything(client, accountIds=" , ".join([*reversed(chosen), chosen[0], ""])) == expected


@pytest.mark.requirement("interface 4.3 filters")
def test_filters_hold_together(client: httpx.Client, rows: list[Json]) -> None:
    ids = account_ids(client)
    days = sorted({row["bookingDate"][:10] for row in rows})
    middle = days[len(days) // 2]
    for category, account, search in product(["GROCERIES", "OTHER"], ids[:2], ["a", "er"]):
        asked = {"category": category, "accountIds": account, "search": search, "dateFrom": middle}
        assert everything(client, **asked) == [
            row
            for row in rows
            if row["category"] == category
            and row["bankAccount"]["id"] == account
            and row["bookingDate"][:10] >= middle
            and is_found(row, search)
        ]


@pytest.mark.requirement("decision 8")
def test_a_long_query_is_repeated_for_the_neighbouring_pages_alone(client: httpx.Client) -> None:
    long = "x" * 1_500
    asked = {"accountIds": ",".join(account_ids(client)), "perPage": "1", "unknown": long}
    answer = client.get("/transactions", params={**asked, "page": "2"})
    assert answer.status_code == 200, answer.text
    assert answer.links.keys() == {"prev", "next"}
    assert len(answer.headers["link"]) < 4_000
    following = client.get(httpx.URL(str(answer.request.url)).join(answer.links["next"]["url"]))
    assert following.status_code == 200
    beyond = client.get("/transactions", params={**asked, "search": "finds nothing"})
    assert beyond.links.keys() == {"first"}


@pytest.mark.requirement("decision 8")
def test_following_next_links_reads_everything(client: httpx.Client, rows: list[Json]) -> None:
    ids = ",".join(account_ids(client))
    answer = client.get("/transactions", params={"accountIds": ids, "perPage": 100, "search": "e"})
    found = answer.json()["transactions"]
    while following := answer.links.get("next"):
        answer = client.get(httpx.URL(str(answer.request.url)).join(following["url"]))
        found += answer.json()["transactions"]
    assert found == [row for row in rows if is_found(row, "e")]
    assert answer.links.keys() == {"first", "prev", "last"} if len(found) > 100 else {"first", "last"}


@pytest.mark.requirement("interface 2.5")
def test_the_detail_is_the_listed_row_and_nine_fields_more(client: httpx.Client, rows: list[Json]) -> None:
    for row in rows[:: max(1, len(rows) // 40)]:
        detail = get(client, f"/transactions/{row['id']}")
        assert detail.keys() == DETAIL
        assert {name: detail[name] for name in TRANSACTION} == row
        assert isinstance(detail["isPotentialDuplicate"], bool)
        assert detail["isAdjustingEntry"] is False
        assert INSTANT.fullmatch(detail["createdAt"])
        code = detail["bankTransactionCode"]
        assert code is None or re.fullmatch("[A-Z]{4}-[A-Z]{4}-[A-Z]{4}", code)


@pytest.mark.requirement("decision 11")
def test_amounts_have_the_digits_of_their_currency(client: httpx.Client) -> None:
    text = client.get("/transactions", params={"accountIds": ",".join(account_ids(client)), "perPage": 100}).text
    amounts = DIGITS.findall(text)
    assert len(amounts) == 100
    assert all(re.fullmatch(r"-?(0|[1-9]\d*)\.\d\d", amount) for amount in amounts)


@pytest.mark.requirement("interface 4.2")
def test_accounts_come_in_the_same_order_every_time(client: httpx.Client) -> None:
    assert get(client, "/accounts") == get(client, "/accounts", accountIds="ignored")


@pytest.mark.requirement("decision 12")
@pytest.mark.parametrize("path", ["/accounts", "/transactions", "/cashflow", "/snapshot", "/subscriptions"])
def test_data_are_never_stored_on_the_way(service: Served, path: str) -> None:
    answer = service.client("solo").get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
