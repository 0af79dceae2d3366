"""Own categories through undone and repeated imports, merges, and another store."""

import json

import pytest

from analytics.records import AccountRecord
from storage.annotations.word_lines import InvalidWords
from storage.undo_and_merge import merges
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer
from tests.words.test_own_categories import IBAN, made, stored
from tests.words.test_words_portable import exported, read
from tests.words.test_words_survive import say, undo, work

CARD = AccountRecord(stable_key="card", currency="EUR", name="Card")
KITA = {"field": "counterpartName", "operator": "contains", "value": "kita"}


@pytest.mark.requirement("words.own")
def test_bookings_come_back_into_their_own_category(holder: Holder) -> None:
    client = writer(holder)
    bookings = [booked("10", "-9.00", "Kita"), booked("11", "-8.00", "Nachbar", counterpart_iban=IBAN)]
    bookings.append(booked("12", "-7.00", "Bar"))
    holder.bring(GIRO, bookings)
    rows, own = by_name(holder), made(client, "Meins", detailedCategory="LODGING")
    client.post("/rules", json={**KITA, "ownCategoryId": own})
    client.post("/corrections", json={"transactionId": rows["Nachbar"]["id"], "ownCategoryId": own})
    say(holder, rows["Bar"]["id"], ownCategoryId=own)
    wanted = {name: stored(holder, name) for name in rows}
    place = ("ENTERTAINMENT", "LODGING", own)
    assert wanted == {
        "Kita": (*place, "user-rule:1"),
        "Nachbar": (*place, "correction:iban"),
        "Bar": (*place, "chosen"),
    }
    undo(holder, "job0")
    assert rows_of(holder) == []
    assert rows_of(holder, ownCategory=own) == []
    holder.bring(GIRO, bookings)
    assert {name: stored(holder, name) for name in rows} == wanted
    assert len(rows_of(holder, ownCategory=own)) == 3


@pytest.mark.requirement("words.own")
def test_twins_of_merged_accounts_are_where_the_one_that_stays_was(holder: Holder) -> None:
    client = writer(holder)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(CARD, [booked("10", "-9.00", "Kita"), booked("11", "-1.00", "Bar")])
    giro, card = holder.account_ids()
    ids = {(row["bankAccount"]["id"], row["counterpartName"]): row["id"] for row in rows_of(holder)}
    stays, goes = made(client, "Bleibt", category="RENT"), made(client, "Geht", category="HEALTH")
    for account, name, own in ((giro, "Kita", stays), (card, "Kita", goes), (card, "Bar", goes)):
        say(holder, ids[account, name], ownCategoryId=own)
    work(holder, merges.merge, source_id=card, target_id=giro)
    assert [stored(holder, name)[2] for name in ("Kita", "Bar")] == [stays, goes]


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_own_categories_go_into_another_store_with_all_that_is_in_them(service: Service, holder: Holder) -> None:
    client = writer(holder)
    bookings = [booked("10", "-9.00", "Kita"), booked("11", "-8.00", "Nachbar", counterpart_iban=IBAN)]
    bookings.append(booked("12", "-7.00", "Bar"))
    holder.bring(GIRO, bookings)
    rows, own = by_name(holder), made(client, "Meins", detailedCategory="LODGING")
    made(client, "Leer", category="RENT")
    client.post("/rules", json={**KITA, "ownCategoryId": own})
    client.post("/corrections", json={"transactionId": rows["Nachbar"]["id"], "ownCategoryId": own})
    say(holder, rows["Bar"]["id"], ownCategoryId=own)
    client.patch(f"/categories/{own}", json={"name": "Unser"})
    lines = exported(holder)
    assert [json.loads(line)["kind"] for line in lines] == [*["ownCategory"] * 2, "rule", "correction", "annotation"]
    assert read(holder, lines) == 0
    wanted = {name: stored(holder, name) for name in rows}
    fresh, other = service.newcomer(), service.newcomer()
    same = made(writer(other), "UNSER", detailedCategory="LODGING")
    for each, id_, count in ((fresh, own, 5), (other, same, 4)):
        assert (read(each, lines), read(each, lines)) == (count, 0)
        each.bring(GIRO, bookings)
        assert {name: stored(each, name) for name in rows} == {
            name: (category, leaf, id_, rule) for name, (category, leaf, _, rule) in wanted.items()
        }
        assert writer(each).get("/rules").json()["rules"][0]["ownCategoryId"] == id_
    assert writer(fresh).get("/categories").json()["own"] == client.get("/categories").json()["own"]


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_an_own_category_of_a_file_never_takes_the_place_of_another(holder: Holder) -> None:
    own = made(writer(holder), "Meins", category="RENT")
    line = {"kind": "ownCategory", "id": own, "name": "Meins", "category": "HEALTH"}
    named = {**line, "id": "mine", "name": "Anders"}
    assert read(holder, [json.dumps(line), json.dumps(named)]) == 2
    known = {each["name"] + each["category"]: each["id"] for each in writer(holder).get("/categories").json()["own"]}
    assert known["MeinsRENT"] == own
    assert len(set(known.values())) == 3
    for changed in ({"name": " "}, {"name": 1}, {"category": None}, {"detailedCategory": "BAKERY"}, {"name": None}):
        with pytest.raises(InvalidWords, match="line 1: "):
            read(holder, [json.dumps({**line, **changed})])
    with pytest.raises(InvalidWords, match="line 1: an unknown ownCategoryId"):
        read(holder, [json.dumps({"kind": "correction", "key": "merchant:a", "ownCategoryId": "own_1"})])
    with pytest.raises(InvalidWords, match="line 1: lacks 'category'"):
        read(holder, [json.dumps({"kind": "correction", "key": "merchant:a"})])
    full = [json.dumps({**line, "id": f"a{number}", "name": f"a{number}"}) for number in range(498)]
    with pytest.raises(InvalidWords, match="line 498: more than 500 own categories"):
        read(holder, full)
