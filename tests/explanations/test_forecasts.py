"""GET /forecast over the real application."""

from datetime import date, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, TransactionRecord
from handlers.calendar.endpoint import due_payments
from storage.oauth.grants import Terms
from tests.explanations.conftest import Holder, Service, body_of
from tests.explanations.test_what_the_page_shows import CASH, GIRO, booked, statement
from tests.mcp.test_covered_accounts import Granted, granted, only

__all__ = ["granted"]

Json = dict[str, Any]
SAVINGS = AccountRecord(stable_key="DE88120300001052323279", iban="DE88120300001052323279", currency="EUR")


def series_of(answer: Json) -> list[Json]:
    return [*answer["accounts"], *answer["currencies"]]


def cents(value: float) -> int:
    return round(100 * value)


def check_sums(answer: Json, today: date) -> None:
    """Balance, events and the rest for each day add up to each day, to the cent, and so does the lowest day."""
    for series in series_of(answer):
        for day in series["days"]:
            step = (date.fromisoformat(day["date"]) - today).days
            events = sum(cents(event["amount"]) for event in series["events"] if event["date"] <= day["date"])
            assert cents(day["expected"]) == cents(series["balance"]) + events + step * cents(series["restPerDay"])
            assert day["low"] <= day["expected"] <= day["high"]
        least = min(series["days"], key=lambda day: day["expected"])
        assert series["lowest"] == {name: least[name] for name in ("date", "expected", "low")}
        assert (series["days"][-1]["date"], series["accuracy"] is None or series["accuracy"]["days"] == 30) == (
            answer["until"],
            True,
        )


def ledger() -> list[TransactionRecord]:
    """A salary, a rent and a savings plan in each of ten months, and one purchase."""
    every = [booked("2026-11-17", "-70.00", counterpart_name="Markt", purpose="Kauf")]
    for number in range(2, 12):
        month = f"2026-{number:02}"
        every += [
            booked(f"{month}-01", "-800.00", counterpart_name="Hausverwaltung", purpose="Miete"),
            booked(f"{month}-03", "-200.00", counterpart_name="Bank", purpose="Sparplan"),
            booked(f"{month}-15", "2000.00", counterpart_name="Feinwerk", purpose="Lohn"),
        ]
    return every


@pytest.mark.requirement("forecast.answer")
def test_an_account_is_told_with_what_recurs_in_and_out(holder: Holder) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-16", "1000.00"))
    (giro,) = holder.account_ids()
    answer = holder.get("/forecast", days=30)
    assert (answer["from"], answer["until"], answer["leftOut"]) == ("2026-11-21", "2026-12-20", [])
    (account,), (currency,) = answer["accounts"], answer["currencies"]
    assert account.pop("accountId") == giro
    assert currency.pop("accountIds") == [giro]
    assert account == currency  # the only account of its currency is all of them
    # what was booked after the day of the balance is in it
    assert (account["balance"], account["balanceDate"], account["currency"]) == (930.0, "2026-11-16", "EUR")
    listed = holder.get("/subscriptions/details", direction="all")["subscriptions"]
    known = {each["merchantName"]: each["id"] for each in listed}
    said = [(each["date"], each["amount"], each["name"], each["subscriptionId"]) for each in account["events"]]
    assert said == [
        ("2026-12-01", -800.0, "Hausverwaltung", known["Hausverwaltung"]),
        ("2026-12-03", -200.0, "Bank", None),
        ("2026-12-15", 2000.0, "Feinwerk", known["Feinwerk"]),
    ]
    assert account["nextPay"] == {"date": "2026-12-15", "due": 1000.0, "left": -70.0}
    rent = account["events"][0]
    assert (rent["from"], rent["until"], rent["isOverdue"]) == ("2026-11-30", "2026-12-02", False)
    assert account["accuracy"]["tests"] == 6
    assert account["accuracy"]["beatsLastBalance"]
    check_sums(answer, date(2026, 11, 20))
    assert len(account["days"]) == 30


@pytest.mark.requirement("forecast.left_out")
@pytest.mark.long
def test_accounts_without_a_forecast_are_named_with_the_reason(holder: Holder) -> None:
    days = [f"2026-11-{number:02}" for number in range(1, 13)]
    few = AccountRecord(stable_key="few", name="Few", currency="EUR")
    none = AccountRecord(stable_key="none", name="None", currency="EUR")
    holder.bring(GIRO, [booked(day, "-1.00") for day in days], statement("2026-11-20", "5.00"))
    holder.bring(CASH, ledger())
    holder.bring(few, [booked("2026-01-01", "-1.00")], statement("2026-11-20", "5.00"))
    holder.bring(none, [], statement("2026-11-20", "5.00"))
    reasons = ["short_history", "no_balance", "few_bookings", "short_history"]
    answer = holder.get("/forecast", days=1)
    assert answer == {
        "from": "2026-11-21",
        "until": "2026-11-21",
        "accounts": [],
        "currencies": [],
        "leftOut": [
            {"accountId": id_, "reason": reason} for id_, reason in zip(holder.account_ids(), reasons, strict=True)
        ],
    }


