"""A CSV file that cannot be read whole is refused whole, in bounded time, with the line and without its content."""

import contextlib
import io
import random

import pytest

from connectors.bank_csv import reader as csv_statements
from connectors.bank_csv.profile import parse_profile
from connectors.bank_csv.tables import IDLE_MAX
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.limits import COLUMNS_MAX, LINE_CHARACTERS_MAX
from tests.conftest import chance, examples

HEADER = "Datum;Empfänger;Verwendungszweck;Betrag;Währung"
ROW = "31.01.2026;Laden;Danke;-12,50;EUR"
GOOD = f"{HEADER}\n{ROW}\n{ROW}\n"


def read(file: bytes) -> int:
    return sum(1 for _ in csv_statements.read(io.BytesIO(file)))


class Endless(io.RawIOBase):
    """A file of one endless line; it counts what was read of it."""

    def __init__(self, start: bytes, filler: bytes) -> None:
        self.start, self.filler, self.bytes_read = start, filler, 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "never the whole file"
        piece, self.start = (self.start + self.filler * size)[:size], b""
        self.bytes_read += size
        return piece


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("31.01.2026;Laden;Danke;zwölf;EUR", "Line 3: the amount cannot be read"),
        ("40.01.2026;Laden;Danke;-12,50;EUR", "Line 3: the booking date cannot be read"),
        ("31.01.2026;Lad", "Line 3: the row ends after 2 of 5 columns"),
        ("31.01.2026;Laden;Dan\0ke;-12,50;EUR", "Line 3: a NUL byte"),
    ],
)
def test_one_bad_row_refuses_the_file_and_names_its_line(row: str, reason: str) -> None:
    with pytest.raises(MalformedFile, match=reason) as refusal:
        read(f"{HEADER}\n{ROW}\n{row}\n{ROW}\n{ROW}\n".encode())
    assert "Laden" not in str(refusal.value)


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize("quote", ["", '"'])
def test_every_truncated_copy_is_refused_until_its_last_cell_has_begun(quote: str) -> None:
    rows = [";".join(f"{quote}{cell}{quote}" for cell in line.split(";")) for line in (HEADER, ROW, ROW)]
    file = "\n".join(rows).encode()
    last_row, last_cell = file.rindex(b"31.01") - len(quote), file.rindex(b"EUR")
    for length in range(last_row + 3, last_cell - len(quote)):
        with pytest.raises(SourceError):
            read(file[:length])
    assert read(file) == 4


@pytest.mark.requirement("security.limits")
def test_the_longest_allowed_line_is_read_and_a_longer_one_is_not() -> None:
    def file(length: int) -> bytes:
        row = "31.01.2026;Laden;{};-12,50;EUR\n"
        return f"{HEADER}\n{row.format('x' * (length - len(row.format(''))))}".encode()

    assert read(file(LINE_CHARACTERS_MAX)) == 3
    with pytest.raises((LimitExceeded, UnsupportedFile)):
        read(file(LINE_CHARACTERS_MAX + 1))
    with pytest.raises(LimitExceeded, match="Line 4: longer than"):
        read(GOOD.encode() + b"x" * (LINE_CHARACTERS_MAX + 1) + b"\n")


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize("filler", [b"a", b";", b'"', b";x", b"\r", b"1.1.2026;", b" "])
def test_an_endless_line_stops_at_its_limit(filler: bytes) -> None:
    stream = Endless(GOOD.encode(), filler)
    with pytest.raises(SourceError):
        list(csv_statements.read(stream))  # type: ignore[arg-type]  # reads like a binary stream
    assert stream.bytes_read < 4_000_000


@pytest.mark.no_cover  # random or very many lines, see tests/conftest.py
@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize("line", ["", "x;y;z", ";;;;"])
@pytest.mark.sampled
def test_lines_without_bookings_are_not_followed_for_ever(line: str) -> None:
    file = GOOD + f"{line}\n" * (IDLE_MAX - 10)
    assert read(file.encode()) == 4
    with pytest.raises(LimitExceeded, match="far more lines than transactions"):
        read((file + f"{line}\n" * 20).encode())


@pytest.mark.requirement("security.limits")
def test_a_quote_that_is_never_closed_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="closing quote is missing"):
        read(GOOD.encode() + b'31.01.2026;"Laden;x;-1,00;EUR\n' + b"y;y\n" * 60_000)


