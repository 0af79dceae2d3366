"""The accounts of a CSV file during reading: their waiting bookings, and the balances in their rows."""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from msgspec import Struct, field
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.rows import Booking

CHAIN_ROWS_MIN = 3  # fewer balances may fit by chance
ENDS_MAX = 10_000  # of chains of balances; those of a whole file have two


class Balances(Struct):
    """The balances in the booked rows of one account. `first` and `last` are the day, balance and amount of the first
    and last of these rows; `downwards` and `upwards` count the neighbouring rows whose balances fit if the newest row
    comes first, or last. `ends` counts the rows that end with a balance, less those that begin with it: of a whole
    chain, in whatever order, its two ends are left."""

    rows: int = 0
    first: tuple[date, Decimal, Decimal] | None = None
    last: tuple[date, Decimal, Decimal] | None = None
    downwards: int = 0
    upwards: int = 0
    first_day: date = date.max
    last_day: date = date.min
    of_last_day: set[Decimal] = field(default_factory=set)
    ends: Counter[Decimal] = field(default_factory=Counter)

    def take(self, day: date, balance: Decimal, amount: Decimal) -> None:
        self.rows += 1
        self.first_day = min(self.first_day, day)
        if day > self.last_day:
            self.last_day, self.of_last_day = day, set()
        if day == self.last_day:
            self.of_last_day.add(balance)
        if len(self.ends) < ENDS_MAX:
            for end, count in ((balance, 1), (balance - amount, -1)):
                self.ends[end] += count
                if not self.ends[end]:
                    del self.ends[end]
        if self.last is None:
            self.first = (day, balance, amount)
        else:
            self.downwards += self.last[1] - self.last[2] == balance
            self.upwards += self.last[1] + amount == balance
        self.last = (day, balance, amount)

    @property
    def order(self) -> int:
        """Above 0 if the newest row comes first, below if it comes last, 0 where neither balances nor days tell."""
        if self.downwards != self.upwards or not self.first or not self.last:
            return self.downwards - self.upwards
        return (self.first[0] - self.last[0]).days

    def statement(self, of_file: int) -> StatementRecord:
        """Both ends of the chain, whatever the order of the rows; where it is broken or a circle, those of the oldest
        and the newest row (by the order `of_file` if need be), and only the newest balance where most rows do not go on
        from each other."""
        assert self.first is not None, "there are rows"
        assert self.last is not None, "there are rows"
        newest, oldest = (self.first, self.last) if (self.order or of_file) > 0 else (self.last, self.first)
        opening, closing, day = oldest[1] - oldest[2], newest[1], newest[0]
        ends = sorted(self.ends, key=self.ends.__getitem__)
        if [self.ends[each] for each in ends] == [-1, 1] and ends[1] in self.of_last_day:
            (opening, closing), day = ends, self.last_day
        breaks = max(sum(count for count in self.ends.values() if count > 0) - 1, 0)
        if 2 * breaks >= self.rows:
            return StatementRecord(closing=closing, closing_date=day)
        return StatementRecord(
            opening=opening,
            opening_date=min(self.first_day, day),
            closing=closing,
            closing_date=day,
            is_authoritative=breaks == 0,
        )


class AccountBlock(Struct):
    """One account of the file while it is read. `held` are its bookings that wait for the end of another account's
    block. `newest` is the latest booking date so far, date.min without any."""

    record: AccountRecord
    held: list[TransactionRecord] = field(default_factory=list)
    newest: date = date.min
    oldest: date = date.max
    balances: Balances = field(default_factory=Balances)

    def take(self, booking: Booking) -> None:
        record = booking.record
        if record.status == "pending":
            return
        self.newest, self.oldest = max(self.newest, record.booking_date), min(self.oldest, record.booking_date)
        if booking.balance is not None:
            self.balances.take(record.booking_date, booking.balance, record.amount)

    def statements(self, metadata: Metadata | None, order: int) -> Iterator[Record]:
        """The statement with opening and closing balance: from lines of the file about them (`metadata`; None where the
        table has several accounts), else from the balances of its rows since the last call, by the `order` of the file
        if theirs does not tell; None where neither states them. Where a line's closing balance contradicts a chain of
        rows, it is from another time: a statement of its own, if that is later."""
        said = self.balances.statement(order) if self.balances.rows else StatementRecord()
        is_chain, self.balances = said.opening is not None and self.balances.rows >= CHAIN_ROWS_MIN, Balances()
        newest = self.newest if self.newest > date.min else None
        closing, day = (metadata.closing, metadata.closing_date or metadata.dated) if metadata else (None, None)
        if closing is not None and (said.closing in (None, closing) or not is_chain):
            day = day or said.closing_date or newest
            said = said if said.closing == closing else StatementRecord()  # a line outweighs balances that prove little
            said = replace(said, closing=closing, closing_date=day)
        if metadata and metadata.opening is not None:
            first = self.oldest if newest else None
            said = replace(said, opening=metadata.opening, opening_date=first, is_authoritative=first is not None)
        yield said
        if closing not in (None, said.closing) and day is not None and day > (said.closing_date or day):
            yield self.record
            yield StatementRecord(closing=closing, closing_date=day)