@pytest.mark.requirement("forecast.answer")
@pytest.mark.long
def test_a_transfer_between_two_accounts_is_no_event_of_both_together(holder: Holder) -> None:
    rows = [booked(f"2026-{number:02}-05", "-20.00", purpose=f"Kauf {number}") for number in range(1, 12)]
    moved = [f"2026-{number:02}-02" for number in range(1, 12)]
    holder.bring(
        GIRO,
        [*rows, *(booked(day, "-100.00", counterpart_iban=SAVINGS.iban, purpose="Sparen") for day in moved)],
        statement("2026-11-20", "400.00"),
    )
    holder.bring(
        SAVINGS,
        [
            *(booked(day, "100.00", counterpart_iban=GIRO.iban, purpose="Sparen") for day in moved),
            booked("2026-02-10", "3.00", purpose="Zinsen"),
        ],
        statement("2026-11-18", "1103.00"),
    )
    giro, savings = holder.account_ids()
    answer = holder.get("/forecast", days=30)
    check_sums(answer, date(2026, 11, 20))
    of_giro, of_savings = answer["accounts"]
    assert -100.0 in [event["amount"] for event in of_giro["events"]]
    assert 100.0 in [event["amount"] for event in of_savings["events"]]
    (both,) = answer["currencies"]
    assert (both["accountIds"], both["balance"], both["balanceDate"]) == ([giro, savings], 1503.0, "2026-11-18")
    assert {abs(event["amount"]) for event in both["events"]} <= {20.0}
    alone = holder.get("/forecast", days=30, accountIds=savings)
    assert [each["accountId"] for each in alone["accounts"]] == [savings]
    assert alone["accounts"][0] == of_savings


@pytest.mark.requirement("forecast.answer")
@pytest.mark.long
def test_what_the_demo_is_told_adds_up_and_says_how_wrong_it_was(demo_service: Service) -> None:
    today = demo_service.services.clock.today()
    for name in ("demo", "solo", "globe", "empty"):
        client = demo_service.named(name)
        answer = body_of(client, "/forecast")
        check_sums(answer, today)
        listed = [account["id"] for account in body_of(client, "/accounts")["accounts"]]
        told = [each["accountId"] for each in (*answer["accounts"], *answer["leftOut"])]
        assert sorted(told) == sorted(listed)
        assert sorted(id_ for each in answer["currencies"] for id_ in each["accountIds"]) == sorted(
            each["accountId"] for each in answer["accounts"]
        )
        for series in series_of(answer):
            assert len(series["days"]) == 90
            assert series["accuracy"]["beatsLastBalance"] == (
                series["accuracy"]["meanAbsoluteError"] < series["accuracy"]["lastBalanceError"]
            )
        assert body_of(client, "/forecast") == answer


@pytest.mark.requirement("forecast.answer")
def test_foreign_accounts_and_too_many_days_are_refused(demo_service: Service) -> None:
    client = demo_service.named("solo")
    foreign = body_of(demo_service.named("globe"), "/accounts")["accounts"][0]["id"]
    for query in ({"accountIds": foreign}, {"days": "0"}, {"days": "181"}, {"days": "x"}):
        assert client.get("/forecast", params=query).status_code == 400
    assert len(body_of(client, "/forecast", days=180)["accounts"][0]["days"]) == 180


@pytest.mark.requirement("forecast.figures_only")
@pytest.mark.sampled
def test_a_grant_of_some_accounts_is_told_of_those_alone(granted: Granted) -> None:
    whole = {each["accountId"]: each for each in body_of(granted.every, "/forecast")["accounts"]}
    own, other = list(whole)[:2]
    answer = body_of(granted.rest(only(own)), "/forecast")
    assert answer["accounts"] == [whole[own]]
    assert [each["accountIds"] for each in answer["currencies"]] == [[own]]
    assert answer["leftOut"] == []
    refused = granted.rest(only(own)).get("/forecast", params={"accountIds": other})
    assert refused.status_code == 400


@pytest.mark.requirement("forecast.figures_only")
@pytest.mark.sampled
def test_a_grant_of_figures_only_is_told_the_ends_of_months_and_no_names(granted: Granted) -> None:
    today = granted.service.services.clock.today()
    client = granted.rest(Terms(figures_only=True))
    answer = body_of(client, "/forecast", days=100)
    check_sums(answer, today)
    for series in series_of(answer):
        days = [date.fromisoformat(day["date"]) for day in series["days"]]
        assert [(day + timedelta(days=1)).day for day in days] == [1] * len(days)
        assert {(event["name"], event["subscriptionId"]) for event in series["events"]} <= {(None, None)}
        assert {event["date"] for event in series["events"]} <= {day["date"] for day in series["days"]}
    one_less = body_of(client, "/forecast", days=99)  # the difference would be what is due on the last day
    assert (answer["until"], one_less) == (series["days"][-1]["date"], answer)


