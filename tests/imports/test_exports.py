"""What is exported is all there is, and comes back without a new row, whichever connection brings it."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.imports.command_line import Shell

COFFEE = "2026-03-01,Coffee,-3.50,EUR\n"
CSV = f"Date,Description,Amount,Currency\n{COFFEE}{COFFEE}2026-03-02,Pay,99.00,EUR\n"
IDS = "id, created_at, amount, purpose"


@pytest.fixture
def filled(shell: Shell, write: Callable[..., Path]) -> Shell:
    """Eva with the demo bank's accounts and one account without IBAN."""
    shell("connect", "demo", "--user", "eva")
    shell.import_(write("unnamed.csv", CSV))
    assert [row for row in shell.rows("iban", "accounts") if row[0] is None]
    return shell


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", ["csv", "camt053", "ofx"])
@pytest.mark.parametrize("connection", ["Statement files", "Another name"])
def test_an_export_brings_no_new_row_whatever_connection_it_comes_by(
    format_: str, connection: str, filled: Shell, tmp_path: Path
) -> None:
    before = filled.rows(IDS), filled.rows("id, balance", "accounts")
    path = filled.export(format_, tmp_path / "export")
    result = filled("import", "--user", "eva", "--json", "--connection", connection, path)
    report = json.loads(result.stdout)
    assert report["error"] is None
    assert report["new"] == 0
    assert report["known"] == len(before[0])
    assert (filled.rows(IDS), filled.rows("id, balance", "accounts")) == before


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", ["csv", "camt053", "ofx"])
def test_an_export_fills_the_store_of_another_user(format_: str, filled: Shell, tmp_path: Path) -> None:
    path = filled.export(format_, tmp_path / "export")
    count = len(filled.rows("id"))
    (report,) = filled.import_(path, user="tom")
    assert report["new"] == count
    (again,) = filled.import_(path, user="tom")
    assert again["new"] == 0


@pytest.mark.requirement("export.formats")
def test_every_format_has_every_booking(filled: Shell, tmp_path: Path) -> None:
    count = len(filled.rows("id"))
    for format_ in ("csv", "jsonl", "parquet", "camt053", "ofx", "beancount"):
        result = filled("export", "--user", "eva", "--format", format_, "--output", tmp_path / format_)
        assert f"Exported {count} transactions." in result.stderr
        assert (tmp_path / format_).stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "jsonl").read_text().splitlines()) == count
    assert pl.read_parquet(tmp_path / "parquet").height == count
    assert (tmp_path / "camt053").read_text().count("<Ntry>") == count
    assert (tmp_path / "ofx").read_text().count("<STMTTRN>") == count
    assert (tmp_path / "csv").read_text().count("booked,") == count


@pytest.mark.requirement("export.standard-output")
def test_without_output_the_file_is_standard_output_alone(filled: Shell, tmp_path: Path) -> None:
    written = filled.export("jsonl", tmp_path / "export")
    assert filled("export", "--user", "eva", "--format", "jsonl").stdout_bytes == written.read_bytes()


@pytest.mark.requirement("export.unwritable")
def test_a_place_that_cannot_be_written_is_one_sentence(shell: Shell, tmp_path: Path) -> None:
    for place in (tmp_path / "missing" / "export", Path("/proc/export")):
        result = shell("export", "--user", "eva", "--format", "csv", "--output", place, code=1)
        assert result.stderr.startswith(f"Error: {place}: ")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.requirement("export.formulas")
def test_a_text_that_a_spreadsheet_would_compute_is_kept_from_it(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    shell.import_(write("evil.csv", 'Date,Description,Amount,Currency\n2026-03-01,"=HYPERLINK(1)",-3.50,EUR\n'))
    written = shell.export("csv", tmp_path / "export")
    assert "'=HYPERLINK(1)" in written.read_text()
    (report,) = shell.import_(written)
    assert (report["new"], report["known"]) == (0, 1)
    assert shell.rows("purpose") == [("=HYPERLINK(1)",)]


@pytest.mark.requirement("export.empty")
@pytest.mark.parametrize("format_", ["csv", "jsonl", "parquet", "camt053", "ofx", "beancount"])
def test_a_user_without_data_has_an_empty_export(format_: str, shell: Shell, tmp_path: Path) -> None:
    result = shell("export", "--user", "tom", "--format", format_, "--output", tmp_path / "export")
    assert "Exported 0 transactions." in result.stderr
