"""Finer categories over HTTP: in no answer that does not ask for them, and the same from memory and from the store."""

import csv
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO
from typing import Any

import orjson
import polars as pl
import pytest

from analytics.classification.facts import LEAVES
from analytics.classification.leaves import OWN_TRANSFER
from analytics.records import AccountRecord, TransactionRecord
from auth.principal import Coverage, Principal
from connectors.own_formats import beancount_reader, parquet_reader
from connectors.own_formats import csv as csv_statement
from handlers.operations import operations
from handlers.web.request import Request
from tests.cache.from_store import FromStoreReader
from tests.explanations.conftest import Holder, Service

pytestmark = pytest.mark.requirement("decision.detailed category")
ACCOUNT = AccountRecord(stable_key="A1", iban="DE02120300000000202051", currency="EUR", name="Giro")
FILTERS = (
    *("amount_min", "amount_max", "direction", "categories", "types"),
    *("merchant", "counterpart_iban", "words", "flag", "tag"),
)
LINES = (
    ("Shell 3307", -50, "booked"),
    ("Aral 12", -20, "booked"),
    ("Rewe Markt", -30, "booked"),
    ("Nebel GmbH", -5, "booked"),
    ("Esso Station", -7, "pending"),
)


@pytest.fixture
def filled(holder: Holder) -> Holder:
    """Fuel twice, and once pending; a supermarket; and what nobody could say."""
    records = [
        TransactionRecord(
            booking_date=date(2026, 11, 2 + place),
            amount=Decimal(amount),
            currency="EUR",
            counterpart_name=name,
            bank_text="KARTENZAHLUNG",
            status="pending" if status == "pending" else "booked",
        )
        for place, (name, amount, status) in enumerate(LINES)
    ]
    holder.bring(ACCOUNT, records)
    return holder


@pytest.fixture(params=["memory", "store"])
def read_from(request: pytest.FixtureRequest, demo_service: Service, monkeypatch: pytest.MonkeyPatch) -> str:
    """What operations read."""
    if request.param == "store":
        old = demo_service.services.reader
        monkeypatch.setattr(demo_service.services, "reader", FromStoreReader(old._store, old.render))
    return str(request.param)


def codes(body: dict[str, Any]) -> dict[str, str | None]:
    """The finer category of each transaction of a page."""
    return {row["counterpartName"]: row["detailedCategory"] for row in body["transactions"]}


