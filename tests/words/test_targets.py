"""Targets: an amount beside what was spent at a place, from its month on until another one holds there."""

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from analytics.records import AccountRecord
from analytics.searching.totals import expenses_by_place
from storage import users
from storage.annotations import targets
from storage.annotations.word_lines import InvalidWords
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, OTHER, booked, by_name, writer
from tests.words.test_own_categories import made, narrowed
from tests.words.test_words_portable import exported, read
from tests.words.test_words_survive import say

CARD = AccountRecord(stable_key="card", currency="USD", name="Card")
LIRA = AccountRecord(stable_key="lira", currency="XTS", name="None")
NO_PLACE = {"error": "body: give category, detailedCategory or ownCategoryId"}


def put(client: TestClient, amount: object, *, since: str = "2026-11", period: str = "month", **place: str) -> Any:
    answer = client.put("/targets", json={**place, "amount": amount, "period": period, "from": since})
    assert answer.status_code == 200, answer.text
    return answer.json()


def held(client: TestClient, month: str = "2026-11") -> Any:
    answer = client.get("/targets", params={"month": month})
    assert answer.status_code == 200, answer.text
    assert answer.json()["month"] == month
    return answer.json()["targets"]


def brief(client: TestClient, month: str = "2026-11") -> list[tuple[str, float, float, float]]:
    """Place, amount, what was spent and what is left of each."""
    return [
        (
            each["ownCategoryId"] or each["detailedCategory"] or each["category"],
            each["amount"],
            each["spent"],
            each["left"],
        )
        for each in held(client, month)
    ]


