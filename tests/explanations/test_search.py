"""GET /transactions/search and the same filters in totals, over the demo's data and over small ledgers."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord, TransactionRecord
from analytics.searching.totals import WEEKDAYS
from tests.explanations.conftest import Holder, Service, body_of

DAY = date(2026, 11, 2)
ACCOUNT = AccountRecord(stable_key="1", currency="EUR")


def found(client: TestClient, **asked: object) -> list[dict[str, Any]]:
    """All rows of a search, page by page."""
    rows: list[dict[str, Any]] = []
    page = 1
    while True:
        body = body_of(client, "/transactions/search", perPage=100, page=page, **asked)
        rows += body["transactions"]
        if page >= body["pagination"]["pageCount"]:
            assert len(rows) == body["pagination"]["total"]
            return rows
        page += 1


def ids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["id"] for row in rows]


@pytest.mark.requirement("search.filters")
def test_a_search_without_filters_is_the_list_of_all_accounts(demo_service: Service) -> None:
    client = demo_service.named("demo")
    accounts = ",".join(account["id"] for account in body_of(client, "/accounts")["accounts"])
    listed = client.get("/transactions", params={"accountIds": accounts})
    searched = client.get("/transactions/search")
    expected = [{**row, "status": "booked"} for row in listed.json()["transactions"]]
    assert searched.json() == {**listed.json(), "transactions": expected}
    assert searched.headers["link"].startswith('</api/v1/transactions/search?page=1>; rel="first"')


@pytest.mark.requirement("search.filters")
def test_a_page_past_the_end_is_empty(demo_service: Service) -> None:
    body = body_of(demo_service.named("solo"), "/transactions/search", page=10**30)
    assert (body["transactions"], body["pagination"]["page"]) == ([], 10**30)


@pytest.mark.requirement("search.filters")
@pytest.mark.parametrize("name", ["demo", "globe"])
@pytest.mark.long
def test_each_filter_lets_through_what_its_sentence_says(demo_service: Service, name: str) -> None:
    client = demo_service.named(name)
    every = found(client)
    rules: list[tuple[dict[str, str], Callable[[dict[str, Any]], bool]]] = [
        ({"direction": "in"}, lambda row: row["amount"] > 0),
        ({"direction": "out"}, lambda row: row["amount"] < 0),
        ({"amountMin": "10", "amountMax": "20.00"}, lambda row: 10 <= abs(row["amount"]) <= 20),
        ({"categories": "DINING, GROCERIES"}, lambda row: row["category"] in ("DINING", "GROCERIES")),
        ({"types": "fee,cash_withdrawal"}, lambda row: row["type"] in ("fee", "cash_withdrawal")),
        ({"merchant": "rEwE"}, lambda row: (row["merchantName"] or row["counterpartName"] or "").lower() == "rewe"),
    ]
    for asked, holds in rules:
        assert ids(found(client, **asked)) == [row["id"] for row in every if holds(row)], asked
    iban = next(row["counterpartIban"] for row in every if row["counterpartIban"])
    assert ids(found(client, counterpartIban=f"{iban[:4]} {iban[4:]}".lower())) == [
        row["id"] for row in every if row["counterpartIban"] == iban
    ]


@pytest.mark.requirement("search.words")
def test_strom_finds_stromabschlag_and_not_lindstroem(holder: Holder) -> None:
    purposes = ("Stromabschlag 11/26", "Lindström Textil", "E-Strom", "Maelstrom")
    holder.bring(
        ACCOUNT,
        [TransactionRecord(booking_date=DAY, amount=Decimal(-5), currency="EUR", purpose=text) for text in purposes],
    )
    assert {row["purpose"] for row in found(holder.client, words="STROM")} == {"Stromabschlag 11/26", "E-Strom"}
    assert {row["purpose"] for row in found(holder.client, words="lindstrom textil")} == {"Lindström Textil"}
    assert body_of(holder.client, "/transactions/totals", words="strom")["expenses"] == 10
    either = {"Stromabschlag 11/26", "E-Strom", "Lindström Textil"}
    assert {row["purpose"] for row in found(holder.client, words="strom|lindstrom textil| ")} == either
    assert {row["purpose"] for row in found(holder.client, words="lindstrom baum|e strom")} == {"E-Strom"}


@pytest.mark.requirement("search.status")
@pytest.mark.long
def test_what_is_pending_is_found_and_added_up_only_when_asked_for(demo_service: Service) -> None:
    client = demo_service.named("solo")
    booked, pending, both = (found(client, status=status) for status in ("booked", "pending", "all"))
    assert {row["status"] for row in booked} == {"booked"}
    assert {row["status"] for row in pending} == {"pending"}
    assert sorted(ids(both)) == sorted(ids(booked) + ids(pending))
    assert [row["bookingDate"] for row in both] == sorted((row["bookingDate"] for row in both), reverse=True)
    totals = {status: body_of(client, "/transactions/totals", status=status) for status in ("booked", "pending", "all")}
    assert totals["booked"] == body_of(client, "/transactions/totals")
    for figure in ("count", "income", "expenses", "refunds"):
        told = [Decimal(str(totals[status][figure])) for status in ("booked", "pending", "all")]
        assert told[0] + told[1] == told[2]
    assert totals["pending"]["count"] == len(pending) > 0
    row = pending[0]
    narrow = {"dateFrom": row["bookingDate"][:10], "dateTo": row["bookingDate"][:10], "category": row["category"]}
    for more in (narrow, {"search": row["counterpartName"]}, {"accountIds": row["bankAccount"]["id"]}):
        assert row["id"] in ids(found(client, status="pending", **more))
    assert found(client, status="pending", search="nothing like it") == []


@pytest.mark.requirement("search.flags")
def test_flags_find_what_may_be_there_twice_and_what_nothing_speaks_for(holder: Holder) -> None:
    for place in range(2):
        row = TransactionRecord(
            booking_date=DAY + timedelta(days=place),
            amount=Decimal(-5),
            currency="EUR",
            counterpart_name="Shop",
            purpose=f"Xyz {place}",
        )
        holder.bring(ACCOUNT, [row])
    assert len(found(holder.client)) == 2
    assert len(found(holder.client, flag="possible_duplicate")) == 1
    assert len(found(holder.client, flag="uncategorised")) == 2
    assert found(holder.client, flag="adjusting_entry") == []


@pytest.mark.requirement("search.flags")
def test_flags_find_first_payments_and_what_came_back(holder: Holder) -> None:
    def booked(days: int, amount: str, name: str, iban: str | None = None) -> TransactionRecord:
        return TransactionRecord(
            booking_date=DAY - timedelta(days=days),
            amount=Decimal(amount),
            currency="EUR",
            counterpart_name=name,
            counterpart_iban=iban,
            purpose=f"{name} {amount} {days}",
        )

    tenant, plumber = "DE44999200009653125620", "DE02120300000000202051"
    holder.bring(
        ACCOUNT,
        [
            booked(120, "-40", "Shoes", tenant),  # the first day of the history: nobody is new yet
            booked(20, "-80", "Shoes", tenant),
            booked(15, "-75", "Shoes", tenant),
            booked(10, "80", "Shoes", tenant),  # the one of its size, not the latest
            booked(9, "30", "Shoes", tenant),  # a part of the latest that is left
            booked(8, "-12", "Plumber", plumber),
            booked(7, "-13", "Plumber", plumber),
            booked(6, "5", "Stranger"),  # nobody who was paid: no refund
            booked(400, "-20", "Old"),
            booked(5, "20", "Old"),  # more than a year later
        ],
    )
    amounts = {
        flag: sorted(row["amount"] for row in found(holder.client, flag=flag))
        for flag in ("new_payee", "refunded", "not_refunded")
    }
    assert amounts == {"new_payee": [-40, -12], "refunded": [-80, -75], "not_refunded": [-40, -20, -13, -12]}
    assert body_of(holder.client, "/transactions/totals", flag="refunded")["expenses"] == 155
    assert found(holder.client, flag="refunded", dateFrom=(DAY - timedelta(days=18)).isoformat())[0]["amount"] == -75
    assert found(holder.client, flag="new_payee", status="pending") == []


@pytest.mark.requirement("search.filters")
def test_cash_is_one_payee_whatever_a_machine_calls_itself(holder: Holder) -> None:
    holder.bring(
        ACCOUNT,
        [
            TransactionRecord(
                booking_date=DAY - timedelta(days=place),
                amount=Decimal(-50),
                currency="EUR",
                counterpart_name=f"GA NR0000210{place} BLZ3705019{place}",
                purpose=f"Bargeldauszahlung 12.1{place}/14.34 UHR",
                bank_transaction_code="PMNT-CCRD-CWDL",
            )
            for place in range(3)
        ],
    )
    (group,) = body_of(holder.client, "/transactions/totals", groupBy="merchant")["groups"]
    assert (group["keys"]["merchant"], group["count"], group["expenses"]) == ("Cash", 3, 150)
    rows = found(holder.client, merchant="cash")
    assert len(rows) == 3
    assert rows[0]["type"] == "cash_withdrawal"


@pytest.mark.requirement("search.order")
def test_the_largest_come_first_in_the_home_currency_and_those_without_a_rate_last(holder: Holder) -> None:
    holder.bring(
        ACCOUNT,
        [
            TransactionRecord(booking_date=DAY, amount=Decimal(amount), currency=currency, purpose=f"No {place}")
            for place, (amount, currency) in enumerate(
                [("-20", "EUR"), ("-3000", "JPY"), ("900", "XXX"), ("19", "EUR"), ("-20", "EUR")]
            )
        ],
    )
    largest = [(row["amount"], row["currency"]) for row in found(holder.client, sort="-amount")]
    assert largest == [(-20, "EUR"), (-20, "EUR"), (19, "EUR"), (-3000, "JPY"), (900, "XXX")]
    assert [row["amount"] for row in found(holder.client, sort="amount")] == [-3000, 19, -20, -20, 900]
    assert [row["currency"] for row in found(holder.client, flag="unconverted")] == ["XXX"]
    assert len(found(holder.client, counted="true")) == 4
    totals = holder.client.get("/transactions/totals")
    assert (totals.json()["leftOut"], totals.headers["unconverted-currencies"]) == ({"no_rate": 1}, "XXX")


@pytest.mark.requirement("search.filters")
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("categories=FOOD", "categories: must be of GROCERIES, RENT"),
        ("types=card_payment,cash", "types: must be of direct_debit, transfer"),
        ("amountMin=20&amountMax=10", "amountMin: must not be more than amountMax"),
        ("amountMin=1,5", "amountMin: contains characters that are not allowed"),
        ("amountMax=-5", "amountMax: contains characters that are not allowed"),
        ("direction=both", "direction: must be one of in, out"),
        ("flag=new", "flag: must be one of possible_duplicate"),
        ("dateFrom=2026-02-01&dateTo=2026-01-01", "dateFrom: must not be after dateTo"),
        ("accountIds=acc_x", "accountIds: contains an id that is not one of your accounts"),
    ],
)
def test_what_is_no_filter_is_refused_by_search_and_totals_alike(demo_service: Service, query: str, said: str) -> None:
    client = demo_service.named("demo")
    for path in ("search", "totals"):
        answer = client.get(f"/transactions/{path}?{query}")
        assert (answer.status_code, answer.json()["error"][: len(said)]) == (400, said)


KEYS = ("category", "merchant", "account", "type", "day", "week", "month", "year")


@pytest.mark.requirement("totals.groups")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("limit", [1, 7, 1000])
@pytest.mark.sampled
def test_groups_and_rest_add_up_to_the_whole(demo_service: Service, key: str, limit: int) -> None:
    client = demo_service.named("globe")
    for keys in (key, f"{key},{KEYS[KEYS.index(key) - 3]}"):
        body = body_of(client, "/transactions/totals", groupBy=keys, limit=limit, status="all")
        assert len(body["groups"]) <= limit
        assert all([*group["keys"]] == keys.split(",") for group in body["groups"])
        parts = [*body["groups"], body["rest"]]
        for figure in ("count", "income", "expenses", "refunds", "net"):
            assert sum(Decimal(str(part[figure])) for part in parts) == Decimal(str(body[figure]))
        assert min(part["first"] for part in parts if part["first"]) == body["first"]
        assert max(part["last"] for part in parts if part["last"]) == body["last"]


@pytest.mark.requirement("totals.groups")
@pytest.mark.long
def test_a_group_is_what_its_own_filters_find(demo_service: Service) -> None:
    client = demo_service.named("demo")
    for keys in ("merchant,month", "type,account"):
        for group in body_of(client, "/transactions/totals", groupBy=keys, limit=12)["groups"]:
            said = group["keys"]
            narrow = {"types": said.get("type") or ""}
            if "merchant" in said:
                month = date.fromisoformat(f"{said['month']}-01")
                last = (month + timedelta(days=31)).replace(day=1) - timedelta(days=1)
                narrow = {"merchant": said["merchant"], "dateFrom": str(month), "dateTo": str(last)}
            # a transfer crosses the border of one account: what is compared is the rows of this one
            rows = [
                row
                for row in found(client, counted="true", **narrow)
                if said.get("account") in (None, row["bankAccount"]["id"])
                and said.get("type", row["type"]) == row["type"]
            ]
            assert (len(rows), rows[0]["bookingDate"][:10]) == (group["count"], group["last"])


@pytest.mark.requirement("totals.compared")
def test_a_year_by_category_is_compared_with_the_year_before(demo_service: Service) -> None:
    client = demo_service.named("demo")
    asked = {"dateFrom": "2026-01-01", "dateTo": "2026-12-31", "groupBy": "category,month", "limit": 1000}
    body = body_of(client, "/transactions/totals", compareWith="previousYear", **asked)
    assert body["span"] == {"dateFrom": "2026-01-01", "dateTo": "2026-11-20"}
    before = body["compared"]
    assert (before["dateFrom"], before["dateTo"]) == ("2025-01-01", "2025-11-20")
    for span, told in ((body["span"], body), ((before, before))):
        days = {name: span[name] for name in ("dateFrom", "dateTo")}
        alone = body_of(client, "/transactions/totals", **days)
        assert all(told[name] == alone[name] for name in ("count", "income", "expenses", "refunds", "net", "first"))
    for figure in ("count", "expenses"):
        compared = [group["compared"][figure] for group in [*body["groups"], body["rest"]]]
        assert sum(Decimal(str(each)) for each in compared) == Decimal(str(before[figure]))
    rent = next(group for group in body["groups"] if group["key"] == "RENT 2026-10")
    october = body_of(client, "/transactions/totals", dateFrom="2025-10-01", dateTo="2025-10-31", category="RENT")
    assert rent["compared"] == {name: october[name] for name in rent["compared"]}


@pytest.mark.requirement("totals.compared")
def test_groups_are_ordered_by_how_much_they_changed(demo_service: Service) -> None:
    client = demo_service.named("demo")
    asked = {"dateFrom": "2026-11-01", "dateTo": "2026-11-20", "groupBy": "category", "compareWith": "previousPeriod"}
    body = body_of(client, "/transactions/totals", sort="change", **asked)
    assert (body["compared"]["dateFrom"], body["compared"]["dateTo"]) == ("2026-10-01", "2026-10-20")
    changes = [
        sum(abs(Decimal(str(group[name])) - Decimal(str(group["compared"][name]))) for name in ("expenses", "income"))
        for group in body["groups"]
    ]
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > changes[-1]
    assert client.get("/transactions/totals?sort=change").json() == {"error": "sort: change needs compareWith"}


@pytest.mark.requirement("totals.usual")
def test_a_usual_month_and_the_days_of_the_week_are_those_of_the_rows(demo_service: Service) -> None:
    client = demo_service.named("demo")
    days = {"dateFrom": "2026-01-01", "dateTo": "2026-12-31", "category": "GROCERIES"}
    months = body_of(client, "/transactions/totals", groupBy="month", **days)
    spent = [Decimal(str(group["expenses"])) for group in months["groups"][:-1]]  # November is not over
    said = months["perPeriod"]
    assert (said["periods"], len(spent)) == (10, 10)
    assert said["expenses"]["mean"] == float(round(sum(spent, Decimal(0)) / 10, 2))
    assert said["expenses"]["median"] == float(round((sorted(spent)[4] + sorted(spent)[5]) / 2, 2))
    quarters = body_of(client, "/transactions/totals", groupBy="quarter", **days)
    assert [group["key"] for group in quarters["groups"]] == ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]
    assert quarters["perPeriod"]["periods"] == 3
    year = body_of(client, "/transactions/totals", groupBy="year", **days)
    assert year["perPeriod"] is None
    weekdays = body_of(client, "/transactions/totals", groupBy="weekday", **days)
    counts = dict.fromkeys(range(7), 0)
    for row in found(client, counted="true", **days):
        counts[date.fromisoformat(row["bookingDate"][:10]).weekday()] += 1
    assert [(group["key"], group["count"]) for group in weekdays["groups"]] == [
        (name, count) for name, count in zip(WEEKDAYS, counts.values(), strict=True) if count
    ]
    assert "perPeriod" not in weekdays


@pytest.mark.requirement("totals.compared")
def test_with_nothing_to_compare_the_span_stays_as_it_was_asked_for(demo_service: Service) -> None:
    for name in ("demo", "empty"):
        days = {"dateFrom": "2020-01-01", "dateTo": "2020-12-31"}
        body = body_of(demo_service.named(name), "/transactions/totals", compareWith="previousYear", **days)
        assert (body["compared"], body["span"], body["count"]) == (None, days, 0)
