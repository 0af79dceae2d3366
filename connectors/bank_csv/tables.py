"""The reading of a CSV file from top to bottom: its tables, the accounts in them, and the rows between."""

import csv
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import chain, takewhile

from msgspec.structs import replace

from analytics.records import AccountRecord, Record
from connectors.bank_csv.accounts import AccountBlock
from connectors.bank_csv.amounts_and_dates import FORMATS, date_reader, time_in
from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.profile import Mark, Profile, comparable
from connectors.bank_csv.recognition import RecognisedFile, header_profiles
from connectors.bank_csv.rows import Booking, Note, RowReader
from connectors.card_numbers import hidden_card_number
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import COLUMNS_MAX, ENTRIES_MAX
from connectors.lines import Lines, visible
from connectors.text import clean, compact_iban, currency_of

HELD_MAX = 100_000  # bookings of other accounts kept until their block can be written
UNDATED_MAX = 1_000  # pending bookings without a day
IDLE_MAX = 10_000  # lines that are no bookings, in addition to two for each booking
_END = "\0"  # in no line of a file, because `Lines` refuses it


class Reading:
    """Turns the lines of a file into records. Of `profiles`, those of the same group as the file's may be followed by
    further tables in it."""

    def __init__(self, file: RecognisedFile, profiles: Sequence[Profile]) -> None:
        self.file = file
        self.siblings = [profile for profile in profiles if profile.group and profile.group == file.profile.group]
        self.metadata = Metadata(read_day=date_reader((*file.profile.date, *FORMATS)))
        self.accounts: dict[str, AccountBlock] = {}
        self.active: AccountBlock | None = None
        self.undated: list[Booking] = []
        self.days: list[date] = []  # of the first and of the last booking so far
        self.times: list[str] = []  # of the day in their rows
        self.held = self.count = self.tables = 0
        self.width = self.last_width = sys.maxsize  # of the shortest booking before the last one, and of the last one
        for row in file.preamble:
            self._note(row)
        rows = (*file.preamble, ())
        for labels, values, following in zip(rows, rows[1:], rows[2:], strict=False):
            if len(values) == len(labels) != len(following):  # a table of one row above the actual table
                self.metadata.take_table(labels, values, self._mark())
        self.rows = RowReader(file, currency=self._currency())
        self.is_interleaved = self._is_interleaved()

    def records(self, lines: Lines) -> Iterator[Record]:
        """The records of every account with its bookings; an error may come after thousands of them."""
        last: list[str] = []
        for index, row in enumerate(self._cells(lines)):
            if index > IDLE_MAX + 3 * self.count:
                raise LimitExceeded("Line {line}: far more lines than transactions.", line=lines.number)
            if len(row) > COLUMNS_MAX:
                raise LimitExceeded("Line {line}: more than {limit} columns.", limit=COLUMNS_MAX, line=lines.number)
            if index > self.file.header_row and any(row):
                yield from self._row(row, lines.number)
            last = row
        if last and not lines.last.endswith("\n"):
            self._check_end(last, lines)
        yield from self._end_of_table()

    def _cells(self, lines: Lines) -> Iterator[list[str]]:
        """The rows of the file. Raises LimitExceeded for too long a field, and MalformedFile where a quote is left open
        at the end of the file: the mark that is put after the last line, to notice this, is then in the quoted cell."""
        table = csv.reader(chain(visible(lines), (_END,)), delimiter=self.file.delimiter)
        try:
            for row in takewhile(lambda row: row[-1:] != [_END], table):
                if row and row[-1].endswith(_END):
                    raise MalformedFile(
                        "Line {line}: a closing quote is missing in the row that ends here.", line=lines.number
                    )
                yield row
        except csv.Error:
            raise LimitExceeded(
                "Line {line}: a field is longer than {limit} characters, or its closing quote is missing.",
                limit=csv.field_size_limit(),
                line=lines.number,
            ) from None

    def _row(self, row: list[str], line: int) -> Iterator[Record]:
        if self.file.profile.is_ignored:
            yield from self._other_row(row)
            return
        result = self.rows.read(row, line)
        if isinstance(result, Note):
            if not result.is_skipped:
                yield from self._other_row(row, result)
            return
        self.width, self.last_width = min(self.width, self.last_width), len(row)
        record = result.record
        texts = (record.purpose, record.counterpart_name, record.bank_text, record.end_to_end_id)
        if record.counterpart_iban is None and self.metadata.take_total(texts, record.amount, record.booking_date):
            return
        self.count += 1
        if self.count > ENTRIES_MAX:
            raise LimitExceeded("The CSV file holds more than {limit} transactions.", limit=ENTRIES_MAX)
        if not result.is_dated:
            self.undated.append(result)
            if len(self.undated) > UNDATED_MAX:
                raise MalformedFile("Line {line}: too many transactions without a date.", line=line)
            return
        self.times = [*self.times[:1], next(filter(None, map(time_in, row)), "")]
        yield from self._with_undated(result)

    def _check_end(self, row: Sequence[str], lines: Lines) -> None:
        """Raise MalformedFile for a file that was cut inside its last row; remarks and balances may end without a line
        end."""
        width = self.width if len(row) == self.last_width else min(self.width, self.last_width)
        is_cut = len(row) < width < sys.maxsize and row[0][:1].isdigit() and not row[0].strip("0123456789./- ")
        if is_cut or lines.last.count('"') % 2:
            raise MalformedFile("Line {line}: the file ends inside a row.", line=lines.number)

    def _with_undated(self, booking: Booking) -> Iterator[Record]:
        waiting, self.undated = self.undated, []
        for earlier in waiting:  # pending rows are above the booked ones, and get their newest day
            record = replace(earlier.record, booking_date=booking.record.booking_date)
            yield from self._booking_records(earlier._replace(record=record, is_dated=True))
        yield from self._booking_records(booking)

    def _booking_records(self, booking: Booking) -> Iterator[Record]:
        account = self._account(booking)
        record = booking.record
        self.days = [*self.days[:1], record.booking_date]
        account.take(booking)
        if account is not self.active:
            if self.active is not None and self.is_interleaved:
                account.held.append(record)
                self.held += 1
                if self.held > HELD_MAX:
                    yield from self._release()
                return
            if self.active is not None:
                yield from self.active.statements(None, self._order())
            self.active = account
            yield account.record
        yield record

    def _other_row(self, row: Sequence[str], note: Note | None = None) -> Iterator[Record]:
        """Take what a row says that is no booking (the next table's title or header, a balance, a remark), and yield
        the records that are complete by that."""
        if self.siblings and (profiles := header_profiles(row, self.siblings)):
            if self.accounts:
                yield from self._end_of_table()
            self.file = replace(self.file, profile=profiles[0], names=tuple(row), sample=())
            self.rows = RowReader(self.file, currency=self._currency())
            return
        if (
            note
            and (note.amount is not None or note.day is not None)
            and self.metadata.take_total(row, note.amount, note.day)
        ):
            return
        if self.siblings and comparable(row[0]).startswith("umsatze "):
            yield from self._end_of_table()
            table = next(profile for profile in self.siblings if not profile.is_ignored)
            self.file = replace(self.file, profile=table, names=(), sample=())  # until its header comes, if any
            self.rows = RowReader(self.file, currency=None)
        self._note(row)

    def _note(self, row: Sequence[str]) -> None:
        cells = [cell for cell in row if cell.strip()]
        if cells and len(cells) <= 8:
            self.metadata.take(row, self._mark())

    def _mark(self) -> Mark:
        return self.file.profile.decimal or ("," if self.file.delimiter == ";" else ".")

    def _end_of_table(self) -> Iterator[Record]:
        if self.undated:
            newest = max((account.newest for account in self.accounts.values()), default=date.min)
            if newest == date.min:
                raise MalformedFile("No transaction of the file has a date.")
            for booking in self.undated:
                record = replace(booking.record, booking_date=newest)
                yield from self._booking_records(booking._replace(record=record, is_dated=True))
            self.undated = []
        is_ignored, self_closing = self.file.profile.is_ignored, self.metadata.closing is not None
        if not self.accounts and not is_ignored and (self.tables == 0 or self_closing):
            if self.file.profile.name == "generic":
                raise UnsupportedFile("The CSV file holds no transactions and no known layout.")
            self.accounts[""] = self.active = AccountBlock(self._account_record("", "", ""))
            yield self.active.record
        yield from self._release()
        if self.accounts:
            self.tables += 1
        self.accounts, self.metadata = {}, Metadata(read_day=self.metadata.read_day)

    def _release(self) -> Iterator[Record]:
        """End the open account block, and yield the blocks of the accounts whose bookings were held."""
        metadata, order = self.metadata if len(self.accounts) == 1 else None, self._order()
        if self.active is not None:
            yield from self.active.statements(metadata, order)
        for account in self.accounts.values():
            if account.held:
                yield account.record
                yield from account.held
                yield from account.statements(metadata, order)
                account.held = []
        self.active, self.held = None, 0

    def _order(self) -> int:
        """Above 0 if the newest row of the table comes first, below if it comes last, as all accounts together tell."""
        by_balances = sum(account.balances.order for account in self.accounts.values())
        first, last = self.times[:1], self.times[-1:]
        by_times = (first > last) - (first < last)
        return by_balances or sum((self.days[0] - day).days for day in self.days) or by_times

    def _currency(self) -> str | None:
        """The currency stated above the table or, in a layout that was guessed or is a person's own, by that; else that
        of the country of the account named above the table; None where none is."""
        profile, iban = self.file.profile, self.metadata.iban
        is_own = profile.name == "generic" or profile.standing != "shared"
        return self.metadata.currency or (profile.currency if is_own else None) or (currency_of(iban) if iban else None)

    def _key(self, booking: Booking) -> str:
        """The key that distinguishes the accounts in one table; empty where a row names none."""
        number, name = booking.account.strip(), booking.account_name.strip()
        key = number or (f"name {name}" if name else "")
        return f"{key} {booking.record.currency}" if self.file.profile.is_account_per_currency else key

    def _account(self, booking: Booking) -> AccountBlock:
        key = self._key(booking)
        if not key and self.active is not None:
            return self.active
        account = self.accounts.get(key)
        if account is None:
            record = self._account_record(booking.account, booking.account_name, booking.record.currency)
            account = self.accounts[key] = AccountBlock(record)
        return account

    def _account_record(self, number: str, name: str, currency: str) -> AccountRecord:
        profile, metadata = self.file.profile, self.metadata
        iban = compact_iban(number) or (metadata.iban if not number.strip() else None)
        code = currency or metadata.currency or self.rows.currency or currency_of(iban)
        title = clean(name) or metadata.name
        source = profile.bank or "CSV"
        numbered = clean(hidden_card_number(number)) or metadata.account
        own = numbered or title
        key = iban or (f"{source}/{own}" if own else source)
        if profile.is_account_per_currency:
            key = f"{key}/{code}"
        return AccountRecord(
            stable_key=key,
            currency=code,
            iban=iban,
            name=title,
            kind=profile.kind or metadata.kind(),
            bank_name=profile.bank,
            is_anonymous=not (iban or own),
            is_by_name=bool(title) and not (iban or numbered),
            kept_for=None if iban or own else profile.account,
        )

    def _is_interleaved(self) -> bool:
        """Whether the first rows return to an account after another one."""
        closed: set[str] = set()
        current = ""
        reader = RowReader(self.file, currency=None)
        for row in self.file.sample:
            try:
                booking = reader.read(row, 0) if any(row) and not self.file.profile.is_ignored else None
            except MalformedFile:
                continue
            if not isinstance(booking, Booking):
                continue
            key = self._key(booking)
            if key != current:
                if key in closed:
                    return True
                closed.add(current)
                current = key
        return False
