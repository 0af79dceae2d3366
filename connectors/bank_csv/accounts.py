"""The accounts of a CSV file during reading: their waiting bookings, and the balances in their rows."""

from collections import Counter
from datetime import date
from decimal import Decimal

from msgspec import Struct, field

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.rows import Booking

ENDS_MAX = 10_000  # of chains of balances; those of a whole file have two


class AccountBlock(Struct):
    """One account of the file while it is read. `held` are its bookings that wait for the end of another account's
    block. `first` and `last` are the day, balance and amount of the first and last booked row that states a balance;
    `downwards` and `upwards` count the neighbouring rows whose balances fit if the newest row comes first, or last.
    `newest` is the latest booking date so far, date.min without any."""

    record: AccountRecord
    held: list[TransactionRecord] = field(default_factory=list)
    first: tuple[date, Decimal, Decimal] | None = None  # day, balance, amount
    last: tuple[date, Decimal, Decimal] | None = None
    downwards: int = 0  # pairs of rows whose balances fit if the newest row comes first
    upwards: int = 0
    newest: date = date.min
    last_day: date = date.min  # of the rows with a balance
    of_last_day: set[Decimal] = field(default_factory=set)  # the balances after its rows
    ends: Counter[Decimal] = field(default_factory=Counter)  # rows that end with a balance, less those that begin so

    def take(self, booking: Booking) -> None:
        record = booking.record
        if record.status == "booked":
            self.newest = max(self.newest, record.booking_date)
        if booking.balance is None or record.status == "pending":
            return
        if record.booking_date > self.last_day:
            self.last_day, self.of_last_day = record.booking_date, set()
        if record.booking_date == self.last_day:
            self.of_last_day.add(booking.balance)
        if len(self.ends) < ENDS_MAX:
            for balance, count in ((booking.balance, 1), (booking.balance - record.amount, -1)):
                self.ends[balance] += count
                if not self.ends[balance]:
                    del self.ends[balance]
        entry = (record.booking_date, booking.balance, record.amount)
        if self.last is None:
            self.first = entry
        else:
            self.downwards += self.last[1] - self.last[2] == booking.balance
            self.upwards += self.last[1] + record.amount == booking.balance
        self.last = entry

    def statement(self, metadata: Metadata | None) -> StatementRecord:
        """The statement with opening and closing balance: from lines of the file about them (`metadata`; None where the
        table has several accounts), else the two ends of the chain of running balances, whatever the order of the rows;
        where it is broken, from the oldest and the newest row. None where neither states them. Where a line's closing
        balance contradicts the rows, they give no opening one."""
        opening = closing = None
        day = self.newest if self.newest > date.min else None
        if self.first and self.last:
            is_newest_first = self.downwards > self.upwards or (
                self.downwards == self.upwards and self.first[0] > self.last[0]
            )
            newest, oldest = (self.first, self.last) if is_newest_first else (self.last, self.first)
            closing, opening, day = newest[1], oldest[1] - oldest[2], newest[0]
            ends = sorted(self.ends, key=self.ends.__getitem__)
            if [self.ends[each] for each in ends] == [-1, 1] and ends[1] in self.of_last_day:
                (opening, closing), day = ends, self.last_day
        if metadata and metadata.closing is not None:
            if closing is not None and closing != metadata.closing:
                opening = None  # the file's balance is from another time than its rows
            closing = metadata.closing
            day = metadata.closing_date or metadata.dated or day
        if metadata and metadata.opening is not None:
            opening = metadata.opening
        return StatementRecord(opening=opening, closing=closing, closing_date=day if closing is not None else None)
