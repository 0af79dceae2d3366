"""Reads a Parquet file of flat columns row group by row group, in bounded memory, whatever its bytes claim.

Polars panics on damaged files, in threads of its own and with a backtrace for a person, and reserves what a page
claims to hold (docs/decisions/imports.md); so this reads the part of the format that Polars writes for our exports:
optional columns, GZIP, data pages of version 1, plain or by dictionary (apache/parquet-format). Everything else is
`UnknownLayout`, what would be too much `LimitExceeded`; damage is another `ValueError`, `IndexError`,
`ArithmeticError` or `zlib.error`.
"""

import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import BinaryIO

from connectors.connector import LimitExceeded
from connectors.limits import (
    ENTRIES_MAX,
    FILE_BYTES_MAX,
    PARQUET_CHUNK_BYTES_MAX,
    PARQUET_FOOTER_BYTES_MAX,
    PARQUET_GROUP_ROWS_MAX,
)
from connectors.thrift import Struct, read_struct, read_varint

MAGIC = b"PAR1"
OPTIONAL, GZIP, DATA_PAGE, DICTIONARY_PAGE = 1, 2, 0, 2
PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY = 0, 2, 3, 8
EPOCH = date(1970, 1, 1)
BITS = [tuple(octet >> bit & 1 for bit in range(8)) for octet in range(256)]  # the lowest bit comes first

Text = str | None


class UnknownLayout(ValueError):
    """Not the columns that are wanted, or not packed as Polars packs them for us."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What a column holds: how its schema says it ({field: value} of SchemaElement), how plain values are told."""

    schema: Mapping[int, int]
    told: Callable[[bytes, int], list[str]]


def _texts(data: bytes, count: int) -> list[str]:
    found, place = [], 0
    for _ in range(count):
        start = place + 4
        place = start + int.from_bytes(data[place:start], "little")
        if place > len(data):
            raise ValueError("a text that is cut off")
        found.append(data[start:place].decode())
    return found


def _days(data: bytes, count: int) -> list[str]:
    return [
        (EPOCH + timedelta(int.from_bytes(item, "little", signed=True))).isoformat() for item in _each(data, 4, count)
    ]


def _money(data: bytes, count: int) -> list[str]:
    return [
        f"{Decimal(int.from_bytes(item, 'big', signed=True)).scaleb(-5):f}" for item in _each(data, MONEY_BYTES, count)
    ]


def _flags(data: bytes, count: int) -> list[str]:
    if len(data) * 8 < count:
        raise ValueError("flags that are cut off")
    return ["true" if bit else "" for octet in data for bit in BITS[octet]][:count]


def _each(data: bytes, size: int, count: int) -> Iterator[bytes]:
    if len(data) < size * count:
        raise ValueError("values that are cut off")
    return (data[place : place + size] for place in range(0, size * count, size))


MONEY_BYTES = 9  # of 20 digits
TEXT = Kind({1: 6, 6: 0}, _texts)  # BYTE_ARRAY, UTF8
DAY = Kind({1: 1, 6: 6}, _days)  # INT32, DATE
MONEY = Kind({1: 7, 2: MONEY_BYTES, 6: 5, 7: 5, 8: 20}, _money)  # FIXED_LEN_BYTE_ARRAY, DECIMAL(20, 5)
FLAG = Kind({1: 0}, _flags)  # BOOLEAN: "true" or ""


class ParquetFile:
    """The columns of a file that are wanted, by their names; everything of a value is told as text."""

    def __init__(self, stream: BinaryIO, columns: Mapping[str, Kind]) -> None:
        """Reads what the file says of itself; `UnknownLayout` when it has not these columns."""
        self._stream = stream
        self._left = FILE_BYTES_MAX  # what may be unpacked, and what rows may repeat
        self._end, footer = _footer(stream)
        self._unread = self._end  # columns do not overlap
        self._places = _places(footer, columns)
        self._kinds = columns
        self._groups = footer.structs(4)
        rows = sum(group.number(3) for group in self._groups)
        if rows > ENTRIES_MAX:
            raise LimitExceeded(f"The file holds more than {ENTRIES_MAX} bookings.")
        if rows != footer.number(3):
            raise ValueError("row groups are missing")

    def rows(self) -> Iterator[tuple[Text, ...]]:
        """The rows in their order, each with the wanted columns in theirs."""
        for group in self._groups:
            count, chunks = group.number(3), group.structs(1)
            if count > PARQUET_GROUP_ROWS_MAX:
                raise LimitExceeded(f"A row group holds more than {PARQUET_GROUP_ROWS_MAX} rows.")
            yield from zip(
                *(self._column(chunks[self._places[name]], kind, count) for name, kind in self._kinds.items()),
                strict=True,
            )

    def _column(self, chunk: Struct, kind: Kind, count: int) -> list[Text]:
        said = chunk.struct(3)
        if 1 in chunk or said.number(1) != kind.schema[1] or said.number(4) != GZIP:
            raise UnknownLayout("a column in another file, of another type or packed in another way")
        start = min(said.number(field) for field in (9, 11) if field in said)
        size = said.number(7)
        if size > PARQUET_CHUNK_BYTES_MAX:
            raise LimitExceeded("A column is larger than allowed.")
        self._unread -= size
        if start + size > self._end or self._unread < 0:
            raise ValueError("columns beyond the end of the file or over one another")
        self._stream.seek(start)
        values = self._values(self._stream.read(size), kind, count)
        self._spend(sum(len(value) for value in values if value))
        return values

    def _values(self, data: bytes, kind: Kind, count: int) -> list[Text]:
        values: list[Text] = []
        dictionary: Sequence[str] = ()
        place = 0
        while len(values) < count:
            head, place = read_struct(data, place)
            packed = data[place : place + head.number(3)]
            place += len(packed)
            page = self._unpacked(packed, head.number(2))
            if head.number(1) == DICTIONARY_PAGE:
                dictionary = _dictionary(page, head.struct(7), kind, count)
            elif head.number(1) == DATA_PAGE:
                values += _page(page, head.struct(5), kind, dictionary, count - len(values))
            else:
                raise UnknownLayout("a page of another kind")
        if place != len(data):
            raise ValueError("more pages than rows")
        return values

    def _unpacked(self, packed: bytes, size: int) -> bytes:
        """Exactly as many bytes as the page claims, and never more."""
        if size > PARQUET_CHUNK_BYTES_MAX:
            raise LimitExceeded("A page is larger than allowed.")
        self._spend(size)
        inflater = zlib.decompressobj(wbits=31)
        page = inflater.decompress(packed, size + 1)
        if len(page) != size or not inflater.eof:
            raise ValueError("a page of another size")
        return page

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise LimitExceeded("The file holds more than is allowed.")


