"""How often notices are right: labelled years of invented households, looked at on every day.

    python tests/benchmarks/notices.py [--households 100] [--quiet 20] [--seed 1]

Each household has two years of bookings: salary, contracts, cards, savings, and what is like an incident but none
(bills by use, tickets bought twice, cash desks that collect by mandate, refunds, prices in dollars). In the second year
things happen to it, each labelled with the day on which it can be known. Quiet households have money and no incidents.
A day's look calls what handlers.work.sync.notices.look calls, on the bookings until then; what it found before is not
told again. Right is a notice of the right kind about the right cause, at most a day late.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

import polars as pl

# a script's own folder comes first on the path, and there is an analytics.py beside this one
sys.path[0] = str(Path(__file__).resolve().parents[2])

from analytics.bank_days import bank_day_by, bank_day_from  # noqa: E402 - after the line above
from analytics.classification.classify import classify  # noqa: E402
from analytics.forecasting.flows import recurring_flows, streams_of  # noqa: E402
from analytics.forecasting.ledgers import AccountLedger  # noqa: E402
from analytics.frames import CHARGES, CLASSIFIABLE, TYPES  # noqa: E402
from analytics.notices import ahead, bookings, recurring  # noqa: E402
from analytics.notices.bookings import NOTICED, bookings_of  # noqa: E402
from analytics.notices.found import Finding  # noqa: E402
from analytics.notices.recurring import PaidCharge, Payment  # noqa: E402
from analytics.recurring.detection import detect_both  # noqa: E402
from analytics.recurring.directions import INCOMING, of_user  # noqa: E402
from analytics.recurring.history import Charge  # noqa: E402
from analytics.recurring.payment import payments_in  # noqa: E402

FIRST, YEAR, LAST = date(2024, 1, 1), date(2025, 1, 1), date(2025, 12, 31)
DAY = timedelta(days=1)
KINDS = ("overdraft.ahead", "debit.new", "charge.double", "price.raised", "income.late", "payment.failed")
IBAN = "DE02120300000000202051"
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
    which its notice is right."""

    kind: str
    cause: str
    day: date
    until: date


