"""Parquet of strangers: read as Polars reads it where it is sound, refused in a sentence where it is not."""

import gzip
import io
import random
import zipfile
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.frames import MONEY as MONEY_DTYPE
from connectors import parquet_file, thrift
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.parquet_file import DAY, FLAG, MONEY, TEXT, Kind, ParquetFile
from connectors.statements import read_records
from connectors.writers import parquet
from storage.records import AccountRecord, Record, StatementRecord, TransactionRecord
from storage.transactions import EVERYTHING

GIRO = AccountRecord(
    stable_key="DE89370400440532013000",
    iban="DE89370400440532013000",
    currency="EUR",
    name="Giro",
    kind="checking",
    bank_name="Bank",
)
ROWS = 40
DAMAGED = "the Parquet file is damaged or cut off."
NOT_OURS = "not a Parquet file that bankdata exported."


def frame(rows: int = ROWS, **more: object) -> pl.DataFrame:
    """Bookings of one account as the store has them: a coffee every day."""
    return pl.DataFrame(
        {
            "id": [f"txn_{number:032x}" for number in range(rows)],
            "booking_date": [date(2026, 1, 1) + timedelta(number % 365) for number in range(rows)],
            "amount": [Decimal(-number) / 100 for number in range(rows)],
            "purpose": [None if number % 3 else f"Coffee {number % 7}" for number in range(rows)],
        }
    ).select(
        pl.col(name).cast(dtype) if name in ("id", "booking_date", "amount", "purpose")
        else pl.lit("EUR" if name == "currency" else False if dtype == pl.Boolean else None, dtype).alias(name)
        for name, dtype in EVERYTHING.items()
    ).with_columns(**more)  # fmt: skip


def exported(*frames: pl.DataFrame) -> bytes:
    """The file that holds them."""
    stream = io.BytesIO()
    said = StatementRecord(closing=Decimal("12.34"), closing_date=date(2026, 12, 31))
    parquet.write([(GIRO, said, frames or [frame()])], stream, schema=EVERYTHING)
    return stream.getvalue()


def read(data: bytes) -> list[Record]:
    return list(read_records(io.BytesIO(data)))


