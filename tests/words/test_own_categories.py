"""Categories under names of a user's own: made, given to bookings by a person, a correction or a rule, and removed."""

from datetime import timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from auth.scopes import SCOPES
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, OTHER, booked, by_name, rows_of, writer

IBAN = "DE02370502990000684712"
TAKEN = {"error": "name: one of your categories there has it already"}
UNKNOWN = {"error": "Category not found. GET /categories lists your own"}
REQUIRED = {"error": "body: give category, detailedCategory or ownCategoryId"}
NOT_OWN = {"error": "ownCategoryId: must be one that GET /categories lists"}


def made(client: TestClient, name: str, **place: str) -> str:
    answer = client.post("/categories", json={"name": name, **place})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def stored(holder: Holder, name: str) -> tuple[str, str | None, str | None, str | None]:
    """Category, finer one, own one and what decided of the booking with this counterpart."""
    (row,) = holder.service.services.everybody.rows(
        "SELECT category, detailed_category, own_category_id, category_rule FROM transactions"
        " WHERE user_id = $1 AND counterpart_name = $2",
        holder.user.id,
        name,
    )
    return row["category"], row["detailed_category"], row["own_category_id"], row["category_rule"]


def narrowed(holder: Holder, *account_ids: str) -> TestClient:
    scopes = frozenset([*SCOPES, "read:annotations", "write:annotations", "write:rules"])
    token = holder.service.services.authorization.issue_token(
        holder.user.id, scopes, timedelta(hours=1), terms=Terms(accounts=account_ids)
    )
    client = writer(holder)
    client.headers["Authorization"] = f"Bearer {token}"
    return client


@pytest.mark.requirement("words.own")
def test_own_categories_are_made_renamed_and_removed(holder: Holder) -> None:
    client = writer(holder)
    plain = client.get("/categories")
    kita = client.post("/categories", json={"name": " Kita  West ", "detailedCategory": "CHILDCARE"}).json()
    assert kita == {"id": kita["id"], "name": "Kita West", "category": "OTHER", "detailedCategory": "CHILDCARE"}
    bread = made(client, "brot", category="GROCERIES")
    listed = client.get("/categories")
    assert listed.json() == {
        **plain.json(),
        "own": [{"id": bread, "name": "brot", "category": "GROCERIES", "detailedCategory": None}, kita],
    }
    assert listed.headers["etag"] != plain.headers["etag"]
    assert client.get("/categories", headers={"If-None-Match": listed.headers["etag"]}).status_code == 304
    again = client.post("/categories", json={"name": "KITA WEST", "detailedCategory": "CHILDCARE"})
    assert (again.status_code, again.json()) == (409, TAKEN)
    elsewhere = made(client, "Kita West", category="OTHER")
    assert elsewhere != kita["id"]
    path = f"/categories/{kita['id']}"
    assert client.patch(path, json={"name": "Hort"}).json() == {**kita, "name": "Hort"}
    assert made(client, "Kita West", detailedCategory="CHILDCARE") != kita["id"]
    assert client.patch(path, json={"name": "kita west"}).json() == TAKEN
    assert client.patch(path, json={"name": "HORT"}).json()["name"] == "HORT"
    assert client.delete(path).json() == {"changed": 0}
    for answer in (client.delete(path), client.patch(path, json={"name": "Hort"})):
        assert (answer.status_code, answer.json()) == (404, UNKNOWN)
    for each in client.get("/categories").json()["own"]:
        client.delete(f"/categories/{each['id']}")
    assert client.get("/categories").content == plain.content