class Household:
    """The bookings of a household with the labels of what happened to it."""

    def __init__(self, number: int, seed: int, *, is_quiet: bool) -> None:
        self.id, self.dice, self.is_quiet = f"u{number}", Random(f"{seed}/{number}/{is_quiet}"), is_quiet
        self.rows: list[dict[str, Any]] = []
        self.truths: list[Truth] = []
        self.known: list[tuple[date, Decimal]] = []  # contracts as they fall due, and pay
        self.pay_days: list[date] = []
        dice = self.dice
        self.contracts = dice.sample(CONTRACTS, dice.randint(6, 10))
        self.salary = Decimal(dice.randint(1900, 4200))
        self.is_tight = not is_quiet and dice.random() < 0.5
        self.opening = Decimal(20_000 if is_quiet else dice.randint(150, 900) if self.is_tight else 6_000)
        self._income()
        self._rent()
        for each in self.contracts:
            self._contract(*each)
        self._cards()
        self._lookalikes()
        if not is_quiet:
            self._new_debits()
            self._doubles()
        self.rows.sort(key=lambda row: (row["booking_date"], row["id"]))

    def book(self, day: date, amount: Decimal, name: str, purpose: str, gvc: str, **more: Any) -> None:
        """Add a booking, unless it is after the last day."""
        if FIRST <= day <= LAST:
            self.rows.append({"id": f"{self.id}-{len(self.rows)}", "account_id": "giro", "user_id": self.id,
                "booking_date": day, "amount": amount, "currency": "EUR", "counterpart_name": name, "purpose": purpose,
                "gvc": gvc, "is_reversal": False, "is_return": False, "is_adjusting_entry": False,
                "is_potential_duplicate": False, **more})  # fmt: skip

    def _income(self) -> None:
        dice, late = self.dice, self.dice.choice(_months(YEAR, 10)) if self.dice.random() < 0.5 else None
        for first in _months(FIRST, 24):
            due = bank_day_by(first.replace(day=27))
            self.pay_days.append(due)
            if first == late and not self.is_quiet:
                self.truths.append(
                    Truth("income.late", "Arbeitgeber", due + timedelta(days=6), due + timedelta(days=9))
                )
                due += timedelta(days=dice.randint(9, 12))
            bonus = self.salary * Decimal("0.8") if first.month == 11 else Decimal(0)
            self.book(due, self.salary + bonus, "Arbeitgeber Feinwerk GmbH", f"Gehalt {first:%m/%Y}", "153")

    def _rent(self) -> None:
        for first in _months(FIRST, 24):
            rent = (self.salary * Decimal("0.33")).quantize(Decimal(1))
            day = bank_day_from(first)
            self.book(day, -rent, "Hausverwaltung Grünberg", "Miete Wohnung 12", "117")
            self.known.append((day, -rent))

    def _contract(self, name: str, low: int, high: int, on: int, every: int) -> None:
        """A contract, whose price may rise once, and one of whose debits may come back."""
        dice, price = self.dice, Decimal(self.dice.randint(low * 100, high * 100)) / 100
        about = {"creditor_id": f"DE{sum(map(ord, name)) % 90 + 10}ZZZ{sum(map(ord, name)):011}"}
        about["mandate_reference"] = f"M{self.id}{sum(map(ord, name)):06}"
        is_varying = name.startswith("Telefonwerk")
        rises = None if self.is_quiet or is_varying or dice.random() > 0.25 else dice.choice(_months(YEAR, 9))
        fails = None if self.is_quiet or dice.random() > 0.15 else dice.choice(_months(YEAR, 11))
        for number, first in enumerate(_months(FIRST, 24)):
            if number % every:
                continue
            day = bank_day_from(first.replace(day=on))
            if rises is not None and first >= rises:
                price, rises = (price * Decimal("1.15") + Decimal("0.6")).quantize(Decimal("0.01")), None
                self.truths.append(Truth("price.raised", name, day, day + DAY))
            amount = price + (Decimal(dice.randint(0, 900)) / 100 if is_varying else 0)
            self.book(day, -amount, name, f"Beitrag {first:%m/%Y}", "105", **about)
            self.known.append((day, -amount))
            if fails == first and every == 1:
                back = bank_day_from(day + timedelta(days=3))
                more = {**about, "bank_transaction_code": "PMNT-RDDT-UPDD", "is_return": True}
                self.book(back, amount, name, "Ruecklastschrift AM04", "181", **more)
                self.truths.append(Truth("payment.failed", name, back, back + DAY))
                self.book(
                    bank_day_from(back + timedelta(days=8)), -amount, name, "Beitrag, zweiter Einzug", "105", **about
                )

    def _cards(self) -> None:
        dice, day = self.dice, FIRST
        share = float(self.salary) * (0.38 if self.is_tight else 0.15) / 30 / 35
        while day <= LAST:
            for name, low, high in SHOPS:
                if dice.random() < share / len(SHOPS) * 1.0:
                    self.book(day, -Decimal(dice.randint(low * 100, high * 100)) / 100, name, "Kartenzahlung", "106")
            day += DAY
        for first in _months(FIRST, 24):
            self.book(
                first.replace(day=28), Decimal(-100), "Eva Muster", "Sparen", "117", transfer_account_id="savings"
            )
            self.known.append((first.replace(day=28), Decimal(-100)))

    def _lookalikes(self) -> None:
        """What is like an incident and none."""
        dice = self.dice
        for first in _months(FIRST, 24):
            day = first + timedelta(days=dice.randint(0, 26))
            ticket = -Decimal(dice.choice([320, 1180])) / 100
            for _ in range(2):
                self.book(day, ticket, "Verkehrsbetriebe", f"Handyticket {dice.randint(1, 9999)}", "106")
            market = {"creditor_id": "DE77ZZZ00000000077", "mandate_reference": f"{dice.randint(10**9, 10**10)}"}
            self.book(
                day, -Decimal(dice.randint(900, 7000)) / 100, "Baumarkt Kasse", "ELV-Lastschrift", "107", **market
            )
            dollars = Decimal("9.99")
            rate = Decimal(dice.randint(88, 97)) / 100
            self.book(bank_day_from(first.replace(day=18)), -(dollars * rate).quantize(Decimal("0.01")), "Cloudbox Inc",
                      "Abo USD 9,99", "106", original_amount=-dollars, original_currency="USD")  # fmt: skip
            if first.month in (3, 9):
                bought = -Decimal(dice.randint(2000, 9000)) / 100
                self.book(day, bought, "Schuhhaus Sohle", "Kauf", "106")
                self.book(day + timedelta(days=9), -bought, "Schuhhaus Sohle", "Erstattung", "190")

    def _new_debits(self) -> None:
        for name in self.dice.sample(NEW, self.dice.randint(0, 2)):
            begin = YEAR + timedelta(days=self.dice.randint(10, 300))
            price = Decimal(self.dice.randint(1500, 6000)) / 100
            about = {
                "creditor_id": f"DE10ZZZ{sum(map(ord, name)):011}",
                "mandate_reference": f"N{self.id}{len(name):04}",
            }
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
            if before >= 5 and row["counterpart_name"] not in paired:
                paired.add(row["counterpart_name"])
                self.book(day, row["amount"], row["counterpart_name"], "Kartenzahlung", "106")
                self.truths.append(Truth("charge.double", row["counterpart_name"], day, day + DAY))

    def shortfalls(self, balances: dict[date, Decimal]) -> Iterator[Truth]:
        """The stretches until the next pay that known payments alone end below zero, from the day on which that lies
        within ten days and the balance was not below zero before."""
        due = sorted(self.known)
        for last_pay, pay in zip(self.pay_days, self.pay_days[1:], strict=False):
            if pay < YEAR + timedelta(days=30):
                continue
            day = last_pay
            while day < pay:
                balance = balances[day]
                if balance < 0:
                    break
                if any(left < 0 for left in _ahead(balance, due, day, min(pay - DAY, day + timedelta(days=10)))):
                    yield Truth("overdraft.ahead", pay.isoformat(), day, pay - DAY)
                    break
                day += DAY


