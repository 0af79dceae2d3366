"""Some bookings corrected at once, and taken back."""

from datetime import timedelta

import pytest

from auth.scopes import SCOPES
from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, booked, by_name, writer

HOTELS = {"filter": {"search": "hotel", "dateFrom": "2026-11-10", "dateTo": "2026-11-12"}, "category": "INSURANCE"}


def categories(holder: Holder) -> dict[str, str]:
    return {name: row["category"] for name, row in by_name(holder).items()}


@pytest.mark.requirement("words.some")
def test_some_bookings_are_corrected_and_get_back_what_they_had(holder: Holder) -> None:
    client = writer(holder)
    names = ("Hotel A", "Hotel B", "Hotel C", "Bar", "Hotel late")
    holder.bring(GIRO, [booked(str(10 + place // 2 * 2), "-9.00", name) for place, name in enumerate(names)])
    rows, derived = by_name(holder), categories(holder)
    client.patch(f"/transactions/{rows['Hotel A']['id']}/annotation", json={"category": "HEALTH", "note": "one"})
    before = categories(holder)
    assert before == {**derived, "Hotel A": "HEALTH"}
    tried = client.post("/corrections/batch?dryRun=true&include=transactions", json={**HOTELS, "expected": 0}).json()
    assert (tried["matching"], tried["changed"], len(tried["transactions"])) == (3, 3, 3)
    assert categories(holder) == before
    refused = client.post("/corrections/batch", json={**HOTELS, "expected": 4})
    assert (refused.status_code, refused.json()) == (409, {"error": "expected: 3 transactions match now"})
    made = client.post("/corrections/batch", json={**HOTELS, "expected": 3}).json()
    hotels = dict.fromkeys(("Hotel A", "Hotel B", "Hotel C"), "INSURANCE")
    assert categories(holder) == {**before, **hotels}
    later = f"/transactions/{rows['Hotel C']['id']}/annotation"
    client.patch(later, json={"category": "RENT", "tags": ["t"]})
    assert client.delete(f"/corrections/{made['id']}").json() == {"changed": 2}
    assert categories(holder) == {**before, "Hotel C": "RENT"}
    assert client.get(f"/transactions/{rows['Hotel A']['id']}/annotation").json()["note"] == "one"
    assert client.delete(f"/corrections/{made['id']}").json() == {"error": "Correction not found"}
    tagged = {"filter": {"tag": "T"}, "expected": 1, "detailedCategory": "BAKERY"}
    assert client.post("/corrections/batch", json=tagged).json()["changed"] == 1
    assert categories(holder)["Hotel C"] == "GROCERIES"
    reader = writer(holder, [*SCOPES, "write:rules"])
    assert reader.post("/corrections/batch", json=tagged).status_code == 403


@pytest.mark.requirement("words.some")
def test_what_is_no_correction_of_some_is_refused(holder: Holder) -> None:
    client = writer(holder)
    for wrong in (
        {"filter": {}, "expected": 0, "category": "RENT"},
        {"filter": {"search": ""}, "expected": 0, "category": "RENT"},
        {"filter": {"search": "x"}, "expected": 0},
        {"filter": {"dateFrom": "2026-13-01"}, "expected": 0, "category": "RENT"},
        {"filter": {"nothing": "x"}, "expected": 0, "category": "RENT"},
    ):
        assert client.post("/corrections/batch", json=wrong).status_code == 400, wrong


@pytest.mark.requirement("words.some")
def test_a_correction_of_some_is_forgotten_after_a_while(holder: Holder) -> None:
    client, database = writer(holder), holder.service.services.everybody
    holder.bring(GIRO, [booked("10", "-9.00", "Hotel")])
    asked = {**HOTELS, "expected": 1}
    old = client.post("/corrections/batch", json=asked).json()["id"]
    past = holder.service.services.clock.now() - timedelta(days=91)
    database.execute("UPDATE correction_batches SET made_at = $2 WHERE user_id = $1", holder.user.id, past)
    assert client.delete(f"/corrections/{old}").status_code == 404
    client.post("/corrections/batch", json=asked)
    kept = database.rows("SELECT id FROM correction_batches WHERE user_id = $1", holder.user.id)
    assert old not in [row["id"] for row in kept]


@pytest.mark.requirement("words.some")
def test_a_filter_that_finds_too_many_is_refused(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handlers.operations.words.correction_batches.BOOKINGS_MAX", 1)
    holder.bring(GIRO, [booked("10", "-9.00", name) for name in ("Hotel A", "Hotel B")])
    answer = writer(holder).post("/corrections/batch", json={**HOTELS, "expected": 2})
    assert (answer.status_code, answer.json()) == (400, {"error": "filter: finds more than 1 transactions"})