@pytest.mark.requirement("words.own")
def test_own_categories_have_bounds(holder: Holder) -> None:
    client = writer(holder)
    for wrong in (
        {"name": "", "category": "RENT"},
        {"name": " ", "category": "RENT"},
        {"name": "a\tb", "category": "RENT"},
        {"name": "x" * 101, "category": "RENT"},
        {"name": "x", "category": "NOTHING"},
        {"name": "x", "detailedCategory": "NOTHING"},
        {"name": "x", "category": "RENT", "detailedCategory": "BAKERY"},
        {"category": "RENT"},
    ):
        assert client.post("/categories", json=wrong).status_code == 400, wrong
    assert client.post("/categories", json={"name": "x", "ownCategoryId": "own_1"}).json() == REQUIRED
    first = made(client, "x" * 100, category="RENT", detailedCategory="HOME_RENT")
    assert client.patch(f"/categories/{first}", json={"name": "x" * 101}).status_code == 400
    database = holder.service.services.everybody
    for number in range(498):
        database.execute(
            "INSERT INTO own_categories (user_id, id, name, category) VALUES ($1, $2, $2, 'RENT')",
            holder.user.id,
            f"own_{number}",
        )
    made(client, "the last", category="RENT")
    assert client.post("/categories", json={"name": "one more", "category": "RENT"}).json() == {
        "error": "name: at most 500 categories of your own"
    }


