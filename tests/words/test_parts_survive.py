"""Parts outlive what notes and tags outlive, and sleep where they are not the whole booking any more."""

from typing import Any

import pytest

from storage.undo_and_merge import merges, rebuild
from tests.explanations.conftest import Holder, Service
from tests.words.conftest import GIRO, OTHER, booked, by_name, rows_of, writer
from tests.words.test_parts import HALVES, groups, split
from tests.words.test_words_exported import FORMATS, bring, exported
from tests.words.test_words_survive import CARD, undo, work

WHERE = {"GROCERIES": (1, 10.0), "": (1, 10.0)}
ELSEWHERE: list[dict[str, object]] = [
    {"amount": -7, "category": "HEALTH", "tags": ["Kim"]},
    {"amount": -3, "category": "RENT"},
]


def divided(holder: Holder, **query: str) -> list[list[dict[str, Any]]]:
    """The parts of each booking that has any."""
    return [row["splits"] for row in rows_of(holder, include="annotation", **query) if row["splits"]]


def amounts(holder: Holder) -> list[list[float]]:
    return [[part["amount"] for part in parts] for parts in divided(holder)]


@pytest.mark.requirement("words.parts.survive")
def test_parts_sleep_while_their_import_is_undone_and_wake_when_it_comes_again(holder: Holder) -> None:
    kita = booked("10", "-10.00", "Kita")
    holder.bring(GIRO, [kita])
    split(holder, by_name(holder)["Kita"]["id"], HALVES)
    before = divided(holder)
    undo(holder, "job0")
    assert (divided(holder), writer(holder).get("/tags").json()) == ([], {"tags": []})
    holder.bring(GIRO, [kita])
    holder.bring(GIRO, [kita])
    assert divided(holder) == before != []
    assert groups(holder, groupBy="category") == {**WHERE, "rest": (0, 0)}
    assert by_name(holder)["Kita"]["category"] == "GROCERIES"


