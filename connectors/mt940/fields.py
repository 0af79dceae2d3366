"""The fields of SWIFT statements (MT940, MT942) in a file, without envelopes and headers."""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from connectors.connector import LimitExceeded, MalformedFile
from connectors.limits import ENTRIES_MAX, FIELD_LINES_MAX, FILE_BYTES_MAX, LINES_MAX
from connectors.lines import Lines

_TAG = re.compile(r"[^0-9A-Za-z:]{0,10}:(12|13|20|21|25|28|34|60|61|62|64|65|86|90|NS)([A-Z]?):")
"""A tag; before it may stand control bytes of old envelopes, a BOM, the "-" that ends a block."""
_TAG_BEHIND_LETTERS = re.compile(
    r"[^:]{1,10}:(?=2[05]:|61:\d{6,10}R?[CDcd]|6[02][FM]:[CD]\d{6}[A-Z]{3})(20|25|60|61|62)([A-Z]?):"
)
_ENVELOPE = "{4:"  # the opening of the text block of a message; anything before it is envelope
LINE_MARK = "@@"  # replaces every line end in the text of a FinTS answer (DFÜ agreement, annex 3, 8.1)
_FOLLOWED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("12", "13", "21", "28", "34"), ()),
    **{"20": ("21", "25", "28"), "25": ("28", "60")},
}
"""Tags that may be part of a time in a text (":25:30"): a field there only if one of these begins the next line."""


class Field(NamedTuple):
    """A tag such as 61, its option letter, its lines, and the number of the first line."""

    tag: str
    option: str
    lines: list[str]
    line: int


def fields(source: "NumberedLines") -> Iterator[Field]:
    """The fields of all blocks, without envelopes, headers and terminators."""
    current: Field | None = None
    is_after_entries = False
    lines = source.numbered_lines()
    held: tuple[int, str] | None = None
    while (numbered := held or next(lines, None)) is not None:
        held = None
        number, line = numbered
        start = line.rpartition(_ENVELOPE)[2]
        tag = _tag_of(start)
        is_in_text = is_after_entries and current and current.tag in ("86", "61", "NS")
        if tag and tag[1] in _FOLLOWED and (is_in_text or not _TAG.match(start)):
            held = next(lines, None)
            following = _TAG.match(held[1]) if held else None
            tag = tag if following and following[1] in _FOLLOWED[tag[1]] else None
        if tag:
            if current:
                yield current
            current = Field(tag[1], tag[2], [start[tag.end() :]], number)
            is_after_entries = tag[1] == "61" or (is_after_entries and tag[1] != "20")
        elif line.strip() == "-" or start.lstrip().startswith("-}"):
            if current:
                yield current
            current = None
            is_after_entries = False
        elif current:
            current.lines.append(line)
            if len(current.lines) > FIELD_LINES_MAX:
                raise LimitExceeded(
                    "line {line}: a field of more than {limit} lines.", limit=FIELD_LINES_MAX, line=number
                )
    if current:
        yield current


def _tag_of(line: str) -> re.Match[str] | None:
    """The tag that a line begins with, whatever byte stands before it: behind letters one whose content has its form,
    because a word of a text may stand before anything."""
    return _TAG.match(line) or _TAG_BEHIND_LETTERS.match(line)


class NumberedLines:
    """The lines of a file with their numbers, whatever their ends and encoding, and the count of those that begin an
    entry (:61:)."""

    def __init__(self, stream: BinaryIO) -> None:
        self._lines = Lines(stream, utf16_errors="strict")
        self.entries = 0  # lines that begin with :61:, counted before fields are read

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """Each line with its number, counted from 1. Raises LimitExceeded and MalformedFile."""
        characters = 0
        end = "\r"
        try:
            for line in self._lines:
                number = self._lines.number
                characters += len(line)
                if characters > FILE_BYTES_MAX:
                    raise LimitExceeded("line {line}: longer than allowed.", line=number)
                if number > LINES_MAX:
                    raise LimitExceeded("more than {limit} lines in one file.", limit=LINES_MAX)
                if number == 1 and line.startswith(LINE_MARK):
                    end = LINE_MARK
                for part in line.rstrip("\n").split(end):
                    self._count(part)
                    yield number, part
        except UnicodeError:
            raise MalformedFile(
                "line {line}: not text in the encoding the file begins with.", line=self._lines.number + 1
            ) from None

    def _count(self, line: str) -> None:
        if ":61:" in line and (tag := _tag_of(line.rpartition(_ENVELOPE)[2])) and tag[1] == "61":
            self.entries += 1
            if self.entries > ENTRIES_MAX:
                raise LimitExceeded("more than {limit} transactions in one file.", limit=ENTRIES_MAX)
