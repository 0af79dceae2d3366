"""Recurring payments by status and direction, what is expected of them, and what people say about them."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from analytics.records import TransactionRecord
from auth.scopes import ALL_SCOPES
from handlers.calendar.endpoint import due_payments
from handlers.json_shapes import STANDING
from handlers.work.sync import detection
from handlers.work.sync.forecasts.basis import find_ahead
from storage.recurring import decisions
from tests.checked_commits import change
from tests.explanations.conftest import Holder, Service, body_of
from tests.explanations.test_what_the_page_shows import GIRO, booked, statement
from tests.imports.test_accounts import mt940

Json = dict[str, Any]
HALF_YEARS = ("2025-05", "2025-11", "2026-05", "2026-11")


def paid(name: str, amount: str, day: int, *months: str, purpose: str = "") -> list[TransactionRecord]:
    return [booked(f"{month}-{day:02}", amount, counterpart_name=name, purpose=purpose or name) for month in months]


def months(first: int, last: int) -> list[str]:
    return [f"2026-{number:02}" for number in range(first, last + 1)]


TWICE_A_MONTH = (  # the 15th and the last day, or the next bank day
    *("2026-07-15", "2026-07-31", "2026-08-17", "2026-08-31", "2026-09-15", "2026-09-30", "2026-10-15", "2026-11-02"),
    "2026-11-16",
)


def ledger() -> list[TransactionRecord]:
    """One of each on 20 November 2026: going on, late, missed, over, yearly and not due for months, and pay."""
    return [
        *paid("Streambox", "-12.99", 15, *months(3, 11)),
        *paid("Stadtwerk", "-61.40", 17, *months(3, 10)),
        *paid("Fitnesswelt", "-29.90", 5, *months(3, 10)),
        *paid("Zeitung", "-19.90", 8, *months(1, 6)),
        *paid("Automobilclub", "-89.90", 3, "2025-03", "2026-03"),
        *paid("Feinwerk", "2000.00", 15, *months(3, 11), purpose="Lohn"),
        *paid("Mieterin", "450.00", 2, *months(3, 11), purpose="Miete Zimmer"),
    ]


def details(client: TestClient, **query: str) -> dict[str, Json]:
    """By name: what is listed."""
    return {each["merchantName"]: each for each in body_of(client, "/subscriptions/details", **query)["subscriptions"]}


def writer(holder: Holder) -> TestClient:
    return holder.service.client(holder.user.id, frozenset(ALL_SCOPES))


def say(client: TestClient, id_: str, confirmation: str) -> Json:
    answer = client.post(f"/subscriptions/{id_}/confirmation", json={"confirmation": confirmation})
    assert answer.status_code == 200, answer.text
    told: Json = answer.json()
    return told


@pytest.mark.requirement("recurring.status")
def test_each_status_lists_its_own_and_the_list_without_is_as_it_was(holder: Holder) -> None:
    holder.bring(GIRO, ledger())
    found = {
        status: set(details(holder.client, status=status))
        for status in ("current", "ongoing", "active", "paused", "ended", "all")
    }
    assert found == {
        "current": {"Streambox", "Stadtwerk", "Fitnesswelt"},
        "active": {"Streambox", "Stadtwerk", "Automobilclub"},
        "paused": {"Fitnesswelt"},
        "ongoing": {"Streambox", "Stadtwerk", "Automobilclub", "Fitnesswelt"},
        "ended": {"Zeitung"},
        "all": {"Streambox", "Stadtwerk", "Fitnesswelt", "Zeitung", "Automobilclub"},
    }
    before = holder.get("/subscriptions/details")["subscriptions"]
    short = holder.get("/subscriptions/details", withCharges="false")["subscriptions"]
    assert short == [{**each, "charges": []} for each in before]
    asked = holder.get("/subscriptions/details", status="current", direction="outgoing")["subscriptions"]
    assert [{key: value for key, value in each.items() if key not in STANDING} for each in asked] == before
    assert all(STANDING.isdisjoint(each) for each in before)
    listed = holder.get("/subscriptions")["subscriptions"]
    assert [each["merchantName"] for each in listed] == [each["merchantName"] for each in before]
    for path in ("status=over", "direction=both"):
        assert holder.client.get(f"/subscriptions/details?{path}").status_code == 400


@pytest.mark.requirement("recurring.expected")
def test_each_tells_what_is_expected_when_and_since_when_it_is_overdue(holder: Holder) -> None:
    holder.bring(GIRO, ledger())
    every = details(holder.client, status="all", direction="all")
    said = {
        name: (
            each["status"],
            *((each[key] or "")[5:10] for key in ("nextExpectedFrom", "nextExpectedUntil", "overdueSince")),
        )
        for name, each in every.items()
    }
    assert said == {
        "Streambox": ("active", "12-14", "12-16", ""),
        "Stadtwerk": ("active", "11-16", "11-18", "11-17"),
        "Fitnesswelt": ("paused", "12-04", "12-06", "11-05"),
        "Zeitung": ("ended", "", "", ""),
        "Automobilclub": ("active", "03-02", "03-04", ""),
        "Feinwerk": ("active", "12-14", "12-16", ""),
        "Mieterin": ("active", "12-01", "12-03", ""),
    }
    over = every["Zeitung"]
    assert (over["nextExpected"], over["comingCharges"], over["expectedAmount"]) == (None, [], 19.9)
    for each in every.values():
        assert holder.get(f"/subscriptions/{each['id']}") == each


@pytest.mark.requirement("decision 155")
def test_a_rhythm_without_a_word_is_called_by_the_nearest_and_told_in_months(holder: Holder) -> None:
    twice = [booked(day, "-45.00", counterpart_name="Kita", purpose="Essen") for day in TWICE_A_MONTH]
    two_months = paid("Wasserwerk", "-58.10", 12, *months(1, 11)[::2])
    half_years = paid("Versicherung", "-318.20", 4, *HALF_YEARS)
    holder.bring(GIRO, [*ledger(), *twice, *two_months, *half_years])
    told = {
        name: (each["frequency"], each["intervalMonths"], each["yearlyCost"])
        for name, each in details(holder.client).items()
    }
    assert told["Kita"] == ("biweekly", 0.5, 1080.0)
    assert told["Wasserwerk"] == ("quarterly", 2, 348.6)
    assert told["Versicherung"] == ("yearly", 6, 636.4)
    assert told["Streambox"] == ("monthly", 1, 155.88)
    cadence = details(holder.client)["Kita"]["cadence"]
    assert (cadence["dayOfMonth"], cadence["secondDayOfMonth"]) == (15, 31)
    listed = {each["merchantName"]: each["frequency"] for each in holder.get("/subscriptions")["subscriptions"]}
    assert (listed["Kita"], listed["Wasserwerk"], listed["Versicherung"]) == ("biweekly", "quarterly", "yearly")


@pytest.mark.requirement("recurring.direction")
def test_what_comes_in_is_listed_with_its_own_direction_and_positive_charges(holder: Holder) -> None:
    holder.bring(GIRO, ledger())
    incoming = details(holder.client, direction="incoming")
    assert {name: (each["direction"], each["amount"], each["frequency"]) for name, each in incoming.items()} == {
        "Feinwerk": ("incoming", 2000.0, "monthly"),
        "Mieterin": ("incoming", 450.0, "monthly"),
    }
    assert {charge["amount"] for charge in incoming["Feinwerk"]["charges"]} == {2000.0}
    outgoing = {each["id"] for each in details(holder.client, status="all").values()}
    assert outgoing.isdisjoint(each["id"] for each in incoming.values())
    assert set(details(holder.client, direction="all")) == {*incoming, "Streambox", "Stadtwerk", "Fitnesswelt"}


@pytest.mark.requirement("recurring.ahead")
def test_who_is_looking_finds_what_recurs_found_after_an_import(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    services, client = holder.service.services, writer(holder)
    holder.get("/accounts")
    assert holder.user.id in services.reader.cache.users()
    file = mt940("28020050/1426292700", ("0102", "C", "10,00", "Words of the bank"))
    octets = {"content-type": "application/octet-stream"}
    told = client.post("/imports", params={"filename": "a.sta"}, content=file, headers=octets).json()
    assert told["status"] == "done", told
    monkeypatch.setattr(detection, "recurring_flows", lambda *_: pytest.fail("what recurs was looked for again"))
    monkeypatch.setattr(detection, "detect_both", lambda *_: pytest.fail("what recurs was looked for again"))
    assert len(holder.get("/forecast")["accounts"]) == 1


@pytest.mark.requirement("recurring.ahead")
def test_who_has_to_stop_finds_nothing_ahead(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    services = holder.service.services
    monkeypatch.setattr(detection, "recurring_flows", lambda *_: pytest.fail("the server ends"))
    find_ahead(services.of, [holder.user.id], today=services.clock.today(), is_over=lambda: True)


@pytest.mark.requirement("recurring.confirmation")
def test_what_is_dismissed_leaves_everything_but_the_status_all_until_it_is_taken_back(
    holder: Holder,
) -> None:
    def in_calendar() -> set[str]:
        services = holder.service.services
        return {each.id for each in due_payments(services, holder.user.id, services.clock.today())}

    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    client = writer(holder)
    before = holder.get("/forecast", days=60)
    box = details(client)["Streambox"]
    assert say(client, box["id"], "confirmed")["confirmation"] == "confirmed"
    assert holder.get(f"/subscriptions/{box['id']}")["confirmation"] == "confirmed"
    assert {each["confirmation"] for each in details(client, status="current").values()} == {"none", "confirmed"}
    assert say(client, box["id"], "dismissed")["confirmation"] == "dismissed"
    for status in ("current", "active", "paused", "ended"):
        assert "Streambox" not in details(client, status=status)
    assert "Streambox" not in details(client)
    assert details(client, status="all")["Streambox"]["confirmation"] == "dismissed"
    assert "Streambox" not in {each["merchantName"] for each in holder.get("/subscriptions")["subscriptions"]}
    events = [event["name"] for event in holder.get("/forecast", days=60)["accounts"][0]["events"]]
    assert ("Streambox" in events, "Stadtwerk" in events) == (False, True)
    assert box["id"] not in in_calendar()
    assert say(client, box["id"], "none")["confirmation"] == "none"
    assert details(client)["Streambox"] == box
    assert holder.get("/forecast", days=60) == before
    assert box["id"] in in_calendar()


@pytest.mark.requirement("recurring.confirmation")
def test_a_pay_that_is_dismissed_is_none(holder: Holder) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    client = writer(holder)
    (account,) = holder.get("/forecast")["accounts"]
    due = 12.99 + 61.40 + 29.90  # Streambox comes on the day of the pay
    assert account["nextPay"] == {"date": "2026-12-15", "due": round(due - 12.99, 2), "left": round(1012.99 - due, 2)}
    say(client, details(client, direction="incoming")["Feinwerk"]["id"], "dismissed")
    assert holder.get("/forecast")["accounts"][0]["nextPay"] is None


@pytest.mark.requirement("recurring.confirmation")
def test_a_payment_is_known_by_its_charge_where_its_id_has_changed(holder: Holder) -> None:
    holder.bring(GIRO, ledger())
    client, service = writer(holder), holder.service.services
    box = details(client)["Streambox"]
    say(client, box["id"], "dismissed")
    sql = "UPDATE recurring_decisions SET id = $2 WHERE user_id = $1"
    change(service.everybody, holder.user.id, sql, holder.user.id, "sub_as_it_was_before")
    assert details(client, status="all")["Streambox"]["confirmation"] == "dismissed"
    say(client, box["id"], "confirmed")  # in place of what was said under the other id
    (kept,) = decisions.of_user(service.everybody, holder.user.id)
    assert (kept.id, kept.transaction_id, kept.confirmation) == (
        box["id"],
        box["charges"][-1]["transactionId"],
        "confirmed",
    )
    sql = "UPDATE recurring_decisions SET transaction_id = 'txn_gone' WHERE user_id = $1"
    change(service.everybody, holder.user.id, sql, holder.user.id)
    assert details(client, status="all")["Streambox"]["confirmation"] == "confirmed"
    sql = "UPDATE recurring_decisions SET id = 'sub_gone' WHERE user_id = $1"
    change(service.everybody, holder.user.id, sql, holder.user.id)
    assert details(client, status="all")["Streambox"]["confirmation"] == "none"


@pytest.mark.requirement("recurring.confirmation")
def test_further_charges_and_the_same_file_again_leave_what_was_said(holder: Holder) -> None:
    holder.bring(GIRO, ledger())
    client = writer(holder)
    say(client, details(client)["Stadtwerk"]["id"], "dismissed")
    holder.bring(GIRO, [*ledger(), *paid("Stadtwerk", "-63.10", 18, "2026-11")])
    told = details(client, status="all")["Stadtwerk"]
    assert (told["confirmation"], told["amount"]) == ("dismissed", 63.1)
    assert "Stadtwerk" not in details(client)


@pytest.mark.requirement("recurring.confirmation")
def test_only_who_may_write_and_reaches_all_accounts_says_it_and_of_what_is_there(
    holder: Holder, service: Service
) -> None:
    holder.bring(GIRO, ledger())
    box = details(holder.client)["Streambox"]["id"]
    path = f"/subscriptions/{box}/confirmation"
    assert holder.client.post(path, json={"confirmation": "dismissed"}).status_code == 403
    client = writer(holder)
    for body in ({}, {"confirmation": "perhaps"}):
        assert client.post(path, json=body).status_code == 400
    unknown = client.post("/subscriptions/sub_unknown/confirmation", json={"confirmation": "none"})
    assert (unknown.status_code, unknown.json()) == (404, {"error": "Subscription not found"})
    stranger = service.client(service.newcomer().user.id, frozenset(ALL_SCOPES))
    assert stranger.post(path, json={"confirmation": "dismissed"}).status_code == 404


@pytest.mark.requirement("recurring.direction")
def test_a_direct_debit_that_comes_back_each_half_year_is_no_income(holder: Holder) -> None:
    fees = [booked(f"{month}-24", "-19.00", counterpart_name="Sportpark", purpose="Aufnahme") for month in HALF_YEARS]
    back = [booked(f"{month}-28", "19.00", counterpart_name="Sportpark", purpose="Retoure") for month in HALF_YEARS]
    holder.bring(GIRO, [*ledger(), *fees, *back])
    assert "Sportpark" not in details(holder.client, direction="all", status="ongoing")
