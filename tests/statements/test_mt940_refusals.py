"""MT940 and MT942 that are refused: damage that is named with its line, and limits."""

import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from connectors.connector import LimitExceeded, MalformedFile
from connectors.mt940.reader import read
from tests.statements.conftest import booking

Text = Callable[..., str]
Gather = Callable[..., Any]


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (":61:26013D12,34NTRF", "line 5: a :61: that cannot be read."),
        (":61:260130X12,34NTRF", "line 5: a :61: that cannot be read."),
        (":61:260130DNTRF", "line 5: a :61: that cannot be read."),
        (":61:260130D1,2,3NTRF", "line 5: a :61: with not an amount."),
        (":61:260130D1e309,NMSCNONREF", "line 5: a :61: that cannot be read."),
        (":61:260130D1,5E+20NMSC", "line 5: a :61: that cannot be read."),
        (":61:261330D1,00NTRF", "line 5: a :61: with a date that does not exist."),
        (":61:", "line 5: a :61: that cannot be read."),
        (":62F:C260131EUR1x,00", "line 5: a balance that cannot be read."),
        (":86:a\0b", "Line 5: a NUL byte in a text file."),
    ],
)
def test_a_line_that_cannot_be_read_refuses_the_file_and_is_named(
    line: str, reason: str, found: Gather, block: Text
) -> None:
    with pytest.raises(MalformedFile) as refusal:
        found(read, block(line))
    assert str(refusal.value) == reason


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize("characters", [65_536, 65_537])
def test_lines_have_a_limit(characters: int, found: Gather, block: Text) -> None:
    text = block(f":86:{'x' * (characters - 5)}")  # tag and line end included
    if characters > 65_536:
        with pytest.raises(LimitExceeded):
            found(read, text)
    else:
        assert found(read, text).transactions == []


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize("details", ["x\n" * 1001, "?20" * 6000, "x\n:86:" * 9000])
def test_one_booking_has_a_limit_of_text(details: str, found: Gather, block: Text) -> None:
    with pytest.raises(LimitExceeded):
        found(read, block(booking(details)))


@pytest.mark.requirement("readers.refusal")
def test_a_file_without_a_field_is_refused(found: Gather) -> None:
    with pytest.raises(MalformedFile) as refusal:
        found(read, "nothing\nhere\n")
    assert str(refusal.value) == "the file holds no statement."


@pytest.mark.requirement("readers.refusal")
def test_a_lost_booking_would_be_noticed(monkeypatch: pytest.MonkeyPatch, found: Gather, block: Text) -> None:
    monkeypatch.setattr("connectors.mt940.reader._take", lambda *_: iter(()))
    with pytest.raises(MalformedFile) as refusal:
        found(read, block(booking()))
    assert str(refusal.value) == "1 lines begin with :61:, but 0 transactions were found."


@pytest.mark.requirement("security.limits")
def test_the_bookings_of_a_file_are_limited(monkeypatch: pytest.MonkeyPatch, found: Gather, block: Text) -> None:
    monkeypatch.setattr("connectors.mt940.fields.ENTRIES_MAX", 2)
    assert len(found(read, block("\n".join([booking()] * 2))).transactions) == 2
    with pytest.raises(LimitExceeded, match="more than 2 transactions"):
        found(read, block("\n".join([booking()] * 3)))


@pytest.mark.requirement("readers.refusal")
def test_half_a_character_of_utf_16_is_refused(found: Gather, block: Text) -> None:
    with pytest.raises(MalformedFile, match="not text in the encoding"):
        found(read, block(booking()).encode("utf-16")[:-1])


@pytest.mark.requirement("security.limits")
def test_the_lines_of_a_file_are_limited(monkeypatch: pytest.MonkeyPatch, found: Gather, block: Text) -> None:
    text = block(booking()).rstrip("\n")
    monkeypatch.setattr("connectors.mt940.fields.LINES_MAX", text.count("\n") + 1)
    assert found(read, text).only.amount == Decimal("-12.34")
    with pytest.raises(LimitExceeded, match="lines in one file"):
        found(read, f"{text}\n\n")


@pytest.mark.requirement("security.limits")
def test_the_statements_of_a_file_are_limited(monkeypatch: pytest.MonkeyPatch, found: Gather, block: Text) -> None:
    monkeypatch.setattr("connectors.mt940.reader.STATEMENTS_MAX", 2)
    text = block(booking()).rstrip("\n") + "\n"
    assert len(found(read, text * 2).statements) == 2
    with pytest.raises(LimitExceeded, match="more than 2 statements"):
        found(read, text * 3)


@pytest.mark.requirement("security.limits")
def test_bookings_that_wait_for_their_currency_are_limited(monkeypatch: pytest.MonkeyPatch, found: Gather) -> None:
    monkeypatch.setattr("connectors.mt940.reader.HELD_ENTRIES_MAX", 2)
    head, end = ":20:A\n:25:37040044/0532013000\n:28C:1\n", "\n:62F:C260131USD1,00\n"
    rows = found(read, head + "\n".join([booking()] * 2) + end).transactions
    assert [row.currency for row in rows] == ["USD", "USD"]
    with pytest.raises(LimitExceeded, match="more than 2 transactions before"):
        found(read, head + "\n".join([booking()] * 3) + end)


@pytest.mark.requirement("security.linear-patterns")
def test_a_long_line_of_blanks_or_braces_is_read_in_one_pass(found: Gather, block: Text) -> None:
    with pytest.raises(MalformedFile, match="line 5: a :61: that cannot be read"):
        found(read, block(":61:2601010101D" + " " * 60_000 + "!"))  # took 26 s
    for filler in ("{", "a", "{4:"):
        assert found(read, block("{4:" + filler * 20_000)).transactions == []


@pytest.mark.requirement("readers.mt940")
def test_a_reading_that_is_given_up_may_outlive_its_file(block: Text) -> None:
    stream = io.BytesIO(block(booking()).encode())
    records = read(stream)
    next(records)
    stream.close()
    records.close()  # type: ignore[attr-defined]  # a generator
