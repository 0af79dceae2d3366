"""What a person said outlives undone imports, merges and new ids, and never lands on another booking."""

from typing import Any

import pytest

from analytics.records import AccountRecord
from storage.undo_and_merge import merges, rebuild
from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, OTHER, booked, by_name, rows_of, writer

CARD = AccountRecord(stable_key="card", currency="EUR", name="Card")


def say(holder: Holder, id_: str, **said: object) -> None:
    answer = writer(holder).patch(f"/transactions/{id_}/annotation", json=said)
    assert answer.status_code == 200, answer.text


def words(holder: Holder) -> list[tuple[str, str | None, list[str], str]]:
    """Name, note, tags and category of what has words, in their order."""
    rows = rows_of(holder, include="annotation", sort="bookingDate")
    return [
        (row["counterpartName"], row["note"], row["tags"], row["category"])
        for row in rows
        if row["note"] is not None or row["tags"]
    ]


def work(holder: Holder, function: Any, **arguments: object) -> None:
    services = holder.service.services
    database, now = services.everybody, services.clock.now()
    database.atomically(lambda session: function(session, user=holder.user, now=now, **arguments))


def undo(holder: Holder, job_id: str) -> None:
    database, known = holder.service.services.everybody, f"{holder.user.id}-{job_id}"
    database.execute(
        "UPDATE contributions SET job_id = $3 WHERE user_id = $1 AND job_id = $2", holder.user.id, job_id, known
    )
    database.execute(
        "INSERT INTO jobs (user_id, id, connection_id, status, created_at, updated_at)"
        " SELECT $1, $2, $3, 'completed', $4, $4",
        holder.user.id,
        known,
        holder.connection.id,
        holder.service.services.clock.now(),
    )
    work(holder, rebuild.undo, job_id=known)


@pytest.mark.requirement("words.survive")
def test_words_sleep_while_their_import_is_undone_and_wake_when_it_comes_again(holder: Holder) -> None:
    kita = booked("10", "-9.00", "Kita")
    holder.bring(GIRO, [kita, booked("10", "-9.00", "Verein")])
    say(holder, by_name(holder)["Kita"]["id"], note="first", tags=["a"], category="HEALTH")
    before = words(holder)
    undo(holder, "job0")
    assert (words(holder), writer(holder).get("/tags").json()) == ([], {"tags": []})
    holder.bring(GIRO, [booked("10", "-9.00", "Verein")])
    assert words(holder) == []
    holder.bring(GIRO, [kita])
    assert words(holder) == before == [("Kita", "first", ["a"], "HEALTH")]


