"""The messages between the parsing process and the storing one: MessagePack, decoded to exact types.

Nothing is pickled: an attacker who controls the parsing process can report wrong bookings, but run nothing in ours.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from analytics.messages import unpack
from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.bank_csv.layouts import CsvLayout
from connectors.bank_csv.profile import Profile
from connectors.bank_csv.reader import Explanation
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.limits import PIECE_BYTES
from connectors.own_formats.jsonl import WordsLine
from connectors.text import clean

PIECE, END, TOO_LONG, CRASHED = b".", b"!", b"t", b"x"  # the messages on the channel of a request
LENGTH_BYTES = 4  # before a piece

_FRAME = struct.Struct(">cI")  # the kind of an answer, and its length in bytes
_REASON_CHARACTERS_MAX = 2_000


class ParseRequest(Struct, frozen=True, kw_only=True):
    """The request for a file; `profiles` are the user's own."""

    wanted: Literal["records", "format", "explanation"]
    profiles: tuple[Profile, ...] = ()


class FileRefusal(Struct, frozen=True, kw_only=True):
    """The refusal of a file, with its reason in one sentence."""

    kind: Literal["UnsupportedFile", "MalformedFile", "LimitExceeded"]
    reason: str
    detail: str = ""

    def error(self) -> SourceError:
        """The refusal as an exception; its texts come from the parsing process and are cleaned."""
        errors = {"UnsupportedFile": UnsupportedFile, "MalformedFile": MalformedFile, "LimitExceeded": LimitExceeded}
        try:
            reason: str = unpack(clean(self.reason, _REASON_CHARACTERS_MAX) or "")
        except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
            reason = "the file cannot be read."
        return errors[self.kind](reason, detail=clean(self.detail) or "")


class FormatName(Struct, frozen=True, kw_only=True):
    """The name of a file's format for reports; None for an unknown format."""

    name: str | None


ParserAnswer = Record | FileRefusal | FormatName | Explanation | CsvLayout | WordsLine
_KINDS: Mapping[bytes, type[ParserAnswer]] = {
    b"t": TransactionRecord,
    b"a": AccountRecord,
    b"s": StatementRecord,
    b"r": FileRefusal,
    b"f": FormatName,
    b"e": Explanation,
    b"l": CsvLayout,
    b"w": WordsLine,
}
_MARKS = {kind: mark for mark, kind in _KINDS.items()}
_DECODERS = {mark: msgspec.msgpack.Decoder(kind).decode for mark, kind in _KINDS.items()}
_encode = msgspec.msgpack.Encoder(enc_hook=str.__str__).encode  # a message that explains is its English text
encoded_request: Callable[[ParseRequest], bytes] = _encode
decoded_request = msgspec.msgpack.Decoder(ParseRequest).decode


class Packer:
    """Collects answers and passes them on in pieces of about 256 KB (PIECE_BYTES)."""

    def __init__(self, hand_over: Callable[[bytes], None]) -> None:
        self._hand_over = hand_over
        self._piece = bytearray()

    def add(self, answer: ParserAnswer) -> None:
        """Add an answer to the piece that is being collected, and pass that on once it is full."""
        content = _encode(answer)
        self._piece += _FRAME.pack(_MARKS[type(answer)], len(content))
        self._piece += content
        if len(self._piece) >= PIECE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Pass on the collected answers."""
        if self._piece:
            self._hand_over(bytes(self._piece))
            self._piece.clear()


def answers(piece: bytes) -> Iterator[ParserAnswer]:
    """The answers in a piece. Raises MalformedFile for anything else."""
    place = 0
    view = memoryview(piece)
    try:
        while place < len(piece):
            mark, size = _FRAME.unpack_from(piece, place)
            place += _FRAME.size
            yield _DECODERS[mark](view[place : place + size])
            place += size
    except (KeyError, ValueError, ArithmeticError, struct.error) as error:  # errors of msgspec are ValueErrors
        raise MalformedFile("the file cannot be read.", detail=type(error).__name__) from error