def _footer(stream: BinaryIO) -> tuple[int, Struct]:
    """Where the data end, and what the file says of itself."""
    size = stream.seek(0, io.SEEK_END)
    if size > FILE_BYTES_MAX:
        raise LimitExceeded("The file is larger than allowed.")
    stream.seek(max(0, size - 8))
    tail = stream.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > size - 12:
        raise ValueError("cut off")
    if length > PARQUET_FOOTER_BYTES_MAX:
        raise LimitExceeded("The file says too much of itself.")
    stream.seek(size - 8 - length)
    footer, _ = read_struct(stream.read(length))
    return size - 8 - length, footer


def _places(footer: Struct, columns: Mapping[str, Kind]) -> dict[str, int]:
    """Which column is which: each that is wanted once, as the kind that it should be, and none inside another."""
    root, *elements = footer.structs(2)
    names = [element.text(4) for element in elements]
    if root.number(5) != len(names) or len(set(names)) != len(names) or not columns.keys() <= set(names):
        raise UnknownLayout("other columns")
    places = {name: names.index(name) for name in columns}
    for name, kind in columns.items():
        element = elements[places[name]]
        said = {field: element.number(field) for field in (1, 2, 6, 7, 8) if field in element}
        if said != kind.schema or element.number(3) != OPTIONAL or 5 in element:
            raise UnknownLayout("a column of another kind")
    return places


def _dictionary(page: bytes, head: Struct, kind: Kind, count: int) -> list[str]:
    size = head.number(1)
    if head.number(2) not in (PLAIN, PLAIN_DICTIONARY) or size > count:
        raise ValueError("a dictionary of another kind, or of more values than rows")
    return kind.told(page, size)


def _page(page: bytes, head: Struct, kind: Kind, dictionary: Sequence[str], left: int) -> list[Text]:
    """The values of one page, None where the row has none."""
    count = head.number(1)
    if not 0 < count <= left or head.number(3) != RLE:
        raise ValueError("more rows than there are, or none")
    start = 4 + int.from_bytes(page[:4], "little")
    levels = _numbers(page[4:start], 1, count)
    present = sum(levels)
    encoding = head.number(2)
    if encoding == PLAIN:
        told = kind.told(page[start:], present)
    elif encoding == RLE_DICTIONARY:
        told = [dictionary[number] for number in _numbers(page[start + 1 :], page[start], present)]
    else:
        raise UnknownLayout("an unknown encoding")
    if present == count:
        return list(told)
    following = iter(told)
    return [next(following) if level else None for level in levels]


def _numbers(data: bytes, width: int, count: int) -> list[int]:
    """Runs of equal numbers and packs of eight, mixed (apache/parquet-format, RLE = 3); `width` is the bits of one."""
    if width > 32:
        raise ValueError("numbers of too many bits")
    found: list[int] = []
    place, size, mask = 0, (width + 7) // 8, (1 << width) - 1
    while (left := count - len(found)) > 0:
        head, place = read_varint(data, place)
        if not head & 1:
            number = int.from_bytes(data[place : place + size], "little")
            found += [number & mask] * min(head >> 1, left)
            place += size
            continue
        for _ in range(min(head >> 1, (left + 7) // 8)):
            pack = data[place : place + width]
            if len(pack) < width:
                raise ValueError("numbers that are cut off")
            if width == 1:
                found += BITS[pack[0]]
            else:
                packed = int.from_bytes(pack, "little")
                found += [packed >> width * index & mask for index in range(8)]
            place += width
    return found[:count]
