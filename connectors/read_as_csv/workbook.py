"""Workbooks of Excel (.xlsx, .xls) and OpenDocument (.ods): each sheet with bookings is read as a CSV file."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, BinaryIO

from analytics.records import Record
from connectors.archive import DAMAGED
from connectors.bank_csv.cell_kinds import is_booking, kinds
from connectors.bank_csv.layouts import OnLayout
from connectors.bank_csv.profile import Profile
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.limits import ZIP_MEMBER_BYTES_MAX, ZIP_TOTAL_BYTES_MAX
from connectors.read_as_csv.table import read_table

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # the container of Excel up to 2003
_ZIP = b"PK\x03\x04"
_NAME_AT = 30  # in the header of the first file of a container (APPNOTE 4.3.7)
_FIRST = (b"[Content_Types].xml", b"_rels/", b"xl/", b"docProps/")
_ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
_FRACTION_DIGITS = 4  # of a number: binary noise is behind them


def detect(head: bytes) -> bool:
    """Whether a file is a workbook: Excel up to 2003, or a ZIP container whose first file is a part of one."""
    if not head.startswith(_ZIP):
        return head.startswith(_OLE)
    first = head[_NAME_AT : _NAME_AT + len(_ODS)]
    return first.startswith((*_FIRST, _ODS))


def read(stream: BinaryIO, profiles: Sequence[Profile] | None, on_layout: OnLayout) -> Iterator[Record]:
    """The accounts and bookings of all sheets with bookings. Raises UnsupportedFile where there is none, MalformedFile
    for a workbook that is damaged or has a password, LimitExceeded for one that is too large."""
    tables = [rows for rows in _sheets(stream) if any(map(is_booking, map(_without_units, rows)))]
    if not tables:
        raise UnsupportedFile("no sheet of the workbook holds transactions.")
    for rows in tables:
        yield from read_table(rows, profiles, on_layout)


def _sheets(stream: BinaryIO) -> Iterator[list[list[str]]]:
    from python_calamine import CalamineError, CalamineWorkbook

    content = stream.read(ZIP_MEMBER_BYTES_MAX + 1)
    if len(content) > ZIP_MEMBER_BYTES_MAX:
        raise LimitExceeded("the workbook is larger than allowed.")
    try:
        if content.startswith(_ZIP):
            with zipfile.ZipFile(io.BytesIO(content)) as container:
                if sum(each.file_size for each in container.infolist()) > ZIP_TOTAL_BYTES_MAX:
                    raise LimitExceeded("the workbook holds more than is allowed.")
        with CalamineWorkbook.from_filelike(io.BytesIO(content)) as workbook:
            for name in workbook.sheet_names:
                yield [list(map(_text, row)) for row in workbook.get_sheet_by_name(name).iter_rows()]
    except (CalamineError, *DAMAGED):
        raise MalformedFile("the workbook is damaged or has a password.") from None


def _text(cell: Any) -> str:
    """A cell as a CSV file would have it: a day in ISO form, a number with two decimals or none, and four where it has
    three, so that they are no thousands."""
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M}" if cell.time() != cell.min.time() else f"{cell:%Y-%m-%d}"
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if cell == int(cell):
        return str(int(cell))
    whole, _, fraction = f"{cell:.{_FRACTION_DIGITS}f}".partition(".")
    short = fraction.rstrip("0").ljust(2, "0")
    return f"{whole}.{short if len(short) == 2 else fraction}"


def _without_units(row: Sequence[str]) -> list[str]:
    """The row with whole numbers written as amounts, which `is_booking` takes for account numbers."""
    return [f"{cell}.00" if "amount" in kinds(cell) and cell.lstrip("-").isdigit() else cell for cell in row]
