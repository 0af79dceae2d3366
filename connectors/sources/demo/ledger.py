"""Ledgers of demo accounts: bookings and pending movements as of a day, and the balance."""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import AccountKind, AccountRecord, TransactionRecord
from connectors.sources.demo.bookings import Habit, Movement
from connectors.sources.demo.chance import Dice
from connectors.sources.demo.identifiers import digits
from connectors.sources.demo.rhythms import ANCHOR

LAG_DAYS_MAX = 20  # no movement is booked later than this after it was ordered


class Bank(Struct, frozen=True, kw_only=True):
    """A bank that does not exist."""

    name: str
    code: str
    bic: str


class Account(Struct, frozen=True, kw_only=True):
    """One account of a demo household with its habits. `key` distinguishes the accounts of a household, and determines
    the bookings together with `seed` and habits; `stable_key` is the key in the records. `opening` is the balance
    before 2024; where `says_balance` is false, the bank states no balance."""

    seed: str
    key: str
    bank: Bank
    stable_key: str
    iban: str | None
    kind: AccountKind
    name: str | None
    opening: Decimal
    habits: tuple[Habit, ...]
    currency: str = "EUR"
    says_balance: bool = True

    @property
    def record(self) -> AccountRecord:
        return AccountRecord(
            stable_key=self.stable_key,
            currency=self.currency,
            iban=self.iban,
            name=self.name,
            kind=self.kind,
            bank_name=self.bank.name,
            bic=self.bank.bic,
        )


class Ledger:
    """The made-up bookings of one demo account: the same ones for the same seed, key, habits and days. Each day is made
    once and then remembered."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._days: dict[date, list[Movement]] = {}

    def bookings(self, first: date, last: date) -> Iterator[TransactionRecord]:
        """The bookings from the first to the last day, both included, oldest first."""
        by_day: dict[date, list[TransactionRecord]] = {}
        for ordered in _days(first - timedelta(days=LAG_DAYS_MAX), last):
            for movement in self._movements(ordered):
                assert (movement.record.booking_date - ordered).days <= LAG_DAYS_MAX
                by_day.setdefault(movement.record.booking_date, []).append(movement.record)
            yield from by_day.pop(ordered, []) if ordered >= first else ()

    def pending_bookings(self, today: date) -> Iterator[TransactionRecord]:
        """The movements that are ordered and announced but not booked at the end of this day."""
        for ordered in _days(today - timedelta(days=LAG_DAYS_MAX), today):
            for movement in self._movements(ordered):
                if movement.pending is not None and movement.record.booking_date > today:
                    yield movement.pending

    def balance(self, day: date) -> Decimal:
        """The booked balance at the end of the day; on the last day of 2023 it is the account's `opening`."""
        if day < ANCHOR:
            return self._account.opening - _sum(self.bookings(day + timedelta(days=1), ANCHOR - timedelta(days=1)))
        return self._account.opening + _sum(self.bookings(ANCHOR, day))

    def _movements(self, day: date) -> list[Movement]:
        known = self._days.get(day)
        if known is None:
            known = self._days[day] = list(self._make_movements(day))
        return known

    def _make_movements(self, day: date) -> Iterator[Movement]:
        account, position = self._account, 0
        for habit in account.habits:
            dice = Dice(account.seed, account.key, habit.name, day)
            if not habit.when(day, dice):
                continue
            for movement in habit.what(day, dice):
                position += 1
                record = movement.record
                if movement.has_id:
                    record = replace(record, provider_id=self._provider_id(day, position))
                if account.currency == "EUR":
                    yield replace(movement, record=record)
                    continue
                announced = movement.pending and replace(movement.pending, currency=account.currency)
                yield replace(movement, record=replace(record, currency=account.currency), pending=announced)

    def _provider_id(self, day: date, position: int) -> str:
        """The id of a booking, of sixteen characters like an MT940 bank reference: day, account, and number within the
        day."""
        return f"{day:%y%m%d}{digits(8, self._account.seed, self._account.key)}{position:02d}"


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)


def _sum(rows: Iterator[TransactionRecord]) -> Decimal:
    return sum((row.amount for row in rows), Decimal("0.00"))
