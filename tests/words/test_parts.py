"""Parts of one booking: what is said of them, and what figures, filters and pages make of them."""

from typing import Any

import pytest

from tests.checked_commits import change
from tests.explanations.conftest import Holder
from tests.words.conftest import GIRO, booked, by_name, rows_of, writer

HALVES: list[dict[str, object]] = [
    {"amount": -6.00, "category": "GROCERIES", "note": "Kim", "tags": ["Shared"]},
    {"amount": -4.00, "detailedCategory": "BAKERY"},
]


def split(holder: Holder, id_: str, parts: object, status: int = 200) -> Any:
    answer = writer(holder).patch(f"/transactions/{id_}/annotation", json={"splits": parts})
    assert answer.status_code == status, answer.text
    return answer.json()


def groups(holder: Holder, **query: str) -> dict[str, tuple[int, float]]:
    """Count and expenses of each group, and of the whole under "" and the rest under "rest"."""
    totals = writer(holder).get("/transactions/totals", params=query).json()
    named = {each["key"]: (each["count"], each["expenses"]) for each in totals.get("groups", [])}
    rest = {"rest": (totals["rest"]["count"], totals["rest"]["expenses"])} if "rest" in totals else {}
    return {**named, **rest, "": (totals["count"], totals["expenses"])}


