"""Twelve months of an account whose bank behaves as banks do, told by a live source and by files: one ledger.

    python -m tests.soak.random_histories [--histories 200] [--seed 1] [--months 12]

The script keeps the true ledger and tells it through the import core in one of eleven patterns of ids, which changes at
renewals, with late rows, pending ones, corrections, files of ten formats, kills and absences. After every step each
booking that was told is there once, on its day, with its amount and under the id that it had. Prints a line per history
that differs, and how many were warned of money that was right; ends with 1 if one differs.
"""

import argparse
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from analytics.integrity import UNSOUND, integrity
from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from storage import accounts
from storage.database import Transaction
from storage.importing import ingest
from storage.importing.batches import read_batch
from storage.integrity import evidence
from tests.conftest import empty_store
from tests.engines import OpenStore
from tests.imports.formats_of_one_account import FORMATS, OPENING, Row, records_in
from tests.storage.conftest import GIRO, Bank, files_of, make_bank

FIRST_DAY = date(2025, 11, 1)
DAY = timedelta(days=1)
PATTERNS = (
    "stable",
    "new at each renewal",
    "restart each month",
    "place in the day",
    "none",
    "swapped",
    "of another booking",
    "new when booked",
    "repeated page",
    "new when corrected",
    "taken back",
)
PAGING = ("enable banking", "finapi")  # which may end an answer before it is whole
SOURCES = ("enable banking", "fints", "finapi", "simplefin")
PROVING = ("camt.053.001.02", "camt.053.001.08", "MT940", "MT940 with SVWZ+")  # formats whose balances prove all days
SETTLED_DAYS = 6  # after which a booking is late, corrected and taken back no more: then a statement is written
OVERLAP_DAYS = 8  # of which a source tells again what it has told
REACH_DAYS = 90  # as far back as it tells at all
NAMES = (
    ("Hausverwaltung Müller GmbH & Co. KG", "Miete Wohnung 12 Kastanienallee"),
    ("Jörg Übermut Maschinenbau AG", "Lohn/Gehalt Personalnummer 4711"),
    ("Café Zur schönen Aussicht", "Kartenzahlung girocard"),
    ("REWE Markt GmbH", "SAGT DANKE Debitkarte"),
    ("Stadtwerke Köln", "Strom Konto 770001234567"),
    ("PayPal (Europe) S.a.r.l. et Cie.", "Ihr Einkauf bei Spotify"),
    ("Grüner Strauß Inhaberin Anna Weiß", "Rechnung Blumen für Oma"),
    ("Bäckerei Brötchen & Söhne oHG", "Sammelrechnung"),
    ("Tom Schäfer", "Pizza gestern"),
    ("Deutsche Bahn AG", "BahnCard Auftrag"),
)
AMOUNTS = [Decimal(amount) for amount in ("-2.80", "-5.00", "-9.99", "-17.85", "-49.99", "-850.00", "15.00", "2450.37")]


@dataclass(slots=True, eq=False)
class Booking:
    """One that really happened; the bank shows it from the noon of `seen` on, and before that day as pending since
    `pending`. `told` is what it was when it was told last."""

    number: int
    day: date
    amount: Decimal
    name: str
    purpose: str
    seen: date
    iban: str | None = None
    mandate: str | None = None
    pending: date | None = None
    version: int = 0
    is_gone: bool = False
    told: "Key | None" = None

    @property
    def key(self) -> "Key":
        """What it is known by: twins have the same."""
        return self.day, self.amount, folded(self.name)[:8], folded(self.purpose)[:12]


Key = tuple[date, Decimal, str, str]


@cache
def folded(text: str | None) -> str:
    """Letters and digits alone, umlauts without their dots or their e."""
    plain = "".join(each for each in unicodedata.normalize("NFKD", text or "") if not unicodedata.combining(each))
    plain = "".join(each for each in plain.replace("ß", "ss").lower() if each.isalnum())
    for vowel in "aou":
        plain = plain.replace(f"{vowel}e", vowel)
    return plain


