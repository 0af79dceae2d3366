"""What the charges of one recurring payment tell: rhythm, prices, missed charges, what comes next."""

import json
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from analytics.recurring.frequencies import Unit
from analytics.recurring.history import Cadence, Charge, History, Price, history
from handlers import json_shapes
from tests.explanations.conftest import Service, body_of

TODAY = date(2026, 11, 20)


def told(days: str, *, frequency: str = "monthly", currency: str = "EUR", today: date = TODAY) -> History:
    """The history of charges `day amount`, one a line; an amount holds until another one is given."""
    amount, charges = Decimal("10.00"), []
    for number, line in enumerate(days.split("\n") if "\n" in days else days.split(",")):
        day, *price = line.split()
        amount = Decimal(price[0]) if price else amount
        charges.append(Charge(id=f"{number:03}", day=date.fromisoformat(day), amount=amount))
    return history(charges, frequency=frequency, currency=currency, today=today)


def every(
    count: int, unit: Unit, *, weekday: int | None = None, day: int | None = None, month: int | None = None
) -> Cadence:
    return Cadence(every=count, unit=unit, weekday=weekday, day_of_month=day, month=month)


def days(first: str, count: int, step: int) -> str:
    return ",".join(str(date.fromisoformat(first) + timedelta(days=step * number)) for number in range(count))


@pytest.mark.requirement("subscription.prices")
def test_a_price_lasts_until_another_amount_is_charged() -> None:
    found = told("2026-07-02 9.99,2026-08-03,2026-09-02 12.99,2026-10-02,2026-11-02 11.99")
    assert found.prices == [
        Price(since=date(2026, 7, 2), until=date(2026, 8, 3), amount=Decimal("9.99"), charges=2, change=None),
        Price(
            since=date(2026, 9, 2), until=date(2026, 10, 2), amount=Decimal("12.99"), charges=2, change=Decimal("3.00")
        ),
        Price(
            since=date(2026, 11, 2),
            until=date(2026, 11, 2),
            amount=Decimal("11.99"),
            charges=1,
            change=Decimal("-1.00"),
        ),
    ]
    assert found.first_charged == date(2026, 7, 2)


@pytest.mark.requirement("subscription.prices")
@pytest.mark.parametrize(
    ("frequency", "yearly"),
    [("weekly", "520.00"), ("biweekly", "260.00"), ("monthly", "120.00"), ("quarterly", "40.00"), ("yearly", "10.00")],
)
def test_the_yearly_cost_is_the_latest_charge_times_the_charges_of_a_year(frequency: str, yearly: str) -> None:
    assert told("2026-11-02 10.00", frequency=frequency).yearly_cost == Decimal(yearly)


@pytest.mark.requirement("subscription.prices")
def test_amounts_are_those_that_are_listed() -> None:
    found = told("2026-10-02 9.995,2026-11-02 9.985", currency="EUR")
    assert [str(price.amount) for price in found.prices] == ["10.00", "9.98"]
    assert str(found.yearly_cost) == "119.76"
    assert str(told("2026-11-02 999.5", currency="JPY").yearly_cost) == "12000"


@pytest.mark.requirement("subscription.cadence")
@pytest.mark.parametrize(
    ("charges", "frequency", "cadence", "next_expected"),
    [
        # the 1st, posted after weekends
        ("2026-08-03,2026-09-01,2026-10-01,2026-11-02", "monthly", every(1, "month", day=1), "2026-12-01"),
        # the last day of the month
        ("2026-07-31,2026-08-31,2026-09-30,2026-10-30", "monthly", every(1, "month", day=31), "2026-11-30"),
        # posted before the weekend: the 1st of November on the 30th of October
        ("2026-08-01,2026-09-01,2026-10-01,2026-10-30", "monthly", every(1, "month", day=1), "2026-12-01"),
        (days("2026-06-01", 7, 28), "monthly", every(28, "day"), "2026-12-14"),
        (days("2026-06-03", 6, 30), "monthly", every(30, "day"), "2026-11-30"),
        # a Tuesday, once on a Wednesday after a holiday
        ("2026-10-27,2026-11-03,2026-11-10,2026-11-18", "weekly", every(1, "week", weekday=2), "2026-11-24"),
        (days("2026-10-09", 4, 14), "biweekly", every(2, "week", weekday=5), "2026-12-04"),
        # the 15th, posted after weekends
        ("2026-02-16,2026-05-15,2026-08-17,2026-11-16", "quarterly", every(3, "month", day=15), "2027-02-15"),
        ("2024-02-29,2025-02-28,2026-02-27", "yearly", every(12, "month", day=31, month=2), "2027-02-26"),
        ("2025-12-31,2026-12-31", "yearly", every(12, "month", day=31, month=12), "2027-12-31"),
    ],
)  # fmt: skip
def test_the_rhythm_has_its_place_in_the_calendar(
    charges: str, frequency: str, cadence: Cadence, next_expected: str
) -> None:
    found = told(charges, frequency=frequency)
    assert replace(found.cadence, posted="then") == cadence
    assert found.next_expected == date.fromisoformat(next_expected)
    assert found.missed == []


