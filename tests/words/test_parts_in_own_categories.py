"""Parts that went to categories under names of a user's own: counted, found, told, removed, and out and in again."""

import pytest

from storage.annotations import own_categories
from storage.annotations.annotation import OwnCategory
from storage.database import Transaction
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, OTHER, booked, by_name, rows_of, writer
from tests.words.test_own_categories import NOT_OWN, made, narrowed, stored
from tests.words.test_parts import groups, split
from tests.words.test_parts_survive import divided
from tests.words.test_words_exported import FORMATS, bring, exported
from tests.words.test_words_portable import exported as words_of
from tests.words.test_words_portable import read
from tests.words.test_words_survive import undo

Parts = list[dict[str, object]]


def in_two(own_id: str, other: str = "RENT") -> Parts:
    return [{"amount": -6, "ownCategoryId": own_id, "note": "Kim"}, {"amount": -4, "category": other}]


@pytest.mark.requirement("words.parts.own")
def test_a_part_in_an_own_category_counts_there_and_at_its_place(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop"), booked("11", "-1.00", "Bar"), booked("12", "-3.00", "Kita")])
    client, ids = writer(holder), {name: row["id"] for name, row in by_name(holder).items()}
    bread, kita = made(client, "Brot", detailedCategory="BAKERY"), made(client, "Kita", category="OTHER")
    client.patch(f"/transactions/{ids['Kita']}/annotation", json={"ownCategoryId": kita})
    whole = groups(holder)
    said = split(
        holder,
        ids["Shop"],
        [
            {"amount": -6, "ownCategoryId": bread},
            {"amount": -1, "ownCategoryId": kita},
            {"amount": -3, "category": "RENT"},
        ],
    )
    assert [part.get("ownCategory") for part in said["splits"]] == [
        {"id": bread, "name": "Brot"},
        {"id": kita, "name": "Kita"},
        None,
    ]
    assert [(part["category"], part["detailedCategory"]) for part in said["splits"]] == [
        ("GROCERIES", "BAKERY"),
        ("OTHER", None),
        ("RENT", None),
    ]
    assert stored(holder, "Shop") == ("GROCERIES", "BAKERY", bread, "chosen")
    assert groups(holder) == whole
    assert groups(holder, ownCategory=bread) == {"": (1, 6)}
    assert groups(holder, ownCategory=kita) == {"": (2, 4)}
    assert groups(holder, ownCategory=kita, groupBy="merchant") == {
        "Kita": (1, 3),
        "Shop": (1, 1),
        "rest": (0, 0),
        "": (2, 4),
    }
    assert groups(holder, ownCategory=kita, category="GROCERIES") == {"": (0, 0)}
    assert groups(holder, groupBy="category")["OTHER"][1] >= 4
    snapshot = client.get("/snapshot").json()["last30Days"]
    assert {each["category"]: each["amount"] for each in snapshot["topCategories"]}["GROCERIES"] == 6
    assert [row["counterpartName"] for row in rows_of(holder, ownCategory=kita)] == ["Kita", "Shop"]
    for query, found in (
        ({"ownCategory": kita}, ["Kita", "Shop"]),
        ({"ownCategory": kita, "category": "OTHER"}, ["Kita", "Shop"]),
        ({"ownCategory": bread, "category": "GROCERIES", "detailedCategory": "BAKERY"}, ["Shop"]),
        ({"ownCategory": kita, "category": "GROCERIES"}, []),
        ({"ownCategory": kita, "detailedCategory": "BAKERY"}, []),
    ):
        listed = client.get("/transactions", params=query).json()["transactions"]
        assert [row["counterpartName"] for row in listed] == found, query
        lines = client.get("/transactions/export", params={"format": "jsonl", **query}).text
        assert lines.count("\n") == len(found), query
    assert rows_of(holder, include="annotation")[2]["ownCategory"]["name"] == "Brot"


@pytest.mark.requirement("words.parts.own")
def test_a_part_is_in_no_own_category_that_is_none(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop")])
    (row,) = rows_of(holder)
    bread = made(writer(holder), "Brot", detailedCategory="BAKERY")
    assert split(holder, row["id"], in_two("own_unknown"), 400) == NOT_OWN
    astray: Parts = [{"amount": -6, "ownCategoryId": bread, "category": "RENT"}, {"amount": -4, "category": "RENT"}]
    assert split(holder, row["id"], astray, 400) == {"error": "ownCategoryId: lies below BAKERY"}
    nowhere: Parts = [{"amount": -6, "ownCategoryId": None}, {"amount": -4, "category": "RENT"}]
    needed = "splits: each part needs a category, a detailedCategory or an ownCategoryId"
    assert split(holder, row["id"], nowhere, 400) == {"error": needed}


@pytest.mark.requirement("words.parts.own")
@pytest.mark.long
def test_parts_stay_at_their_place_when_its_name_goes(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop")])
    client, (row,) = writer(holder), rows_of(holder)
    bread = made(client, "Brot", detailedCategory="BAKERY")
    split(holder, row["id"], in_two(bread))
    figures = groups(holder, groupBy="category")
    client.patch(f"/categories/{bread}", json={"name": "Backwaren"})
    assert divided(holder)[0][0]["ownCategory"] == {"id": bread, "name": "Backwaren"}
    assert client.delete(f"/categories/{bread}").json() == {"changed": 1}
    (part, _), path = divided(holder)[0], f"/transactions/{row['id']}/annotation"
    assert (part["category"], part["detailedCategory"], "ownCategory" in part) == ("GROCERIES", "BAKERY", False)
    assert client.get(path).json()["splits"][0] == part
    assert groups(holder, groupBy="category") == figures
    assert stored(holder, "Shop") == ("GROCERIES", "BAKERY", None, "chosen")


@pytest.mark.requirement("words.parts.own")
def test_a_narrowed_grant_knows_own_categories_of_parts_that_it_covers(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop")])
    holder.bring(OTHER, [booked("10", "-10.00", "Bar"), booked("11", "-10.00", "Pub")])
    client, ids = writer(holder), {name: row["id"] for name, row in by_name(holder).items()}
    bread, beer = made(client, "Brot", detailedCategory="BAKERY"), made(client, "Bier", category="DINING")
    split(holder, ids["Shop"], in_two(bread, "SHOPPING"))
    split(holder, ids["Bar"], in_two(beer))
    giro = by_name(holder)["Shop"]["bankAccount"]["id"]
    part: Parts = [{"amount": -4, "category": "SHOPPING"}, {"amount": -6, "ownCategoryId": bread}]
    few = narrowed(holder, giro)
    assert [own["id"] for own in few.get("/categories").json()["own"]] == [bread]
    assert len(few.get("/transactions", params={"ownCategory": bread}).json()["transactions"]) == 1
    hidden, none = (few.get("/transactions", params={"ownCategory": each}) for each in (beer, "own_none"))
    assert (hidden.status_code, hidden.content) == (400, none.content)
    path = f"/transactions/{ids['Shop']}/annotation"
    hidden, none = (few.patch(path, json={"splits": in_two(each)}) for each in (beer, "own_none"))
    assert (hidden.status_code, hidden.content) == (400, none.content)
    assert few.patch(path, json={"splits": part}).json()["splits"][1]["ownCategory"]["name"] == "Brot"


@pytest.mark.requirement("words.parts.own")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.long
def test_own_categories_of_parts_go_out_by_name_and_come_back(service: Service, holder: Holder, kind: str) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop"), booked("11", "-10.00", "Bar")])
    client, ids = writer(holder), {name: row["id"] for name, row in by_name(holder).items()}
    bread = made(client, '"Brot" & Co', detailedCategory="BAKERY")
    for name in ids:
        split(holder, ids[name], in_two(bread))
    content, other = exported(holder, kind), service.newcomer()
    for number in (1, 2):
        bring(other, content, number)
        assert [[part.get("ownCategory", {}).get("name") for part in parts] for parts in divided(other)] == [
            ['"Brot" & Co', None]
        ] * 2
        assert stored(other, "Shop")[:2] == ("GROCERIES", "BAKERY")
        (own,) = writer(other).get("/categories").json()["own"]
        assert groups(other, ownCategory=own["id"]) == {"": (2, 12)}


@pytest.mark.requirement("words.parts.own")
def test_an_own_category_of_many_parts_is_looked_for_once_in_a_file(
    service: Service, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Shop"), booked("11", "-10.00", "Bar")])
    bread = made(writer(holder), "Brot", detailedCategory="BAKERY")
    parts: Parts = [{"amount": -6, "ownCategoryId": bread}, {"amount": -4, "ownCategoryId": bread}]
    for row in rows_of(holder):
        split(holder, row["id"], parts)
    content, other, find = exported(holder, "jsonl"), service.newcomer(), own_categories.find_or_add
    asked: list[str] = []

    def counting(session: Transaction, user_id: str, name: str, category: str, leaf: str | None) -> OwnCategory | None:
        asked.append(name)
        return find(session, user_id, name, category, leaf)

    monkeypatch.setattr(own_categories, "find_or_add", counting)
    bring(other, content, 1)
    assert asked == ["Brot"]
    assert [len(each) for each in divided(other)] == [2, 2]


@pytest.mark.requirement("words.parts.own")
def test_own_categories_of_parts_outlive_an_undo_and_a_new_store(service: Service, holder: Holder) -> None:
    shop = booked("10", "-10.00", "Shop")
    holder.bring(GIRO, [shop])
    bread = made(writer(holder), "Brot", detailedCategory="BAKERY")
    split(holder, rows_of(holder)[0]["id"], in_two(bread))
    before = divided(holder)
    undo(holder, "job0")
    assert divided(holder) == []
    holder.bring(GIRO, [shop])
    assert divided(holder) == before
    other = service.newcomer()
    other.bring(GIRO, [shop])
    lines = words_of(holder)
    assert (read(other, lines), read(other, lines)) == (2, 0)
    assert divided(other) == before
    assert groups(other, ownCategory=bread) == {"": (1, 6)}