@pytest.mark.requirement("words.own")
def test_one_booking_is_put_into_an_own_category(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt"), booked("11", "-9.00", "Kita")])
    rows = by_name(holder)
    path = f"/transactions/{rows['REWE Markt']['id']}/annotation"
    before, plain = stored(holder, "REWE Markt"), client.get("/transactions?include=annotation").json()
    explanation = client.get(path.replace("annotation", "explanation?include=annotation")).json()["ownCategory"]
    assert explanation == {"value": None, "rule": None, "reason": "No rule gave a value."}
    assert before == ("GROCERIES", "SUPERMARKET", None, "brand:rewe")
    silent = client.get(path).json()
    bread, care = made(client, "Brot", detailedCategory="BAKERY"), made(client, "Essen", category="GROCERIES")
    assert client.get("/transactions?include=annotation").json() == plain
    said = client.patch(path, json={"ownCategoryId": bread}).json()
    own = {"ownCategory": {"id": bread, "name": "Brot"}}
    assert said == client.get(path).json() == {**silent, "category": "GROCERIES", "detailedCategory": "BAKERY", **own}
    assert stored(holder, "REWE Markt") == ("GROCERIES", "BAKERY", bread, "chosen")
    told: dict[str, Any] = {"detailedCategory": "BAKERY", **own, "note": None, "tags": []}
    for address in ("/transactions", "/transactions/search"):
        for include in ("annotation", "annotation,detailedCategory"):
            found = client.get(address, params={"include": include}).json()["transactions"]
            of_rewe = next(row for row in found if row["counterpartName"] == "REWE Markt")
            assert {name: of_rewe[name] for name in told} == told, (address, include)
            assert all("ownCategory" not in row for row in found if row is not of_rewe)
    assert client.patch(path, json={"ownCategoryId": care}).json()["detailedCategory"] is None
    assert stored(holder, "REWE Markt") == ("GROCERIES", "SUPERMARKET", care, "chosen")
    assert client.patch(path, json={"detailedCategory": None}).json()["ownCategory"]["id"] == care
    assert client.patch(path, json={"detailedCategory": "BUTCHER"}).status_code == 400
    assert "ownCategory" not in client.patch(path, json={"detailedCategory": "DRINKS"}).json()
    assert client.patch(path, json={"ownCategoryId": bread, "category": "GROCERIES"}).is_success
    assert "ownCategory" not in client.patch(path, json={"ownCategoryId": None}).json()
    assert stored(holder, "REWE Markt") == ("GROCERIES", "BAKERY", None, "chosen")
    client.patch(path, json={"ownCategoryId": bread})
    assert "ownCategory" not in client.patch(path, json={"detailedCategory": None}).json()
    client.patch(path, json={"ownCategoryId": bread})
    assert client.patch(path, json={"category": None}).json() == silent
    assert stored(holder, "REWE Markt") == before
    refused = client.patch(path, json={"ownCategoryId": "own_1"})
    assert (refused.status_code, refused.json()) == (400, NOT_OWN)
    for wrong in ({"category": "RENT"}, {"detailedCategory": "SUPERMARKET"}):
        answer = client.patch(path, json={"ownCategoryId": bread, **wrong}).json()
        assert answer == {"error": "ownCategoryId: lies below BAKERY"}
    assert client.get("/transactions?include=annotation").json() == plain


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_all_of_a_counterpart_and_what_a_rule_finds_go_into_an_own_category(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita Nord"), booked("11", "-9.00", "Nachbar", counterpart_iban=IBAN)])
    rows = by_name(holder)
    kita, school = made(client, "Kita", detailedCategory="CHILDCARE"), made(client, "Schule", category="OTHER")
    correction = {"transactionId": rows["Nachbar"]["id"], "ownCategoryId": school}
    tried = client.post("/corrections?dryRun=true", json=correction).json()
    corrected = client.post("/corrections", json=correction).json()
    assert (tried["changed"], corrected["changed"], corrected["ownCategoryId"]) == (1, 1, school)
    assert "detailedCategory" not in corrected
    assert stored(holder, "Nachbar") == ("OTHER", None, school, "correction:iban")
    finer = client.post("/corrections", json={"transactionId": rows["Nachbar"]["id"], "detailedCategory": "EDUCATION"})
    assert finer.json()["detailedCategory"] == "EDUCATION"
    assert stored(holder, "Nachbar")[:3] == ("OTHER", "EDUCATION", None)
    assert client.post("/corrections", json={"transactionId": rows["Nachbar"]["id"]}).json() == REQUIRED
    client.post("/corrections", json=correction)
    rule = {"field": "counterpartName", "operator": "contains", "value": "kita", "ownCategoryId": kita}
    kept = client.post("/rules", json=rule).json()
    place = {"category": "OTHER", "detailedCategory": "CHILDCARE", "ownCategoryId": kita}
    assert {name: kept[name] for name in place} == place
    assert stored(holder, "Kita Nord") == ("OTHER", "CHILDCARE", kita, "user-rule:1")
    path = f"/transactions/{rows['Kita Nord']['id']}"
    reasons = client.get(f"{path}/explanation?include=detailedCategory,annotation").json()
    said = "Your rule 1 says so: counterpart name contains “kita”."
    assert [reasons[name]["reason"] for name in ("category", "detailedCategory", "ownCategory")] == [said] * 3
    assert (reasons["ownCategory"]["value"], reasons["ownCategory"]["rule"]) == ("Kita", "user-rule:1")
    other = f"/transactions/{rows['Nachbar']['id']}/explanation?include=annotation"
    assert client.get(other).json()["ownCategory"]["value"] == "Schule"
    assert writer(holder, SCOPES).get(other).status_code == 403
    client.patch(f"{path}/annotation", json={"ownCategoryId": school})
    holder.bring(GIRO, [booked("10", "-9.00", "Kita Nord"), booked("13", "-9.00", "Kita Süd")])
    client.post("/rules", json={**rule, "value": "nord"})
    assert stored(holder, "Kita Nord") == ("OTHER", "CHILDCARE", school, "chosen")
    assert stored(holder, "Kita Süd") == ("OTHER", "CHILDCARE", kita, "user-rule:1")
    assert client.post("/rules", json={**rule, "ownCategoryId": "own_1"}).json() == {
        "error": "body: ownCategoryId must be one that GET /categories lists"
    }
    for changes, wanted in (
        ({"detailedCategory": "EDUCATION"}, {"category": "OTHER", "detailedCategory": "EDUCATION"}),
        ({"ownCategoryId": kita}, place),
        ({"ownCategoryId": None}, {"category": "OTHER", "detailedCategory": "CHILDCARE"}),
        ({"ownCategoryId": school}, {"category": "OTHER", "ownCategoryId": school}),
        ({"ownCategoryId": kita, "category": "OTHER"}, place),
        ({"detailedCategory": None}, {"category": "OTHER"}),
        ({"category": "RENT"}, {"category": "RENT"}),
        ({"detailedCategory": "BAKERY"}, {"category": "GROCERIES", "detailedCategory": "BAKERY"}),
    ):
        edited = client.patch("/rules/1", json=changes).json()
        assert {name: edited.get(name) for name in place} == {**dict.fromkeys(place), **wanted}, changes
    for changes in (
        {"ownCategoryId": kita, "category": "RENT"},
        {"ownCategoryId": school, "detailedCategory": "BAKERY"},
        {"category": "RENT", "detailedCategory": "BAKERY"},
        {"detailedCategory": "NOTHING"},
    ):
        assert client.patch("/rules/1", json=changes).status_code == 400, changes


@pytest.mark.requirement("words.own")
def test_some_go_into_an_own_category_and_get_back_what_they_had(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked(day, "-9.00", f"Hotel {day}") for day in ("10", "11", "12")])
    rows = by_name(holder)
    trip, first = made(client, "Reise", detailedCategory="LODGING"), made(client, "Erste", category="RENT")
    for day, own in (("10", first), ("11", trip)):
        client.patch(f"/transactions/{rows[f'Hotel {day}']['id']}/annotation", json={"ownCategoryId": own})
    batch = {"filter": {"search": "hotel"}, "expected": 3, "ownCategoryId": trip}
    some = client.post("/corrections/batch", json=batch).json()
    assert (some["matching"], some["changed"]) == (3, 2)
    assert {stored(holder, name)[2:] for name in rows} == {(trip, "chosen")}
    within = {"filter": {"ownCategory": trip, "search": "12"}, "expected": 1, "category": "HEALTH"}
    other = client.post("/corrections/batch", json=within).json()
    assert stored(holder, "Hotel 12")[0] == "HEALTH"
    client.delete(f"/corrections/{other['id']}")
    assert stored(holder, "Hotel 12")[2] == trip
    client.delete(f"/categories/{first}")
    client.delete(f"/corrections/{some['id']}")
    assert stored(holder, "Hotel 10")[::3] == ("RENT", "chosen")
    assert stored(holder, "Hotel 10")[2] is None
    assert stored(holder, "Hotel 11")[2:] == (trip, "chosen")
    assert stored(holder, "Hotel 12")[2] is None
    assert client.post("/corrections/batch", json={**batch, "ownCategoryId": first}).json() == NOT_OWN


@pytest.mark.requirement("words.own")
def test_a_removed_one_leaves_what_was_in_it_at_its_place(holder: Holder) -> None:
    client = writer(holder)
    names = ("Kita", "Hort", "Verein", "Bar")
    ibans = {"Hort": IBAN}
    bookings = [booked(str(10 + n), "-9.00", name, counterpart_iban=ibans.get(name)) for n, name in enumerate(names)]
    holder.bring(GIRO, bookings)
    rows = by_name(holder)
    kita, bar = made(client, "Kita", detailedCategory="CHILDCARE"), made(client, "Bar", category="DINING")
    note = f"/transactions/{rows['Kita']['id']}/annotation"
    client.patch(note, json={"ownCategoryId": kita})
    client.post("/corrections", json={"transactionId": rows["Hort"]["id"], "ownCategoryId": kita})
    for value, own in (("verein", kita), ("bar", bar)):
        rule = {"field": "counterpartName", "operator": "equals", "value": value, "ownCategoryId": own}
        client.post("/rules", json=rule)
    before = {name: stored(holder, name) for name in names}
    assert {own for _, _, own, _ in before.values()} == {kita, bar}
    totals = client.get("/transactions/totals?groupBy=detailedCategory").content
    assert client.delete(f"/categories/{kita}").json() == {"changed": 3}
    place = ("OTHER", "CHILDCARE", None)
    assert {name: stored(holder, name) for name in names} == {
        "Kita": (*place, "chosen"),
        "Hort": (*place, "correction:iban"),
        "Verein": (*place, "user-rule:1"),
        "Bar": before["Bar"],
    }
    assert client.get("/transactions/totals?groupBy=detailedCategory").content == totals
    assert "ownCategory" not in client.get(note).json()
    assert "ownCategoryId" not in client.get("/corrections").json()["corrections"][0]
    assert [rule.get("ownCategoryId") for rule in client.get("/rules").json()["rules"]] == [None, bar]


@pytest.mark.requirement("words.own")
def test_bookings_are_found_by_their_own_category(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked(day, "-9.00", f"Kita {day}") for day in ("10", "11", "12")])
    holder.bring(OTHER, [booked("13", "-4.00", "Bar")])
    rows = by_name(holder)
    kita, empty = made(client, "Kita", detailedCategory="CHILDCARE"), made(client, "Leer", category="RENT")
    for name in ("Kita 10", "Kita 12"):
        client.patch(f"/transactions/{rows[name]['id']}/annotation", json={"ownCategoryId": kita, "tags": [name]})
    every = ",".join({row["bankAccount"]["id"] for row in rows.values()})

    def listed(**query: str) -> list[str]:
        answer = client.get("/transactions", params={"accountIds": every, **query})
        return [row["counterpartName"] for row in answer.json()["transactions"]]

    for _ in range(2):  # from memory, too
        assert listed(ownCategory=kita) == ["Kita 12", "Kita 10"]
        assert listed(ownCategory=kita, perPage="1", page="2") == ["Kita 10"]
        assert listed(ownCategory=kita, dateFrom="2026-11-11", search="kita") == ["Kita 12"]
        assert listed(ownCategory=kita, category="RENT") == listed(ownCategory=empty) == []
    assert [row["counterpartName"] for row in rows_of(holder, ownCategory=kita)] == ["Kita 12", "Kita 10"]
    assert [row["counterpartName"] for row in rows_of(holder, ownCategory=kita, tag="kita 10")] == ["Kita 10"]
    totals = client.get("/transactions/totals", params={"ownCategory": kita}).json()
    assert (totals["count"], totals["expenses"]) == (2, 18.0)
    export = client.get("/transactions/export", params={"format": "jsonl", "ownCategory": kita, "accountIds": every})
    assert export.text.count("txn_") == 2
    for address in ("/transactions", "/transactions/search", "/transactions/totals", "/transactions/export"):
        asked: dict[str, Any] = {"params": {"ownCategory": "own_1", "accountIds": every, "format": "csv"}}
        assert client.get(address, **asked).json() == {"error": "ownCategory: must be an id that GET /categories lists"}
        assert writer(holder, SCOPES).get(address, **asked).status_code == 403


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_a_narrowed_grant_knows_the_own_categories_of_covered_accounts(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(OTHER, [booked("11", "-8.00", "Bar")])
    rows = by_name(holder)
    hidden, shown = made(client, "Kita", detailedCategory="CHILDCARE"), made(client, "Bar", category="DINING")
    made(client, "Leer", category="RENT")
    for name, own in (("Kita", hidden), ("Bar", shown)):
        client.patch(f"/transactions/{rows[name]['id']}/annotation", json={"ownCategoryId": own})
    plain, other = client.get("/categories").json(), narrowed(holder, rows["Bar"]["bankAccount"]["id"])
    assert [each["id"] for each in other.get("/categories").json()["own"]] == [shown]
    assert other.get("/categories").json()["categories"] == plain["categories"]
    path = f"/transactions/{rows['Bar']['id']}/annotation"
    for own, status in ((hidden, 400), ("own_1", 400), (shown, 200)):
        assert other.patch(path, json={"ownCategoryId": own}).status_code == status
        for address in ("/transactions", "/transactions/search", "/transactions/totals", "/transactions/export"):
            found = other.get(address, params={"ownCategory": own, "format": "csv"})
            assert found.status_code == status, (address, own)
        batch = {"filter": {"search": "Bar"}, "expected": 1, "ownCategoryId": own}
        assert other.post("/corrections/batch", json=batch).status_code == status
    answers = [
        [
            other.patch(path, json={"ownCategoryId": own}).content,
            other.get("/transactions", params={"ownCategory": own}).content,
            other.delete(f"/categories/{own}").content,
            other.patch(f"/categories/{own}", json={"name": "x"}).content,
        ]
        for own in (hidden, "own_1")
    ]
    assert answers[0] == answers[1]
    assert other.post("/categories", json={"name": "x", "category": "RENT"}).status_code == 403
    nothing = narrowed(holder, "acc_1")
    assert "own" not in nothing.get("/categories").json()
