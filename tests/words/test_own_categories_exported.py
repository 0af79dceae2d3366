"""Own categories in exports by name and place, and back from them; files with fewer words, or more than may be."""

import io

import pytest

from connectors.connector import MalformedFile
from connectors.statements import read_records
from storage.annotations import own_categories
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer
from tests.words.test_own_categories import made, stored
from tests.words.test_words_exported import FORMATS, bring, exported


@pytest.mark.requirement("words.own")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.sampled
def test_own_categories_go_out_by_name_and_place_and_come_back(service: Service, holder: Holder, kind: str) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita"), booked("11", "-5.00", "Bar"), booked("12", "-2.00", "Shop")])
    client = writer(holder)
    kita, bread = made(client, '"Kita" West', detailedCategory="CHILDCARE"), made(client, "Brot", category="GROCERIES")
    rows = by_name(holder)
    for name, own_id in (("Kita", kita), ("Bar", bread), ("Shop", bread)):
        client.patch(f"/transactions/{rows[name]['id']}/annotation", json={"ownCategoryId": own_id})
    content, other = exported(holder, kind), service.newcomer()
    known = made(writer(other), "brot", category="GROCERIES")
    for number in (1, 2):
        bring(other, content, number)
        found = by_name(other, include="annotation")
        assert {name: row["ownCategory"]["name"] for name, row in found.items()} == {
            "Kita": '"Kita" West',
            "Bar": "brot",
            "Shop": "brot",
        }
        assert found["Bar"]["ownCategory"]["id"] == known
        assert stored(other, "Kita")[:2] == ("OTHER", "CHILDCARE")
    assert len(writer(other).get("/categories").json()["own"]) == 2


@pytest.mark.requirement("words.own")
@pytest.mark.long
def test_a_changed_file_brings_no_own_category_beyond_bounds(
    service: Service, holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    client, (row,) = writer(holder), rows_of(holder)
    body = {"ownCategoryId": made(client, "Kita", category="OTHER"), "note": "x"}
    client.patch(f"/transactions/{row['id']}/annotation", json=body)
    content = exported(holder, "jsonl")
    for number, wrong in enumerate((b'"ownCategory":"a\\tb"', b'"ownCategory":" "', b'"ownCategory":null')):
        other = service.newcomer()
        bring(other, content.replace(b'"ownCategory":"Kita"', wrong), number)
        assert [(each["note"], each["category"]) for each in rows_of(other, include="annotation")] == [("x", "OTHER")]
        assert "own" not in writer(other).get("/categories").json()
    monkeypatch.setattr(own_categories, "OWN_CATEGORIES_MAX", 0)
    full = service.newcomer()
    bring(full, content, 9)
    assert [(each["note"], each.get("ownCategory")) for each in rows_of(full, include="annotation")] == [("x", None)]


@pytest.mark.requirement("words.exports")
@pytest.mark.long
def test_a_file_with_fewer_words_is_read_as_it_was_written(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    (row,) = rows_of(holder)
    writer(holder).patch(f"/transactions/{row['id']}/annotation", json={"note": "x"})
    lines = exported(holder, "csv", include="annotation").decode().splitlines()
    for number, left_out in enumerate((1, 2)):
        other, older = service.newcomer(), "\r\n".join(line.rsplit(",", left_out)[0] for line in lines)
        bring(other, older.encode(), number)
        assert [each["note"] for each in rows_of(other, include="annotation")] == ["x"]


@pytest.mark.requirement("words.exports")
def test_lists_in_lists_are_no_words(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    (row,) = rows_of(holder)
    writer(holder).patch(f"/transactions/{row['id']}/annotation", json={"tags": ["x"]})
    content = exported(holder, "csv", include="annotation").replace(b'"[""x""]"', b"[" * 15_000)
    with pytest.raises(MalformedFile, match=r"Line 2"):
        list(read_records(io.BytesIO(content)))
