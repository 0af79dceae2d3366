"""All words of a person out of one store and into another."""

import json
from collections.abc import Sequence

import pytest

from analytics.classification.rules import ChosenCategory
from storage import rules
from storage.annotations import portable
from storage.annotations.word_lines import InvalidWords
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer

KITA = {"field": "counterpartName", "operator": "contains", "value": "kita", "category": "RENT"}


def exported(holder: Holder) -> list[str]:
    with holder.service.services.everybody.transaction() as session:
        return list(portable.lines(session, holder.user.id))


def read(holder: Holder, lines: Sequence[str]) -> int:
    services = holder.service.services
    now, text = services.clock.now(), "\n".join(lines)
    return services.everybody.atomically(lambda session: portable.read(session, holder.user.id, text, now=now))


@pytest.mark.requirement("words.portable")
def test_words_go_into_another_store_before_and_after_its_files(service: Service, holder: Holder) -> None:
    kita, bar = booked("10", "-9.00", "Kita"), booked("11", "-5.00", "Bar")
    holder.bring(GIRO, [kita, bar])
    rows, client = by_name(holder), writer(holder)
    client.post("/rules", json=KITA)
    client.post("/corrections", json={"transactionId": rows["Bar"]["id"], "category": "HEALTH"})
    said = {"detailedCategory": "BAKERY", "note": "one\u2028\n=two", "tags": ["A", "b"]}
    assert client.patch(f"/transactions/{rows['Kita']['id']}/annotation", json=said).is_success
    lines = exported(holder)
    assert [json.loads(line)["kind"] for line in lines] == ["rule", "correction", "annotation"]
    assert read(holder, lines) == 0
    before, after = service.newcomer(), service.newcomer()
    assert read(before, ["", *lines, ""]) == 3
    assert read(before, lines) == 0
    for other in (before, after):
        other.bring(GIRO, [kita, bar])
    assert read(after, lines) == 3
    assert read(after, lines) == 0
    for other in (before, after):
        writer(other).post("/rules", json={**KITA, "value": "zzz"})  # applies everything
        found = by_name(other, include="annotation")
        kept = [found["Kita"][name] for name in ("category", "note", "tags")]
        assert kept == ["GROCERIES", "one\u2028\n=two", ["A", "b"]]
        assert found["Bar"]["category"] == "HEALTH"
        assert [rule["id"] for rule in writer(other).get("/rules").json()["rules"]] == ["1", "2"]
    fresh = service.newcomer()
    writer(fresh).post("/rules", json={**KITA, "value": "bar"})
    assert read(fresh, lines) == 3
    assert [rule["value"] for rule in writer(fresh).get("/rules").json()["rules"]] == ["bar", "kita"]
    assert rows_of(fresh) == []


@pytest.mark.requirement("words.portable")
def test_parts_go_into_another_store(service: Service, holder: Holder) -> None:
    kita = booked("10", "-9.00", "Kita")
    holder.bring(GIRO, [kita])
    parts = [
        {"amount": -5, "category": "RENT", "detailedCategory": "HOME_RENT", "note": "one", "tags": ["A"]},
        {"amount": -4, "category": "HEALTH", "detailedCategory": None, "note": None, "tags": []},
    ]
    path = f"/transactions/{rows_of(holder)[0]['id']}/annotation"
    assert writer(holder).patch(path, json={"splits": parts}).json()["splits"] == parts
    lines, before, after = exported(holder), service.newcomer(), service.newcomer()
    assert read(before, lines) == 1
    for other in (before, after):
        other.bring(GIRO, [kita])
    assert (read(after, lines), read(before, lines)) == (1, 0)
    for other in (before, after):
        (row,) = rows_of(other, include="annotation")
        assert row["splits"] == parts
    assert rows_of(before)[0]["category"] == "RENT"


