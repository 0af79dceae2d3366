"""Bank CSV files: recognised by content, read as a stream by declarative profiles, and refused whole in doubt."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from analytics.records import AccountRecord, Record, TransactionRecord
from connectors.bank_csv.around_the_table import Metadata
from connectors.bank_csv.cell_kinds import is_booking
from connectors.bank_csv.encodings import other_reading
from connectors.bank_csv.layouts import OnLayout, layout_of
from connectors.bank_csv.profile import Profile, built_in_profiles
from connectors.bank_csv.recognition import RecognisedFile, UnknownLayout, recognise
from connectors.bank_csv.rows import Booking, RowReader
from connectors.bank_csv.tables import Reading
from connectors.connector import MalformedFile, SourceError, UnsupportedFile
from connectors.limits import HEAD_BYTES
from connectors.lines import Lines, utf16_codec
from connectors.own_formats import csv as csv_statement


def detect(head: bytes) -> bool:
    """Whether a file looks like delimited text: a line has two separators, and it does not begin like XML, JSON or
    MT940. Ask after all other formats; `read` says which layout it has or what is missing."""
    if not utf16_codec(head) and b"\0" in head:
        return False
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"<", b"{", b"[", b":"):
        return False
    lines = head[:HEAD_BYTES].replace(b"\0", b"").replace(b"\r", b"\n").split(b"\n")
    return any(sum(line.count(mark) >= 2 for line in lines) > 0 for mark in (b";", b",", b"\t", b"|"))


def read(
    stream: BinaryIO,
    profiles: Sequence[Profile] | None = None,
    on_layout: OnLayout = lambda _: None,
    *,
    is_any_bank: bool = True,
) -> Iterator[Record]:
    """The accounts and bookings of a bank's CSV file, or of our own export, in the file's order.

    `profiles` (the user's own) come before the built-in ones, which are left out where no bank has these columns
    (`is_any_bank`). Raises UnsupportedFile when the layout is unknown, MalformedFile naming the line when a row cannot
    be read, LimitExceeded for oversized lines, fields or files.
    `on_layout` gets the layout at the end unless it is a shared one, so one that was guessed, chosen or kept by the
    user, also where the file is then refused.
    """
    head = stream.read(HEAD_BYTES)
    if csv_statement.detect(head):
        yield from csv_statement.read(stream, head=head)
        return
    every = all_profiles(profiles) if is_any_bank else tuple(profiles or ())
    try:
        file = recognise(head, every, _is_suitable)
    except UnknownLayout as unknown:
        on_layout(layout_of(unknown.file, Metadata(), is_signed=False, currency=None))
        raise
    reading = Reading(file, every)
    records = reading.records(Lines(stream, head=head, encoding=file.encoding))
    is_known = file.profile.standing == "shared" and file.profile.name != "generic"
    yield from records if is_known else _report(file, reading, records, on_layout, other_reading(head))


def _report(
    file: RecognisedFile,
    reading: Reading,
    records: Iterator[Record],
    on_layout: OnLayout,
    otherwise: tuple[str, str] | None,
) -> Iterator[Record]:
    """Yield the records, and at the end, also after an error, report to `on_layout` how they were read, and how a word
    might be read otherwise (`other_reading`)."""
    above, currency, is_signed = replace(reading.metadata), None, False
    try:
        for record in records:
            if isinstance(record, AccountRecord):
                currency = currency or record.currency
            elif isinstance(record, TransactionRecord):
                is_signed = is_signed or record.amount < 0
            yield record
    finally:
        on_layout(layout_of(file, above, is_signed=is_signed, currency=currency, other_reading=otherwise))


def explain(stream: BinaryIO, profiles: Sequence[Profile] | None = None) -> "Explanation":
    """An explanation of how `read` would read a file, or why it would refuse it."""
    head = stream.read(HEAD_BYTES)
    if csv_statement.detect(head):
        columns = tuple((name, name) for name in csv_statement.COLUMNS)
        return Explanation(profile="bankdata", bank=None, why="the header of our own export", columns=columns)
    try:
        file = recognise(head, all_profiles(profiles), _is_suitable)
        reader = RowReader(file, currency=None)
    except SourceError as refusal:
        return Explanation(profile=None, bank=None, why=str(refusal))
    fields = {place: name for name, places in reader.places.items() for place in places}
    width = len(file.names) or len(file.profile.shape)
    return Explanation(
        profile=file.profile.name,
        bank=file.profile.bank,
        why=file.why,
        encoding="utf-16" if utf16_codec(head) else "utf-8" if _is_utf8(head) else file.encoding,
        delimiter=file.delimiter,
        header_row=file.header_row + 1,
        decimal=reader.mark,
        dates=file.profile.date,
        columns=tuple(
            (
                file.names[index].strip() if file.names else f"column {index + 1}",
                fields.get(index, fields.get(index - width)),
            )
            for index in range(width)
            if not file.names or file.names[index].strip()
        ),
    )


def all_profiles(profiles: Sequence[Profile] | None) -> tuple[Profile, ...]:
    """The user's profiles, followed by the built-in ones."""
    return (*(profiles or ()), *built_in_profiles())


class Explanation(Struct, frozen=True, kw_only=True):
    """The recognised layout of a file and the reason; `profile` is None where the file would be refused, for the reason
    in `why`. `columns` pairs each column with its field, None where it is ignored; `header_row` is the number of the
    row right above the bookings, 0 for none."""

    profile: str | None
    bank: str | None
    why: str
    encoding: str = ""
    delimiter: str = ""
    header_row: int = 0
    decimal: str = ""
    dates: tuple[str, ...] = ()
    columns: tuple[tuple[str, str | None], ...] = ()


def _is_suitable(file: RecognisedFile) -> bool:
    """Whether at least half of the bookings among the first rows can be read by this profile; column names alone may be
    those of another bank. A profile for rows without a header must not have the signs wrong, by the running balance. A
    profile without bookings, or for one of several tables in a file, is always suitable."""
    if file.profile.is_ignored or file.profile.group:
        return True  # the rows of other tables follow
    try:
        reader = RowReader(file, currency=None)
    except UnsupportedFile:
        return False
    if not {"amount", "debit", "credit"} & set(reader.places) or "date" not in reader.places:
        return False
    bad = 0
    read = []
    for row in file.sample:
        if any(row) and is_booking(row):
            try:
                booking = reader.read(row, 0)
            except MalformedFile:
                bad += 1
                continue
            if isinstance(booking, Booking):
                read.append(booking)
    return len(read) >= bad and not (file.profile.shape and _is_upside_down(read))


def _is_upside_down(bookings: Sequence[Booking]) -> bool:
    """Whether the running balance fits the opposite signs better, which means that the columns have another meaning."""
    steps = [(row.balance, row.record.amount) for row in bookings if row.balance is not None]
    right = wrong = 0
    for (before, amount), (after, following) in pairwise(steps):
        right += after in (before - amount, before + following)
        wrong += after in (before + amount, before - following)
    return wrong > right


def _is_utf8(head: bytes) -> bool:
    try:
        head[:-4].decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 8
    return True