@pytest.mark.requirement("words.targets")
def test_a_target_is_told_beside_what_was_spent_in_its_month(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-310.20", "REWE Markt"), booked("11", "-9.00", "Netflix")])
    assert held(client) == []
    said = put(client, 400, category="GROCERIES")
    assert said == {
        "category": "GROCERIES",
        "detailedCategory": None,
        "ownCategoryId": None,
        "amount": 400,
        "currency": "EUR",
        "period": "month",
        "from": "2026-11",
    }
    figures = {"spent": 310.2, "left": 89.8, "dateFrom": "2026-11-01", "dateTo": "2026-11-30"}
    assert held(client) == [{**said, **figures}]
    assert client.get("/targets").json() == {"month": "2026-11", "targets": [{**said, **figures}]}
    assert "unconverted-currencies" not in client.get("/targets").headers


@pytest.mark.requirement("words.targets")
def test_a_target_holds_until_another_one_does_and_zero_ends_it(holder: Holder) -> None:
    client = writer(holder)
    put(client, 400, category="RENT", since="2026-03")
    put(client, 500, category="RENT", since="2026-06")
    put(client, 0, category="RENT", since="2026-09")
    amounts = {month: [each["amount"] for each in held(client, f"2026-{month:02}")] for month in range(2, 11)}
    assert amounts == {2: [], 3: [400], 4: [400], 5: [400], 6: [500], 7: [500], 8: [500], 9: [], 10: []}
    put(client, 450, category="RENT", since="2026-06")
    put(client, 700, category="RENT", since="2026-10")
    assert [held(client, month)[0]["amount"] for month in ("2026-05", "2026-06", "2026-08")] == [400, 450, 450]
    assert held(client, "2026-09") == []
    assert held(client, "9999-12")[0]["dateTo"] == "9999-12-31"
    put(client, 1, category="HEALTH", since="0001-01", period="year")
    assert held(client, "0001-01")[0]["dateFrom"] == "0001-01-01"


@pytest.mark.requirement("words.targets")
def test_the_target_of_a_year_is_compared_with_its_calendar_year(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-5.00", "REWE Markt")])
    put(client, 100, category="GROCERIES", since="2026-02", period="year")
    (told,) = held(client, "2026-03")
    assert (told["spent"], told["left"], told["dateFrom"], told["dateTo"]) == (5, 95, "2026-01-01", "2026-12-31")
    assert held(client, "2026-01") == []
    assert brief(client, "2027-01") == [("GROCERIES", 100, 0, 100)]
    put(client, 10, category="GROCERIES", since="2026-10")
    assert [(each["period"], each["spent"]) for each in held(client, "2026-10")] == [("month", 0)]
    assert [(each["period"], each["spent"]) for each in held(client, "2026-09")] == [("year", 5)]


@pytest.mark.requirement("words.targets")
def test_spent_is_what_the_totals_of_the_place_say(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(
        GIRO,
        [
            booked("01", "-40.00", "REWE Markt"),
            booked("30", "-2.50", "Bäckerei Müller"),
            booked("12", "-100.00", "Zalando SE"),
            booked("13", "60.00", "Zalando SE"),
            booked("14", "-30.00", "Kita"),
        ],
    )
    rows = by_name(holder)
    own = made(client, "Kind", detailedCategory="CHILDCARE")
    say(holder, rows["Kita"]["id"], ownCategoryId=own)
    parts = [
        {"amount": -30, "category": "GROCERIES"},
        {"amount": -6, "detailedCategory": "DRUGSTORE"},
        {"amount": -4, "ownCategoryId": own},
    ]
    say(holder, rows["REWE Markt"]["id"], splits=parts)
    for place in ({"ownCategoryId": own}, {"detailedCategory": "DRUGSTORE"}, {"category": "SHOPPING"}):
        put(client, 20, **place)
    put(client, 50, category="GROCERIES")
    assert brief(client) == [
        ("GROCERIES", 50, 32.5, 17.5),
        ("SHOPPING", 20, 106, -86),
        ("DRUGSTORE", 20, 6, 14),
        (own, 20, 34, -14),
    ]
    days = {"dateFrom": "2026-11-01", "dateTo": "2026-11-30"}
    for told in held(client):
        places = {
            "ownCategory": told["ownCategoryId"],
            "detailedCategory": told["detailedCategory"],
            "category": told["category"],
        }
        name, code = next((name, code) for name, code in places.items() if code)
        totals = client.get("/transactions/totals", params={**days, name: code}).json()
        assert totals["expenses"] == told["spent"]
    assert [each["category"] for each in held(client)] == ["GROCERIES", "SHOPPING", "SHOPPING", "OTHER"]
    assert held(client)[3]["detailedCategory"] == "CHILDCARE"


@pytest.mark.requirement("words.targets")
def test_what_is_in_memory_and_what_the_store_says_are_compared_alike(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-40.00", "REWE Markt"), booked("14", "-30.00", "Kita")])
    holder.bring(CARD, [booked("11", "-11.00", "REWE Markt", currency="USD")])
    rows, own = by_name(holder, search="Kita"), made(client, "Kind", detailedCategory="CHILDCARE")
    say(holder, rows["Kita"]["id"], ownCategoryId=own)
    for place in ({"category": "GROCERIES"}, {"detailedCategory": "SUPERMARKET"}, {"ownCategoryId": own}):
        put(client, 20, **place)
    from_memory = client.get("/targets")
    monkeypatch.setattr(holder.service.services.reader, "_is_on", False)
    assert client.get("/targets").content == from_memory.content
    assert from_memory.json()["targets"][0]["spent"] > 40


@pytest.mark.requirement("words.targets")
def test_a_target_that_says_nothing_is_refused(holder: Holder) -> None:
    client = writer(holder)
    right = {"category": "RENT", "amount": 1, "period": "month", "from": "2026-11"}
    for wrong in (
        {"amount": -0.01},
        {"amount": 1_000_000_000_000},
        {"amount": "1"},
        {"amount": None},
        {"period": "week"},
        {"from": "2026-13"},
        {"from": "2026-11-01"},
        {"from": "0000-01"},
        {"category": "NOTHING"},
        {"detailedCategory": "NOTHING"},
        {"detailedCategory": "BAKERY"},
        {"ownCategoryId": "own_1"},
        {"amount": 1.005},
    ):
        answer = client.put("/targets", json={**right, **wrong})
        assert answer.status_code == 400, (wrong, answer.text)
        assert answer.json()["error"].split(":")[0] in wrong, answer.text
    assert client.put("/targets", json={**right, "amount": 1.005}).json() == {
        "error": "amount: amounts in EUR have 2 digits after the point"
    }
    for name in right:
        assert client.put("/targets", json={key: right[key] for key in right if key != name}).status_code == 400
    assert client.put("/targets", json={key: right[key] for key in right if key != "category"}).json() == NO_PLACE
    for month in ("2026-13", "2026-1", "0000-01", "x"):
        refused = client.get("/targets", params={"month": month})
        assert (refused.status_code, refused.json()["error"].split(":")[0]) == (400, "month")
    assert held(client) == []
    put(client, 999_999_999_999, category="RENT")
    put(client, 0.01, category="HEALTH")
    assert [each["amount"] for each in held(client)] == [999_999_999_999, 0.01]


@pytest.mark.requirement("words.targets")
def test_there_are_a_thousand_targets_and_not_one_more(holder: Holder) -> None:
    client, database = writer(holder), holder.service.services.everybody
    for number in range(999):
        database.execute(
            "INSERT INTO targets (user_id, place, first_month, amount, currency, period)"
            " VALUES ($1, 'RENT', $2, 1, 'EUR', 'month')",
            holder.user.id,
            date(1900 + number // 12, 1 + number % 12, 1),
        )
    put(client, 5, category="HEALTH")
    refused = client.put("/targets", json={"category": "DINING", "amount": 5, "period": "month", "from": "2026-11"})
    assert (refused.status_code, refused.json()) == (
        400,
        {"error": "from: at most 1000 targets, those of earlier months counted"},
    )
    put(client, 6, category="HEALTH")
    assert [each["amount"] for each in held(client)] == [1, 6]


@pytest.mark.requirement("words.targets")
def test_targets_are_set_by_whoever_may_write_rules_and_read_by_whoever_may_read_figures(holder: Holder) -> None:
    put(writer(holder), 5, category="HEALTH")
    own = made(writer(holder), "Kind", detailedCategory="CHILDCARE")
    put(writer(holder), 7, ownCategoryId=own)
    body = {"category": "RENT", "amount": 1, "period": "month", "from": "2026-11"}
    for scopes, written, listed in ((["write:rules"], 200, 403), (["read:cashflow"], 403, 200)):
        client = writer(holder, scopes)
        assert client.put("/targets", json=body).status_code == written
        assert client.get("/targets").status_code == listed
    assert [each[0] for each in brief(writer(holder, ["read:cashflow"]))] == ["RENT", "HEALTH", own]


@pytest.mark.requirement("words.targets")
def test_a_narrowed_grant_reads_what_was_spent_on_its_accounts_and_sets_nothing(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt")])
    holder.bring(OTHER, [booked("10", "-4.00", "REWE Markt"), booked("10", "-3.00", "Kita")])
    giro, other = holder.account_ids()
    own = made(client, "Kind", category="OTHER")
    say(holder, by_name(holder)["Kita"]["id"], ownCategoryId=own)
    put(client, 20, category="GROCERIES")
    put(client, 5, ownCategoryId=own)
    assert brief(client) == [("GROCERIES", 20, 13, 7), (own, 5, 3, 2)]
    assert brief(narrowed(holder, giro)) == [("GROCERIES", 20, 9, 11)]
    assert brief(narrowed(holder, other)) == [("GROCERIES", 20, 4, 16), (own, 5, 3, 2)]
    body = {"category": "RENT", "amount": 1, "period": "month", "from": "2026-11"}
    assert narrowed(holder, giro).put("/targets", json=body).status_code == 403


@pytest.mark.requirement("words.targets")
def test_a_narrowed_grant_is_not_told_by_a_target_that_the_other_side_is_an_own_account(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-100.00", "Ich", counterpart_iban=OTHER.iban)])
    holder.bring(OTHER, [booked("10", "100.00", "Ich", counterpart_iban=GIRO.iban)])
    giro, _ = holder.account_ids()
    put(client, 20, detailedCategory="OWN_TRANSFER")
    assert brief(narrowed(holder, giro)) == [("OWN_TRANSFER", 20, 0, 20)]
    put(client, 20, category="TRANSFER")
    assert brief(narrowed(holder, giro)) == [("TRANSFER", 20, 100, -80), ("OWN_TRANSFER", 20, 0, 20)]
    assert brief(client) == [("TRANSFER", 20, 0, 20), ("OWN_TRANSFER", 20, 0, 20)]


@pytest.mark.requirement("words.targets")
def test_however_many_targets_there_are_each_month_and_year_is_added_up_once(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt"), booked("11", "-4.00", "Netflix")])
    holder.bring(LIRA, [booked("10", "-5.00", "REWE Markt", currency="XTS")])
    for place in ({"category": "SUBSCRIPTION"}, {"category": "RENT"}, {"detailedCategory": "VIDEO_STREAMING"}):
        put(client, 5, **place)
    for leaf in ("SUPERMARKET", "BAKERY"):
        put(client, 20, period="year", detailedCategory=leaf)
    count: list[int] = []

    def counting(rows: pl.DataFrame, **further: Any) -> pl.DataFrame:
        count.append(rows.height)
        return expenses_by_place(rows, **further)

    monkeypatch.setattr("handlers.operations.categories.targets.expenses_by_place", counting)
    assert [each[2] for each in brief(client)] == [0, 4, 9, 0, 4]
    assert count == [3, 3]
    assert client.get("/targets").headers["unconverted-currencies"] == "XTS"
    put(client, 0, detailedCategory="SUPERMARKET")
    assert "unconverted-currencies" not in client.get("/targets").headers  # nothing of what is compared is in one


@pytest.mark.requirement("words.targets")
def test_whoever_sees_figures_only_is_told_targets_of_the_thirteen(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt")])
    own = made(client, "Kind", category="OTHER")
    for place in ({"category": "GROCERIES"}, {"detailedCategory": "SUPERMARKET"}, {"ownCategoryId": own}):
        put(client, 20, **place)
    token = holder.service.services.authorization.issue_token(
        holder.user.id, frozenset(["read:cashflow"]), timedelta(hours=1), terms=Terms(figures_only=True)
    )
    figures = writer(holder)
    figures.headers["Authorization"] = f"Bearer {token}"
    assert brief(figures) == [("GROCERIES", 20, 9, 11)]
    put(client, 0, category="GROCERIES")
    assert held(figures) == []


@pytest.mark.requirement("words.targets")
def test_a_target_keeps_the_currency_in_which_it_was_set(service: Service) -> None:
    holder = service.newcomer("CHF")
    client = writer(holder)
    assert put(client, 1, category="RENT")["currency"] == "CHF"
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt")])
    assert put(client, 20, category="GROCERIES")["currency"] == "EUR"
    holder.bring(CARD, [booked("10", "-11.00", "REWE Markt", currency="USD")])
    before = held(client)
    holder.bring(LIRA, [booked("10", "-5.00", "REWE Markt", currency="XTS")])
    rate = client.get("/transactions/totals", params={"dateFrom": "2026-11-01"})
    assert rate.headers["unconverted-currencies"] == "XTS"
    answer = client.get("/targets")
    assert answer.headers["unconverted-currencies"] == "XTS"
    assert answer.json()["targets"] == before
    assert [each["currency"] for each in before] == ["EUR", "CHF"]
    client.patch("/profile", json={"homeCurrency": "USD"})
    assert held(client) == before
    assert put(client, 3, category="GROCERIES", since="2026-12")["currency"] == "USD"
    assert held(client) == before
    (after, _) = held(client, "2026-12")
    assert (after["currency"], after["amount"]) == ("USD", 3)


@pytest.mark.requirement("words.targets")
def test_what_is_spent_in_another_currency_is_converted_as_totals_do(service: Service) -> None:
    holder = service.newcomer("EUR")
    client = writer(holder)
    put(client, 20, category="GROCERIES")
    holder.bring(CARD, [booked("10", "-11.00", "REWE Markt", currency="USD")])
    (told,) = held(client)
    holder.bring(GIRO, [])
    of_totals = client.get("/transactions/totals", params={"category": "GROCERIES"}).json()
    assert (of_totals["currency"], of_totals["expenses"]) == ("EUR", told["spent"])
    assert 0 < told["spent"] != 11
    assert Decimal(str(told["left"])) == 20 - Decimal(str(told["spent"]))


@pytest.mark.requirement("words.targets")
def test_an_own_category_that_goes_takes_its_targets_along(holder: Holder) -> None:
    client = writer(holder)
    own = made(client, "Kind", detailedCategory="CHILDCARE")
    put(client, 5, ownCategoryId=own)
    put(client, 9, detailedCategory="CHILDCARE")
    client.patch(f"/categories/{own}", json={"name": "Hort"})
    assert [each[0] for each in brief(client)] == ["CHILDCARE", own]
    client.delete(f"/categories/{own}")
    assert [each[0] for each in brief(client)] == ["CHILDCARE"]
    assert made(client, "Kind", detailedCategory="CHILDCARE") == own
    assert [each[0] for each in brief(client)] == ["CHILDCARE"]


@pytest.mark.requirement("words.targets")
def test_whoever_sets_a_target_moves_no_figure(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt")])
    paths = ("/transactions", "/transactions/totals", "/cashflow/categories", "/snapshot", "/categories", "/accounts")
    before = [client.get(path).content for path in paths]
    put(client, 5, category="GROCERIES")
    assert [client.get(path).content for path in paths] == before


@pytest.mark.requirement("words.targets")
def test_targets_go_into_another_store_and_go_with_their_user(service: Service, holder: Holder) -> None:
    client = writer(holder)
    own = made(client, "Kind", detailedCategory="CHILDCARE")
    put(client, 400, category="GROCERIES", since="2026-03")
    put(client, 0, category="GROCERIES", since="2026-09")
    put(client, 1200.5, ownCategoryId=own, period="year")
    lines = exported(holder)
    assert [json.loads(line)["kind"] for line in lines] == ["ownCategory", *["target"] * 3]
    assert read(holder, lines) == 0
    fresh, other = service.newcomer(), service.newcomer()
    same = made(writer(other), "KIND", detailedCategory="CHILDCARE")
    put(writer(other), 1, category="GROCERIES", since="2026-03")
    for each, count in ((fresh, 4), (other, 2)):
        assert (read(each, lines), read(each, lines)) == (count, 0)
    for month in ("2026-02", "2026-03", "2026-09", "2026-11"):
        assert held(writer(fresh), month) == held(client, month)
    assert brief(writer(other), "2026-11") == [(same, 1200.5, 0, 1200.5)]
    assert brief(writer(other), "2026-03") == [("GROCERIES", 1, 0, 1)]
    database = service.services.everybody
    database.atomically(lambda session: users.remove(session, fresh.user.id))
    assert targets.of_user(database, fresh.user.id) == []
    assert len(targets.of_user(database, other.user.id)) == 3


@pytest.mark.requirement("words.targets")
def test_a_line_that_is_no_target_is_refused_with_its_number(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {
        "kind": "target",
        "place": "RENT",
        "from": "2026-03",
        "amount": "400.00",
        "currency": "EUR",
        "period": "month",
    }
    for wrong, reason in (
        ({"place": "NOTHING"}, "an unknown place"),
        ({"place": "own_1"}, "an unknown place"),
        ({"amount": "-1"}, "not a target"),
        ({"amount": "0.005"}, "not a target"),
        ({"amount": "1000000000000000"}, "not an amount"),
        ({"amount": "1000000000000"}, "not a target"),
        ({"currency": "eur"}, "not a target"),
        ({"period": "week"}, "not a target"),
        ({"from": "2026-13"}, "month: "),
        ({"from": 1}, ""),
        ({"from": None}, ""),
    ):
        with pytest.raises(InvalidWords, match=f"^line 1: {reason}"):
            read(holder, [json.dumps({**line, **wrong})])
    with pytest.raises(InvalidWords, match="line 1: lacks 'period'"):
        read(holder, [json.dumps({key: line[key] for key in line if key != "period"})])
    assert held(writer(holder)) == []
    monkeypatch.setattr(targets, "TARGETS_MAX", 1)
    with pytest.raises(InvalidWords, match="line 2: more than 1 targets"):
        read(holder, [json.dumps(line), json.dumps({**line, "place": "HEALTH"})])
    assert read(holder, [json.dumps(line), json.dumps({**line, "amount": "5"})]) == 1
    assert [each[1] for each in brief(writer(holder))] == [400]
