"""What is exported is all there is, and comes back without a new row, whichever connection brings it."""

import csv
import json
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import date
from decimal import Decimal
from io import BytesIO, StringIO
from pathlib import Path

import polars as pl
import pytest

from analytics.records import AccountRecord, StatementRecord, TransactionRecord
from connectors.classified_records import without_classes
from connectors.own_formats import csv as csv_statement
from handlers.commands.control_socket import CommandError
from handlers.commands.table import perform
from tests.imports.command_line import Shell

pytestmark = pytest.mark.engine("duckdb")  # its stores are made in folders by processes of their own

COFFEE = "2026-03-01,Coffee,-3.50,EUR\n"
CSV = f"Date,Description,Amount,Currency\n{COFFEE}{COFFEE}2026-03-02,Pay,99.00,EUR\n"
IDS = "id, created_at, amount, purpose"
FORMATS = ["csv", "jsonl", "parquet", "camt053", "ofx", "beancount"]
NAMES = {"camt053": "camt"}
"""What a format is called in reports, where that is not its name."""
COMPLETE = ["csv", "jsonl", "parquet", "beancount"]
"""The formats that leave out nothing of a booking."""


@pytest.fixture(scope="module")
def full_folder(eva_and_tom: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eva with the demo bank's accounts and one account without IBAN; tests copy it."""
    folder = tmp_path_factory.mktemp("full")
    shell = Shell(Path(shutil.copytree(eva_and_tom, folder / "data")))
    shell("connect", "demo", "--user", "eva")
    (folder / "unnamed.csv").write_text(CSV)
    shell.import_(folder / "unnamed.csv")
    assert [row for row in shell.rows("iban", "accounts") if row[0] is None]
    return shell.folder


@pytest.fixture
def filled(full_folder: Path, tmp_path: Path) -> Shell:
    """A copy of that store."""
    return Shell(Path(shutil.copytree(full_folder, tmp_path / "data")))


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("connection", ["Statement files", "Another name"])
@pytest.mark.sampled
def test_an_export_brings_no_new_row_whatever_connection_it_comes_by(
    format_: str, connection: str, filled: Shell, tmp_path: Path
) -> None:
    before = filled.rows(IDS), filled.rows("id, balance, balance_date", "accounts")
    path = filled.export(format_, tmp_path / "export")
    result = filled("import", "--user", "eva", "--json", "--connection", connection, path)
    report = json.loads(result.stdout)
    assert (report["error"], report["format"]) == (None, NAMES.get(format_, format_))
    assert report["new"] == 0
    assert report["known"] == len(before[0])
    assert (filled.rows(IDS), filled.rows("id, balance, balance_date", "accounts")) == before


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_an_export_fills_the_store_of_another_user(format_: str, filled: Shell, tmp_path: Path) -> None:
    path = filled.export(format_, tmp_path / "export")
    count = len(filled.rows("id"))
    (report,) = filled.import_(path, user="tom")
    assert report["new"] == count
    for said in (
        "booking_date, value_date, amount, currency, counterpart_name, counterpart_iban, purpose",
        *(["merchant_name, type, category, mandate_reference, mcc, original_amount"] * (format_ in COMPLETE)),
    ):
        assert filled.rows_of("tom", said) == filled.rows_of("eva", said)
    for said in ("iban, currency, balance, balance_date", *(["name, kind, bic"] * (format_ in COMPLETE))):
        assert filled.rows_of("tom", said, "accounts") == filled.rows_of("eva", said, "accounts")
    result = filled("import", "--user", "tom", "--json", "--connection", "Another name", path)
    assert json.loads(result.stdout)["new"] == 0


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_accounts_that_only_our_ids_tell_apart_stay_apart(
    format_: str, shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    """Two files without account number by two connections are two accounts of one key; a third is without bookings."""
    shell("import", "--user", "eva", "--connection", "One", write("one.csv", CSV))
    shell("import", "--user", "eva", "--connection", "Two", write("two.csv", CSV))
    with (tmp_path / "empty.csv").open("wb") as stream:
        depot = AccountRecord(stable_key="99911000/4711", currency="EUR", name="Depot", bank_name="Beispielbank")
        stated = StatementRecord(closing=Decimal(5), closing_date=date(2026, 1, 1))
        csv_statement.write(without_classes([depot, stated]), stream)
    shell("import", "--user", "eva", tmp_path / "empty.csv")
    before = shell.rows(IDS), shell.rows("id, balance", "accounts")
    path = shell.export(format_, tmp_path / "export")
    result = shell("import", "--user", "eva", "--json", "--connection", "Three", path)
    report = json.loads(result.stdout)
    assert (report["new"], report["known"]) == (0, 6)
    assert (shell.rows(IDS), shell.rows("id, balance", "accounts")) == before


@pytest.mark.requirement("export.adjusting-entries")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_an_adjusting_entry_never_comes_back_as_a_booking(format_: str, shell: Shell, tmp_path: Path) -> None:
    """Between a statement that ends with 100 and one that begins with 120 there are 20 that nobody booked."""
    giro = AccountRecord(stable_key="DE89370400440532013000", iban="DE89370400440532013000", currency="EUR")
    with (tmp_path / "gap.csv").open("wb") as stream:
        for day, opening in (date(2026, 1, 10), Decimal(90)), (date(2026, 2, 10), Decimal(120)):
            booked = TransactionRecord(amount=Decimal(10), currency="EUR", booking_date=day, purpose=f"Zins {day}")
            stated = StatementRecord(
                opening=opening,
                opening_date=day,
                closing=opening + 10,
                closing_date=day,
                is_authoritative=True,
            )
            stream.seek(0)
            csv_statement.write(without_classes([giro, booked, stated]), stream)
            stream.truncate()
            stream.flush()
            shell.import_(tmp_path / "gap.csv")
    before = shell.rows("id, amount, is_adjusting_entry")
    assert [row[1:] for row in before if row[2]] == [(Decimal(20), True)]
    path = shell.export(format_, tmp_path / "export")
    (report,) = shell.import_(path)
    assert (report["new"], report["known"]) == (0, 2)
    assert shell.rows("id, amount, is_adjusting_entry") == before
    (report,) = shell.import_(path, user="tom")
    assert report["new"] == 2
    assert shell.rows_of("tom", "balance", "accounts") == [(Decimal(130),)]


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", ["csv", "camt053", "beancount"])
@pytest.mark.parametrize(("balance_day", "opening_day", "opening"), [(2, 2, 107), (1, 1, 100)])
@pytest.mark.sampled
def test_an_opening_balance_lacks_no_booking_after_the_day_of_the_closing_one(
    format_: str, balance_day: int, opening_day: int, opening: int, shell: Shell, tmp_path: Path
) -> None:
    """7.00 are spent on March 2nd and 99.00 come in on the 3rd; the bank says 100.00 as of a day before that."""
    giro = AccountRecord(stable_key="DE89370400440532013000", iban="DE89370400440532013000", currency="EUR")
    rows = [
        TransactionRecord(amount=Decimal(amount), currency="EUR", booking_date=date(2026, 3, day), purpose=f"No {day}")
        for day, amount in ((2, -7), (3, 99))
    ]
    stated = StatementRecord(closing=Decimal(100), closing_date=date(2026, 3, balance_day))
    with (tmp_path / "said.csv").open("wb") as stream:
        csv_statement.write(without_classes([giro, *rows, stated]), stream)
    shell.import_(tmp_path / "said.csv")
    path = shell.export(format_, tmp_path / "export")
    shell.import_(path, user="tom")
    assert shell.rows_of("tom", "opening, opening_date, closing, closing_date", "statements") == [
        (Decimal(opening), date(2026, 3, opening_day), Decimal(100), date(2026, 3, balance_day))
    ]
    assert "Balance adjustment" not in path.read_text()  # without one the postings until that day add up to the balance


@pytest.mark.requirement("export.formats")
def test_every_format_has_every_booking(filled: Shell, tmp_path: Path) -> None:
    count = len(filled.rows("id"))
    for format_ in FORMATS:
        result = filled("export", "--user", "eva", "--format", format_, "--output", tmp_path / format_)
        assert f"Exported {count} transactions." in result.stderr
        assert (tmp_path / format_).stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "jsonl").read_text().splitlines()) == count
    assert pl.read_parquet(tmp_path / "parquet").height == count
    assert (tmp_path / "camt053").read_text().count("<Ntry>") == count
    assert (tmp_path / "ofx").read_text().count("<STMTTRN>") == count
    assert (tmp_path / "csv").read_text().count("booked,") == count
    assert (tmp_path / "beancount").read_text().count(" * ") == count + len(filled.rows("id", "accounts")) - 1


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


