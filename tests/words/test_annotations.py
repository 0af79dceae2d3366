"""Category, note and tags of one booking."""

from datetime import timedelta
from typing import Any

import pytest

from auth.scopes import SCOPES
from storage.database import Session
from storage.events import outbox
from storage.oauth.grants import Terms
from tests.checked_commits import change
from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, OTHER, booked, by_name, rows_of, writer

NOTHING: dict[str, object] = {"category": None, "detailedCategory": None, "note": None, "tags": [], "splits": []}


@pytest.mark.requirement("words.annotations")
@pytest.mark.long
def test_something_is_said_of_one_booking_and_taken_back(holder: Holder) -> None:
    client, iban = writer(holder), "DE02370502990000684712"
    holder.bring(GIRO, [booked(day, "-9.00", f"Kita {day}", counterpart_iban=iban) for day in ("10", "11")])
    rows = by_name(holder)
    path, other = f"/transactions/{rows['Kita 10']['id']}/annotation", rows["Kita 11"]["category"]
    assert client.get(path).json() == NOTHING
    said = {"category": "DINING", "note": '=1+1\n"Kim"', "tags": ["Holiday", "holiday ", "Straße"]}
    kept = {**NOTHING, **said, "tags": ["Holiday", "Straße"]}
    assert client.patch(path, json=said).json() == client.get(path).json() == kept
    assert [by_name(holder)[name]["category"] for name in ("Kita 10", "Kita 11")] == ["DINING", other]
    explained = client.get(path.replace("annotation", "explanation")).json()["category"]["reason"]
    assert explained == "You have said so of this transaction alone."
    client.post("/corrections", json={"transactionId": rows["Kita 11"]["id"], "category": "HEALTH"})
    client.post("/rules", json={"field": "text", "operator": "contains", "value": "kita", "category": "RENT"})
    assert [by_name(holder)[name]["category"] for name in ("Kita 10", "Kita 11")] == ["DINING", "RENT"]
    assert client.patch(path, json={"category": None}).json()["note"] == said["note"]
    assert by_name(holder)["Kita 10"]["category"] == "RENT"
    assert client.patch(path, json={"note": "", "tags": None}).json() == NOTHING
    assert client.get("/tags").json() == {"tags": []}


@pytest.mark.requirement("words.annotations")
@pytest.mark.long
def test_a_finer_category_brings_its_category_along(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "REWE Markt")])
    path = f"/transactions/{by_name(holder)['REWE Markt']['id']}/annotation"

    def leaf() -> tuple[str, str | None, str | None]:
        row = holder.service.services.everybody.rows(
            "SELECT category, detailed_category, detailed_rule FROM transactions WHERE user_id = $1", holder.user.id
        )[0]
        return row["category"], row["detailed_category"], row["detailed_rule"]

    before = leaf()
    assert before[:2] == ("GROCERIES", "SUPERMARKET")
    assert client.patch(path, json={"detailedCategory": "BAKERY"}).json()["category"] == "GROCERIES"
    assert leaf() == ("GROCERIES", "BAKERY", "chosen")
    assert client.patch(path, json={"detailedCategory": None}).json()["category"] == "GROCERIES"
    assert leaf()[1] == "SUPERMARKET"
    assert client.patch(path, json={"category": "RENT", "detailedCategory": "HOME_RENT"}).is_success
    assert leaf() == ("RENT", "HOME_RENT", "chosen")
    assert client.patch(path, json={"category": "RENT"}).json()["detailedCategory"] is None
    assert leaf()[:2] == ("RENT", None)
    assert client.patch(path, json={"category": None}).json() == NOTHING
    assert leaf() == before
    for wrong in ({"detailedCategory": "NOTHING"}, {"category": "RENT", "detailedCategory": "BAKERY"}):
        assert client.patch(path, json=wrong).status_code == 400


