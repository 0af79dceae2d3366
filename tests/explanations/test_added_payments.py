"""Recurring payments that a person adds by hand: with what was found they are one list, and never twice in it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from analytics.records import AccountRecord
from handlers.calendar.endpoint import due_payments
from handlers.commands.control_socket import CommandError
from handlers.commands.table import perform
from storage.undo_and_merge import merges
from tests.explanations.conftest import Holder, Service, body_of
from tests.explanations.test_recurring_payments import details, ledger, paid, say, writer
from tests.explanations.test_what_the_page_shows import GIRO, statement

Json = dict[str, Any]
SAVINGS = AccountRecord(stable_key="savings", name="Savings", currency="EUR")
MUSIC = {"name": "Musikschule", "amount": "45.00", "every": "month", "next_day": "2026-12-01"}


class Said:
    """What commands print."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.lines: list[str] = []
        self.notes: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...

    def do(self, command: str, **arguments: object) -> str:
        """The last line that it prints."""
        perform(self.holder.service.services, command, {"user": self.holder.user.name, **arguments}, self)
        return self.lines[-1] if self.lines else ""

    def add(self, **otherwise: object) -> str:
        return self.do("subscriptions add", **{**MUSIC, "account": GIRO.iban, "is_incoming": False, **otherwise})


@pytest.fixture
def said(holder: Holder) -> Said:
    return Said(holder)


def in_calendar(holder: Holder) -> list[str]:
    services = holder.service.services
    due = due_payments(services, holder.user.id, services.clock.today())
    return [each.day.isoformat() for each in due if each.summary.startswith("Musikschule")]


def foretold(holder: Holder) -> list[tuple[str, float]]:
    accounts = holder.get("/forecast", days=60)["accounts"]
    return [
        (event["date"], event["amount"]) for each in accounts for event in each["events"] if "Musik" in event["name"]
    ]


@pytest.mark.requirement("recurring.added")
@pytest.mark.long
def test_what_is_added_stands_in_the_list_the_forecast_and_the_calendar_until_it_is_removed(
    holder: Holder, said: Said
) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    before, seed = holder.get("/subscriptions/details"), holder.get("/subscriptions")
    forecast = holder.get("/forecast", days=60)
    id_ = said.add()
    told = details(holder.client, status="active")["Musikschule"]
    assert {name: told[name] for name in ("id", "amount", "frequency", "occurrences", "charges", "confirmation")} == {
        "id": id_,
        "amount": 45.0,
        "frequency": "monthly",
        "occurrences": 0,
        "charges": [],
        "confirmation": "confirmed",
    }
    assert (told["nextExpected"][:10], told["status"], told["direction"]) == ("2026-12-01", "active", "outgoing")
    assert [day[:10] for day in told["comingCharges"]] == ["2026-12-01"]
    assert holder.get(f"/subscriptions/{id_}") == told
    assert set(details(holder.client)) == {"Musikschule", *(each["merchantName"] for each in before["subscriptions"])}
    assert holder.get("/subscriptions") == seed, "the list of what was found holds what was found"
    assert foretold(holder) == [("2026-12-01", -45.0), ("2027-01-01", -45.0)]
    assert in_calendar(holder)[:2] == ["2026-12-01", "2027-01-01"]
    assert said.add(amount="50") == id_, "said again with another amount it is the same one"
    assert details(holder.client)["Musikschule"]["amount"] == 50.0
    said.do("subscriptions remove", subscription_id=id_)
    assert (holder.get("/subscriptions/details"), holder.get("/forecast", days=60)) == (before, forecast)
    assert in_calendar(holder) == []
    with pytest.raises(CommandError, match="has added no recurring payment"):
        said.do("subscriptions remove", subscription_id=id_)


