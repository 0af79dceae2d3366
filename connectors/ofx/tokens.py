"""The tags of an OFX file, SGML or XML, as a stream of flat tokens in bounded memory and linear time."""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from connectors.connector import LimitExceeded, MalformedFile
from connectors.lines import decode_line, octets

VALUE_BYTES_MAX = 1 << 18  # one value, tag or comment; the longest real memo has some 2,000 characters

# A stray "<" in an unescaped SGML value ("A < B") does not match and stays part of the value.
_TAG = re.compile(
    rb"<(?:(/?)([A-Za-z][A-Za-z0-9._-]{0,79})(?:\s[^<>]{0,512}|/)?>|(!--)|(!\[CDATA\[)|(\?)|(!(?:DOCTYPE|ENTITY)))",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos|nbsp));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " "}
_CHARSET = re.compile(r"(?:CHARSET\s*+[:=]|encoding=)\s*+[\"']?([\w-]+)", re.IGNORECASE)
_CODEC = re.compile(r"(?:cp|windows-?)?(125\d|437|850|932|936|949|950)|(iso-?)?8859-(\d\d?)", re.IGNORECASE)


class Token(NamedTuple):
    """One tag, and the bytes up to the next one."""

    name: str  # upper case
    is_closing: bool
    text: bytes
    line: int


def tokens(stream: BinaryIO, head: bytes = b"") -> Iterator[Token]:
    """Every tag of `head` and the rest of `stream` in order, without comments and processing instructions.

    Raises MalformedFile for a DOCTYPE (entities are never expanded) and LimitExceeded for an endless value.
    """
    buffer, line = b"", 1
    waiting: tuple[str, bool, int] | None = None  # the tag whose text is being collected, and its line
    parts: list[bytes] = []
    size = 0  # of the parts
    chunks = octets(stream, head)
    is_last = False
    while not is_last:
        chunk = next(chunks, b"")
        is_last = not chunk
        buffer += chunk
        position = 0  # everything before it is consumed
        while match := _TAG.search(buffer, position):
            closing, name, comment, cdata, _, declaration = match.groups()
            if declaration:
                raise MalformedFile("Line {line}: a document type declaration is not allowed.", line=line)
            end = match.end()
            if not name:
                mark = b"-->" if comment else b"]]>" if cdata else b">"
                end = buffer.find(mark, match.end())
                if end < 0:
                    break  # wait for the rest of the tag
            piece = buffer[position : match.start()]
            if cdata:
                piece += _escape(buffer[match.end() : end])
            if piece:
                parts.append(piece)
                size += len(piece)
            if size > VALUE_BYTES_MAX:
                raise LimitExceeded(
                    "Line {line}: a value is longer than {limit} bytes.", limit=VALUE_BYTES_MAX, line=line
                )
            if name:
                if waiting:
                    yield Token(waiting[0], waiting[1], b"".join(parts), waiting[2])
                parts.clear()
                size = 0
                line += buffer.count(b"\n", position, match.start())
                waiting = (name.decode("ascii").upper(), bool(closing), line)
                line += buffer.count(b"\n", match.start(), end)
            else:
                line += buffer.count(b"\n", position, end)
                end += len(mark)
            position = end
        buffer = buffer[position:]
        if len(buffer) > VALUE_BYTES_MAX:
            raise LimitExceeded("Line {line}: a value is longer than {limit} bytes.", limit=VALUE_BYTES_MAX, line=line)
    if waiting:
        parts.append(buffer)
        yield Token(waiting[0], waiting[1], b"".join(parts), waiting[2])


def decode_value(value: bytes, charset: str) -> str:
    """The text of a value, its entities replaced: decoded as UTF-8 where it is valid (many files wrongly declare 1252),
    else by `charset`."""
    text = decode_line(value, charset)
    return _ENTITY.sub(_character, text) if "&" in text else text


def declared_charset(head: bytes) -> str:
    """The single-byte (or East Asian) charset that an OFX header names, as a Python codec; cp1252 where it names
    none."""
    text = head.partition(b"<OFX>")[0].decode("ascii", "replace")
    named = _CHARSET.search(text)
    codec = _CODEC.fullmatch(named[1]) if named else None
    if codec is None or codec[3] == "1":
        return "cp1252"  # ISO 8859-1 as every browser reads it
    name = f"cp{codec[1]}" if codec[1] else f"iso8859-{codec[3]}"
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "cp1252"


def _escape(raw: bytes) -> bytes:
    return raw.replace(b"&", b"&amp;").replace(b"<", b"&lt;")


def _character(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else "�"
