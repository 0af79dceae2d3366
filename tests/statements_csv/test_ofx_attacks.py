"""Hostile OFX files are refused in bounded time and memory, and never crash the reader."""

import contextlib
import io

import pytest

from connectors.connector import LimitExceeded, SourceError
from connectors.ofx import reader as ofx
from connectors.ofx.tokens import VALUE_BYTES_MAX, tokens
from tests.conftest import chance, examples

SAMPLE = (
    b"OFXHEADER:100\n\n<OFX><STMTTRNRS><STMTRS><CURDEF>EUR<BANKACCTFROM><BANKID>1<ACCTID>2</BANKACCTFROM><BANKTRANLIST>"
    b"<DTSTART>20260101<DTEND>20260131<STMTTRN><TRNTYPE>POS<DTPOSTED>20260105<TRNAMT>-1.5<FITID>1<NAME>A &amp; B"
    b"</STMTTRN></BANKTRANLIST><LEDGERBAL><BALAMT>3<DTASOF>20260131</LEDGERBAL></STMTRS></STMTTRNRS></OFX>"
)


class Endless(io.RawIOBase):
    """A file of one endless line; it counts what was read of it."""

    def __init__(self, start: bytes, filler: bytes) -> None:
        self.start, self.filler, self.bytes_read = start, filler, 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "never the whole file"
        piece, self.start = (self.start + self.filler * size)[:size], b""
        self.bytes_read += size
        return piece


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize("filler", [b"a", b"<", b"<A ", b"<!-- ", b"<![CDATA[x]]>", b"&", b"\x00"])
def test_an_endless_value_stops_at_its_limit(filler: bytes) -> None:
    stream = Endless(b"<OFX><NAME>", filler)
    with pytest.raises(LimitExceeded):
        list(ofx.read(stream))  # type: ignore[arg-type]  # a raw stream reads like a binary one
    assert stream.bytes_read < 100 * VALUE_BYTES_MAX


@pytest.mark.requirement("security.limits")
def test_the_longest_allowed_value_is_read_and_one_byte_more_is_not() -> None:
    def value(length: int) -> bytes:
        return b"<MEMO>" + b"a" * length + b"<X>"

    assert len(next(tokens(io.BytesIO(value(VALUE_BYTES_MAX - 6)))).text) == VALUE_BYTES_MAX - 6
    with pytest.raises(LimitExceeded):
        list(tokens(io.BytesIO(value(VALUE_BYTES_MAX + 1))))


@pytest.mark.requirement("security.limits")
def test_garbled_copies_are_read_or_refused_and_never_crash() -> None:
    dice = chance("ofx")
    for _ in range(examples(300)):
        copy = bytearray(SAMPLE)
        for _ in range(dice.randrange(1, 8)):
            copy[dice.randrange(len(copy))] = dice.randrange(256)
        with contextlib.suppress(SourceError):
            list(ofx.read(io.BytesIO(bytes(copy))))


@pytest.mark.requirement("security.limits")
def test_tags_without_bookings_are_not_followed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ofx, "TAGS_MAX", 20_000)  # a million takes a minute under coverage
    stream = Endless(SAMPLE, b"<A>1")
    with pytest.raises(LimitExceeded, match="far more tags than transactions"):
        list(ofx.read(stream))  # type: ignore[arg-type]  # a raw stream reads like a binary one