@pytest.mark.requirement("export.unwritable")
@pytest.mark.parametrize("format_", FORMATS)
def test_a_full_disk_is_one_sentence(format_: str, filled: Shell) -> None:
    result = filled("export", "--user", "eva", "--format", format_, "--output", "/dev/full", code=1)
    assert result.stderr.splitlines()[-1] == "Error: /dev/full: No space left on device."


@pytest.mark.requirement("export.whole")
@pytest.mark.parametrize("format_", FORMATS)
def test_an_export_that_fails_leaves_the_older_file_as_it_was(format_: str, filled: Shell, tmp_path: Path) -> None:
    older, link = tmp_path / "exports" / "older", tmp_path / "link"
    older.parent.mkdir()
    older.write_text("of last month")
    link.symlink_to(older)
    arguments = {"user": "eva", "format_": format_, "path": str(link)}
    with closing(filled.opened()) as services:
        with largest_file(1000), pytest.raises(CommandError, match=f"^{link}: File too large.$"):
            perform(services, "export", arguments, Silent())
        assert [(path, path.read_text()) for path in older.parent.iterdir()] == [(older, "of last month")]
        perform(services, "export", arguments, Silent())
    assert list(older.parent.iterdir()) == [older]
    assert link.is_symlink()
    assert older.stat().st_size > 1000


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """This process writes no file larger than so many bytes for a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Silent:
    """A report that nobody reads."""

    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


def of_account(iban: str, *amounts: int) -> bytes:
    """A statement that begins with 0 and adds up."""
    account = AccountRecord(stable_key=iban, iban=iban, currency="EUR")
    day, stream = date(2026, 1, 2), BytesIO()
    rows = [
        TransactionRecord(amount=Decimal(amount), currency="EUR", booking_date=day, purpose=f"No {number}")
        for number, amount in enumerate(amounts)
    ]
    stated = StatementRecord(closing=Decimal(sum(amounts)), closing_date=day)
    csv_statement.write(without_classes([account, *rows, stated]), stream)
    return stream.getvalue()


@pytest.mark.requirement("export.whole")
@pytest.mark.long
def test_what_an_import_brings_during_an_export_is_in_none_of_its_balances(
    shell: Shell, write: Callable[..., Path], tmp_path: Path
) -> None:
    """The first account fills the pipe, so the export waits; meanwhile the second one gets a booking of 40."""
    giro, savings = "DE02120300000000202051", "DE89370400440532013000"
    shell.import_(write("giro.csv", of_account(giro, *range(1, 2000))), write("savings.csv", of_account(savings, 60)))
    pipe, both = tmp_path / "pipe", write("both.csv", of_account(savings, 60, 40))
    os.mkfifo(pipe)
    with closing(shell.opened()) as services, ThreadPoolExecutor() as threads:
        arguments = {"user": "eva", "format_": "csv", "path": str(pipe)}
        exported = threads.submit(perform, services, "export", arguments, Silent())
        with pipe.open("rb") as stream:
            begin = stream.read(1)
            arrived = {
                "user": "eva",
                "files": [str(both)],
                "connection": None,
                "account": None,
                "is_dry_run": False,
                "is_json": True,
            }
            perform(services, "import", arrived, Silent())
            text = (begin + stream.read()).decode()
        exported.result()
    lines = [line for line in csv.DictReader(StringIO(text)) if line["iban"] == savings]
    assert [(line["record"], Decimal(line["amount"])) for line in lines] == [
        ("booked", Decimal(60)),
        ("opening", Decimal(0)),
        ("closing", Decimal(60)),
    ]


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
@pytest.mark.parametrize("format_", FORMATS)
def test_a_user_without_data_has_an_empty_export(format_: str, shell: Shell, tmp_path: Path) -> None:
    result = shell("export", "--user", "tom", "--format", format_, "--output", tmp_path / "export")
    assert "Exported 0 transactions." in result.stderr