@pytest.mark.requirement("words.parts")
def test_parts_are_said_told_and_taken_back(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita"), booked("11", "-1.00", "Bar")])
    id_ = by_name(holder)["Kita"]["id"]
    before = by_name(holder)["Kita"]
    told = [
        {"amount": -6.0, "category": "GROCERIES", "detailedCategory": None, "note": "Kim", "tags": ["Shared"]},
        {"amount": -4.0, "category": "GROCERIES", "detailedCategory": "BAKERY", "note": None, "tags": []},
    ]
    assert split(holder, id_, HALVES)["splits"] == told
    path = f"/transactions/{id_}/annotation"
    assert writer(holder).get(path).json()["splits"] == told
    for include in ("annotation", "detailedCategory,annotation"):
        rows = writer(holder).get("/transactions", params={"include": include}).json()["transactions"]
        assert [row["splits"] for row in rows] == [[], told]
    assert by_name(holder, include="annotation")["Kita"]["splits"] == told
    assert writer(holder).get("/tags").json() == {"tags": [{"name": "Shared", "count": 1}]}
    assert [row["counterpartName"] for row in rows_of(holder, tag="shared")] == ["Kita"]
    assert writer(holder).patch(path, json={"note": "x"}).json()["splits"] == told
    nothings: tuple[list[object] | None, ...] = (None, [])
    for nothing in nothings:
        split(holder, id_, HALVES)
        assert split(holder, id_, nothing)["splits"] == []
        assert by_name(holder)["Kita"] == before


@pytest.mark.requirement("words.parts")
def test_parts_are_the_whole_or_refused(holder: Holder) -> None:
    yen = booked("12", "-500", "Tokyo", currency="JPY")
    holder.bring(GIRO, [booked("10", "-10.00", "Kita"), booked("11", "10.00", "Refund"), yen])
    ids = {name: row["id"] for name, row in by_name(holder).items()}

    def refused(name: str, *amounts: float, **more: object) -> str:
        parts = [{"amount": amount, "category": "RENT", **more} for amount in amounts]
        answer: dict[str, str] = split(holder, ids[name], parts, 400)
        return answer["error"]

    assert refused("Kita", -10) == "splits: 2 to 50 parts"
    assert refused("Kita", *[-0.01] * 51) == "splits: must have at most 50 items"
    assert refused("Kita", -4, -5.99) == "splits: must add up to -10.00, not to -9.99"
    assert refused("Kita", -4, -6.01) == "splits: must add up to -10.00, not to -10.01"
    sign = "splits: no amount may be zero, and each has the sign of the transaction's"
    assert refused("Kita", -10, 0) == refused("Kita", -11, 1) == refused("Refund", -4, -6) == sign
    assert refused("Kita", -4.005, -5.995) == "splits: amounts in EUR have 2 digits after the point"
    assert refused("Tokyo", -250.5, -249.5) == "splits: amounts in JPY have 0 digits after the point"
    assert refused("Kita", -10_000_000_000_000, -1) == "splits[0].amount: is not what the contract allows"
    needed = "splits: each part needs a category, a detailedCategory or an ownCategoryId"
    assert refused("Kita", -4, -6, category=None) == needed
    assert refused("Kita", -4, -6, note="\x1b") == "splits[0].note: contains characters that are not allowed"
    assert refused("Kita", -4, -6, tags=["a\tb"]) == "splits: a tag has 1 to 100 printable characters"
    assert refused("Kita", -4, -6, detailedCategory="BAKERY") == "detailedCategory: lies below GROCERIES"
    assert split(holder, ids["Kita"], [{"amount": -0.2, "category": "RENT"}] * 50)["splits"][49]["amount"] == -0.2
    assert split(holder, ids["Tokyo"], [{"amount": -250, "category": "RENT"}] * 2)["splits"][1]["amount"] == -250
    assert split(holder, ids["Refund"], [{"amount": 5, "category": "RENT"}] * 2)["splits"]
    database = holder.service.services.everybody
    change(
        database, holder.user.id, "UPDATE transactions SET is_adjusting_entry = TRUE WHERE user_id = $1", holder.user.id
    )
    assert refused("Kita", -4, -6) == "splits: this entry was written by the service and has no parts"


@pytest.mark.requirement("words.parts")
def test_parts_say_no_more_than_a_booking_may(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita")])
    id_ = by_name(holder)["Kita"]["id"]
    path = f"/transactions/{id_}/annotation"

    def parts(note: str, tags: int) -> list[dict[str, object]]:
        names = [str(number) for number in range(tags)]
        return [{"amount": -5, "category": "RENT", "note": note}, {"amount": -5, "category": "RENT", "tags": names}]

    assert writer(holder).patch(path, json={"note": "x" * 1000, "tags": ["a"]}).is_success
    assert "4000 characters together" in split(holder, id_, parts("x" * 3001, 0), 400)["error"]
    assert "50 tags" in split(holder, id_, parts("", 50), 400)["error"]
    split(holder, id_, parts("x" * 3000, 49))
    assert writer(holder).patch(path, json={"note": "x" * 1001}).status_code == 400
    assert writer(holder).patch(path, json={"tags": ["a", "b"]}).status_code == 400


@pytest.mark.requirement("words.parts")
def test_figures_count_parts_where_they_went_and_bookings_once(holder: Holder) -> None:
    holder.bring(GIRO, [booked("10", "-10.00", "Kita"), booked("11", "-1.00", "REWE"), booked("12", "-2.50", "Bar")])
    id_ = by_name(holder)["Kita"]["id"]
    plain = groups(holder)
    cashflow = writer(holder).get("/cashflow", params={"months": 1}).content
    split(
        holder,
        id_,
        [
            {"amount": -5, "category": "HEALTH"},
            {"amount": -3, "detailedCategory": "BAKERY"},
            {"amount": -2, "category": "HEALTH"},
        ],
    )
    assert by_name(holder)["Kita"]["category"] == "HEALTH"
    assert groups(holder) == plain == {"": (3, 13.5)}
    by_category = groups(holder, groupBy="category")
    assert (by_category["HEALTH"], by_category["GROCERIES"], by_category[""]) == ((1, 7), (2, 4), (3, 13.5))
    assert groups(holder, groupBy="category", limit="1") == {"HEALTH": (1, 7), "rest": (3, 6.5), "": (3, 13.5)}
    assert groups(holder, groupBy="detailedCategory")["BAKERY"] == (1, 3)
    assert groups(holder, groupBy="category,merchant")["HEALTH Kita"] == (1, 7)
    assert groups(holder, groupBy="month") == {"2026-11": (3, 13.5), "rest": (0, 0), "": (3, 13.5)}
    for query in ({"category": "GROCERIES"}, {"categories": "GROCERIES"}):
        assert groups(holder, **query) == {"": (2, 4)}
        assert [row["counterpartName"] for row in rows_of(holder, **query)] == ["REWE", "Kita"]
    assert groups(holder, categories="GROCERIES,HEALTH") == {"": (2, 11)}
    assert groups(holder, detailedCategory="BAKERY") == {"": (1, 3)}
    assert groups(holder, category="GROCERIES", categories="HEALTH") == {"": (0, 0)}
    listed = writer(holder).get("/transactions", params={"detailedCategory": "BAKERY"}).json()["transactions"]
    assert [row["counterpartName"] for row in listed] == ["Kita"]
    assert (
        writer(holder).get("/transactions/export", params={"category": "GROCERIES", "format": "jsonl"}).text.count("\n")
        == 2
    )
    assert writer(holder).get("/cashflow", params={"months": 1}).content == cashflow
    months = writer(holder).get("/cashflow/categories", params={"months": 1}).json()["months"]
    spent = {each["category"]: each["amount"] for each in months[0]["categories"]}
    snapshot = writer(holder).get("/snapshot").json()["last30Days"]
    top = {each["category"]: each["amount"] for each in snapshot["topCategories"]}
    assert (spent["HEALTH"], spent["GROCERIES"]) == (top["HEALTH"], top["GROCERIES"]) == (7, 4)
    assert snapshot["totalExpenses"] == 13.5
    behind = writer(holder).get("/snapshot/categories/HEALTH/transactions").json()
    assert [(row["counterpartName"], row["countedAmount"]) for row in behind["transactions"]] == [("Kita", -7)]
    assert behind["amount"] == 7