@pytest.mark.requirement("forecast.events")
def test_what_is_paid_once_a_year_is_ahead_all_year_round(holder: Holder) -> None:
    fee = [
        booked(f"{year}-05-04", "-600.00", counterpart_name="Versicherung", purpose="Beitrag") for year in (2025, 2026)
    ]
    holder.bring(GIRO, [*ledger(), *fee], statement("2026-11-20", "1000.00"))
    (account,) = holder.get("/forecast", days=180)["accounts"]
    (id_,) = (
        each["id"]
        for each in holder.get("/subscriptions/details", status="ongoing")["subscriptions"]
        if each["merchantName"] == "Versicherung"
    )
    assert [
        (each["date"], each["amount"], each["subscriptionId"]) for each in account["events"] if each["amount"] == -600
    ] == [("2027-05-04", -600.0, id_)]
    due = due_payments(holder.service.services, holder.user.id, date(2026, 11, 20))
    assert [(each.id, each.day) for each in due if each.id == id_] == [(id_, date(2027, 5, 4))]
    for path in ("/subscriptions", "/subscriptions/details"):
        assert "Versicherung" not in {each["merchantName"] for each in holder.get(path)["subscriptions"]}


@pytest.mark.requirement("forecast.form")
def test_a_day_is_forecast_alike_however_many_are_asked_for(holder: Holder) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-20", "1000.00"))
    told = [holder.get("/forecast", days=days)["accounts"][0]["days"] for days in (25, 30, 90, 180)]
    assert [days[24] for days in told] == [told[0][24]] * 4
    assert told[0][24]["date"] == "2026-12-15"


@pytest.mark.requirement("forecast.events")
def test_what_is_pending_is_certain_and_takes_the_place_of_what_was_expected(holder: Holder) -> None:
    pending = [
        booked("2026-11-20", "-800.00", counterpart_name="Hausverwaltung", purpose="Miete", status="pending"),
        booked("2026-11-19", "-35.50", counterpart_name="Markt", purpose="Kauf", status="pending"),
    ]
    booked_ones = [each for each in ledger() if each.booking_date < date(2026, 11, 1) or each.amount != -800]
    late = [
        replace(each, booking_date=each.booking_date + timedelta(days=18)) if each.amount == -800 else each
        for each in booked_ones
    ]
    holder.bring(GIRO, [*late, *pending], statement("2026-11-20", "1000.00"))
    (account,) = holder.get("/forecast", days=30)["accounts"]
    assert account["balance"] == 1000.0
    assert [(each["date"], each["amount"], each["name"]) for each in account["events"] if each["isPending"]] == [
        ("2026-11-21", -800.0, "Hausverwaltung"),
        ("2026-11-21", -35.5, "Markt"),
    ]
    (rent,) = [each for each in account["events"] if each["name"] == "Hausverwaltung" and not each["isPending"]]
    assert rent["date"] >= "2026-12-18", "the pending one is that of November"
    assert account["nextPay"]["due"] == 1035.5  # rent and purchase, and the savings plan
    check_sums(holder.get("/forecast", days=30), date(2026, 11, 20))


@pytest.mark.requirement("forecast.events")
def test_what_was_due_while_nobody_asked_the_bank_is_expected_tomorrow_and_not_overdue(holder: Holder) -> None:
    holder.bring(GIRO, ledger(), statement("2026-11-20", "1000.00"))
    clock = holder.service.services.clock
    clock.offset += timedelta(days=25)
    try:
        client = holder.service.client(holder.user.id)
        (account,) = body_of(client, "/forecast", days=30)["accounts"]
        listed = body_of(client, "/subscriptions/details", status="all")["subscriptions"]
    finally:
        clock.offset -= timedelta(days=25)
    (rent,) = [each for each in listed if each["amount"] == 800]
    assert [(each["date"], each["amount"], each["isOverdue"]) for each in account["events"][:3]] == [
        ("2026-12-16", -800.0, False),
        ("2026-12-16", -200.0, False),
        ("2026-12-16", 2000.0, False),
    ]
    assert (rent["status"], rent["overdueSince"], rent["missedCharges"]) == ("active", None, [])
    assert rent["comingCharges"] == ["2027-01-01T00:00:00.000Z"]


@pytest.mark.requirement("forecast.events")
def test_pay_is_expected_on_a_bank_day(holder: Holder) -> None:
    days = ("05-29", "06-30", "07-31", "08-31", "09-30", "10-30")
    pay = [booked(f"2026-{day}", "2000.00", counterpart_name="Feinwerk", purpose="Lohn") for day in days]
    shopped = [
        booked(f"2026-{month:02}-{10 + month}", "-70.00", counterpart_name="Markt", purpose="Kauf")
        for month in range(5, 12)
    ]
    holder.bring(GIRO, [*pay, *shopped], statement("2026-11-20", "1000.00"))
    (account,) = holder.get("/forecast", days=180)["accounts"]
    assert [each["date"] for each in account["events"] if each["amount"] == 2000] == [
        *("2026-11-30", "2026-12-31", "2027-01-29", "2027-02-26", "2027-03-31", "2027-04-30")
    ]
    assert account["nextPay"]["date"] == "2026-11-30"