def _ahead(balance: Decimal, due: Sequence[tuple[date, Decimal]], day: date, until: date) -> Iterator[Decimal]:
    for when, amount in due:
        if day < when <= until:
            balance += amount
            yield balance


def _months(first: date, number: int) -> list[date]:
    return [
        date(first.year + (first.month - 1 + each) // 12, (first.month - 1 + each) % 12 + 1, 1)
        for each in range(number)
    ]


def frame_of(households: Sequence[Household]) -> pl.DataFrame:
    """The bookings of all households, classified as an import does."""
    names = {**NOTICED, **CLASSIFIABLE, "user_id": pl.String()}
    names = {name: TYPES.get(name, kind) for name, kind in names.items()}
    rows = [
        {name: row.get(name) for name in names if name not in ("type", "category")}
        for each in households
        for row in each.rows
    ]
    given = {name: kind for name, kind in names.items() if name not in ("type", "category")}
    found = classify(pl.DataFrame(rows, schema=given, orient="row"), own_ibans={IBAN: "checking"})
    return found.with_columns(pl.col("merchant_name")).select(*NOTICED)


class Looks:
    """The looks at all households, day by day, and what they told."""

    def __init__(self, households: Sequence[Household], rows: pl.DataFrame) -> None:
        self.households = households
        self.rows = rows.sort("booking_date", "id")
        self.bookings = {each.id: bookings_of(self.rows.filter(user_id=each.id)) for each in households}
        self.balances = {each.id: _balances(each, self.bookings[each.id]) for each in households}
        self.stored: defaultdict[str, list[Finding]] = defaultdict(list)
        self.told: defaultdict[str, list[tuple[date, Finding]]] = defaultdict(list)

    def look(self, day: date, *, is_first: bool) -> None:
        """Look at all households on this day."""
        until = self.rows.filter(pl.col("booking_date").is_between(day - timedelta(days=775), day))
        users = pl.DataFrame({"user_id": [each.id for each in self.households]}).with_columns(today=pl.lit(day))
        found = detect_both(until.select(*CHARGES), users)
        short = self._short(until, day)
        for each in self.households:
            payments = [one for one in payments_in(of_user(found, each.id)) if one.over_on > day]
            findings = [*self._findings(each, payments, day), *short.get(each.id, ())]
            for finding in findings:
                if not any(_is_same(finding, one) for one in self.stored[each.id]):
                    self.stored[each.id].append(finding)
                    if not is_first and finding.interrupts:
                        self.told[each.id].append((day, finding))

    def _findings(self, each: Household, payments: Sequence[Any], day: date) -> Iterator[Finding]:
        every = [one for one in self.bookings[each.id] if one.day <= day]
        window = [one for one in every if one.day > day - timedelta(days=76)]
        by_id = {one.id: one for one in every}
        known = [_payment(one, by_id, day) for one in payments]
        yield from bookings.new_debits(every[-2000:], today=day, seen={}, first={"giro": FIRST}, ibans={"giro": IBAN})
        yield from bookings.failed_payments(window, today=day)
        names = set(bookings.suspects(window, today=day))
        if names:
            charged = [one for one in every if one.name in names and one.day > day - timedelta(days=425)]
            yield from bookings.double_charges(charged, today=day, fixed=recurring.charges_of_one_price(known))
        yield from recurring.raised_prices(known, _originals(self.rows, each.id), today=day)
        yield from recurring.late_incomes(known, window, today=day)

    def _short(self, until: pl.DataFrame, day: date) -> dict[str, list[Finding]]:
        spent = dict(
            until.filter(pl.col("booking_date") > day - timedelta(days=35), pl.col("amount") < 0)
            .group_by("user_id").agg(-pl.col("amount").sum()).iter_rows()
        )  # fmt: skip
        doubtful = [each for each in self.households if self.balances[each.id][day] <= spent.get(each.id, Decimal(0))]
        if not doubtful:
            return {}
        rows = until.filter(pl.col("user_id").is_in([each.id for each in doubtful])).select(*CHARGES)
        charges = {id_: Charge(id=id_, day=when, amount=abs(amount))
                   for id_, when, amount in rows.select("id", "booking_date", "amount").iter_rows()}  # fmt: skip
        pay = set(rows.filter(pl.col("amount") > 0, type="salary")["id"])
        own = set(rows.filter(pl.col("transfer_account_id").is_not_null())["id"])
        streams = streams_of(recurring_flows(rows, [day]), charges, {}, asked={}, salaries=pay)
        found = {}
        for each in doubtful:
            ledger = AccountLedger(currency="EUR", day=day, balance=self.balances[each.id][day], first=FIRST,
                                   bookings=99, opening=each.opening, moved={})  # fmt: skip
            short = ahead.shortfall(ledger, streams[each.id, day], limit=Decimal(0), own=own)
            notice = ahead.overdraft_ahead("giro", ledger, short, elsewhere=Decimal(0))
            found[each.id] = [notice] if notice is not None else []
        return found


def _payment(one: Any, by_id: dict[str, Any], day: date) -> Payment:
    paid = [by_id[id_] for id_ in one.charge_ids]
    charges = [PaidCharge(each.id, each.day, abs(each.amount), "giro", bool(each.mandate)) for each in paid]
    return Payment(id=one.id, name=one.merchant_name, account_id="giro", currency="EUR", frequency=one.frequency,
                   is_incoming=one.direction == INCOMING, is_sure=paid[-1].type == "salary", asked=day,
                   charges=charges)  # fmt: skip


_KEPT: dict[str, dict[str, tuple[Decimal, str]]] = {}


def _originals(rows: pl.DataFrame, user_id: str) -> dict[str, tuple[Decimal, str]]:
    if user_id not in _KEPT:
        abroad = rows.filter(pl.col("original_amount").is_not_null(), user_id=user_id)
        named = abroad.select("id", "original_amount", "original_currency").iter_rows()
        _KEPT[user_id] = {id_: (abs(amount), currency) for id_, amount, currency in named}
    return _KEPT[user_id]


def _balances(each: Household, rows: Sequence[Any]) -> dict[date, Decimal]:
    moved: defaultdict[date, Decimal] = defaultdict(Decimal)
    for row in rows:
        moved[row.day] += row.amount
    found, balance, day = {}, each.opening, FIRST
    while day <= LAST:
        # Who has much puts it by, and who is short is helped: else the second year would have one kind of household
        balance += moved[day]
        if each.is_tight and day.day == 26 and abs(balance) > 300:
            balance = Decimal(150)
        found[day] = balance
        day += DAY
    return found


def _is_same(one: Finding, other: Finding) -> bool:
    return (one.kind, one.subject) == (other.kind, other.subject) and abs((one.day - other.day).days) <= max(
        one.within, other.within
    )


def _is_right(day: date, finding: Finding, truth: Truth) -> bool:
    if finding.kind != truth.kind:
        return False
    if finding.kind == "overdraft.ahead":
        return (
            truth.day <= day + DAY
            and day <= truth.until
            and abs((finding.day - date.fromisoformat(truth.cause)).days) <= 6
        )
    return truth.cause.lower().split()[0] in finding.arguments["name"].lower() and truth.day <= day <= truth.until


def main() -> None:
    """Make the households, look at them on each day of their second year, and print how often notices were right."""
    given = argparse.ArgumentParser(description=__doc__)
    for name, default in (("--households", 100), ("--quiet", 20), ("--seed", 1)):
        given.add_argument(name, type=int, default=default)
    given.add_argument("--wrong", action="store_true", help="print what was wrong and what was missed")
    asked = given.parse_args()
    busy = [Household(number, asked.seed, is_quiet=False) for number in range(asked.households)]
    quiet = [Household(1000 + number, asked.seed, is_quiet=True) for number in range(asked.quiet)]
    looks = Looks([*busy, *quiet], frame_of([*busy, *quiet]))
    day = YEAR
    while day <= LAST:
        looks.look(day, is_first=day == YEAR)
        day += DAY
    right, wrong, missed = Counter[str](), Counter[str](), Counter[str]()
    for each in busy:
        truths = [*each.truths, *each.shortfalls(looks.balances[each.id])]
        truths = [one for one in truths if YEAR < one.day <= LAST - timedelta(days=3)]
        # What begins before or ends after the year is not labelled
        left = [
            one for one in looks.told[each.id] if YEAR + timedelta(days=30) <= one[1].day <= LAST - timedelta(days=3)
        ]
        truths = [one for one in truths if one.day >= YEAR + timedelta(days=30)]
        for truth in truths:
            hit = next((one for one in left if _is_right(*one, truth)), None)
            (right if hit else missed)[truth.kind] += 1
            if hit:
                left.remove(hit)
            elif asked.wrong:
                print("missed", each.id, truth)
        for told in left:
            wrong[told[1].kind] += 1
            if asked.wrong:
                print("wrong", each.id, told[0], told[1].kind, told[1].subject, told[1].day, dict(told[1].arguments))
    print("| kind | happened | precision | recall |\n|---|---|---|---|")
    for kind in KINDS:
        found, happened = right[kind] + wrong[kind], right[kind] + missed[kind]
        shares = right[kind] / (found or 1), right[kind] / (happened or 1)
        print(f"| `{kind}` | {happened} | {shares[0]:.2f} | {shares[1]:.2f} |")
    a_week = [len(looks.told[each.id]) / 52 for each in busy]
    print(f"notices a week: median {median(a_week):.2f}, highest {max(a_week):.2f}; "
          f"quiet households: {sum(len(looks.told[each.id]) for each in quiet)} in all")  # fmt: skip


if __name__ == "__main__":
    main()
