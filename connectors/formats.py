"""The formats of statement files; the content of a file shows its format, never the name.

Parsing happens in the calling process: the one that `connectors.parser_process` runs for it, or a test.
"""

import hashlib
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from analytics.messages import Message, message
from analytics.records import AccountRecord, Batch, Record
from connectors import archive
from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.layouts import OnLayout
from connectors.bank_csv.profile import Profile
from connectors.camt import reader as camt
from connectors.connector import LimitExceeded, SourceError, UnsupportedFile
from connectors.limits import FILE_BYTES_MAX, HEAD_BYTES
from connectors.mt940 import reader as mt940
from connectors.ofx import reader as ofx
from connectors.own_formats import beancount_reader as beancount_reading
from connectors.own_formats import jsonl, parquet_reader
from connectors.read_as_csv import qif, workbook
from connectors.unnumbered import without_numbers

_WEB_PAGE = re.compile(  # which banks call .xls: HTML, also packed as mail, or the XML of Excel 2003
    rb"[^<\w]{0,8}(?:<(?:!doctype html|html|head|meta|body|table|div)\b|mime-version:|.{0,500}<\?mso-application\b"
    rb"|.{0,500}\burn:schemas-microsoft-com:office:spreadsheet\b)",
    re.IGNORECASE | re.DOTALL,
)

OnWords = Callable[[jsonl.WordsLine], None]


class Format(Struct, frozen=True):
    """A kind of statement file: its name in reports, its detection, and its reader, which is also given the profiles
    and `on_layout` if it reads tables by layouts, and `on_words` if it may hold lines of words."""

    name: str
    detect: Callable[[bytes], bool]
    read: Callable[..., Iterator[Record]]
    has_layouts: bool = False
    has_words: bool = False


FORMATS = (
    Format("jsonl", jsonl.detect, jsonl.read, has_words=True),
    Format("parquet", parquet_reader.detect, parquet_reader.read),
    Format("beancount", beancount_reading.detect, beancount_reading.read),
    Format("camt", camt.detect, camt.read),
    Format("ofx", ofx.detect, ofx.read),
    Format("mt940", mt940.detect, mt940.read),
    Format("excel", workbook.detect, workbook.read, has_layouts=True),
    Format("qif", qif.detect, qif.read, has_layouts=True),
    Format("csv", csv_statements.detect, csv_statements.read, has_layouts=True),
)


def read_statements(
    source: Path | BinaryIO,
    profiles: Sequence[Profile] | None = None,
    on_layout: OnLayout = lambda _: None,
    on_words: OnWords = lambda _: None,
) -> Iterator[Batch]:
    """The batches of a file: one, or one for each statement file in a ZIP container. The id is made of the hash of the
    whole file and, in a container, the number of the file in it.

    `profiles` are the user's own. Reading a batch's records raises the errors of the file; requesting a batch, those of
    the container. `on_layout` and `on_words` are as in `read_records`.
    """
    if isinstance(source, Path):
        with source.open("rb") as stream:
            yield from read_statements(stream, profiles, on_layout, on_words)
        return
    identity = f"file:{_digest(source)}"
    if not _is_container(_head(source)):
        yield Batch(id=identity, records=_read(source, profiles, on_layout, on_words))
        return
    # A chosen layout applies to the files with its columns; the others are read as usual
    profiles = [replace(each, standing="offered") if each.standing == "chosen" else each for each in profiles or ()]
    number = 0
    for number, member in archive.statements(source):
        records = _read(member, profiles, on_layout, on_words)
        yield Batch(id=f"{identity}/{number}", records=_name_member(records, number))
    if not number:
        raise UnsupportedFile("the ZIP container holds no statement.")


def read_records(
    source: Path | BinaryIO,
    profiles: Sequence[Profile] | None = None,
    on_layout: OnLayout = lambda _: None,
    on_words: OnWords = lambda _: None,
) -> Iterator[Record]:
    """All records of a file in one stream; those of a ZIP container's files follow each other and differ by `part`.
    `on_layout` gets the layout of a CSV file that follows no shared profile, because it was guessed or is the user's
    own, `on_words` a line of an export of words."""
    for part, batch in enumerate(read_statements(source, profiles, on_layout, on_words)):
        for record in batch.records:
            yield replace(record, part=part) if part and isinstance(record, AccountRecord) else record


def format_name(source: Path | BinaryIO) -> str | None:
    """The name of a file's format for reports, or zip; None where it is neither."""
    if isinstance(source, Path):
        with source.open("rb") as stream:
            return format_name(stream)
    head = _head(source)
    if _is_container(head):
        return "zip"
    kind = format_of(head)
    return kind.name if kind else None


def format_of(head: bytes) -> Format | None:
    """The format that the beginning of a file shows, None for no known one; CSV, the least strict, is checked last."""
    return next((kind for kind in FORMATS if kind.detect(head)), None)


def _is_container(head: bytes) -> bool:
    """Whether a file is a ZIP container of statements; a workbook is one, too, but of its own parts."""
    return archive.detect(head) and not workbook.detect(head)


def _read(
    stream: BinaryIO, profiles: Sequence[Profile] | None, on_layout: OnLayout, on_words: OnWords
) -> Iterator[Record]:
    head = _head(stream)
    kind = format_of(head)
    if not head.strip(b"\x00\xef\xbb\xbf\xff\xfe \t\r\n"):
        raise UnsupportedFile("the file is empty.")
    if _WEB_PAGE.match(head.replace(b"\x00", b"")):
        raise UnsupportedFile(
            "the file is a web page or other XML, whatever its name: open it in Excel and save it as .xlsx or CSV."
        )
    if _is_container(head):
        raise UnsupportedFile("a ZIP container inside a ZIP container is not opened.")
    if kind is None:
        raise UnsupportedFile(
            "not a bank statement in a known format (camt, MT940, OFX, QIF, CSV, Excel, or a ZIP of them)."
        )
    further = (profiles, on_layout) if kind.has_layouts else (on_words,) if kind.has_words else ()
    yield from without_numbers(kind.read(stream, *further), profiles)


def _digest(stream: BinaryIO) -> str:
    if stream.seek(0, io.SEEK_END) > FILE_BYTES_MAX:
        raise LimitExceeded("the file is larger than allowed.")
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(1024 * 1024):
        digest.update(chunk)
    stream.seek(0)
    return digest.hexdigest()


def _head(stream: BinaryIO) -> bytes:
    """The first bytes of a file (HEAD_BYTES at most), which stay in the stream to be read again."""
    if isinstance(stream, io.BufferedReader) and not stream.seekable():
        return stream.peek(HEAD_BYTES)[:HEAD_BYTES]
    place = stream.tell()
    head = stream.read(HEAD_BYTES)
    stream.seek(place)
    return head


def _name_member(records: Iterator[Record], number: int) -> Iterator[Record]:
    """The records unchanged; an error is raised with the number of the file in the container in its message."""
    try:
        yield from records
    except SourceError as error:
        reason = message(str(error))
        if "ZIP container" not in reason:
            reason = Message("file {file} of the ZIP container: {reason}", file=number, reason=reason)
        raise type(error)(reason, detail=error.detail) from error