@pytest.mark.requirement("recurring.added")
def test_its_bookings_are_those_of_its_name_and_about_its_amount(holder: Holder, said: Said) -> None:
    charged = [
        *paid("Musikschule Köln", "-44.00", 1, "2026-11"),
        *paid("Musikschule Köln", "-9.00", 2, "2026-11", purpose="Noten"),
        *paid("Musikschule Köln", "44.00", 3, "2026-11", purpose="Erstattung"),
    ]
    holder.bring(GIRO, [*ledger(), *charged], statement("2026-11-19", "1000.00"))
    said.add()
    told = details(holder.client)["Musikschule"]
    assert [(each["bookingDate"][:10], each["amount"]) for each in told["charges"]] == [("2026-11-01", 44.0)]
    assert (told["lastCharged"][:10], told["amount"], told["occurrences"]) == ("2026-11-01", 44.0, 1)
    assert foretold(holder) == [("2026-12-01", -44.0), ("2027-01-01", -44.0)]


@pytest.mark.requirement("recurring.added")
def test_one_that_is_found_later_is_the_same_one(holder: Holder, said: Said) -> None:
    holder.bring(GIRO, [*ledger(), *paid("Musikschule", "-45.00", 1, "2026-10", "2026-11")])
    added = said.add()
    holder.bring(
        GIRO,
        [*ledger(), *paid("Musikschule", "-45.00", 1, "2026-07", "2026-08", "2026-09", "2026-10", "2026-11")],
        statement("2026-11-19", "1000.00"),
    )
    [told] = [each for each in details(holder.client, status="all").values() if "Musik" in each["merchantName"]]
    assert told["id"] != added
    assert told["confirmation"] == "confirmed"
    assert len(told["charges"]) == 5
    assert foretold(holder) == [("2026-12-01", -45.0), ("2027-01-01", -45.0)]
    assert say(writer(holder), told["id"], "dismissed")["confirmation"] == "dismissed"
    assert details(holder.client, status="all")["Musikschule"]["confirmation"] == "dismissed"
    say(writer(holder), told["id"], "none")
    assert details(holder.client, status="all")["Musikschule"]["confirmation"] == "none"


@pytest.mark.requirement("recurring.added")
def test_what_is_said_about_an_added_one(holder: Holder, said: Said) -> None:
    holder.bring(GIRO, ledger())
    client, id_ = writer(holder), said.add()
    assert say(client, id_, "confirmed")["confirmation"] == "confirmed"
    assert "Musikschule" in details(client)
    assert say(client, id_, "dismissed")["confirmation"] == "dismissed"
    assert "Musikschule" not in details(client, status="all")


@pytest.mark.requirement("recurring.added")
def test_what_comes_in_and_what_is_yearly(holder: Holder, said: Said) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    said.add(name="Musikpreis", amount="300", every="year", next_day="2027-01-05", is_incoming=True)
    told = details(holder.client, direction="incoming")["Musikpreis"]
    assert (told["direction"], told["yearlyCost"], told["cadence"]["month"]) == ("incoming", 300.0, 1)
    assert foretold(holder) == [("2027-01-05", 300.0)]
    assert "Musikpreis" not in details(holder.client)


@pytest.mark.requirement("recurring.added")
def test_a_selection_has_what_belongs_to_its_accounts_and_a_merge_hands_it_over(holder: Holder, said: Said) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    holder.bring(SAVINGS, paid("Zinsen", "1.00", 2, "2026-10", "2026-11"))
    giro, savings = holder.account_ids()
    said.add(account=savings)
    assert "Musikschule" in details(holder.client, accountIds=savings)
    assert "Musikschule" not in details(holder.client, accountIds=giro)
    assert foretold(holder) == [], "an account that cannot be forecast is left out"
    now = holder.service.services.clock.now()
    holder.service.services.everybody.atomically(
        lambda session: merges.merge(session, user=holder.user, source_id=savings, target_id=giro, now=now)
    )
    assert foretold(holder) == [("2026-12-01", -45.0), ("2027-01-01", -45.0)]


