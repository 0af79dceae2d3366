"""Recurring payments that a person adds by hand: with what was found they are one list, and never twice in it."""

from collections.abc import Sequence
from typing import Any

import pytest

from handlers.calendar.endpoint import due_payments
from handlers.commands.control_socket import CommandError
from handlers.commands.table import perform
from storage.importing.records import AccountRecord
from storage.undo_and_merge import merges
from tests.explanations.conftest import Holder
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
        ({"next_day": "2026-11-19"}, "today or later"),
        ({"next_day": "2026-12-21"}, "no more than a month ahead"),
        ({"account": "Nobody"}, "no account"),
    ],
)
def test_what_cannot_be_added_is_said(holder: Holder, said: Said, otherwise: Json, message: str) -> None:
    holder.bring(GIRO, ledger())
    with pytest.raises(CommandError, match=message):
        said.add(**otherwise)
    assert said.add(name="abc", next_day="2026-12-20", amount="0.01").startswith("sub_")
    assert said.add(name="x" * 200, next_day="2026-11-20").startswith("sub_")
