"""Everything that is known in one file, and out of it into a new store."""

from typing import Any

import pytest

from auth.scopes import ALL_SCOPES
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer

EVERYTHING = {"format": "jsonl", "include": "annotation,detailedCategory,everything"}
RULE = {"field": "counterpartName", "operator": "contains", "value": "kita", "category": "RENT", "tags": ["child"]}
OCTETS = {"content-type": "application/octet-stream"}
LISTS = ("/corrections", "/rules", "/targets?month=2026-11", "/categories")


def filled(holder: Holder) -> bytes:
    """The exported file of somebody who has said something of each kind."""
    client = writer(holder)
    holder.bring(GIRO, [booked(day, "-9", name) for day, name in (("10", "Kita"), ("11", "Bar"), ("12", "Bar"))])
    holder.bring(GIRO, [booked("13", "-8", name) for name in ("Zoo", "Inn")])
    ids = {name: row["id"] for name, row in by_name(holder).items()}
    own = client.post("/categories", json={"name": "Out", "category": "DINING"}).json()["id"]
    parts = [{"amount": -5, "category": "RENT"}, {"amount": -3, "category": "HEALTH", "note": "half"}]
    for method, path, said in (
        ("POST", "/rules", RULE),
        ("POST", "/corrections", {"transactionId": ids["Bar"], "ownCategoryId": own}),
        ("PUT", "/targets", {"category": "DINING", "amount": 40, "period": "month", "from": "2026-11"}),
        ("PATCH", f"/transactions/{ids['Zoo']}/annotation", {"note": "one", "tags": ["A"], "splits": parts}),
        ("PATCH", f"/transactions/{ids['Inn']}/annotation", {"detailedCategory": "LODGING"}),
    ):
        assert client.request(method, path, json=said).is_success, path
    return client.get("/transactions/export", params=EVERYTHING).content


def brought(holder: Holder, content: bytes, scopes: tuple[str, ...] = ALL_SCOPES) -> dict[str, Any]:
    answer = writer(holder, scopes).post("/imports?filename=all.jsonl", content=content, headers=OCTETS)
    report: dict[str, Any] = answer.json()
    assert report["error"] is None, report
    return report


def known(holder: Holder) -> list[Any]:
    """What the lists say, without ids, which a new store chooses."""
    client, ids = writer(holder), {"id", "ownCategoryId", "transactionId", "bankAccount", "bankConnection"}

    def without_ids(value: Any) -> Any:
        if isinstance(value, list):
            return [without_ids(each) for each in value]
        if isinstance(value, dict):
            return {name: without_ids(each) for name, each in value.items() if name not in ids}
        return value

    rows = sorted(rows_of(holder, include="annotation,detailedCategory"), key=str)
    lists = [client.get(path).json() for path in LISTS]
    return [sorted(without_ids(rows), key=str), *without_ids(lists)]


@pytest.mark.requirement("words.exports")
def test_everything_goes_out_in_one_file_and_comes_back_whole(service: Service, holder: Holder) -> None:
    content, other = filled(holder), service.newcomer()
    tried = writer(other).post("/imports?filename=all.jsonl&dryRun=true", content=content, headers=OCTETS).json()
    assert "rules, corrections" in tried["warnings"][0]
    assert (known(other)[0], brought(other, content)["new"]) == ([], 5)
    whole = known(holder)
    assert [len(whole[1]["corrections"]), len(whole[2]["rules"]), len(whole[3]["targets"])] == [1, 1, 1]
    assert known(other) == whole
    assert brought(other, content)["new"] == 0
    assert known(other) == whole
    other.bring(GIRO, [booked("14", "-9", "Bar")])
    assert {row["category"] for row in rows_of(other) if row["counterpartName"] == "Bar"} == {"DINING"}


@pytest.mark.requirement("words.exports")
def test_everything_reaches_what_is_stored_and_leaves_what_was_said_here(service: Service, holder: Holder) -> None:
    content, other = filled(holder), service.newcomer()
    other.bring(GIRO, [booked("09", "-9", "Kita"), booked("09", "-9", "Bar")])
    writer(other).post("/corrections", json={"transactionId": by_name(other)["Bar"]["id"], "category": "HEALTH"})
    words = b"".join(line for line in content.splitlines(keepends=True) if line.startswith(b'{"kind"'))
    assert brought(other, words)["statements"] == []
    assert {name: row["category"] for name, row in by_name(other).items()} == {"Kita": "RENT", "Bar": "HEALTH"}


@pytest.mark.requirement("words.exports")
def test_an_app_that_may_not_say_anything_neither_brings_nor_gets_everything(service: Service, holder: Holder) -> None:
    content, other = filled(holder), service.newcomer()
    for missing in ("write:rules", "write:annotations"):
        warnings = brought(other, content, tuple(set(ALL_SCOPES) - {missing}))["warnings"]
        assert warnings == ["It also holds rules, corrections and the like, which this app may not bring."]
    assert writer(other).get("/rules").json()["rules"] == []
    refused = writer(holder, ["read:transactions", "read:annotations"]).get("/transactions/export", params=EVERYTHING)
    assert refused.json() == {"error": "Insufficient scope. Required: read:annotations write:rules"}
    for form in ("csv", "camt053"):
        answer = writer(holder).get("/transactions/export", params={**EVERYTHING, "format": form})
        assert (answer.status_code, answer.json()["error"]) == (400, "include: everything is only for the format jsonl")


@pytest.mark.requirement("words.exports")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"kind": "other"}', "line 1: not a line of `bankdata words export`"),
        (b'{"kind": "rule", "id": "1", "field": "amount"}', "line 1: field must be one of "),
        (b'{"kind": "correction", "key": "shop:Rewe", "category": "RENT"}', "line 1: key: must begin with "),
    ],
)
def test_words_that_cannot_be_read_refuse_the_file(holder: Holder, line: bytes, reason: str) -> None:
    report = writer(holder).post("/imports?filename=all.jsonl", content=line, headers=OCTETS).json()
    assert report["error"].startswith(f"What you have said cannot be read: {reason}"), report