@pytest.fixture
def in_groups_of_ten(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An export of several row groups."""
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 10)
    return exported()


@pytest.mark.requirement("export.parquet")
def test_a_file_of_row_groups_is_read_row_by_row(in_groups_of_ten: bytes) -> None:
    account, *bookings, closing = read(in_groups_of_ten)
    assert account == GIRO
    assert closing == StatementRecord(closing=Decimal("12.34"), closing_date=date(2026, 12, 31))
    assert bookings[3] == TransactionRecord(
        amount=Decimal("-0.03"),
        currency="EUR",
        booking_date=date(2026, 1, 4),
        provider_id=f"txn_{3:032x}",
        purpose="Coffee 3",
    )
    assert len(bookings) == ROWS


@pytest.mark.requirement("export.parquet")
def test_a_file_inside_a_container_is_read_like_one_outside() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as container:
        container.writestr("a", exported())
    assert read(stream.getvalue()) == read(exported())


VALUES: dict[Kind, tuple[pl.DataType, st.SearchStrategy[object]]] = {
    TEXT: (pl.String(), st.text(st.characters(codec="utf-8"), max_size=9)),
    DAY: (pl.Date(), st.dates()),
    MONEY: (MONEY_DTYPE, st.decimals(-(10**15) + 1, 10**15 - 1, places=5)),
    FLAG: (pl.Boolean(), st.booleans()),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[Kind, list[object]]:
    """A column of few or many different values, some of them absent, in any order, in runs or not."""
    kind = draw(st.sampled_from(list(VALUES)))
    values = draw(st.lists(VALUES[kind][1] | st.none(), min_size=1, max_size=40))
    chosen = random.Random(draw(st.integers(0, 2**32)))
    lengths = draw(st.sampled_from([(1, 1), (1, 20), (0, 200)]))
    return kind, [value for _ in range(200) for value in [chosen.choice(values)] * chosen.randint(*lengths)][:3000]


@pytest.mark.requirement("export.parquet")
@given(columns(), st.sampled_from([7, 100, 5000]), st.sampled_from([None, 100]))
def test_what_polars_writes_is_read_as_it_was(column: tuple[Kind, list[object]], rows: int, page: int | None) -> None:
    kind, values = column
    stream = io.BytesIO()
    pl.DataFrame({"a": pl.Series(values, dtype=VALUES[kind][0])}).lazy().sink_parquet(
        stream, compression="gzip", row_group_size=rows, data_page_size=page
    )
    found = [value for (value,) in ParquetFile(stream, {"a": kind}).rows()]
    assert found == [None if value is None else told(kind, value) for value in values]


def told(kind: Kind, value: object) -> str:
    """A value as the reader tells it."""
    if kind is FLAG:
        return "true" if value else ""
    return f"{value:.5f}" if kind is MONEY else str(value)


@pytest.mark.requirement("readers.refusal")
def test_a_file_cut_off_anywhere_is_refused(in_groups_of_ten: bytes) -> None:
    for end in range(4, len(in_groups_of_ten), 37):
        with pytest.raises(SourceError) as refusal:
            read(in_groups_of_ten[:end])
        assert str(refusal.value) == DAMAGED


@pytest.mark.requirement("readers.hostile")
def test_a_flipped_bit_is_found_or_changes_nothing(in_groups_of_ten: bytes) -> None:
    whole, chosen = read(in_groups_of_ten), random.Random(1)
    footer = int.from_bytes(in_groups_of_ten[-8:-4], "little")
    refusals = set()
    for number in range(600):
        damaged = bytearray(in_groups_of_ten)
        for _ in range(chosen.choice((1, 1, 2, 9))):
            begin = len(damaged) - footer if number % 2 else 4
            damaged[chosen.randrange(begin, len(damaged))] ^= 1 << chosen.randrange(8)
        try:
            assert read(bytes(damaged)) == whole
        except SourceError as refusal:
            refusals.add(str(refusal))
    assert {DAMAGED, NOT_OURS} <= refusals


@pytest.mark.requirement("readers.refusal")
def test_parquet_of_others_is_refused_by_name(tmp_path: Path) -> None:
    ours = tmp_path / "ours.parquet"
    ours.write_bytes(exported())
    theirs = tmp_path / "theirs.parquet"
    duckdb.execute(f"COPY (SELECT * FROM read_parquet('{ours}')) TO '{theirs}' (FORMAT parquet)")
    known = pl.read_parquet(ours)
    for number, other in enumerate(
        (
            pl.DataFrame({"a": [1]}),
            pl.DataFrame(),
            known.drop("account_currency"),
            known.with_columns(pl.col("amount").cast(pl.Float64)),
            known.with_columns(pl.struct("purpose").alias("purpose")),
        )
    ):
        file = tmp_path / f"{number}.parquet"
        other.write_parquet(file, compression="gzip")
        with pytest.raises(UnsupportedFile, match=NOT_OURS):
            read(file.read_bytes())
    known.write_parquet(ours, compression="zstd")
    for data in (ours.read_bytes(), theirs.read_bytes()):
        with pytest.raises(UnsupportedFile, match=NOT_OURS):
            read(data)


@pytest.mark.requirement("readers.refusal")
@pytest.mark.parametrize(
    "fault",
    [
        {"amount": pl.lit(None, pl.Decimal(20, 5))},
        {"amount": pl.lit(Decimal(10**14) + Decimal("0.12"), pl.Decimal(20, 5))},
        {"booking_date": pl.lit(date(1066, 10, 14))},
        {"booking_date": pl.lit(None, pl.Date)},
    ],
)
def test_a_row_that_is_no_booking_is_named(fault: dict[str, object]) -> None:
    with pytest.raises(MalformedFile, match=r"^Row 3: cannot be read\.$"):
        read(exported(frame(2), frame(2, **fault)))


@pytest.mark.requirement("readers.hostile")
def test_texts_are_cleaned_like_those_of_any_file() -> None:
    _, booking, _ = read(exported(frame(1, purpose=pl.lit("\u202eCof\x00fee\x07\u200b"))))
    assert isinstance(booking, TransactionRecord)
    assert booking.purpose == "Coffee"


@pytest.mark.requirement("readers.limits")
@pytest.mark.parametrize(
    ("limit", "allowed", "sentence"),
    [
        ("ENTRIES_MAX", ROWS, "The file holds more than 39 bookings."),
        ("PARQUET_GROUP_ROWS_MAX", 10, "A row group holds more than 9 rows."),
        ("FILE_BYTES_MAX", None, "The file is larger than allowed."),
        ("PARQUET_FOOTER_BYTES_MAX", None, "The file says too much of itself."),
    ],
)
def test_a_file_at_a_limit_is_read_and_one_beyond_is_not(
    limit: str, allowed: int | None, sentence: str, in_groups_of_ten: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {
        "FILE_BYTES_MAX": len(in_groups_of_ten),
        "PARQUET_FOOTER_BYTES_MAX": int.from_bytes(in_groups_of_ten[-8:-4], "little"),
    }
    most = allowed or sizes[limit]
    monkeypatch.setattr(parquet_file, limit, most)
    read(in_groups_of_ten)
    monkeypatch.setattr(parquet_file, limit, most - 1)
    with pytest.raises(LimitExceeded, match=sentence):
        read(in_groups_of_ten)


@pytest.mark.requirement("readers.limits")
def test_a_small_file_of_many_long_rows_is_refused_before_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text that every row points to: the file grows by bits, what is read by its length."""
    data = exported(frame(200, purpose=pl.lit("A" * 2000)))
    assert len(data) < 100_000 < 200 * 2000
    read(data)
    monkeypatch.setattr(parquet_file, "FILE_BYTES_MAX", 400_000)
    with pytest.raises(LimitExceeded, match=r"The file holds more than is allowed\."):
        read(data)


@pytest.mark.requirement("readers.limits")
@pytest.mark.parametrize(("most", "is_read"), [(3_000_000, True), (1_000_000, False)])
def test_a_text_that_unpacks_to_thousands_of_times_its_size_is_refused(
    most: int, is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = exported(frame(1, purpose=pl.lit("A" * 2_000_000)))
    assert len(data) < 20_000
    monkeypatch.setattr(parquet_file, "PARQUET_CHUNK_BYTES_MAX", most)
    if is_read:
        read(data)
        return
    with pytest.raises(LimitExceeded, match=r"A page is larger than allowed\."):
        read(data)


@pytest.mark.requirement("readers.hostile")
@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"\x1c" * 20, "too deep"),
        (b"\x19" * 20, "too deep"),
        (b"\x19\xfc\xff\xff\xff\x7f" + b"\0" * 600_000, "too many values"),
        (b"\x15" + b"\xff" * 12, "too many bytes"),
        (b"\x18\xff\xff\xff\x07A", "cut off"),
        (b"\x15\x02\x05\x02\x02\0", "twice"),
        (b"\x1d", "unknown type"),
    ],
)
def test_what_a_file_says_of_itself_is_read_within_limits(data: bytes, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        thrift.read_struct(data)


@pytest.mark.requirement("readers.hostile")
@pytest.mark.parametrize("field", [1, 2, 3, 4])
def test_a_field_is_what_it_should_be_or_an_error(field: int) -> None:
    """1: -1, 2: true, 3: a list of numbers, 4: a text that is no UTF-8; and nothing beyond."""
    found, end = thrift.read_struct(b"\x15\x01\x11\x19\x15\x02\x18\x01\xff\0")
    assert end == 10
    for asked in (found.number, found.text, found.struct, found.structs):
        with pytest.raises(ValueError):
            asked(field)
        with pytest.raises(ValueError):
            asked(5)
    assert found.number(5, 7) == 7


def compact(fields: Mapping[int, object]) -> bytes:
    """A structure in Thrift's compact protocol."""
    written, last = b"", 0
    for field, value in sorted(fields.items()):
        kind, data = encoded(value)
        written += bytes([field - last << 4 | kind]) + data
        last = field
    return written + b"\0"


def encoded(value: object) -> tuple[int, bytes]:
    """The type and the bytes of a value."""
    match value:
        case int():
            return 6, varint(value << 1)
        case str():
            return 8, varint(len(value)) + value.encode()
        case dict():
            return 12, compact(value)
        case list():
            items = [encoded(item) for item in value]
            return 9, bytes([0xF0 | (items[0][0] if items else 12)]) + varint(len(items)) + b"".join(
                data for _, data in items
            )
    raise AssertionError(value)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def page(body: bytes, said: dict[int, int], **claims: int) -> bytes:
    """A page with its header: a data page where `said` names levels, else a dictionary."""
    content = gzip.compress(body, mtime=0)
    head: dict[int, object] = {1: claims.get("kind", 0), 2: claims.get("size", len(body)), 3: len(content), 5: said}
    if 3 not in said:
        head = {1: 2, 2: len(body), 3: len(content), 7: said}
    return compact(head) + content


ONE = b"\x02\0\0\0\x02\x01"  # levels: a run of one row that has a value
PLAIN_PAGE = {1: 1, 2: 0, 3: 3}
INDEXED_PAGE = {1: 1, 2: 8, 3: 3}


def crafted(data: bytes, *, rows: int = 1, schema: Mapping[int, int] = TEXT.schema, twice: bool = False) -> io.BytesIO:
    """A file of one row group; its one column, or both of two, are these pages."""
    names = "ab" if twice else "a"
    column = {2: 4, 3: {1: schema[1], 2: [0], 3: ["a"], 4: 2, 5: rows, 6: 1, 7: len(data), 9: 4}}
    footer = compact(
        {
            1: 1,
            2: [{4: "root", 5: len(names)}, *({**schema, 3: 1, 4: name} for name in names)],
            3: rows,
            4: [{1: [column for _ in names], 2: len(data), 3: rows}],
        }
    )
    return io.BytesIO(b"PAR1" + data + footer + len(footer).to_bytes(4, "little") + b"PAR1")


A = b"\x01\0\0\0A"


@pytest.mark.requirement("readers.hostile")
def test_a_crafted_file_that_is_sound_is_read() -> None:
    whole = page(A, {1: 1, 2: 0}) + page(ONE + b"\x01\x02\x00", INDEXED_PAGE)
    for data in (page(ONE + A, PLAIN_PAGE), whole):
        assert list(ParquetFile(crafted(data), {"a": TEXT}).rows()) == [("A",)]


@pytest.mark.requirement("readers.hostile")
@pytest.mark.parametrize(
    ("data", "rows", "error"),
    [
        (page(ONE + A, PLAIN_PAGE), 2, "index out of range"),
        (page(ONE + A, PLAIN_PAGE) * 2, 1, "more pages than rows"),
        (page(ONE + A, {1: 2, 2: 0, 3: 3}), 1, "more rows than there are"),
        (page(ONE + A, {1: 0, 2: 0, 3: 3}), 1, "or none"),
        (page(ONE + A, {1: 1, 2: 0, 3: 4}), 1, "more rows than there are"),
        (page(ONE + A, {1: 1, 2: 5, 3: 3}), 1, "unknown encoding"),
        (page(ONE + A, PLAIN_PAGE, size=10), 1, "another size"),
        (page(ONE + A, PLAIN_PAGE, size=12), 1, "another size"),
        (page(ONE + A, PLAIN_PAGE, kind=1), 1, "of another kind"),
        (page(ONE + b"\x02\0\0\0A", PLAIN_PAGE), 1, "cut off"),
        (page(ONE + b"\x01\0\0\0\xff", PLAIN_PAGE), 1, "utf-8"),
        (page(A, {1: 2, 2: 0}), 1, "more values than rows"),
        (page(A, {1: 1, 2: 8}), 1, "of another kind"),
        (page(A, {1: 1, 2: 0}) + page(ONE + b"\x01\x02\x01", INDEXED_PAGE), 1, "index out of range"),
        (page(A, {1: 1, 2: 0}) + page(ONE + b"\x08\x03", INDEXED_PAGE), 1, "cut off"),
        (page(A, {1: 1, 2: 0}) + page(ONE + b"\x21\x02\x00", INDEXED_PAGE), 1, "too many bits"),
    ],
)
def test_pages_that_contradict_themselves_are_refused(data: bytes, rows: int, error: str) -> None:
    with pytest.raises((ValueError, IndexError), match=error):
        list(ParquetFile(crafted(data, rows=rows), {"a": TEXT}).rows())


@pytest.mark.requirement("readers.hostile")
@pytest.mark.parametrize("kind", [DAY, MONEY, FLAG])
def test_values_that_are_cut_off_are_refused(kind: Kind) -> None:
    data = page(ONE, PLAIN_PAGE)
    with pytest.raises(ValueError, match="cut off"):
        list(ParquetFile(crafted(data, schema=kind.schema), {"a": kind}).rows())


@pytest.mark.requirement("readers.limits")
def test_two_columns_never_share_their_bytes() -> None:
    """Else a file of one page would be read as often as its footer has columns."""
    file = crafted(page(ONE + A, PLAIN_PAGE), twice=True)
    with pytest.raises(ValueError, match="over one another"):
        list(ParquetFile(file, {"a": TEXT, "b": TEXT}).rows())


@pytest.mark.requirement("readers.limits")
def test_a_column_at_the_limit_is_read_and_one_beyond_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = page(ONE + A, PLAIN_PAGE)
    monkeypatch.setattr(parquet_file, "PARQUET_CHUNK_BYTES_MAX", len(data))
    assert list(ParquetFile(crafted(data), {"a": TEXT}).rows()) == [("A",)]
    monkeypatch.setattr(parquet_file, "PARQUET_CHUNK_BYTES_MAX", len(data) - 1)
    with pytest.raises(LimitExceeded, match=r"A column is larger than allowed\."):
        list(ParquetFile(crafted(data), {"a": TEXT}).rows())
