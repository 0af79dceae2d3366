"""Made-up households of other countries: found are their contracts, not their habits.

Each country writes its bookings in its own way; the histories are functions of country and number, so that a failure
can be repeated. What is counted: a stream is found when frequency, latest amount and last day are right.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest

from analytics.frames import CHARGES
from analytics.recurring.detection import detect

TODAY = date(2026, 11, 20)
START = date(2024, 11, 1)
USERS = 12
Row = dict[str, object]


@dataclass
class Country:
    """How a country's banks write a card payment, what saving is called there, and what money is."""

    card: Callable[[random.Random, str], Row]
    saving: str
    currency: str


@dataclass
class Household:
    """The bookings of one user and the streams that must be found in them."""

    user: str
    rnd: random.Random
    country: Country
    rows: list[Row] = field(default_factory=list)
    truth: list[tuple[str, Decimal, date]] = field(default_factory=list)

    def book(self, day: date, amount: Decimal, written: Row) -> None:
        blank: Row = {
            **dict.fromkeys(CHARGES),
            "user_id": self.user,
            "account_id": "a",
            "currency": self.country.currency,
            "is_potential_duplicate": False,
            "is_adjusting_entry": False,
        }
        number = f"{self.user}-{len(self.rows):05}"
        self.rows.append({**blank, **written, "id": number, "booking_date": day, "amount": -amount})

    def stream(self, frequency: str, days: list[date], prices: list[Decimal], write: Callable[[], Row]) -> None:
        """Charges on these days (after a weekend on Monday), the last of which must be reported."""
        posted = [(working_day(day), price) for day, price in zip(days, prices, strict=True)]
        posted = [(day, price) for day, price in posted if day <= TODAY]
        for day, price in posted:
            self.book(day, price, write())
        self.truth.append((frequency, posted[-1][1], posted[-1][0]))

    def habit(self, every: float, price: Callable[[], Decimal], write: Callable[[], Row]) -> None:
        """Purchases at times that no calendar knows."""
        day = float(self.rnd.randrange(5))
        while START + timedelta(days=round(day)) <= TODAY:
            self.book(START + timedelta(days=round(day)), price(), write())
            day += max(1.0, self.rnd.expovariate(1 / every))


def working_day(day: date) -> date:
    """The day itself, or the Monday after a weekend."""
    return day + timedelta(days=(7 - day.weekday()) if day.weekday() > 4 else 0)