@pytest.mark.requirement("words.portable")
def test_an_account_is_known_again_by_its_sources_key(service: Service, holder: Holder) -> None:
    cash = type(GIRO)(stable_key="cash", currency="EUR", name="Cash")
    holder.bring(cash, [booked("10", "-9.00", "Kita")])
    client = writer(holder)
    client.patch(f"/transactions/{rows_of(holder)[0]['id']}/annotation", json={"note": "one"})
    other = service.newcomer()
    other.bring(cash, [booked("10", "-9.00", "Kita")])
    assert read(other, exported(holder)) == 1
    assert rows_of(other, include="annotation")[0]["note"] == "one"
    holder.service.services.everybody.execute("DELETE FROM accounts WHERE user_id = $1", holder.user.id)
    assert json.loads(exported(holder)[0])["account"].keys() == {"id"}


@pytest.mark.requirement("words.portable")
@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "other"},
        {"amount": "x"},
        {"category": "NOTHING"},
        {"detailedCategory": "BAKERY"},
        {"note": ""},
        {"note": "\x1b"},
        {"tags": [{"name": " ", "at": "2026-01-01"}]},
        {"tags": [{"name": "a", "at": "0001-01-01T00:00:00+14:00"}]},
        {"place": 0},
        {"counterpart": "x"},
        {"bookingDate": None},
        {"account": None},
        {"splits": [{"amount": "-9", "category": "RENT"}]},
        {"splits": [{"amount": "-4", "category": "RENT"}, {"amount": "-5"}]},
        {"splits": [{"amount": "NaN", "category": "RENT"}] * 2},
        {"splits": [{"amount": "1e15", "category": "RENT"}] * 2},
    ],
)
def test_what_is_no_export_of_words_is_refused(holder: Holder, changed: dict[str, object]) -> None:
    line = {
        **{"kind": "annotation", "id": "txn_1", "account": {"id": "acc_1"}, "bookingDate": "2026-11-10"},
        **{"amount": "-9.00", "currency": "EUR", "counterpart": "\nkita", "place": 1, "equalOnes": 1, "note": "x"},
    }
    with pytest.raises(InvalidWords, match="line 1: "):
        read(holder, [json.dumps({**line, **changed})])
    assert read(holder, [json.dumps(line)]) == 1
    del line["amount"]
    with pytest.raises(InvalidWords, match="line 1: lacks 'amount'"):
        read(holder, [json.dumps(line)])


@pytest.mark.requirement("words.portable")
@pytest.mark.parametrize("line", ["[1]", '["kind"]', '{"kind": "correction", "key": "\\ud800", "category": "RENT"}'])
def test_a_line_of_another_shape_is_no_words(holder: Holder, line: str) -> None:
    with pytest.raises(InvalidWords, match="line 1: not a line of `bankdata words export`"):
        read(holder, [line])


@pytest.mark.requirement("words.portable")
@pytest.mark.parametrize("key", ["shop:Rewe", "merchant", "iban:", ""])
def test_a_correction_with_an_unknown_key_is_refused_and_one_that_is_there_decides_nothing(
    holder: Holder, key: str
) -> None:
    with pytest.raises(InvalidWords, match="line 1: key: must begin with creditor:, iban:, merchant: or name:"):
        read(holder, [json.dumps({"kind": "correction", "key": key, "category": "RENT"})])
    with holder.service.services.everybody.transaction() as session:
        rules.correct(session, holder.user.id, key, ChosenCategory("RENT"))
        assert rules.corrections(session, holder.user.id) == {}


@pytest.mark.requirement("words.portable")
@pytest.mark.long
def test_a_rule_gets_an_id_by_which_it_can_be_removed(holder: Holder) -> None:
    ids = ("a/b", "x" * 201, "\u00b2", "..")
    lines = [json.dumps({"kind": "rule", "id": id_, **KITA, "value": id_[-3:]}) for id_ in ids]
    assert read(holder, lines) == 4
    assert [rule["id"] for rule in writer(holder).get("/rules").json()["rules"]] == ["1", "2", "\u00b2", "3"]