@dataclass
class History:
    """One account with its bank; `problems` are what differed, in the order of the steps, and `alarms` the steps after
    which the ledger was said to differ although nothing was missing."""

    database: OpenStore
    seed: int
    months: int = 12
    problems: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self.source = SOURCES[self.seed % len(SOURCES)]
        self.pattern = PATTERNS[self.seed % len(PATTERNS)]
        self.bookings: list[Booking] = []
        self.changes: dict[date, list[Callable[[], None]]] = defaultdict(list)
        self.reworded: dict[str, str] = {}
        self.bank = make_bank(self.database, self._noon(FIRST_DAY), "eva", "Bank 0")
        self.files = files_of(self.bank)
        self.epoch = self.syncs = self.count = 0
        self.account_id: str | None = None
        self.read_until: date | None = None
        self.ids: dict[Key, set[str]] = {}
        self.doubled: Counter[Key] = Counter()  # rows too many, each said to the cent
        self.steps: list[str] = []

    def run(self) -> None:
        """Live through the months, or until something differs."""
        last = FIRST_DAY + timedelta(days=round(30.4 * self.months))
        self._book(last)
        day = FIRST_DAY + timedelta(days=self.chance.randint(5, 60))
        applied = FIRST_DAY
        while day < last and not self.problems:
            for each in range((day - applied).days):
                for change in self.changes.pop(applied + (each + 1) * DAY, ()):
                    change()
            applied = day
            self._step(day)
            day += timedelta(days=self.chance.choice([1, 1, 2, 3, 5, 8, 13]))
            if self.months > 6 and self.chance.random() < 0.01:
                day += timedelta(days=self.chance.randint(100, 120))

    def _step(self, day: date) -> None:
        self.bank.now = self.files.now = self._noon(day)
        draw = self.chance.random()
        if self.account_id and draw < 0.2:
            self._file(day)
        else:
            if draw > 0.93 and self.syncs:
                self._renew()
            self._sync(day)

    # -- what happens at the bank

    def _book(self, last: date) -> None:
        day = FIRST_DAY
        while day < last:
            for _ in range(self.chance.choice([0, 0, 0, 1, 1, 2, 3])):
                self._add(day)
            day += DAY
        kept = Counter((each.day, each.amount) for each in self.bookings)
        for each in self.bookings:
            if kept[each.day, each.amount] == 1 and self.chance.random() < 0.05:
                self._change(each)

    def _add(self, day: date) -> None:
        name, purpose = self.chance.choice(NAMES)
        amount = self.chance.choice(AMOUNTS)
        if self.chance.random() < 0.4:
            amount = Decimal(self.chance.randint(-9999, 2999)) / 100 or Decimal("0.01")
        number = len(self.bookings)
        if self.chance.random() < 0.6:
            purpose = f"{self.chance.randint(10**9, 10**10 - 1)} Beleg vom {day:%d.%m.%Y}"
        seen = day + timedelta(days=self.chance.choice([0, 0, 0, 0, 1, 1, 2]))
        first = Booking(number, day, amount, name, purpose, seen)
        if self.chance.random() < 0.3:
            first.iban, first.mandate = "DE62370400440123456789", f"M-{sum(map(ord, name))}"
        if self.chance.random() < 0.2:
            first.pending = day - timedelta(days=self.chance.choice([0, 1, 3]))
        self.bookings.append(first)
        if self.chance.random() < 0.15:
            twin = Booking(number + 1, day, amount, name, purpose, seen, first.iban, first.mandate)
            twin.seen += timedelta(days=self.chance.choice([0, 0, 1]))
            self.bookings.append(twin)

    def _change(self, booking: Booking) -> None:
        """Once, some days after it was shown."""
        how = self.chance.choice(["amount", "words", "gone"] if self.pattern != "taken back" else ["gone"])

        def change() -> None:
            booking.version += 1
            if how == "amount":
                booking.amount -= Decimal("0.37")
            elif how == "words":
                before = booking.key[3]
                booking.purpose = f"{self.chance.randint(10**9, 10**10 - 1)} Berichtigung"
                self.reworded[booking.key[3]] = before
            else:
                booking.is_gone = True

        self.changes[booking.seen + timedelta(days=self.chance.randint(1, 3))].append(change)

    def _shown(self, day: date) -> list[Booking]:
        shown = [each for each in self.bookings if each.seen <= day and not each.is_gone]
        return sorted(shown, key=lambda each: (each.day, each.seen, each.number))

    def _balance(self, shown: Iterable[Booking]) -> Decimal:
        return OPENING + sum((each.amount for each in shown), Decimal(0))

    # -- what is told

    def _renew(self) -> None:
        """Ids may be others from now on; an account that states its IBAN may come by a connection of its own."""
        self.epoch += 1
        self.pattern = self.chance.choice([self.pattern, self.pattern, self.chance.choice(PATTERNS)])
        if self.source != "simplefin" and self.chance.random() < 0.5:
            self.bank = make_bank(self.database, self.bank.now, "eva", f"Bank {self.epoch}")
            self.read_until = None
        self.steps.append(f"renewed: {self.pattern}")

    def _sync(self, day: date) -> None:
        shown = self._shown(day)
        reach = day - timedelta(days=REACH_DAYS)
        first = max(reach, (self.read_until or reach) - timedelta(days=OVERLAP_DAYS))
        told = [each for each in shown if each.day >= first]
        waiting = [each for each in self.bookings if each.pending and each.pending <= day < each.seen]
        self.syncs += 1
        is_cut = self.pattern == "repeated page" and self.source in PAGING and self.chance.random() < 0.3
        if is_cut:
            told = told[len(told) // 2 :]
            told += told[:2]
        elif self.chance.random() < 0.5:
            told = [each for each in told if each.day > first or self.chance.random() < 0.5]
        ids = self._ids([each for each in shown if each.day >= first], told)
        records: list[Record] = [self._live(each, ids[each], day) for each in told]
        if not is_cut:
            records += [replace(self._live(each, self._pending_id(each), day), status="pending") for each in waiting]
        records.append(
            StatementRecord(
                closing=self._balance(shown),
                closing_date=day,
                told_from=None if is_cut else first,
                told_until=None if is_cut else day,
                is_pending_complete=not is_cut,
            )
        )
        account = AccountRecord(stable_key="ACT-1", currency="EUR") if self.source == "simplefin" else GIRO
        self._bring(self.bank, [account, *records])
        covered = [] if is_cut else [each for each in self.bookings if first < each.day < day]
        if not is_cut:
            self.read_until = day
        kind = "a part" if is_cut else f"all since {first:%d.%m.}"
        self._judge(day, f"{day}: {self.source} ({self.pattern}) tells {kind}", told, covered)

    def _file(self, day: date) -> None:
        format_ = self.chance.choice(list(FORMATS))
        is_proving = format_ in PROVING
        last = day - timedelta(days=SETTLED_DAYS if is_proving else self.chance.choice([0, 0, 1, 5]))
        first = last - timedelta(days=self.chance.choice([3, 10, 31, 120]))
        shown = self._shown(day)
        told = [each for each in shown if first <= each.day <= last]
        if not is_proving:
            told = told[self.chance.randint(0, 2) : len(told) - self.chance.randint(0, 2)]

        def is_whole(each: Booking) -> bool:
            return is_proving and told[0].day + DAY < each.day < told[-1].day

        if not told or any(each.told not in (None, each.key) and not is_whole(each) for each in told):
            return  # only whoever tells all of a day can correct
        opening = self._balance(shown[: shown.index(told[0])])
        rows = [
            Row(
                day=each.day,
                amount=each.amount,
                name=each.name,
                purpose=each.purpose,
                reference=f"R{each.number:06}",
                iban=each.iban,
                mandate=each.mandate,
            )
            for each in told
        ]
        records = [GIRO if isinstance(each, AccountRecord) else each for each in records_in(format_, rows, opening)]
        self._bring(self.files, records, self.account_id)
        covered = [each for each in self.bookings if is_whole(each)]
        self._judge(day, f"{day}: {format_} of {told[0].day} to {told[-1].day}", told, covered)

    def _ids(self, window: Sequence[Booking], told: Sequence[Booking]) -> dict[Booking, str | None]:
        """By which id the source calls each of these bookings, today."""
        ids: dict[Booking, str | None] = {}
        for place, each in enumerate(reversed(window)):
            if self.pattern == "restart each month":
                month = [
                    one for one in self.bookings if (one.day.year, one.day.month) == (each.day.year, each.day.month)
                ]
                ids[each] = str(sorted(month, key=lambda one: (one.seen, one.number)).index(each) + 1)
            elif self.pattern == "place in the day":
                of_day = [one for one in window if one.day == each.day]
                ids[each] = f"{each.day}.{sorted(of_day, key=lambda one: (one.amount, one.number)).index(each)}"
            elif self.pattern == "of another booking":
                ids[each] = f"n{place}"
            elif self.pattern == "none":
                ids[each] = f"{self.syncs}-{each.number}" if self.source in ("finapi", "simplefin") else None
            elif self.pattern == "new at each renewal":
                ids[each] = f"e{self.epoch}-{each.number}"
            elif self.pattern == "new when corrected":
                ids[each] = f"v{each.version}-{each.number}"
            else:
                ids[each] = f"b{each.number}"
        if self.pattern == "swapped" and len(told) > 1:
            one, other = self.chance.sample(list(dict.fromkeys(told)), 2) if len(set(told)) > 1 else (told[0], told[0])
            ids[one], ids[other] = ids[other], ids[one]
        return ids

    def _pending_id(self, each: Booking) -> str | None:
        if self.pattern == "none" or self.source in ("fints", "finapi"):
            return None
        return f"p{each.number}" if self.pattern == "new when booked" else f"b{each.number}"

    def _live(self, each: Booking, id_: str | None, day: date) -> TransactionRecord:
        is_fints, is_plain = self.source == "fints", self.source == "simplefin"
        written = _written_out if is_fints else str
        return TransactionRecord(
            amount=each.amount,
            currency="EUR",
            booking_date=min(each.day, day),
            value_date=None if is_plain else each.day,
            provider_id=None if is_fints else id_,
            references=(f"servicer:{id_}",) if is_fints and id_ else (),
            counterpart_name=written(each.name),
            counterpart_iban=None if is_plain else each.iban,
            mandate_reference=None if is_plain else each.mandate,
            purpose=written(each.purpose),
        )

    def _bring(self, bank: Bank, records: Sequence[Record], choice: str | None = None) -> None:
        """Through the import core; now and then killed before its end, or told again because it was killed after it."""
        self.count += 1
        draw = self.chance.random()

        def store(session: Transaction) -> None:
            read = read_batch(Batch(id=f"batch-{self.count}", records=iter(records)), today=bank.now.date())
            report = ingest.store(
                session,
                user=bank.user,
                connection=bank.connection,
                job_id=f"job-{self.count}",
                batch=read,
                now=bank.now,
                choice=choice,
            )
            self.account_id = report.accounts[0].account_id
            if is_killed:
                raise Killed

        is_killed = draw < 0.05
        if is_killed:
            try:
                self.database.atomically(store)
            except Killed:
                is_killed = False
        self.database.atomically(store)
        if draw > 0.95:
            bank.now += timedelta(minutes=1)
            self.database.atomically(store)

    # -- what is there

    def _judge(self, day: date, step: str, told: Sequence[Booking], covered: Sequence[Booking]) -> None:
        self.steps.append(step)
        moved: list[tuple[Key, Key]] = []
        for each in self._counted(told):
            if each.told is not None and each.told != each.key:
                moved.append((each.told, each.key))
            each.told = each.key
        ended = [each for each in covered if each.is_gone and each.told]
        for each in ended:
            each.told = None
        found: dict[Key, set[str]] = defaultdict(set)
        for row in self.bank.rows("id, booking_date, amount, counterpart_name, purpose, is_adjusting_entry"):
            if not row["is_adjusting_entry"]:
                found[self._known(*self._key_of(row))].add(row["id"])
        expected = Counter(self._known(*each.told) for each in self.bookings if each.told)
        gone = Counter(self._known(*each.key) for each in self.bookings if each.is_gone)
        there = {key: len(ids) for key, ids in found.items()}
        named = self._named(day)
        for key in expected.keys() | there.keys():
            more = there.get(key, 0) - expected[key]
            if 0 < more <= gone[key] and any(named):
                continue
            if more > 0 and -more * key[1] in named:
                self.doubled[key] = more  # one row under a new id, told alone, may be a twin or a renewal
                continue
            if more:
                self._say(f"{key} is there {there.get(key, 0)} times, not {expected[key]}")
        is_more = any(there[key] > expected[key] for key in there)
        was = {self._known(*one): self._known(*other) for one, other in moved}
        for key, ids in self.ids.items():
            lost = ids - found.get(was.get(key, key), set())
            if len(lost) > gone[key] + self.doubled[key]:
                self._say(f"{key} has lost its id" + (f", was corrected to {was[key]}" if key in was else ""))
        self.ids = dict(found)
        self._judge_difference(day, named, is_more=is_more)

    def _counted(self, told: Sequence[Booking]) -> Iterator[Booking]:
        """Those of whom it is known that they were told: of twins no one says which, so the first ones."""
        alike: dict[Key, list[Booking]] = defaultdict(list)
        for each in self.bookings:
            alike[each.key].append(each)
        for key, count in Counter(each.key for each in dict.fromkeys(told)).items():
            there = [each for each in alike[key] if not each.is_gone]
            yield from sorted(there, key=lambda each: each.told is None)[:count]

    def _judge_difference(self, day: date, named: Sequence[Decimal], *, is_more: bool) -> None:
        told = sum((each.told[1] for each in self.bookings if each.told), Decimal(0))
        missing = self._balance(self._shown(day)) - OPENING - told  # also what is gone, and was told no more since
        if not missing and not is_more and any(named):
            self.alarms.append(f"{self.steps[-1]}: {', '.join(map(str, named))}")

    def _named(self, day: date) -> list[Decimal]:
        """By how much the ledger is said to differ, period by period."""
        ids = [each.id for each in accounts.of_user(self.database, self.bank.user.id)]
        with self.database.transaction() as session:
            found = integrity(ids, evidence(session, self.bank.user.id, ids), today=day)
        return [
            problem.amount or Decimal(0)
            for each in found
            for problem in each.problems
            if problem.kind in UNSOUND or problem.kind == "adjusting_entry"
        ]

    def _key_of(self, row: dict[str, object]) -> Key:
        day, amount = row["booking_date"], row["amount"]
        assert isinstance(day, date)
        assert isinstance(amount, Decimal)
        return day, amount, folded(str(row["counterpart_name"]))[:8], folded(str(row["purpose"]))[:12]

    def _known(self, day: date, amount: Decimal, name: str, purpose: str) -> Key:
        return day, amount.normalize(), name, self.reworded.get(purpose, purpose)

    def _say(self, problem: str) -> None:
        self.problems.append(f"history {self.seed}, {self.steps[-1]}: {problem}")

    def _noon(self, day: date) -> datetime:
        return datetime.combine(day, time(12))


class Killed(Exception):
    """The process ended before the transaction did."""


def _written_out(text: str) -> str:
    for letter, spelling in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss")):
        text = text.replace(letter, spelling).replace(letter.upper(), spelling.capitalize())
    return text


def lived(seeds: Iterable[int], *, months: int) -> Iterator[History]:
    """The histories of these seeds, after their months."""
    for seed in seeds:
        with TemporaryDirectory() as folder:
            database = empty_store(Path(folder) / "bankdata.duckdb")
            try:
                history = History(database, seed, months)
                history.run()
                yield history
            finally:
                database.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--months", type=int, default=12)
    given = parser.parse_args()
    wrong = warned = 0
    for history in lived(range(given.seed, given.seed + given.histories), months=given.months):
        wrong += bool(history.problems)
        warned += bool(history.alarms)
        for problem in history.problems[:4]:
            print(problem, flush=True)
    print(f"{given.histories} histories of {given.months} months, {wrong} differ, {warned} warn of money that is right")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