@pytest.mark.no_cover  # random or very many lines, see tests/conftest.py
@pytest.mark.requirement("security.limits")
def test_garbled_copies_are_read_or_refused_and_never_crash() -> None:
    dice = chance("csv")
    for _ in range(examples(80)):
        copy = bytearray((HEADER + "\n" + (ROW + "\n") * 5).encode(dice.choice(["utf-8", "cp1252", "utf-16"])))
        for _ in range(dice.randrange(1, 8)):
            copy[dice.randrange(len(copy))] = dice.randrange(256)
        with contextlib.suppress(SourceError):
            read(bytes(copy))
        csv_statements.explain(io.BytesIO(bytes(copy)))


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize("size", [0, 1, 3, 100_000])
def test_random_bytes_are_refused(size: int) -> None:
    with pytest.raises(SourceError):
        read(random.Random(size).randbytes(size))


@pytest.mark.requirement("readers.csv.values")
def test_control_and_direction_characters_do_not_reach_the_records() -> None:
    text = f"{HEADER}\n31.01.2026;La\u202eden\x07;Da\x1bnke;-12,50;EUR\n"
    booking = list(csv_statements.read(io.BytesIO(text.encode())))[1]
    assert (booking.counterpart_name, booking.purpose) == ("Laden", "Danke")  # type: ignore[union-attr]  # the booking


@pytest.mark.requirement("readers.detect")
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (GOOD.encode(), True), (b"", False), (b"<OFX>", False), (b":20:X\n:25:a,b,c,d\n", False),
        (b'{"a":1,"b":2,"c":3}', False),
        (b"PK\x03\x04\x00\x00,,,", False), (GOOD.encode("utf-16"), True), (b"one line of prose", False),
    ],
)  # fmt: skip
def test_only_delimited_text_is_taken_for_csv(head: bytes, expected: bool) -> None:
    assert csv_statements.detect(head) is expected


@pytest.mark.requirement("readers.csv.profiles")
def test_many_accounts_in_turns_become_one_block_each() -> None:
    profile = parse_profile(
        '{"header": ["Wann", "Konto", "Wieviel"], "date": ["YYYY-MM-DD"], "decimal": ".",'
        ' "columns": {"date": "Wann", "account": "Konto", "amount": "Wieviel"}}',
        name="mine",
    )
    text = "Wann,Konto,Wieviel\n" + "".join(f"2026-01-0{day},K{turn},1.00\n" for day in (1, 2, 3) for turn in (1, 2))
    kinds = [type(record).__name__[:4] for record in csv_statements.read(io.BytesIO(text.encode()), [profile])]
    assert kinds == ["Acco", "Tran", "Tran", "Tran", "Stat"] * 2


@pytest.mark.requirement("security.limits")
@pytest.mark.parametrize("place", ["above", "header", "inside"])
def test_a_row_of_separators_is_refused_at_once(place: str) -> None:
    wide = "Konto" + ";" * 60_000 + "1\n"  # each cell was once compared with all others: 90 s
    header, row = "Date;Amount;Text\n", "2026-01-01;1,00;x\n"
    text = {"above": wide + header + row, "header": header[:-1] + wide + row, "inside": header + row + wide}[place]
    with pytest.raises(LimitExceeded, match="more than 500 columns"):
        read(text.encode())


@pytest.mark.requirement("security.limits")
def test_as_many_columns_as_allowed_are_read_and_one_more_is_refused() -> None:
    def records(columns: int) -> int:
        text = "Date;Amount;Text\n2026-01-01;1,00;x\n2026-01-02;1,00;x" + ";" * (columns - 3) + "\n"
        return read(text.encode())

    assert records(COLUMNS_MAX) == 4
    with pytest.raises(LimitExceeded):
        records(COLUMNS_MAX + 1)


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize("rest", ["", "2026-01-02;2,00;y\n2026-01-03;3,00;z", "2026-01-02;2,00;y\n"])
def test_a_quote_that_is_never_closed_hides_no_bookings(rest: str) -> None:
    text = 'Date;Amount;Text\n2026-01-01;1,00;w\n2026-01-01;1,00;"x\n' + rest
    with pytest.raises(MalformedFile, match=r"quote is missing|ends inside a row"):
        read(text.encode())


@pytest.mark.requirement("readers.refusal")
def test_columns_that_begin_too_far_down_are_no_table() -> None:
    with pytest.raises(UnsupportedFile, match="none of its first 120 rows has two columns"):
        read(b"words\n" * 150 + b"2026-01-30,Shop,-12.50\n")
