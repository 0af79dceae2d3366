"""The lines of a text file, decoded one by one in bounded memory, whatever its encoding and line ends."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from connectors.connector import LimitExceeded, MalformedFile
from connectors.limits import LINE_CHARACTERS_MAX

_CHUNK_BYTES = 1 << 16
_WITHOUT_WIDTH = re.compile("[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Lines:
    """An iterator of decoded lines (with their end) that knows the number of the last one. Raises MalformedFile for a
    NUL byte, LimitExceeded for a line over the limit."""

    def __init__(
        self, stream: BinaryIO, *, head: bytes = b"", encoding: str = "cp1252", utf16_errors: str = "replace"
    ) -> None:
        self.number = 0
        self.last = ""  # the line given last
        self._encoding = encoding
        self._raw = _raw_lines(octets(stream, head, utf16_errors=utf16_errors))

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        raw = next(self._raw)
        self.number += 1
        if b"\0" in raw:
            raise MalformedFile("Line {line}: a NUL byte in a text file.", line=self.number)
        if len(raw) > LINE_CHARACTERS_MAX:
            raise LimitExceeded("Line {line}: longer than {limit} bytes.", limit=LINE_CHARACTERS_MAX, line=self.number)
        self.last = decode_line(raw, self._encoding)
        return self.last


def decode_line(raw: bytes, encoding: str) -> str:
    """The line decoded as UTF-8 where it is valid UTF-8, else by `encoding`; banks mix both in one file."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(encoding, "replace")


def visible(lines: Iterable[str]) -> Iterator[str]:
    """The lines without marks that have no width, such as U+200E, which some programs put around each amount."""
    return (line if line.isascii() else _WITHOUT_WIDTH.sub("", line) for line in lines)


def utf16_codec(head: bytes) -> str | None:
    """The UTF-16 codec of a file, found by its byte order mark or by the zero bytes of Latin text; None for other
    encodings."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    sample = head[: len(head[:200]) // 2 * 2]
    if len(sample) >= 8:
        if not sample[0::2].count(0) and sample[1::2].count(0) > len(sample) // 4:
            return "utf-16-le"
        if not sample[1::2].count(0) and sample[0::2].count(0) > len(sample) // 4:
            return "utf-16-be"
    return None


def octets(stream: BinaryIO, head: bytes = b"", *, utf16_errors: str = "replace") -> Iterator[bytes]:
    """The bytes of `head` and of the rest of the file, in pieces, without the byte order mark; UTF-16 becomes UTF-8, so
    that they contain ASCII. `utf16_errors` is what Python's decoder does with damaged UTF-16 ("strict": raise
    UnicodeError)."""
    chunk = head or stream.read(_CHUNK_BYTES)
    codec = utf16_codec(chunk)
    if codec is None:
        chunk = chunk.removeprefix(codecs.BOM_UTF8)
        while chunk:
            yield chunk
            chunk = stream.read(_CHUNK_BYTES)
        return
    decoder = codecs.getincrementaldecoder(codec)(utf16_errors)
    while chunk:
        if piece := decoder.decode(chunk).removeprefix("\ufeff").encode("utf-8", "replace"):
            yield piece
        chunk = stream.read(_CHUNK_BYTES)
    decoder.decode(b"", final=True)  # half a character at the end


def _raw_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines, each ending with "\\n"; a file without any "\\n" is split at "\\r". A line over the limit comes
    cut."""
    rest, end = b"", b""
    for chunk in chunks:
        if not end:
            end = b"\r" if b"\r" in chunk and b"\n" not in chunk else b"\n"
        lines = (rest + chunk).split(end)
        rest = lines.pop()
        for line in lines:
            yield line.rstrip(b"\r") + b"\n"
        if len(rest) > LINE_CHARACTERS_MAX:
            yield rest  # the reader of lines refuses it, and reads no further
    if rest:
        yield rest