@pytest.mark.requirement("words.parts.survive")
@pytest.mark.long
def test_parts_find_their_booking_under_another_id(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    split(holder, rows_of(holder)[0]["id"], HALVES)
    before = divided(holder)
    database = holder.service.services.everybody
    for table in ("transactions", "contributions", "contribution_bookings"):
        database.execute(f"DELETE FROM {table} WHERE user_id = $1", holder.user.id)
    holder.bring(GIRO, [booked("10", "-10.00", "Kita", provider_id="other")])
    assert divided(holder) == before
    assert rows_of(holder)[0]["category"] == "GROCERIES"


@pytest.mark.requirement("words.parts.survive")
@pytest.mark.long
def test_parts_sleep_while_the_bank_tells_another_amount(holder: Holder) -> None:
    told = booked("10", "-10.00", "Kita", provider_id="k")
    holder.bring(GIRO, [told])
    row = rows_of(holder)[0]
    path = f"/transactions/{row['id']}/annotation"
    split(holder, row["id"], ELSEWHERE)
    assert rows_of(holder)[0]["category"] == "HEALTH"
    said = writer(holder).get(path).json()["splits"]
    holder.bring(GIRO, [booked("10", "-12.00", "Kita", provider_id="k")])
    assert rows_of(holder)[0]["category"] == row["category"]
    assert groups(holder, category="HEALTH") == {"": (0, 0)}
    assert groups(holder, groupBy="category") == {row["category"]: (1, 12), "rest": (0, 0), "": (1, 12)}
    answer = writer(holder).get(path).json()
    assert (answer["splits"], answer["sleepingSplits"], divided(holder)) == ([], said, [])
    assert "splits" not in exported(holder, "jsonl").decode()
    assert writer(holder).patch(path, json={"note": "still"}).json()["sleepingSplits"] == said
    holder.bring(GIRO, [told])
    assert divided(holder) == [said]
    assert rows_of(holder)[0]["category"] == "HEALTH"
    holder.bring(GIRO, [booked("10", "-12.00", "Kita", provider_id="k")])
    assert "sleepingSplits" not in writer(holder).patch(path, json={"splits": []}).json()


@pytest.mark.requirement("words.parts.survive")
@pytest.mark.long
def test_twins_of_merged_accounts_keep_parts_that_fit(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita"), booked("12", "-10.00", "Shop")])
    holder.bring(CARD, [booked("10", "-10.00", "Kita"), booked("11", "-10.00", "Bar"), booked("12", "-10.00", "Shop")])
    giro, card = holder.account_ids()
    ids = {(row["bankAccount"]["id"], row["counterpartName"]): row["id"] for row in rows_of(holder)}
    split(holder, ids[giro, "Shop"], HALVES)
    for name in ("Kita", "Bar", "Shop"):
        split(holder, ids[card, name], ELSEWHERE)
    work(holder, merges.merge, source_id=card, target_id=giro)
    assert amounts(holder) == [[-6, -4], [-7, -3], [-7, -3]]
    assert [row["category"] for row in rows_of(holder)] == ["GROCERIES", "HEALTH", "HEALTH"]
    assert groups(holder)[""] == (3, 30)
    work(holder, merges.separate, source_id=card)
    assert [row["category"] for row in rows_of(holder, search="Bar")] == ["HEALTH"]


@pytest.mark.requirement("words.parts.survive")
def test_of_twins_the_parts_that_fit_stay(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    holder.bring(CARD, [booked("10", "-10.00", "Kita")])
    giro, card = holder.account_ids()
    ids = {row["bankAccount"]["id"]: row["id"] for row in rows_of(holder)}
    split(holder, ids[giro], HALVES)
    split(holder, ids[card], ELSEWHERE)
    database = holder.service.services.everybody
    database.execute(
        "UPDATE annotation_splits SET amount = -9 WHERE user_id = $1 AND transaction_id = $2", holder.user.id, ids[giro]
    )
    work(holder, merges.merge, source_id=card, target_id=giro)
    assert amounts(holder) == [[-7, -3]]


@pytest.mark.requirement("words.parts.survive")
@pytest.mark.long
def test_parts_go_with_a_deleted_account_and_outlive_what_else_was_said(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    holder.bring(OTHER, [booked("10", "-10.00", "Bar")])
    for row in rows_of(holder):
        split(holder, row["id"], HALVES)
    found = {"filter": {"search": "Bar"}, "expected": 1, "category": "RENT"}
    made = writer(holder).post("/corrections/batch", json=found).json()
    assert by_name(holder)["Bar"]["category"] == "GROCERIES"
    assert writer(holder).delete(f"/corrections/{made['id']}").is_success
    giro, _ = holder.account_ids()
    work(holder, rebuild.delete, account_id=giro)
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    assert amounts(holder) == [[-6, -4]]
    rows = holder.service.services.everybody.rows(
        "SELECT transaction_id FROM annotation_splits WHERE user_id = $1", holder.user.id
    )
    assert len(rows) == 2


@pytest.mark.requirement("words.parts.exports")
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.long
def test_parts_go_out_and_come_back_letter_for_letter(service: Service, holder: Holder, kind: str) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita"), booked("11", "-10.00", "Bar"), booked("12", "5.00", "Shop")])
    ids = {name: row["id"] for name, row in by_name(holder).items()}
    note = "=1+1 \"Kim\"\n'two', three\\"
    said = [{**HALVES[0], "note": note, "tags": ["A, b", "Kim"]}, HALVES[1]]
    split(holder, ids["Kita"], said)
    split(holder, ids["Shop"], [{"amount": 2.5, "category": "RENT"}] * 2)
    before, content = divided(holder), exported(holder, kind)
    assert len(before) == 2
    if kind == "beancount":
        lines = content.decode().splitlines()
        assert [line.split() for line in lines if line.startswith("  Expenses:Groceries")] == [
            ["Expenses:Groceries", "6.00", "EUR"],
            ["Expenses:Groceries", "4.00", "EUR"],
        ]
    other = service.newcomer()
    for number in (1, 2):
        bring(other, content, number)
        assert divided(other) == before
        assert len(rows_of(other)) == 3
        assert by_name(other)["Kita"]["category"] == "GROCERIES"
    spoken = service.newcomer()
    bring(spoken, exported(holder, kind, include=""), 1)
    for row in rows_of(spoken):
        writer(spoken).patch(f"/transactions/{row['id']}/annotation", json={"note": "mine"})
    bring(spoken, content, 2)
    assert divided(spoken) == []


@pytest.mark.requirement("words.parts.exports")
@pytest.mark.long
def test_parts_in_a_file_that_somebody_has_changed_are_the_whole_or_left_out(service: Service, holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    split(holder, rows_of(holder)[0]["id"], [{**part, "tags": []} for part in ELSEWHERE])
    content = exported(holder, "jsonl", include="annotation")
    parts = b'[{"amount":"-7.00","category":"HEALTH"},{"amount":"-3.00","category":"RENT"}]'
    assert parts in content
    for number, wrong in enumerate(
        (
            b'[{"amount":"-7.00","category":"HEALTH"},{"amount":"-2.99","category":"RENT"}]',
            b'[{"amount":"NaN","category":"HEALTH"},{"amount":"-3.00","category":"RENT"}]',
            b'[{"amount":"-7.00","category":"NOTHING"},{"amount":"-3.00","category":"RENT"}]',
            b'[{"amount":"-7.00"},{"amount":"-3.00","category":"RENT"}]',
            b'[{"amount":"-10.00","category":"RENT"}]',
            b"[" + b",".join([b'{"amount":"-0.10","category":"RENT"}'] * 51) + b"]",
            b"[7]",
            b"7",
        )
    ):
        other = service.newcomer()
        bring(other, content.replace(parts, wrong), number)
        assert [(row["splits"], row["amount"]) for row in rows_of(other, include="annotation")] == [([], -10)], wrong