def test_all_finer_categories_are_listed_in_each_language_and_known_by_their_etag(holder: Holder) -> None:
    answer = holder.client.get("/categories")
    body = answer.json()
    assert [each["code"] for each in body["categories"]] == list(LEAVES)
    [fee] = [each for each in body["categories"] if each["code"] == "BROADCASTING_FEE"]
    named = {"en": "Broadcasting fee", "de": "Rundfunkbeitrag", "fr": "Redevance audiovisuelle"}
    assert (fee["category"], fee["name"]) == ("OTHER", named)
    assert (fee["coicop"], fee["merchantCategoryCodes"]) == (["08.3"], [])
    [wages] = [each for each in body["categories"] if each["code"] == "WAGES"]
    assert wages["coicop"] == []
    for known in (answer.headers["etag"], f'"other", W/{answer.headers["etag"]}', "*"):
        again = holder.client.get("/categories", headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == answer.headers["etag"]
    assert holder.client.get("/categories", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.usefixtures("read_from")
def test_a_list_and_a_search_say_them_where_they_are_asked_to_and_nothing_else_changes(filled: Holder) -> None:
    expected = {"Shell 3307": "FUEL", "Aral 12": "FUEL", "Rewe Markt": "SUPERMARKET", "Nebel GmbH": None}
    plain = filled.get("/transactions")
    asked = filled.get("/transactions", include="detailedCategory")
    assert codes(asked) == expected
    for row in asked["transactions"]:
        del row["detailedCategory"]
    assert asked == plain
    assert codes(filled.get("/transactions/search", include=" detailedCategory", status="all")) == {
        **expected,
        "Esso Station": "FUEL",
    }
    assert all("detailedCategory" not in row for row in filled.get("/transactions/search")["transactions"])
    assert filled.get("/transactions", include="detailedCategory", page=9)["transactions"] == []


@pytest.mark.usefixtures("read_from")
def test_they_filter_lists_and_totals_and_group_them(filled: Holder) -> None:
    for path in ("/transactions", "/transactions/search"):
        page = filled.get(path, detailedCategory="FUEL")
        assert {row["counterpartName"] for row in page["transactions"]} == {"Shell 3307", "Aral 12"}
    pending = filled.get("/transactions/search", detailedCategory="FUEL", status="all")
    assert pending["pagination"]["total"] == 3
    assert filled.get("/transactions/totals", detailedCategory="FUEL")["expenses"] == 70
    totals = filled.get("/transactions/totals", groupBy="category,detailedCategory")
    assert [(group["key"], group["keys"]["detailedCategory"], group["expenses"]) for group in totals["groups"]] == [
        ("TRANSPORT FUEL", "FUEL", 70),
        ("GROCERIES SUPERMARKET", "SUPERMARKET", 30),
        ("OTHER", None, 5),
    ]


def test_what_is_none_of_them_is_refused_in_a_sentence(filled: Holder) -> None:
    for path in ("/transactions", "/transactions/search", "/transactions/totals"):
        answer = filled.client.get(path, params={"detailedCategory": "PETROL"})
        assert (answer.status_code, answer.json()["error"]) == (
            400,
            "detailedCategory: must be a code that GET /categories lists",
        )
    assert filled.client.get("/transactions", params={"include": "everything"}).status_code == 400


@pytest.mark.usefixtures("read_from")
def test_an_explanation_says_which_rule_gave_it(filled: Holder) -> None:
    [shell] = filled.get("/transactions", search="shell")["transactions"]
    path = f"/transactions/{shell['id']}/explanation"
    plain, asked = filled.get(path), filled.get(path, include="detailedCategory")
    derivation = asked.pop("detailedCategory")
    assert asked == plain
    assert (derivation["value"], derivation["rule"]) == ("FUEL", "brand:shell")
    assert derivation["reason"].startswith("It is what people buy from this company")
    [nobody] = filled.get("/transactions", search="nebel")["transactions"]
    asked = filled.get(f"/transactions/{nobody['id']}/explanation", include="detailedCategory")
    assert asked["detailedCategory"] == {"value": None, "rule": None, "reason": "No rule gave a value."}


def test_exports_have_them_where_they_are_asked_to_and_come_back(filled: Holder) -> None:
    def exported(format_: str, **asked: str) -> bytes:
        answer = filled.client.get("/transactions/export", params={"format": format_, **asked})
        assert answer.status_code == 200, answer.text
        return answer.content

    include = {"include": "detailedCategory"}
    rows = list(csv.DictReader(StringIO(exported("csv", **include).decode())))
    told = {row["counterpart_name"]: row["detailed_category"] for row in rows if row["record"] == "booked"}
    assert told == {"Shell 3307": "FUEL", "Aral 12": "FUEL", "Rewe Markt": "SUPERMARKET", "Nebel GmbH": ""}
    lines = [orjson.loads(line) for line in exported("jsonl", **include).splitlines()]
    assert [line.get("detailedCategory") for line in lines] == ["FUEL", "FUEL", "SUPERMARKET", None]
    assert "detailedCategory" not in lines[-1]
    frame = pl.read_parquet(BytesIO(exported("parquet", **include)))
    assert frame["detailed_category"].to_list() == ["FUEL", "FUEL", "SUPERMARKET", None]
    assert frame["detailed_rule"].to_list()[0] == "brand:shell"
    assert exported("beancount", **include).count(b'detailed-category: "FUEL"') == 2
    for format_ in ("csv", "jsonl", "parquet", "beancount"):
        assert b"etailed" not in exported(format_)
    assert len(exported("jsonl", detailedCategory="FUEL").splitlines()) == 2
    for format_, reader in (
        ("csv", csv_statement),
        ("parquet", parquet_reader),
        ("beancount", beancount_reader),
    ):
        again = [
            record.counterpart_name
            for record in reader.read(BytesIO(exported(format_, **include)))
            if isinstance(record, TransactionRecord)
        ]
        assert again == ["Shell 3307", "Aral 12", "Rewe Markt", "Nebel GmbH"], format_


def test_whoever_may_not_read_all_accounts_is_not_told_of_another_one(holder: Holder) -> None:
    other = AccountRecord(stable_key="A2", iban="DE89370400440532013000", currency="EUR", name="Other")
    for account, amount, counterpart in ((ACCOUNT, -10, other.iban), (other, 10, ACCOUNT.iban)):
        moved = TransactionRecord(
            booking_date=date(2026, 11, 2), amount=Decimal(amount), currency="EUR", counterpart_iban=counterpart
        )
        holder.bring(account, [moved])
    giro, _ = holder.account_ids()
    services = holder.service.services
    table: Any = operations(services)

    def asked(name: str, coverage: Coverage | None, **arguments: Any) -> Any:
        caller = Principal(
            user_id=holder.user.id,
            client_id="app",
            scopes=frozenset(),
            grant_id="g",
            has_subscription=True,
            coverage=coverage,
        )
        query = f"{coverage}{arguments}"
        request = Request(caller=caller, method="GET", path="/", query=query, headers={}, client_address="127.0.0.1")
        common = ("category", "date_from", "date_to", "search")
        given = {**dict.fromkeys(common), "account_ids": giro, **arguments}
        return orjson.loads(table[name](request, **given).body)

    page = {"page": 1, "per_page": 50}
    filters = {**dict.fromkeys(FILTERS), "status": "booked", "counted": False, "limit": 50, "compare_with": None}
    filters["group_by"] = "detailedCategory"
    for coverage, code in ((None, OWN_TRANSFER), (Coverage(accounts=frozenset({giro})), None)):
        listed = asked("listTransactions", coverage, **page, include="detailedCategory")
        assert [row["detailedCategory"] for row in listed["transactions"]] == [code]
        named = asked("listTransactions", coverage, **page, include=None, detailed_category=OWN_TRANSFER)
        assert len(named["transactions"]) == (1 if code else 0)
        totals = asked("sumTransactions", coverage, **filters)
        assert [group["keys"] for group in totals["groups"]] == [{"detailedCategory": code}]


@pytest.mark.requirement("explanations.reasons")
def test_the_payers_own_reference_is_told_only_to_who_asks_for_it(holder: Holder, read_from: str) -> None:
    day = date(2026, 11, 2)
    record = TransactionRecord(booking_date=day, amount=Decimal(-9), currency="EUR", end_to_end_id="ORDER-7")
    holder.bring(ACCOUNT, [record])
    [booking] = holder.get("/transactions")["transactions"]
    path = f"/transactions/{booking['id']}"
    assert holder.get(f"{path}/explanation", include="endToEndId")["endToEndId"] == "ORDER-7"
    assert "endToEndId" not in holder.get(f"{path}/explanation", include="detailedCategory")
    assert "endToEndId" not in holder.get(path)
    refused = holder.client.get("/transactions?include=endToEndId")
    assert refused.status_code == 400
