"""Parquet of strangers: read as Polars wrote it where it is sound, refused in a sentence where it is not."""

import io
import random
import zipfile
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.own_formats.parquet_texts
from analytics.frames import MONEY as MONEY_DTYPE
from analytics.records import AccountRecord, Record, StatementRecord, TransactionRecord
from connectors.connector import LimitExceeded, MalformedFile, SourceError, UnsupportedFile
from connectors.formats import read_records
from connectors.own_formats import parquet_reader, parquet_writer
from connectors.own_formats.parquet_texts import texts
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
    parquet_writer.write([(GIRO, said, frames or [frame()])], stream, schema=EVERYTHING)
    return stream.getvalue()


def read(data: bytes) -> list[Record]:
    return list(read_records(io.BytesIO(data)))


@pytest.fixture
def in_groups_of_ten(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An export of several row groups."""
    monkeypatch.setattr(parquet_writer, "ROW_GROUP_ROWS", 10)
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


VALUES: dict[str, tuple[pl.DataType, st.SearchStrategy[object]]] = {
    "VARCHAR": (pl.String(), st.text(st.characters(codec="utf-8"), max_size=9)),
    "DATE": (pl.Date(), st.dates()),
    "DECIMAL(20,5)": (MONEY_DTYPE, st.decimals(-(10**15) + 1, 10**15 - 1, places=5)),
    "BOOLEAN": (pl.Boolean(), st.booleans()),
}


@pytest.mark.requirement("export.parquet")
@pytest.mark.parametrize("type_", VALUES)
@given(data=st.data(), rows=st.sampled_from([7, 5000]))
def test_what_polars_writes_is_read_as_it_was(
    type_: str, data: st.DataObject, rows: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dtype, strategy = VALUES[type_]
    values = data.draw(st.lists(strategy | st.none(), min_size=1, max_size=40))
    path = tmp_path_factory.mktemp("parquet") / "it's.parquet"
    pl.DataFrame({"a": pl.Series(values, dtype=dtype)}).write_parquet(path, row_group_size=rows)
    found = [value for (value,) in texts(path, {"a": type_}, rows_max=40, characters_max=10**6)]
    assert found == [None if value is None else told(value) for value in values]


def told(value: object) -> str:
    """A value as the reader tells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.5f}" if isinstance(value, Decimal) else str(value)


@pytest.mark.no_cover  # at every place, see tests/conftest.py
@pytest.mark.requirement("readers.refusal")
@pytest.mark.long
def test_a_file_cut_off_anywhere_is_refused(in_groups_of_ten: bytes) -> None:
    for end in range(4, len(in_groups_of_ten), 431):
        with pytest.raises(SourceError) as refusal:
            read(in_groups_of_ten[:end])
        assert str(refusal.value) == DAMAGED


@pytest.mark.no_cover  # at every place, see tests/conftest.py
@pytest.mark.requirement("readers.hostile")
@pytest.mark.long
def test_a_damaged_file_is_refused_in_a_sentence_or_read(in_groups_of_ten: bytes) -> None:
    chosen = random.Random(1)
    footer = int.from_bytes(in_groups_of_ten[-8:-4], "little")
    refusals = set()
    for number in range(150):
        damaged = bytearray(in_groups_of_ten)
        for _ in range(chosen.choice((1, 1, 2, 9))):
            begin = len(damaged) - footer if number % 2 else 4
            damaged[chosen.randrange(begin, len(damaged))] ^= 1 << chosen.randrange(8)
        try:
            read(bytes(damaged))
        except SourceError as refusal:
            refusals.add(str(refusal))
    assert {DAMAGED, NOT_OURS} <= refusals


@pytest.mark.requirement("readers.refusal")
def test_parquet_of_others_is_refused_by_name(tmp_path: Path) -> None:
    ours = tmp_path / "ours.parquet"
    ours.write_bytes(exported())
    known = pl.read_parquet(ours)
    for number, other in enumerate(
        (
            pl.DataFrame({"a": [1]}),
            known.drop("account_currency"),
            known.with_columns(pl.col("amount").cast(pl.Float64)),
            known.with_columns(pl.struct("purpose").alias("purpose")),
        )
    ):
        file = tmp_path / f"{number}.parquet"
        other.write_parquet(file, compression="gzip")
        with pytest.raises(UnsupportedFile, match=NOT_OURS):
            read(file.read_bytes())


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
        ("ENTRIES_MAX", ROWS, "the file holds more than 39 rows."),
        ("FILE_BYTES_MAX", 15_000, "the file holds more than 1000 characters of text."),
    ],
)
def test_a_file_at_a_limit_is_read_and_one_beyond_is_not(
    limit: str, allowed: int, sentence: str, in_groups_of_ten: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_reader, limit, allowed)
    read(in_groups_of_ten)
    monkeypatch.setattr(parquet_reader, limit, 39 if limit == "ENTRIES_MAX" else 1000)
    with pytest.raises(LimitExceeded, match=sentence):
        read(in_groups_of_ten)


@pytest.mark.requirement("readers.limits")
def test_a_small_file_of_many_long_rows_is_refused_before_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text that every row points to: the file grows by bits, what is read by its length."""
    data = exported(frame(2_000, purpose=pl.lit("A" * 15_000)))
    assert len(data) < 100_000
    monkeypatch.setattr(parquet_reader, "FILE_BYTES_MAX", 4_000_000)
    with pytest.raises(LimitExceeded, match="the file holds more than 4000000 characters of text"):
        read(data)


@pytest.mark.requirement("readers.limits")
def test_a_text_that_unpacks_to_more_than_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = exported(frame(1, purpose=pl.lit("A" * 50_000_000)))
    assert len(data) < 100_000
    monkeypatch.setattr(connectors.own_formats.parquet_texts, "MEMORY", "32MB")
    with pytest.raises(MalformedFile, match=DAMAGED):
        read(data)


@pytest.mark.requirement("export.parquet")
def test_a_file_without_a_row_says_nothing() -> None:
    assert read(exported(frame(0))) == []


@pytest.mark.requirement("export.parquet")
def test_what_fails_beside_the_disk_is_told_as_it_was() -> None:
    class Closed(io.BytesIO):
        def write(self, _content: object) -> int:
            raise ValueError("closed by whoever was to read it")

    with pytest.raises(pl.exceptions.ComputeError):
        parquet_writer.write([(GIRO, StatementRecord(), [frame()])], Closed(), schema=EVERYTHING)