@pytest.mark.requirement("words.survive")
def test_words_find_their_booking_under_another_id(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", purpose=f"child {number}") for number in (1, 2)])
    first, second = sorted(rows_of(holder), key=lambda row: str(row["purpose"]))
    say(holder, first["id"], note="one")
    say(holder, second["id"], note="two", category="HEALTH")
    database = holder.service.services.everybody
    for table in ("transactions", "contributions", "contribution_bookings"):
        database.execute(f"DELETE FROM {table} WHERE user_id = $1", holder.user.id)
    with_other_ids = [
        booked("10", "-9.00", "Kita", purpose=f"child {number}", provider_id=f"other{number}") for number in (1, 2)
    ]
    holder.bring(GIRO, with_other_ids)
    rows = sorted(rows_of(holder, include="annotation"), key=lambda row: str(row["purpose"]))
    assert {row["id"] for row in rows}.isdisjoint({first["id"], second["id"]})
    assert [row["note"] for row in rows] == ["one", "two"]
    assert rows[1]["category"] == "HEALTH"
    assert rows[0]["category"] != "HEALTH"


@pytest.mark.requirement("words.survive")
def test_words_that_fit_several_bookings_sleep(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", provider_id="a")])
    say(holder, rows_of(holder)[0]["id"], note="one")
    undo(holder, "job0")
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", provider_id=name) for name in ("b", "c")])
    assert words(holder) == []
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", provider_id="a")])
    assert [note for _, note, _, _ in words(holder)] == ["one"]


@pytest.mark.requirement("words.survive")
def test_of_words_that_want_the_same_booking_none_gets_it(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", provider_id=name) for name in ("a", "b")])
    for row in rows_of(holder):
        say(holder, row["id"], note=row["id"])
    undo(holder, "job0")
    holder.bring(GIRO, [booked("10", "-9.00", "Kita", provider_id="c")])
    assert words(holder) == []


@pytest.mark.requirement("words.survive")
@pytest.mark.long
def test_twins_of_merged_accounts_have_the_words_of_both(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(CARD, [booked("10", "-9.00", "Kita"), booked("11", "-1.00", "Bar")])
    giro, card = holder.account_ids()
    by_account = {(row["bankAccount"]["id"], row["counterpartName"]): row["id"] for row in rows_of(holder)}
    say(holder, by_account[giro, "Kita"], note="stays", tags=["a"], category="HEALTH")
    say(holder, by_account[card, "Kita"], note="comes", tags=["A", "b"], category="RENT")
    say(holder, by_account[card, "Bar"], note="moves", category="HEALTH")
    work(holder, merges.merge, source_id=card, target_id=giro)
    assert words(holder) == [("Kita", "stays\ncomes", ["a", "b"], "HEALTH"), ("Bar", "moves", [], "HEALTH")]
    work(holder, merges.separate, source_id=card)
    assert [row for row in words(holder) if row[0] == "Bar"] == [("Bar", "moves", [], "HEALTH")]
    bar = by_name(holder)["Bar"]
    assert bar["bankAccount"]["id"] == card


@pytest.mark.requirement("words.survive")
def test_what_was_said_of_one_of_two_twins_returns_to_it_from_a_merge(holder: Holder) -> None:
    for account in (GIRO, CARD):
        holder.bring(account, [booked("10", "-9.00", "Kita")])
    giro, card = holder.account_ids()
    before = {row["bankAccount"]["id"]: row for row in rows_of(holder)}
    say(holder, before[card]["id"], note="of the card", category="HEALTH")
    work(holder, merges.merge, source_id=card, target_id=giro)
    assert words(holder) == [("Kita", "of the card", [], "HEALTH")]
    work(holder, merges.separate, source_id=card)
    after = {row["bankAccount"]["id"]: row for row in rows_of(holder, include="annotation")}
    assert {id_: row["note"] for id_, row in after.items()} == {giro: None, card: "of the card"}
    assert {id_: row["category"] for id_, row in after.items()} == {giro: before[giro]["category"], card: "HEALTH"}


@pytest.mark.requirement("words.survive")
def test_what_was_said_of_a_merged_account_follows_a_booking_that_is_parted(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(CARD, [booked("12", "-2.00", "Shop")])
    giro, card = holder.account_ids()
    work(holder, merges.merge, source_id=card, target_id=giro)
    holder.bring(CARD, [booked("11", "-1.00", "Bar")])
    say(holder, by_name(holder)["Bar"]["id"], note="of the card", category="HEALTH")
    work(holder, merges.separate, source_id=card)
    assert words(holder) == [("Bar", "of the card", [], "HEALTH")]


@pytest.mark.requirement("words.survive")
def test_a_booking_told_otherwise_keeps_its_words_and_is_known_by_what_it_says_then(holder: Holder) -> None:
    record = booked("10", "-9.00", "Kita", provider_id="k")
    holder.bring(GIRO, [record])
    id_ = rows_of(holder)[0]["id"]
    say(holder, id_, note="one")
    holder.bring(GIRO, [booked("11", "-9.00", "Kita", provider_id="k")])
    assert [note for _, note, _, _ in words(holder)] == ["one"]


@pytest.mark.requirement("words.survive")
@pytest.mark.long
def test_words_go_with_a_deleted_account(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    holder.bring(OTHER, [booked("10", "-9.00", "Bar")])
    for row in rows_of(holder):
        say(holder, row["id"], note=row["counterpartName"])
    giro, _ = holder.account_ids()
    work(holder, rebuild.delete, account_id=giro)
    holder.bring(GIRO, [booked("10", "-9.00", "Kita")])
    assert [note for _, note, _, _ in words(holder)] == ["Bar"]
