"""Account blocks for writing statement formats that need facts about all rows before the first row."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from decimal import Decimal
from tempfile import SpooledTemporaryFile
from typing import IO
from xml.sax.saxutils import escape

from msgspec import Struct

from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.classified_records import Classification, Pair, without_classes

MEMORY_BYTES = 1024 * 1024  # of rendered rows in memory; more wait on disk, however long the export is
COPY_BYTES = 64 * 1024

Render = Callable[[AccountRecord, TransactionRecord], str]
RenderPair = Callable[[AccountRecord, TransactionRecord, Classification], str]


class Block(Struct, frozen=True, kw_only=True):
    """An account with its statement and its rendered rows; `number` counts from 1. `first` and `last` are the earliest
    and the latest booking date of the booked rows (None without any), `total` is the sum of those that are not after
    the day of the closing balance, which does not contain them."""

    number: int
    account: AccountRecord
    statement: StatementRecord
    first: date | None
    last: date | None
    total: Decimal
    rows: IO[bytes]

    def copy_rows(self, stream: IO[bytes]) -> None:
        """Write the rendered rows to the stream."""
        self.rows.seek(0)
        while chunk := self.rows.read(COPY_BYTES):
            stream.write(chunk)

    def days(self) -> tuple[date | None, date | None]:
        """The days of opening and closing balance. Where the source does not state one, it is the first or last booking
        date; without bookings, the day of the other balance; None where there is no day at all."""
        opening = self.statement.opening_date or self.first or self.statement.closing_date
        return opening, self.statement.closing_date or self.last or opening

    def balances(self) -> tuple[Decimal, Decimal] | None:
        """Opening and closing balance; a missing one is computed from the other and the rows. None where the source
        states neither."""
        opening, closing = self.statement.opening, self.statement.closing
        if opening is not None:
            return opening, opening + self.total if closing is None else closing
        return None if closing is None else (closing - self.total, closing)


def blocks(records: Iterable[Record], render: Render) -> Iterator[Block]:
    """The accounts as blocks, in the order of the records, their rows rendered by `render`; the rows of a block are
    deleted when the next block is requested."""
    return blocks_of_pairs(without_classes(records), lambda account, row, _: render(account, row))


def blocks_of_pairs(pairs: Iterable[Pair], render: RenderPair) -> Iterator[Block]:
    """The blocks as in `blocks`, for a format that shows type and category: `render` also gets the classification that
    is paired with each booking."""
    waiting = iter(pairs)
    number = 0
    upcoming = next(waiting, None)
    while upcoming is not None:
        account, statement = upcoming[0], StatementRecord()
        assert isinstance(account, AccountRecord), "a block begins with its account"
        first: date | None = None
        last: date | None = None
        by_day: defaultdict[date, Decimal] = defaultdict(Decimal)
        with SpooledTemporaryFile(MEMORY_BYTES) as rows:
            while (upcoming := next(waiting, None)) is not None:
                record, classification = upcoming
                if isinstance(record, AccountRecord):
                    break
                if isinstance(record, StatementRecord):
                    statement = record
                    continue
                rows.write(render(account, record, classification).encode())
                if record.status == "booked":
                    day = record.booking_date
                    first, last = min(first or day, day), max(last or day, day)
                    by_day[day] += record.amount
            number += 1
            until = statement.closing_date or date.max
            total = sum((amount for day, amount in by_day.items() if day <= until), Decimal(0))
            yield Block(
                number=number, account=account, statement=statement, first=first, last=last, total=total, rows=rows
            )  # fmt: skip


def tag(
    name: str, text: str | None = None, characters: int | None = None, *, raw: str = "", attributes: str = ""
) -> str:
    """The text of an XML element around `text`, which is escaped and cut at so many characters, or, where `text` is
    None, around the XML in `raw`; an empty text where the element would be empty. `attributes` are written as they are,
    with a space in front."""
    inner = raw if text is None else escape(text[:characters])
    return f"<{name}{attributes}>{inner}</{name}>" if inner else ""
