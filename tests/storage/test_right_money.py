"""Random histories of right money: files cut at noon, that overlap, told again and corrected, with bookings of other
days, in any order. No ledger is called wrong that has every booking, and each is that lacks some."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO
from itertools import accumulate, pairwise
from random import Random

import pytest

from analytics.integrity import UNSOUND, integrity
from analytics.records import Record, StatementRecord, TransactionRecord
from connectors.bank_csv import reader as bank_csv
from storage.integrity import evidence
from tests.conftest import examples
from tests.imports.formats_of_one_account import OPENING, Row, records_in
from tests.storage.conftest import Bank, NewBank, files_of

DAY = timedelta(days=1)
FORMATS = ("camt.053.001.02", "camt.053.001.08", "MT940", "CSV, newest first", "CSV, oldest first")


@dataclass(frozen=True)
class File:
    """The bookings from one place of the history to another, in a format; `rows` are all, as they were known then."""

    format: str
    first: int
    end: int
    rows: Sequence[Row]

    def records(self) -> list[Record]:
        """What its reader makes of it."""
        told = self.rows[self.first : self.end]
        opening = OPENING + sum((row.amount for row in self.rows[: self.first]), Decimal(0))
        if not self.format.startswith("CSV"):
            return list(records_in(self.format, told, opening))
        balances = list(accumulate((row.amount for row in told), initial=opening))[1:]
        lines = [
            f"{row.day:%d.%m.%Y};{row.name};{row.purpose};{_comma(row.amount)};{_comma(balance)}"
            for row, balance in zip(told, balances, strict=True)
        ]
        head = "Buchungstag;Empfänger;Verwendungszweck;Betrag;Saldo"
        table = [head, *(lines if "oldest" in self.format else reversed(lines))]
        return list(bank_csv.read(BytesIO("\n".join(table).encode())))


@dataclass
class History:
    """Bookings in the order in which the bank made them, and files of them in the order in which they arrive."""

    chance: Random
    rows: list[Row] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    told: set[int] = field(default_factory=set)

    def live(self) -> None:
        """Some weeks; a booking may bear another day than that on which it was made."""
        day = date(2026, 3, 1)
        for number in range(self.chance.randint(24, 40)):
            day += DAY * self.chance.choice([0, 0, 1, 1, 2, 5])
            shift = self.chance.choice([0, 0, 0, 0, 0, 0, -2, -1, 1, 2])
            cents = self.chance.choice([-1, 1]) * self.chance.choice([500, 999, self.chance.randint(100, 99_999)])
            name = self.chance.choice(["Markt", "Stadtwerke", "Lohn GmbH", "Bahn"])
            self.rows.append(_row(day + DAY * shift, Decimal(cents) / 100, name, number))

    def tell(self, *, lacking: int) -> None:
        """Files one after the other, of which each goes on where the last one ends, or tells its end again; one of them
        may come again, corrected. `lacking` bookings in the middle are in none."""
        place, is_corrected = 0, False
        hole = self.chance.randint(8, len(self.rows) - 8) if lacking else len(self.rows)
        while place < len(self.rows):
            end = min(place + self.chance.randint(3, 14), hole if place < hole else len(self.rows))
            first = max(place - self.chance.choice([0, 0, 1, 2, 5]), hole + lacking if place > hole else 0)
            self._bring(first, end)
            if not is_corrected and self.chance.random() < 0.2:
                is_corrected = self._correct(first, end)
            place = end + lacking if end == hole else end
        if not is_corrected:
            self.chance.shuffle(self.files)

    def is_whole(self) -> bool:
        """The obvious way: between any two bookings that were told, the others add up to nothing."""
        told = sorted(self.told)
        return not any(sum(row.amount for row in self.rows[one + 1 : other]) for one, other in pairwise(told))

    def _bring(self, first: int, end: int) -> None:
        self.files.append(File(self.chance.choice(FORMATS), first, end, tuple(self.rows)))
        self.told |= set(range(first, end))

    def _correct(self, first: int, end: int) -> bool:
        """Another amount for a booking on one of the days in the middle of a file, which is issued again with it."""
        days = [row.day for row in self.rows[first:end]]
        inner = [place for place in range(first, end) if days[0] + DAY < self.rows[place].day < days[-1]]
        if inner:
            place = self.chance.choice(inner)
            row = self.rows[place]
            self.rows[place] = _row(row.day, row.amount - 1, row.name, place)
            self._bring(first, end)
        return bool(inner)


def _row(day: date, amount: Decimal, name: str, number: int) -> Row:
    purpose, reference = f"Rechnung {number * 7919 + 10_000} vom Monat", f"R{number:05}"
    return Row(day=day, amount=amount, name=name, purpose=purpose, reference=reference)


def _comma(amount: Decimal) -> str:
    return f"{amount:.2f}".replace(".", ",")


def told_to(files: Bank, history: History) -> tuple[list[Decimal], list[str]]:
    """The amounts that are stored after all files, in order, and what is said to be wrong."""
    for file in history.files:
        _, *booked, statement = file.records()
        assert isinstance(statement, StatementRecord)
        files.now += timedelta(minutes=1)
        files.bring([each for each in booked if isinstance(each, TransactionRecord)], statement=statement)
    rows = [row for row in files.rows("id, booking_date, amount, is_adjusting_entry") if not row["is_adjusting_entry"]]
    (account,) = files.database.rows("SELECT id FROM accounts WHERE user_id = $1", files.user.id)
    with files.database.transaction() as session:
        (found,) = integrity([account["id"]], evidence(session, files.user.id, [account["id"]]), today=files.now.date())
    said = [f"{one.kind} {one.first} {one.last} {one.amount}" for one in found.problems if one.kind in UNSOUND]
    return sorted(row["amount"] for row in rows), said


@pytest.mark.requirement("integrity", "import.gaps")
@pytest.mark.parametrize(("lacking", "count"), [(0, 2), (2, 2), pytest.param(0, 200, marks=pytest.mark.long)])
def test_right_money_is_never_called_wrong_and_wrong_money_always(new_bank: NewBank, lacking: int, count: int) -> None:
    for number in range(examples(count)):
        seed = 100 * number + 10 * lacking
        history = History(Random(seed))
        history.live()
        history.tell(lacking=lacking)
        stored, said = told_to(files_of(new_bank(f"eva {seed}")), history)
        assert stored == sorted(history.rows[place].amount for place in history.told), seed
        assert bool(said) != history.is_whole(), (seed, said)
