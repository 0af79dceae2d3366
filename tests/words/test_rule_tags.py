"""Tags that rules give: apart from a person's own, of every rule that holds, gone with it."""

import pytest

from storage.undo_and_merge import rebuild
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer
from tests.words.test_words_exported import bring, exported
from tests.words.test_words_portable import exported as lines_of
from tests.words.test_words_portable import read
from tests.words.test_words_survive import undo, work

KITA = {"field": "counterpartName", "operator": "contains", "value": "kita", "tags": ["Child", "home"]}
MARKET = {"field": "text", "operator": "contains", "value": "milk", "tags": ["HOME", "food"], "category": "GROCERIES"}


def tags(holder: Holder, name: str) -> tuple[list[str], list[str]]:
    """A booking's own tags, and those of rules."""
    row = by_name(holder, include="annotation")[name]
    return row["tags"], row.get("ruleTags", [])


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.long
def test_every_rule_that_holds_gives_its_tags_and_takes_them_along(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", purpose="milk"), booked("11", "-5.00", "Bar")])
    plain = by_name(holder, include="annotation")
    first = client.post("/rules", json=KITA).json()
    assert (first["tags"], first["changed"]) == (["Child", "home"], 1)
    second = client.post("/rules", json=MARKET).json()
    assert tags(holder, "Kita") == ([], ["Child", "food", "home"])
    assert by_name(holder)["Kita"]["category"] == "GROCERIES"  # a rule that gives tags alone decides nothing
    path = f"/transactions/{plain['Kita']['id']}/annotation"
    assert client.patch(path, json={"tags": ["HOME", "x"]}).json()["ruleTags"] == ["Child", "food", "HOME"]
    assert client.get(path).json()["tags"] == ["HOME", "x"]
    named = [("Child", 1), ("food", 1), ("HOME", 1), ("x", 1)]
    assert client.get("/tags").json()["tags"] == [{"name": name, "count": count} for name, count in named]
    assert [row["counterpartName"] for row in rows_of(holder, tag="FOOD")] == ["Kita"]
    assert client.get("/transactions/totals", params={"tag": "child"}).json()["expenses"] == 9
    assert client.patch(f"/rules/{first['id']}", json={"tags": ["other"], "value": "bar"}).json()["tags"] == ["other"]
    assert (tags(holder, "Kita"), tags(holder, "Bar")) == ((["HOME", "x"], ["food", "HOME"]), ([], ["other"]))
    listed = client.get("/rules").json()["rules"]
    assert [rule["tags"] for rule in listed] == [["other"], ["HOME", "food"]]
    assert client.patch(f"/rules/{second['id']}", json={"tags": None}).json().get("tags") is None
    client.delete(f"/rules/{first['id']}")
    client.patch(path, json={"tags": []})
    assert by_name(holder, include="annotation")["Bar"] == plain["Bar"]
    assert client.get("/tags").json() == {"tags": []}


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.long
def test_bookings_that_get_other_tags_have_changed_and_only_once(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita"), booked("11", "-5.00", "Bar"), booked("12", "-7.00", "Kita")])
    tried = client.post("/rules", json=KITA, params={"dryRun": True, "include": "transactions"}).json()
    assert (tried["changed"], [row["counterpartName"] for row in tried["transactions"]]) == (2, ["Kita", "Kita"])
    cursor = client.get("/transactions/changes").json()["nextCursor"]
    rule = client.post("/rules", json=KITA).json()
    assert rule["changed"] == 2
    change = f"/rules/{rule['id']}"
    assert client.patch(change, json={"tags": ["home", "Child"]}).json()["changed"] == 0
    assert client.patch(change, json={"tags": ["home"], "category": "HEALTH"}).json()["changed"] == 2
    assert client.patch(change, json={"tags": ["Home"]}).json()["changed"] == 2
    assert client.patch(change, json={"category": None}).json()["changed"] == 2
    assert client.get("/transactions/changes", params={"cursor": cursor}).json()["modified"] != []
    cursor = client.get("/transactions/changes").json()["nextCursor"]
    assert client.delete(change).json()["changed"] == 2
    assert client.get("/transactions/changes", params={"cursor": cursor}).json()["modified"] == []  # shows no tags


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.long
def test_what_is_imported_later_gets_tags_of_rules_and_an_undone_import_has_none(holder: Holder) -> None:
    client = writer(holder)
    client.post("/rules", json=KITA)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    assert tags(holder, "Kita") == ([], ["Child", "home"])
    undo(holder, "job0")
    assert client.get("/tags").json() == {"tags": []}
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    assert tags(holder, "Kita") == ([], ["Child", "home"])
    (account,) = holder.account_ids()
    work(holder, rebuild.delete, account_id=account)
    rows = holder.service.services.everybody.rows("SELECT tag FROM rule_tags WHERE user_id = $1", holder.user.id)
    assert rows == []


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.long
def test_tags_of_rules_go_into_another_store_with_their_rules_alone(service: Service, holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    client.post("/rules", json=KITA)
    for kind in ("csv", "jsonl", "beancount"):
        content, other = exported(holder, kind), service.newcomer()
        assert b"Child" not in content
        bring(other, content, 1)
        assert tags(other, "Kita") == ([], [])
    assert read(other, lines_of(holder)) == 1
    writer(other).post("/rules", json={**KITA, "value": "zzz"})  # applies everything
    assert tags(other, "Kita") == ([], ["Child", "home"])


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.parametrize("wrong", [["x" * 101], [" "], ["a\tb"], [str(number) for number in range(51)], [], None])
def test_tags_of_rules_have_bounds(holder: Holder, wrong: list[str] | None) -> None:
    assert writer(holder).post("/rules", json={**KITA, "tags": wrong}).status_code == 400
    bound = ["x" * 100, *(str(number) for number in range(49))]
    assert writer(holder).post("/rules", json={**KITA, "tags": bound}).status_code == 200


@pytest.mark.requirement("words.rule_tags")
def test_a_booking_that_only_rules_tag_is_told_alone_as_well(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    client.post("/rules", json=KITA)
    path = f"/transactions/{by_name(holder)['Kita']['id']}/annotation"
    assert client.get(path).json()["ruleTags"] == ["Child", "home"]
    assert client.patch(path, json={"note": "x"}).json()["ruleTags"] == ["Child", "home"]


@pytest.mark.requirement("words.rule_tags")
def test_a_part_has_a_tag_of_a_rule_as_a_person_wrote_it(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    client.post("/rules", json=KITA)
    path = f"/transactions/{by_name(holder)['Kita']['id']}/annotation"
    parts = [{"amount": -4, "category": "RENT", "tags": ["CHILD"]}, {"amount": -5, "category": "OTHER"}]
    assert client.patch(path, json={"splits": parts}).json()["splits"][0]["tags"] == ["CHILD"]
    assert '"at": "2026-' in lines_of(holder)[-1]


@pytest.mark.requirement("words.rule_tags")
def test_a_rule_tags_what_it_decides_though_it_renames_what_it_compares(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "A bank", merchant_name="REWE")])
    rule = {"operator": "contains", "value": "rewe"}
    client.post("/rules", json={**rule, "field": "merchantName", "merchant": "Corner shop", "tags": ["corner"]})
    client.post("/rules", json={**rule, "field": "counterpartName", "tags": ["shop"]})  # as the source names them
    (row,) = rows_of(holder, include="annotation")
    assert (row["merchantName"], row["ruleTags"]) == ("Corner shop", ["corner", "shop"])


@pytest.mark.requirement("words.rule_tags")
@pytest.mark.long
def test_a_tag_of_a_rule_on_one_booking_and_of_a_person_on_another_are_one(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita"), booked("11", "-5.00", "Bar")])
    client.post("/rules", json=KITA)
    ids = {name: row["id"] for name, row in by_name(holder).items()}
    parts = [{"amount": -4, "category": "RENT", "tags": ["CHILD"]}, {"amount": -1, "category": "OTHER"}]
    client.patch(f"/transactions/{ids['Bar']}/annotation", json={"splits": parts, "tags": ["HOME"]})
    assert client.get("/tags").json()["tags"] == [{"name": "CHILD", "count": 2}, {"name": "HOME", "count": 2}]
    assert tags(holder, "Kita") == ([], ["CHILD", "HOME"])