@pytest.mark.requirement("subscription.missed")
def test_a_charge_that_did_not_come_is_named_with_the_day_on_which_it_was_due() -> None:
    found = told("2026-05-05,2026-06-05,2026-09-07,2026-10-05,2026-11-05")
    assert found.missed == [date(2026, 7, 6), date(2026, 8, 5)]  # the 5th of July was a Sunday
    weekly = told("2026-10-20,2026-10-27,2026-11-10,2026-11-17", frequency="weekly")
    assert weekly.missed == [date(2026, 11, 3)]


@pytest.mark.requirement("subscription.missed")
@pytest.mark.parametrize(
    ("today", "missed", "next_expected"),
    [
        ("2026-11-05", [], "2026-11-05"),
        ("2026-11-10", [], "2026-11-05"),  # five days late: it may still come
        ("2026-11-11", ["2026-11-05"], "2026-12-05"),
        ("2026-12-11", ["2026-11-05", "2026-12-05"], "2027-01-05"),
    ],
)
def test_a_charge_is_missed_once_it_is_later_than_charges_are(
    today: str, missed: list[str], next_expected: str
) -> None:
    found = told("2026-08-05,2026-09-05,2026-10-05", today=date.fromisoformat(today))
    assert [str(day) for day in found.missed] == missed
    assert str(found.next_expected) == next_expected


@pytest.mark.requirement("subscription.missed")
def test_two_charges_of_one_period_miss_nothing() -> None:
    assert told("2026-09-05,2026-10-05,2026-10-06,2026-11-05").missed == []


@pytest.mark.requirement("subscription.cadence")
def test_a_contract_that_moved_to_another_day_is_expected_there() -> None:
    before = [str(date(2025 + month // 12, month % 12 + 1, 3)) for month in range(0, 10)]
    since = [str(date(2025 + month // 12, month % 12 + 1, 18)) for month in range(10, 23)]
    found = told(",".join([*before, *since]))
    assert found.cadence.day_of_month == 18
    assert found.next_expected == date(2026, 12, 18)


def test_the_order_of_the_charges_makes_no_difference() -> None:
    lines = ["2026-07-02 9.99", "2026-08-03 9.99", "2026-09-02 12.99", "2026-11-02 12.99"]
    assert told("\n".join(lines)) == told("\n".join(reversed(lines)))


@pytest.mark.requirement("subscriptions.price_change")
def test_the_latest_change_of_a_price_is_told_in_the_list() -> None:
    def changed(*prices: str) -> Any:
        found = told(",".join(f"2026-{month:02}-02 {price}" for month, price in enumerate(prices, 1)))
        return json.loads(orjson.dumps(json_shapes.price_change(found.prices, "EUR")))

    assert changed("10.00", "10.00") is None
    assert changed("0.001", "5.00") is None
    assert changed("10.99", "10.99", "12.99") == {"amount": 2.0, "percent": 18.2, "since": "2026-03-02T00:00:00.000Z"}
    assert changed("4.00", "12.00", "9.00")["percent"] == -25.0


@pytest.mark.requirement("subscriptions.price_change")
def test_every_recurring_payment_of_the_demo_tells_its_latest_price(demo_service: Service) -> None:
    client = demo_service.named("demo")
    ids = ",".join(account["id"] for account in body_of(client, "/accounts")["accounts"])
    listed = body_of(client, "/subscriptions/details", accountIds=ids)["subscriptions"]
    assert any(each["priceChange"] for each in listed)
    for each in listed:
        last = each["priceHistory"][-1]
        change = each["priceChange"] or {"amount": None, "since": last["since"]}
        assert (change["amount"], change["since"]) == (last["change"], last["since"])