@pytest.mark.requirement("recurring.added")
@pytest.mark.parametrize(
    ("otherwise", "message"),
    [
        ({"name": "ab"}, "3 to 200"),
        ({"name": "x" * 201}, "3 to 200"),
        ({"amount": "0"}, "above 0"),
        ({"amount": "-5"}, "above 0"),
        ({"amount": "much"}, "above 0"),
        ({"amount": "4.999"}, "digits of its currency"),
        ({"next_day": "2026-11-19"}, "today or later"),
        ({"next_day": "2026-12-21"}, "no more than one period ahead"),
        ({"account": "Nobody"}, "no account"),
    ],
)
@pytest.mark.sampled
def test_what_cannot_be_added_is_said(holder: Holder, said: Said, otherwise: Json, message: str) -> None:
    holder.bring(GIRO, ledger())
    with pytest.raises(CommandError, match=message):
        said.add(**otherwise)
    assert said.add(name="abc", next_day="2026-12-20", amount="0.01").startswith("sub_")
    assert said.add(name="x" * 200, next_day="2026-11-20").startswith("sub_")


@pytest.fixture
def wanted(holder: Holder) -> Json:
    """What POST /subscriptions/added is sent, for the account of the ledger."""
    holder.bring(GIRO, ledger(), statement("2026-11-19", "1000.00"))
    [account] = holder.account_ids()
    return {
        "name": "Musikschule",
        "amount": 45,
        "frequency": "monthly",
        "nextExpected": "2026-12-01",
        "accountId": account,
    }


@pytest.mark.requirement("recurring.added")
def test_an_app_that_may_write_adds_one_says_it_again_and_takes_it_away(holder: Holder, wanted: Json) -> None:
    client = writer(holder)
    answer = client.post("/subscriptions/added", json=wanted)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told == holder.get(f"/subscriptions/{told['id']}") == details(client, status="active")["Musikschule"]
    assert (told["amount"], told["direction"], told["confirmation"]) == (45.0, "outgoing", "confirmed")
    assert told["addedTo"] == wanted["accountId"]
    assert details(client, status="active")["Streambox"]["addedTo"] is None
    assert "addedTo" not in details(client)["Musikschule"], "who asks for no status is told what they were"
    again = client.post("/subscriptions/added", json={**wanted, "amount": 50.5, "nextExpected": "2026-12-20"}).json()
    assert (again["id"], again["amount"], again["nextExpected"][:10]) == (told["id"], 50.5, "2026-12-20")
    assert foretold(holder) == [("2026-12-20", -50.5)]
    assert say(client, told["id"], "confirmed")["addedTo"] == wanted["accountId"]
    assert say(client, told["id"], "none")["addedTo"] is None
    assert "Musikschule" not in details(client, status="all")
    income = client.post("/subscriptions/added", json={**wanted, "direction": "incoming"}).json()
    assert (income["id"] == told["id"], income["direction"]) == (False, "incoming")


@pytest.mark.requirement("recurring.added")
def test_what_is_found_already_is_answered_as_it_was_found_and_added_once(holder: Holder, wanted: Json) -> None:
    client = writer(holder)
    box = details(client)["Streambox"]["id"]
    found = client.post("/subscriptions/added", json={**wanted, "name": "Streambox", "amount": 12.99}).json()
    assert (found["id"], found["confirmation"], found["addedTo"]) == (box, "confirmed", None)
    weekly = {**wanted, "name": "Streambox", "amount": 12.99, "frequency": "weekly", "nextExpected": "2026-11-20"}
    twice = client.post("/subscriptions/added", json=weekly)
    assert (twice.status_code, twice.json()["error"]) == (
        400,
        "name: You have added this payment before, under another name or with another rhythm.",
    )
    assert say(client, box, "none")["confirmation"] == "none"
    assert details(client, status="all")["Streambox"]["confirmation"] == "none", "nothing of the second one was kept"