@pytest.mark.requirement("words.annotations")
def test_an_entry_of_the_service_itself_may_be_noted_and_not_be_placed(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    database = holder.service.services.everybody
    change(
        database, holder.user.id, "UPDATE transactions SET is_adjusting_entry = TRUE WHERE user_id = $1", holder.user.id
    )
    path = f"/transactions/{rows_of(holder)[0]['id']}/annotation"
    assert writer(holder).patch(path, json={"category": "RENT"}).status_code == 400
    assert writer(holder).patch(path, json={"note": "\x1b"}).status_code == 400
    assert writer(holder).patch(path, json={"note": "odd"}).json()["note"] == "odd"


@pytest.mark.requirement("words.annotations")
@pytest.mark.long
def test_words_have_bounds(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    path = f"/transactions/{by_name(holder)['Kita']['id']}/annotation"
    for refused in (
        {"note": "x" * 4001},
        {"tags": ["x" * 101]},
        {"tags": [" "]},
        {"tags": ["a\tb"]},
        {"tags": [str(number) for number in range(51)]},
        {"category": "NOTHING"},
    ):
        assert client.patch(path, json=refused).status_code == 400, refused
    assert client.patch(path, json={"note": "x" * 4000, "tags": [str(number) for number in range(50)]}).is_success
    holder.bring(GIRO, [booked("12", f"-{number}.00", f"Shop {number}") for number in range(1, 21)])
    ids = [row["id"] for name, row in by_name(holder).items() if name.startswith("Shop")]
    for count, id_ in enumerate(ids, 1):
        tags = [f"{count} {number}" for number in range(50)]
        answer = client.patch(f"/transactions/{id_}/annotation", json={"tags": tags})
        assert answer.status_code == (200 if count < 20 else 400), count


@pytest.mark.requirement("words.tags")
def test_a_search_looks_into_notes_tags_and_own_names_for_whoever_may_read_them(holder: Holder) -> None:
    client = writer(holder)
    names = ("Hotel", "Bar", "Kita", "Kiosk", "Gift shop")
    holder.bring(GIRO, [booked(f"1{place}", f"-{place}.00", name) for place, name in enumerate(names, 1)])
    rows = by_name(holder)
    own = client.post("/categories", json={"name": "A GIFT too", "category": "SHOPPING"}).json()["id"]
    for name, said in {
        "Hotel": {"note": "a Gift for Kim"},
        "Bar": {"tags": ["gifts"]},
        "Kita": {"ownCategoryId": own},
        "Kiosk": {"splits": [{"amount": -3, "category": "OTHER", "note": "gift"}, {"amount": -1, "category": "OTHER"}]},
    }.items():
        assert client.patch(f"/transactions/{rows[name]['id']}/annotation", json=said).is_success
    wanted = {"search": "gift", "searchIn": "annotation"}
    assert [row["counterpartName"] for row in rows_of(holder, **wanted)] == [*reversed(names)]
    assert client.get("/transactions/totals", params=wanted).json()["expenses"] == 15
    assert client.get("/transactions/export", params={**wanted, "format": "jsonl"}).text.count("\n") == 5
    assert [row["counterpartName"] for row in rows_of(holder, search="gift")] == ["Gift shop"]
    assert rows_of(holder, **wanted, dateTo="2026-11-12", direction="out")[0]["counterpartName"] == "Bar"
    for operation in ("search", "totals"):
        assert holder.client.get(f"/transactions/{operation}", params=wanted).status_code == 403


@pytest.mark.requirement("words.tags")
def test_tags_are_found_counted_and_spelled_as_at_first(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Hotel"), booked("11", "-5.00", "Bar"), booked("12", "-1.00", "Kita")])
    rows = by_name(holder)
    for name, tags in (("Hotel", ["Ferien", "Kim"]), ("Bar", ["FERIEN"])):
        client.patch(f"/transactions/{rows[name]['id']}/annotation", json={"tags": tags})
    assert client.get("/tags").json() == {"tags": [{"name": "Ferien", "count": 2}, {"name": "Kim", "count": 1}]}
    assert [row["counterpartName"] for row in rows_of(holder, tag="ferien")] == ["Bar", "Hotel"]
    assert rows_of(holder, tag="Urlaub") == []
    (giro,) = holder.account_ids()
    listed = client.get("/transactions", params={"accountIds": giro, "tag": "ferien"}).json()
    assert [row["counterpartName"] for row in listed["transactions"]] == ["Bar", "Hotel"]
    totals = client.get("/transactions/totals", params={"tag": "fErien", "groupBy": "merchant"}).json()
    assert (totals["count"], totals["expenses"]) == (2, 14.0)
    groups = client.get("/transactions/totals", params={"groupBy": "tag"}).json()
    said = {group["keys"]["tag"]: (group["count"], group["expenses"]) for group in groups["groups"]}
    assert (groups["count"], groups["expenses"]) == (3, 15.0)  # one is in two groups and counts once
    assert said == {"Ferien": (2, 14.0), "Kim": (1, 9.0), None: (1, 1.0)}
    assert holder.client.get("/transactions/totals?groupBy=tag").status_code == 403
    found = by_name(holder, include="annotation")
    assert (found["Bar"]["tags"], found["Kita"]["tags"], found["Hotel"]["note"]) == (["Ferien"], [], None)
    listed = client.get("/transactions", params={"include": "annotation"}).json()["transactions"]
    assert [row["tags"] for row in listed] == [[], ["Ferien"], ["Ferien", "Kim"]]
    plain = client.get("/transactions").json()["transactions"]
    assert [{name: row[name] for name in plain[0]} for row in listed] == plain
    assert "note" not in plain[0]


@pytest.mark.requirement("words.scopes")
def test_words_are_read_and_written_by_scopes_of_their_own(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    id_ = by_name(holder)["Kita"]["id"]
    path = f"/transactions/{id_}/annotation"
    writer(holder).patch(path, json={"note": "secret", "tags": ["secret"]})
    asked = (
        "/transactions/search?include=annotation",
        "/transactions?include=annotation",
        "/transactions/search?tag=secret",
        "/transactions/totals?tag=secret",
        "/transactions/export?format=jsonl&include=annotation",
        "/transactions/export?format=jsonl&tag=secret",
        path,
        "/tags",
    )
    for address in asked:
        for _ in range(2):  # from memory, too
            assert writer(holder).get(address).status_code == 200, address
        refused = writer(holder, SCOPES).get(address)
        assert (refused.status_code, refused.json()) == (
            403,
            {"error": "Insufficient scope. Required: read:annotations"},
        ), address
    assert writer(holder, [*SCOPES, "read:annotations"]).patch(path, json={"note": "x"}).status_code == 403
    assert "secret" not in writer(holder, SCOPES).get("/transactions/export?format=jsonl").text


@pytest.mark.requirement("words.scopes")
def test_a_narrowed_grant_knows_no_words_of_other_accounts(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(OTHER, [booked("11", "-8.00", "Bar")])
    rows = by_name(holder)
    for name, tags in (("Kita", ["SHARED", "hidden"]), ("Bar", ["shared"])):
        writer(holder).patch(f"/transactions/{rows[name]['id']}/annotation", json={"tags": tags})
    covered = rows["Bar"]["bankAccount"]["id"]
    token = holder.service.services.authorization.issue_token(
        holder.user.id,
        frozenset([*SCOPES, "read:annotations", "write:annotations"]),
        timedelta(hours=1),
        terms=Terms(accounts=(covered,)),
    )
    client = writer(holder)
    client.headers["Authorization"] = f"Bearer {token}"
    assert client.get("/tags").json() == {"tags": [{"name": "shared", "count": 1}]}
    found = client.get("/transactions/search", params={"tag": "shared", "include": "annotation"}).json()
    assert [(row["counterpartName"], row["tags"]) for row in found["transactions"]] == [("Bar", ["shared"])]
    for method in ("GET", "PATCH"):
        answers = [
            client.request(method, f"/transactions/{id_}/annotation", json={"note": "x"}).content
            for id_ in (rows["Kita"]["id"], "txn_unknown")
        ]
        assert answers[0] == answers[1] == b'{"error":"Transaction not found"}'


@pytest.mark.requirement("words.annotations")
def test_a_note_looks_for_no_events_and_a_category_does(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    path = f"/transactions/{rows_of(holder)[0]['id']}/annotation"
    looked: list[str] = []
    settle = outbox.settle

    def seen(session: Session, user_id: str, *given: Any) -> None:
        looked.append(user_id)
        settle(session, user_id, *given)

    monkeypatch.setattr(outbox, "settle", seen)
    words: list[dict[str, object]] = [
        {"note": "one"},
        {"note": "other", "tags": ["Holiday"]},
        {"note": None, "tags": []},
    ]
    for said in words:
        assert client.patch(path, json=said).is_success
    assert not looked
    assert client.patch(path, json={"category": "RENT"}).is_success
    assert looked
