"""Thrift's compact protocol, read within limits: what a Parquet file says of itself (THRIFT-110)."""

from collections.abc import Iterator

VALUES_MAX = 500_000  # of one structure with all that is in it; 40 columns of a hundred row groups have 60,000
DEPTH_MAX = 12
VARINT_BITS_MAX = 64
TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
INTEGERS = (4, 5, 6)


class Struct:
    """Fields by their numbers; each is asked for as what it should be, and `ValueError` says that it is not."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[int, object] = {}

    def __contains__(self, field: int) -> bool:
        return field in self._fields

    def keep(self, field: int, value: object) -> None:
        """Set a field; one that comes twice is an error."""
        if field in self._fields:
            raise ValueError("a field comes twice")
        self._fields[field] = value

    def number(self, field: int, default: int | None = None) -> int:
        """An integer, not negative; the default where it is absent."""
        value = self._fields.get(field, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError("not a number")
        return value

    def text(self, field: int) -> str:
        """A text in UTF-8."""
        value = self._fields.get(field)
        if not isinstance(value, bytes):
            raise ValueError("not a text")
        return value.decode()

    def struct(self, field: int) -> "Struct":
        """A structure."""
        value = self._fields.get(field)
        if not isinstance(value, Struct):
            raise ValueError("not a structure")
        return value

    def structs(self, field: int) -> "list[Struct]":
        """A list of structures."""
        value = self._fields.get(field)
        if not isinstance(value, list) or not all(isinstance(item, Struct) for item in value):
            raise ValueError("not a list of structures")
        return value


def read_struct(data: bytes, place: int = 0) -> tuple[Struct, int]:
    """The structure that begins at `place`, and where it ends; `ValueError` or `IndexError` where there is none."""
    reader = _Reader(data, place)
    return reader.struct(0), reader.place


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """An unsigned number of up to 64 bits, and where it ends."""
    value = shift = 0
    while shift < VARINT_BITS_MAX:
        octet = data[place]
        place += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, place
        shift += 7
    raise ValueError("a number of too many bytes")


class _Reader:
    """A place in the data, and how much may still be read."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._left = VALUES_MAX
        self.place = place

    def struct(self, depth: int) -> Struct:
        if depth > DEPTH_MAX:
            raise ValueError("structures too deep")
        found, field = Struct(), 0
        while head := self._octet():
            field = field + (head >> 4) if head >> 4 else self._zigzag()
            found.keep(field, self._value(head & 0x0F, depth))
        return found

    def _value(self, kind: int, depth: int) -> object:
        self._left -= 1
        if self._left < 0:
            raise ValueError("too many values")
        if kind in (TRUE, FALSE):
            return kind == TRUE  # of a field its type is the value
        if kind in INTEGERS:
            return self._zigzag()
        if kind == BINARY:
            return self._octets(self._varint())
        if kind in (LIST, SET):
            return list(self._items(depth + 1))
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (BYTE, DOUBLE):
            return self._octets(1 if kind == BYTE else 8)
        raise ValueError("an unknown type")

    def _items(self, depth: int) -> Iterator[object]:
        if depth > DEPTH_MAX:
            raise ValueError("lists too deep")
        head = self._octet()
        kind, count = head & 0x0F, head >> 4
        for _ in range(self._varint() if count == 0x0F else count):
            if kind in (TRUE, FALSE):
                yield self._octets(1) == b"\x01"  # in a list a byte is the value
            else:
                yield self._value(kind, depth)

    def _octet(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _octets(self, count: int) -> bytes:
        self.place += count
        if self.place > len(self._data):
            raise ValueError("cut off")
        return self._data[self.place - count : self.place]

    def _varint(self) -> int:
        value, self.place = read_varint(self._data, self.place)
        return value

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
