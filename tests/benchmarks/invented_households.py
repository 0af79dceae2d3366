"""Invented households: two years of bookings of many ways of life, and what happened to them in the second."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

from analytics.bank_days import bank_day_by, bank_day_from

FIRST, YEAR, LAST = date(2024, 1, 1), date(2025, 1, 1), date(2025, 12, 31)
DAY = timedelta(days=1)
CENT = Decimal("0.01")


class Way(NamedTuple):
    """A way of life: the rhythm and days of its pay with the lowest and highest amount, the payer, the share of it that
    is spent by card, how many contracts, every how many days its bank is asked, and whether it lives from hand to
    mouth (a share of such households)."""

    rhythm: str
    days: Sequence[int]
    low: int
    high: int
    payer: tuple[str, str, str]
    cards: float = 0.13
    contracts: tuple[int, int] = (6, 10)
    asked: int = 7
    tight: float = 0.5
    more: Sequence[str] = ()


EMPLOYER, OFFICE = ("Arbeitgeber Feinwerk GmbH", "Gehalt", "153"), ("Landesamt für Besoldung", "Bezüge", "153")
PENSION, STATE = ("Renten Service", "Rente", "153"), ("Bundesagentur für Arbeit", "Arbeitslosengeld", "166")
WAYS = {
    "employee": Way("month", (27,), 1900, 4200, EMPLOYER),
    "paid on the last": Way("month", (31,), 1900, 4200, EMPLOYER),
    "paid on the 15th": Way("month", (15,), 1800, 3600, EMPLOYER),
    "paid on the first": Way("after", (1,), 2000, 3800, OFFICE),
    "civil servant": Way("month", (30,), 3000, 5200, OFFICE, more=("loan", "savings")),
    "pensioner": Way("month", (31,), 1000, 2100, PENSION, cards=0.15, contracts=(4, 7)),
    "out of work": Way("month", (31,), 900, 1600, STATE, contracts=(3, 6), tight=0.8),
    "student": Way("after", (1,), 900, 1200, ("Mutter Beispiel", "Unterhalt", "166"), contracts=(3, 5), tight=0.7),
    "apprentice": Way("month", (15,), 950, 1300, EMPLOYER, contracts=(3, 5)),
    "paid twice a month": Way("twice", (1, 15), 900, 1900, EMPLOYER),
    "paid weekly": Way("weekly", (5,), 420, 700, EMPLOYER, contracts=(4, 7)),
    "two earners": Way("month", (27, 15), 1800, 3000, EMPLOYER, contracts=(8, 12), more=("savings",)),
    "family": Way("month", (28,), 2600, 4800, EMPLOYER, contracts=(9, 12), more=("child", "loan", "savings")),
    "single parent": Way("month", (30,), 1500, 2300, EMPLOYER, tight=0.8, more=("child", "maintenance")),
    "hours that vary": Way("varying", (27,), 1200, 2400, EMPLOYER, contracts=(4, 8)),
    "commission": Way("varying", (25,), 2200, 3800, EMPLOYER, more=("dear",)),
    "with a bonus": Way("month", (27,), 2400, 4000, EMPLOYER, more=("bonus",)),
    "house owner": Way("month", (26,), 3000, 5200, EMPLOYER, more=("loan", "tax")),
    "saver": Way("month", (27,), 2400, 3900, EMPLOYER, cards=0.1, tight=0.2, more=("savings",)),
    "pays in cash": Way("month", (27,), 1700, 2800, EMPLOYER, cards=0.02, more=("cash",)),
    "buys much online": Way("month", (27,), 2200, 3600, EMPLOYER, cards=0.35, more=("online",)),
    "commuter": Way("month", (29,), 2200, 3600, EMPLOYER, more=("tickets", "dear")),
    "by the mandate": Way("month", (27,), 1900, 3400, EMPLOYER, contracts=(9, 12), more=("rent by debit",)),
    "freelancer": Way("never", (), 2500, 4500, ("Kunde Werbung AG", "Rechnung", "166"), tight=0.3, more=("tax",)),
}
CONTRACTS = [  # name, lowest and highest price, day of the month, every so many months
    ("Stadtwerke Musterstadt", 60, 140, 3, 1), ("Telefonwerk GmbH", 25, 45, 6, 1), ("Streambox", 9, 18, 11, 1),
    ("Musikbox AB", 8, 12, 14, 1), ("Fitnesswelt GmbH", 20, 45, 2, 1), ("Hausrat Versicherung AG", 60, 120, 5, 12),
    ("Rundfunkbeitrag", 55, 56, 15, 3), ("Kfz Versicherung VVaG", 90, 180, 4, 3), ("Zeitungsverlag Nord", 25, 40, 8, 1),
    ("Kita Sonnenschein", 150, 300, 10, 1), ("Autobank Rate", 180, 320, 20, 1), ("Bausparkasse Ring", 50, 100, 22, 1),
]  # fmt: skip
NEW = ["Bootsverein Nord eV", "Yogastudio Lotus", "Sprachschule Globus", "Tierklinik Abo", "Buchclub Leselust"]
SHOPS = [("REWE Markt", 8, 70), ("EDEKA Nord", 6, 60), ("ARAL Station", 38, 79), ("Kino Central", 11, 34),
         ("Amazon Marketplace", 9, 85), ("Restaurant Olive", 14, 58), ("dm Drogerie", 4, 38)]  # fmt: skip


class Truth(NamedTuple):
    """Something that happened: its kind, what names its cause, the first day on which it can be known, and the last on
    which its notice is right, if its bank is asked then."""

    kind: str
    cause: str
    day: date
    until: date


class Household:
    """The bookings of a household with the labels of what happened to it."""

    def __init__(self, number: int, seed: int, *, is_quiet: bool) -> None:
        self.id, self.dice, self.is_quiet = f"u{number}", Random(f"{seed}/{number}/{is_quiet}"), is_quiet
        self.name = list(WAYS)[number % len(WAYS)]
        self.way = WAYS[self.name]
        self.rows: list[dict[str, Any]] = []
        self.truths: list[Truth] = []
        self.known: list[tuple[date, Decimal]] = []  # what falls due, as its person can know it
        self.pay_days: list[date] = []
        dice = self.dice
        self.income = Decimal(dice.randint(self.way.low, self.way.high))
        rounds = {"twice": 2, "weekly": 4}.get(self.way.rhythm, len(self.way.days) or 1)
        self.a_month = self.income * rounds
        self.is_tight = not is_quiet and dice.random() < self.way.tight
        self.opening = Decimal(20_000 if is_quiet else dice.randint(150, 900) if self.is_tight else 6_000)
        self.asked = [YEAR + DAY * back for back in range(365) if (back + number) % self.way.asked == 0]
        self._income()
        self._rent()
        for each in dice.sample(CONTRACTS, dice.randint(*self.way.contracts)):
            self._contract(*each)
        self._cards()
        self._further()
        self._lookalikes()
        if not is_quiet:
            self._new_debits()
            self._doubles()
        self.rows.sort(key=lambda row: (row["booking_date"], row["id"]))
        self.pay_days.sort()
        self.known.sort()

    def book(self, day: date, amount: Decimal, name: str, purpose: str, gvc: str, **more: Any) -> None:
        """Add a booking, unless it is after the last day."""
        if FIRST <= day <= LAST:
            self.rows.append({"id": f"{self.id}-{len(self.rows)}", "account_id": "giro", "user_id": self.id,
                "booking_date": day, "amount": amount, "currency": "EUR", "counterpart_name": name, "purpose": purpose,
                "gvc": gvc, "is_reversal": False, "is_return": False, "is_adjusting_entry": False,
                "is_potential_duplicate": False, **more})  # fmt: skip

    def first_asked(self, day: date) -> date:
        """The first day from this one on, on which the bank is asked."""
        place = bisect_right(self.asked, day - DAY)
        return self.asked[place] if place < len(self.asked) else LAST + DAY

    def shortfalls(self, balances: dict[date, Decimal]) -> Iterator[Truth]:
        """The stretches until the next pay that known payments alone end below zero, from the day on which that lies
        within ten days and the balance is not below zero."""
        told: set[date] = set()
        for day in self.asked:
            if balances[day] < 0:
                continue
            pay = next((each for each in self.pay_days if each > day), None)
            until, left = day + 10 * DAY if pay is None else min(pay - DAY, day + 10 * DAY), balances[day]
            short = None
            for when, amount in self.known[bisect_right(self.known, (day, Decimal("Infinity"))) :]:
                if when > until:
                    break
                left += amount
                if left < 0:
                    short = when
                    break
            cause = pay or short
            same = timedelta(days=6 if pay else 10)
            if short is not None and cause is not None and not any(abs(cause - each) <= same for each in told):
                told.add(cause)
                yield Truth("overdraft.ahead", cause.isoformat(), day, self.first_asked(day + DAY))

    def _pays(self) -> Iterator[tuple[date, str]]:
        """The days on which pay is due, each with who else pays it."""
        rhythm = self.way.rhythm
        if rhythm == "weekly":
            for week in range(104):
                yield bank_day_by(FIRST + DAY * (4 + 7 * week)), ""
        for number, on in enumerate(self.way.days if rhythm != "weekly" else ()):
            for first in months(FIRST, 24):
                day = first.replace(day=min(on, (months(first, 2)[1] - DAY).day))
                is_other = number and rhythm != "twice"
                yield (
                    bank_day_from(day) if rhythm == "after" else bank_day_by(day),
                    "Klinikum Seeblick" if is_other else "",
                )

    def _income(self) -> None:
        dice, way = self.dice, self.way
        name, text, gvc = way.payer
        due = list(self._pays())
        may_be_late = [day for day, _ in due if YEAR + 40 * DAY <= day <= LAST - 60 * DAY]
        is_pay = gvc == "153" and len(way.days) == 1 and way.rhythm != "weekly" and name != PENSION[0]
        late = dice.choice(may_be_late) if is_pay and not self.is_quiet and dice.random() < 0.5 else None
        for day, other in due:
            self.pay_days.append(day)
            came = day
            if day == late:
                late, grace = None, timedelta(days=5 if way.rhythm != "twice" else 4)
                begin = day + grace + DAY
                came = bank_day_from(day + timedelta(days=dice.randint(12, 14)))
                if self.first_asked(begin) < came:  # else nobody can know
                    self.truths.append(Truth("income.late", name.split()[0], begin, begin + 2 * DAY))
            share = Decimal(dice.randint(85, 120)) / 100 if way.rhythm == "varying" else Decimal(1)
            if day.month == 11 and "bonus" in way.more:
                share += Decimal("0.8")
            self.book(came, (self.income * share).quantize(CENT), other or name, f"{text} {day:%m/%Y}", gvc)
        if way.rhythm == "never":
            for first in months(FIRST, 24):
                for client in dice.sample(["Kunde Werbung AG", "Verlag Süd", "Agentur Blick", "Messe Ost"], 2):
                    paid = bank_day_from(first + timedelta(days=dice.randint(0, 26)))
                    share = Decimal(dice.randint(20, 80)) / 100
                    self.book(paid, (self.income * share).quantize(CENT), client, f"Rechnung {first:%m}", gvc)

    def _rent(self) -> None:
        about = {"creditor_id": "DE55ZZZ00000000055", "mandate_reference": f"MIETE{self.id}"}
        more, gvc = (about, "105") if "rent by debit" in self.way.more else ({}, "117")
        rent = (self.a_month * Decimal("0.33")).quantize(Decimal(1))
        for first in months(FIRST, 24):
            day = bank_day_from(first)
            self.book(day, -rent, "Hausverwaltung Grünberg", "Miete Wohnung 12", gvc, **more)
            self.known.append((day, -rent))

    def _contract(self, name: str, low: int, high: int, on: int, every: int) -> None:
        """A contract, whose price may rise once, and one of whose debits may come back."""
        dice, price = self.dice, Decimal(self.dice.randint(low * 100, high * 100)) / 100
        number = sum(map(ord, name))
        about = {"creditor_id": f"DE{number % 90 + 10}ZZZ{number:011}", "mandate_reference": f"M{self.id}{number:06}"}
        is_varying, before = name.startswith("Telefonwerk"), price
        rises = None if self.is_quiet or is_varying or dice.random() > 0.25 else dice.choice(months(YEAR, 9))
        fails = None if self.is_quiet or dice.random() > 0.15 else dice.choice(months(YEAR, 11))
        for nth, first in enumerate(months(FIRST, 24)):
            if nth % every:
                continue
            day = bank_day_from(first.replace(day=on))
            if rises is not None and first >= rises:
                price, rises = (price * Decimal("1.15") + Decimal("0.6")).quantize(CENT), None
                self.truths.append(Truth("price.raised", name, day, day + DAY))
            amount = price + (Decimal(dice.randint(0, 900)) / 100 if is_varying else 0)
            self.book(day, -amount, name, f"Beitrag {first:%m/%Y}", "105", **about)
            self.known.append((day, -before))
            before = amount
            if fails == first and every == 1:
                back = bank_day_from(day + timedelta(days=3))
                more = {**about, "bank_transaction_code": "PMNT-RDDT-UPDD", "is_return": True}
                self.book(back, amount, name, "Ruecklastschrift AM04", "181", **more)
                self.truths.append(Truth("payment.failed", name, back, back + DAY))
                again = bank_day_from(back + timedelta(days=8))
                self.book(again, -amount, name, "Beitrag, zweiter Einzug", "105", **about)

    def _cards(self) -> None:
        dice, day = self.dice, FIRST
        share = float(self.a_month) * self.way.cards * (1.4 if self.is_tight else 1) / 30 / 35
        while day <= LAST:
            for name, low, high in SHOPS:
                if dice.random() < share / len(SHOPS):
                    self.book(day, -Decimal(dice.randint(low * 100, high * 100)) / 100, name, "Kartenzahlung", "106")
            day += DAY

    def _further(self) -> None:
        """What belongs to some ways of life."""
        dice, more = self.dice, self.way.more
        tax = Decimal(dice.randint(150, 400))
        for first in months(FIRST, 24):
            monthly: Sequence[tuple[str, int, Decimal, str, str, str, dict[str, str]]] = (
                ("savings", 28, Decimal(-100), "Eva Muster", "Sparen", "117", {"transfer_account_id": "savings"}),
                ("loan", 30, -(self.a_month * Decimal("0.2")).quantize(Decimal(1)), "Hausbank Darlehen", "Rate", "105",
                 {"mandate_reference": f"DARL{self.id}"}),
                ("child", 8, Decimal(255), "Familienkasse", "Kindergeld", "166", {}),
                ("maintenance", 3, Decimal(300), "Peter Muster", "Unterhalt", "166", {}),
                ("tickets", 1, Decimal("-58.00"), "Verkehrsbund Abo", "Deutschlandticket", "105",
                 {"mandate_reference": f"TICKET{self.id}"}),
            )  # fmt: skip
            for what, on, amount, name, text, gvc, about in monthly:
                if what in more:
                    day = bank_day_from(first.replace(day=min(on, 28)))
                    self.book(day, amount, name, text, gvc, **about)
                    if day > FIRST + 100 * DAY:
                        self.known.append((day, amount))
            if "tax" in more and first.month % 3 == 2:
                due = bank_day_from(first.replace(day=15))
                self.book(due, -tax, "Finanzamt Musterstadt", "Vorauszahlung", "105", mandate_reference=f"ST{self.id}")
                self.known.append((due, -tax))
            if "cash" in more:
                for _ in range(4):
                    day = first + timedelta(days=dice.randint(0, 27))
                    self.book(day, -Decimal(dice.choice([50, 100, 150])), "Sparkasse", "Geldautomat", "106")
            if "online" in more:
                for _ in range(dice.randint(1, 4)):
                    day = first + timedelta(days=dice.randint(0, 27))
                    ref = {"creditor_id": "LU96ZZZ0000000000000000058", "mandate_reference": "5FAF224LV"}
                    self.book(day, -Decimal(dice.randint(900, 7900)) / 100, "PayPal Europe", f"Einkauf {day}", "105",
                              **ref)  # fmt: skip

    def _lookalikes(self) -> None:
        """What is like an incident and none."""
        dice = self.dice
        for first in months(FIRST, 24):
            day = first + timedelta(days=dice.randint(0, 26))
            ticket = -Decimal(dice.choice([320, 1180, 2360] if "dear" in self.way.more else [320, 1180])) / 100
            for _ in range(2):
                self.book(day, ticket, "Verkehrsbetriebe", f"Handyticket {dice.randint(1, 9999)}", "106")
            market = {"creditor_id": "DE77ZZZ00000000077", "mandate_reference": f"{dice.randint(10**9, 10**10)}"}
            spent = -Decimal(dice.randint(900, 7000)) / 100
            self.book(day, spent, "Baumarkt Kasse", "ELV-Lastschrift", "107", **market)
            dollars, rate = Decimal("9.99"), Decimal(dice.randint(88, 97)) / 100
            abroad = {"original_amount": -dollars, "original_currency": "USD"}
            abo = bank_day_from(first.replace(day=18))
            self.book(abo, -(dollars * rate).quantize(CENT), "Cloudbox Inc", "Abo USD 9,99", "106", **abroad)
            self.known.append((abo, -(dollars * rate).quantize(CENT)))
            if first.month in (3, 9):
                bought = -Decimal(dice.randint(2000, 9000)) / 100
                self.book(day, bought, "Schuhhaus Sohle", "Kauf", "106")
                self.book(day + timedelta(days=9), -bought, "Schuhhaus Sohle", "Erstattung", "190")

    def _new_debits(self) -> None:
        for name in self.dice.sample(NEW, self.dice.randint(0, 2)):
            begin = YEAR + timedelta(days=self.dice.randint(10, 300))
            price = Decimal(self.dice.randint(1500, 6000)) / 100
            about = {"creditor_id": f"DE10ZZZ{sum(map(ord, name)):011}",
                     "mandate_reference": f"N{self.id}{sum(map(ord, name)):06}"}  # fmt: skip
            first = bank_day_from(begin)
            self.truths.append(Truth("debit.new", name, first, first + DAY))
            for number in range(12):
                day = bank_day_from(begin + timedelta(days=30 * number))
                self.book(day, -price, name, "Mitgliedsbeitrag", "105", **about)
                if number >= 3:
                    self.known.append((day, -price))

    def _doubles(self) -> None:
        dice = self.dice
        shops = [row for row in self.rows if row["booking_date"] >= YEAR + timedelta(days=60) and row["gvc"] == "106"
                 and row["amount"] <= -10 and row["counterpart_name"] in {name for name, _, _ in SHOPS}]  # fmt: skip
        paired = set()  # a second pair at a payee within a year is no surprise
        for row in dice.sample(shops, min(len(shops), dice.randint(0, 2))):
            day = row["booking_date"] + timedelta(days=dice.randint(0, 1))
            since = row["booking_date"] - timedelta(days=360)
            before = sum(each["counterpart_name"] == row["counterpart_name"] for each in self.rows
                         if since <= each["booking_date"] < row["booking_date"])  # fmt: skip
            if before >= 5 and row["counterpart_name"] not in paired and day <= LAST:
                paired.add(row["counterpart_name"])
                self.book(day, row["amount"], row["counterpart_name"], "Kartenzahlung", "106")
                self.truths.append(Truth("charge.double", row["counterpart_name"], day, day + DAY))


def months(first: date, number: int) -> list[date]:
    """The first days of so many months."""
    return [
        date(first.year + (first.month - 1 + each) // 12, (first.month - 1 + each) % 12 + 1, 1)
        for each in range(number)
    ]


def balances_of(each: Household) -> dict[date, Decimal]:
    """The balance at the end of each day. Who lives from hand to mouth has little left before each pay: else the second
    year would have one kind of household."""
    moved: defaultdict[date, Decimal] = defaultdict(Decimal)
    for row in each.rows:
        moved[row["booking_date"]] += row["amount"]
    before = {day - DAY for day in each.pay_days} or {first + 20 * DAY for first in months(FIRST, 24)}
    found, balance, day = {}, each.opening, FIRST
    while day <= LAST:
        balance += moved[day]
        if each.is_tight and day in before and abs(balance) > 300:
            balance = Decimal(150)
        found[day] = balance
        day += DAY
    return found