@pytest.mark.requirement("recurring.added")
@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("name", "ab", "name: must have at least 3 characters"),
        ("name", " ab ", "name: A name has 3 to 200 characters."),
        ("name", "x" * 201, "name: must have at most 200 characters"),
        ("amount", 0, "amount: An amount is above 0, in the digits of its currency."),
        ("amount", 0.001, "amount: An amount is above 0, in the digits of its currency."),
        ("amount", -1, "amount: is not what the contract allows"),
        ("amount", "45", "amount: must be of type number"),
        ("frequency", "daily", "frequency: must be one of weekly, biweekly, monthly, quarterly, yearly"),
        (
            "nextExpected",
            "2026-11-19",
            "nextExpected: The next day is today or later, and no more than one period ahead.",
        ),
        (
            "nextExpected",
            "2026-12-21",
            "nextExpected: The next day is today or later, and no more than one period ahead.",
        ),
        ("nextExpected", "2026-11-31", "nextExpected: must be a calendar date of the form YYYY-MM-DD"),
        ("nextExpected", "20261201", "nextExpected: must be a calendar date of the form YYYY-MM-DD"),
        ("accountId", "acc_0", "accountId: not one of your accounts. GET /accounts lists their ids"),
        ("direction", "all", "direction: must be one of outgoing, incoming"),
    ],
)
@pytest.mark.sampled
def test_each_bad_field_is_said_and_nothing_is_kept(
    holder: Holder, wanted: Json, field: str, value: object, sentence: str
) -> None:
    client = writer(holder)
    answer = client.post("/subscriptions/added", json={**wanted, field: value})
    assert (answer.status_code, answer.json()) == (400, {"error": sentence})
    without = client.post("/subscriptions/added", json={name: each for name, each in wanted.items() if name != field})
    assert without.status_code == (200 if field == "direction" else 400)
    assert ("Musikschule" in details(client)) == (field == "direction")


@pytest.mark.requirement("recurring.added")
def test_only_who_may_write_adds_and_only_to_their_own_accounts(
    holder: Holder, demo_service: Service, wanted: Json
) -> None:
    assert holder.client.post("/subscriptions/added", json=wanted).status_code == 403
    stranger = writer(demo_service.newcomer())
    assert stranger.post("/subscriptions/added", json=wanted).status_code == 400
    assert "Musikschule" not in details(holder.client)
    assert writer(holder).post("/subscriptions/added", json={**wanted, "name": "x" * 200}).status_code == 200


@pytest.mark.requirement("recurring.added")
@pytest.mark.parametrize(
    ("first", "due"),
    [
        ("2027-03-28", ["2027-03-28", "2027-04-28", "2027-05-28"]),
        ("2027-03-29", ["2027-03-29", "2027-04-29", "2027-05-29"]),
        ("2027-03-30", ["2027-03-30", "2027-04-30", "2027-05-30"]),
        ("2027-03-31", ["2027-03-31", "2027-04-30", "2027-05-31"]),
    ],
)
def test_a_day_at_the_end_of_march_is_that_day_although_february_has_none(
    holder: Holder, said: Said, monkeypatch: pytest.MonkeyPatch, first: str, due: list[str]
) -> None:
    clock = holder.service.services.clock
    monkeypatch.setattr(clock, "offset", clock.offset + timedelta(days=103))
    assert clock.today().isoformat() == "2027-03-03"
    flat = [*paid("Feinwerk", "2000.00", 1, "2027-01", "2027-02"), *paid("Kiosk", "-3.00", 2, "2027-01", "2027-02")]
    holder.bring(GIRO, [*ledger(), *flat], statement("2027-03-02", "1000.00"))
    id_ = said.add(next_day=first)
    client = holder.service.client(holder.user.id)
    told = body_of(client, f"/subscriptions/{id_}")
    assert (told["nextExpected"][:10], told["cadence"]["dayOfMonth"]) == (first, int(first[-2:]))
    assert [day[:10] for day in told["comingCharges"]] == due[:1]
    assert in_calendar(holder)[:3] == due
    accounts = body_of(client, "/forecast", days="90")["accounts"]
    assert [event["date"] for each in accounts for event in each["events"] if event["name"] == "Musikschule"] == due