def monthly(first: date, day: int, every: int = 1) -> list[date]:
    """The same day of the month, up to today."""
    months = range(first.year * 12 + first.month - 1, TODAY.year * 12 + TODAY.month, every)
    days = [date(month // 12, month % 12 + 1, min(day, 28)) for month in months]
    return [each for each in days if first <= each <= TODAY]


def money(rnd: random.Random, low: int, high: int) -> Decimal:
    """Any amount to the cent."""
    return Decimal(rnd.randrange(low * 100, high * 100)) / 100


def household(country: Country, user: str, seed: int) -> Household:
    """Plans, contracts, rent, a cleaner, an insurance, a membership; shops, coffee, meals, savings, cash, salary."""
    rnd = random.Random(seed)
    home = Household(user, rnd, country)
    plans, utilities = rnd.sample(PLANS, 3), rnd.sample(UTILITIES, 3)
    for plan, price in zip(plans, rnd.sample(["4.99", "7.99", "11.99", "16.99", "23.49"], 3), strict=True):
        days = monthly(date(2025, rnd.randrange(1, 12), 1), rnd.randrange(1, 29))
        old = Decimal(price)
        new = old + Decimal("2.00") if rnd.random() < 0.3 else old
        prices = [old if day < date(2026, 6, 1) else new for day in days]
        home.stream("monthly", days, prices, lambda plan=plan: country.card(rnd, plan))  # type: ignore[misc]  # bound now
    for number, utility in enumerate(utilities):
        mandate = f"{user}-M{number}"
        days = monthly(START, rnd.randrange(1, 29))
        base = money(rnd, 20, 90)
        prices = [base + money(rnd, 0, 9) * (number % 2) for _ in days]
        home.stream(
            "monthly",
            days,
            prices,
            lambda u=utility, m=mandate: {**debit(rnd, u), "mandate_reference": m},  # type: ignore[misc]
        )
    landlord, cleaner = rnd.sample(PEOPLE, 2)
    days = monthly(START, 1)
    home.stream("monthly", days, [Decimal("845.00")] * len(days), lambda: transfer(rnd, landlord))
    days = [date(2026, 3, 3) + timedelta(days=14 * n) for n in range(19)]
    home.stream("biweekly", days, [Decimal("45.00")] * len(days), lambda: transfer(rnd, cleaner))
    days = monthly(date(2025, 2, 1), 15, every=3)
    insurer = {**debit(rnd, "Halcyon Assurance"), "mandate_reference": f"{user}-Q"}
    home.stream("quarterly", days, [Decimal("61.30")] * len(days), lambda: insurer)
    days = [date(2025, 7, 9), date(2026, 7, 9)]
    club = {**debit(rnd, "Quillmere Society"), "mandate_reference": f"{user}-Y"}
    home.stream("yearly", days, [Decimal("54.00")] * 2, lambda: club)
    for shop in SHOPS:
        home.habit(rnd.uniform(4, 15), lambda: money(rnd, 4, 95), lambda shop=shop: country.card(rnd, shop))  # type: ignore[misc]
    home.habit(3, lambda: Decimal("3.40"), lambda: country.card(rnd, "Cafe Brisk"))
    home.habit(40, lambda: Decimal("29.00"), lambda: country.card(rnd, "Salon Vex"))
    home.habit(9, lambda: Decimal(rnd.choice([50, 100])), lambda: {"type": "cash_withdrawal", "purpose": "cash"})
    for day in monthly(START, 25):
        home.book(day, Decimal("-2900.00"), {"counterpart_name": "Employer", "type": "salary"})
        home.book(day, Decimal("200.00"), {"counterpart_name": "Own Name", "purpose": country.saving})
    return home


def british(rnd: random.Random, name: str) -> Row:
    tail = rnd.choice(["LONDON", "LEEDS", f"{rnd.randrange(10**4, 10**6)}", "ON 12 MAR BCC", ""])
    return {"counterpart_name": f"CARD PAYMENT TO {name.upper()} {tail}".strip(), "type": "card_payment"}


def dutch(rnd: random.Random, name: str) -> Row:
    place = rnd.choice(["UTRECHT", "AMSTERDAM", "HAARLEM"])
    texts = [f"BCK*{name} {place}", f"{name} {rnd.randrange(1000, 9999)}", f"CCV*{name}"]
    return {"counterpart_name": rnd.choice(texts), "purpose": f"Betaalautomaat 1{rnd.randrange(9)}:31 pas 001"}


def american(rnd: random.Random, name: str) -> Row:
    tail = rnd.choice(["866-579-7172 CA", f"#{rnd.randrange(100, 9999)} SEATTLE WA", "NEW YORK NY", ""])
    lead = rnd.choice(["", "", "SQ *", "TST* "])
    return {"counterpart_name": f"{lead}{name.upper()} {tail}".strip()}


def czech(rnd: random.Random, name: str) -> Row:
    return {"purpose": f"{name} {rnd.choice(['Praha', 'Brno', 'PRAHA 4', ''])} platba kartou {rnd.randrange(10**5)}"}


def debit(rnd: random.Random, name: str) -> Row:
    return {"counterpart_name": rnd.choice([name, name.upper()]), "purpose": f"ref {rnd.randrange(10**8)}"}


def transfer(rnd: random.Random, name: str) -> Row:
    return {"counterpart_name": name, "counterpart_iban": f"XX{sum(map(ord, name)):020}", "type": "transfer"}


COUNTRIES = {
    "United Kingdom": Country(british, saving="SAVINGS", currency="GBP"),
    "Netherlands": Country(dutch, saving="Spaarrekening", currency="EUR"),
    "United States": Country(american, saving="transfer to savings", currency="USD"),
    "Czechia": Country(czech, saving="Spoření", currency="CZK"),
}
PLANS = ["Streamly", "Musiqa", "Cloudnest", "Readwell", "Fitpod", "Gamevault", "Newsbeam"]
UTILITIES = ["Voltara Energy", "Aquaflux Water", "Telmora Mobile", "Netspan Fibre", "Heatwise"]
PEOPLE = ["Jo Marlow", "Pat Quince", "Ida Storm", "Kim Vale"]
SHOPS = ["Grocerama", "Dragstore", "Fuelmart", "Bookbarn", "Pizzeria Uno"]


@pytest.mark.requirement("subscriptions.anywhere")
@pytest.mark.parametrize("name", COUNTRIES)
@pytest.mark.sampled
def test_contracts_are_found_and_habits_are_not(name: str) -> None:
    homes = [household(COUNTRIES[name], f"u{number:02}", 1000 + number) for number in range(USERS)]
    users = pl.DataFrame({"user_id": [home.user for home in homes], "today": [TODAY] * USERS})
    found = detect(pl.DataFrame([row for home in homes for row in home.rows], schema=CHARGES), users)
    said = {
        (row["user_id"], row["frequency"], row["amount"], row["last_charged"]) for row in found.iter_rows(named=True)
    }
    true = {(home.user, *stream) for home in homes for stream in home.truth}
    assert len(true) == USERS * 10
    assert len(said & true) >= 0.96 * len(true), sorted(true - said)
    assert len(said - true) <= 0.02 * len(true), sorted(said - true)


@pytest.mark.requirement("subscriptions.anywhere")
def test_standing_orders_known_by_nothing_but_the_account_they_go_to() -> None:
    rnd = random.Random(7)
    rows: list[Row] = []
    true = set()
    home = Household("u", rnd, COUNTRIES["Czechia"])
    for number in range(8):
        day, price = rnd.randrange(1, 28), money(rnd, 200, 9000)
        days = monthly(START, day)[-3 if number % 2 else 0 :]
        written: Row = {"counterpart_iban": f"CZ{number:022}", "purpose": rnd.choice(["SIPO", "POJISTNE", ""]) or None}
        for due in days:
            home.book(due, price, written)
        true.add(("monthly", price, days[-1]))
    home.habit(6, lambda: Decimal(rnd.randrange(1, 90) * 100), lambda: {"type": "cash_withdrawal"})
    home.habit(9, lambda: money(rnd, 100, 4000), lambda: {"counterpart_iban": f"CZ9{rnd.randrange(6):021}"})
    rows = home.rows
    found = detect(pl.DataFrame(rows, schema=CHARGES), pl.DataFrame({"user_id": ["u"], "today": [TODAY]}))
    assert {(row["frequency"], row["amount"], row["last_charged"]) for row in found.iter_rows(named=True)} == true
