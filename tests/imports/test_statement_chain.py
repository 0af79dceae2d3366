"""A chain of daily statements gives the same ledger in any order, however often, and after any interruption."""

import io
import random
import signal
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest

from tests.engines import ENGINE
from tests.imports.command_line import BANKDATA, ROOT, Shell
from tests.imports.statement_chain import Chain, chain
from tests.service.conftest import environment

DAYS = 17  # every trait of the chain is there, most of them twice, and the last file is a container of two
STORED = "id, amount, booking_date, is_adjusting_entry, is_potential_duplicate"


@pytest.fixture(scope="module")
def bank() -> Chain:
    return chain(DAYS, seed=3)  # with several bookings on the last day, of which its intraday report has some


@pytest.fixture(scope="module")
def files(bank: Chain, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    for file in bank.files:
        (folder / file.name).write_bytes(file.content)
    return [folder / file.name for file in bank.files]


def ledger(shell: Shell) -> tuple[object, ...]:
    """Everything that an order of import could change."""
    return shell.rows(STORED), shell.rows("balance, balance_date", "accounts")


@pytest.fixture(scope="module")
def but_for_the_last_day(files: Sequence[Path], eva_and_tom: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with every file but the last; tests copy it."""
    other = Shell(ENGINE.copy(eva_and_tom, tmp_path_factory.mktemp("but-for-the-last-day") / "data"))
    other.import_(*files[:-1])
    return other.folder


@pytest.fixture(scope="module")
def in_order(
    files: Sequence[Path], but_for_the_last_day: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[object, ...]:
    """The ledger after one import of every file in the bank's order."""
    other = Shell(ENGINE.copy(but_for_the_last_day, tmp_path_factory.mktemp("in-order") / "data"))
    other.import_(files[-1])
    return ledger(other)


@pytest.mark.requirement("import.any-order")
@pytest.mark.parametrize("order", ["reversed", "shuffled"])
@pytest.mark.long
def test_any_order_and_every_file_twice_give_the_same_ledger(
    order: str, bank: Chain, files: list[Path], in_order: tuple[object, ...], shell: Shell
) -> None:
    again = files[::-1] if order == "reversed" else random.Random(7).sample(files, len(files))
    reports = shell.import_(*again, *again)
    assert sum(report["new"] for report in reports) == len(bank.entries)
    assert sum(report["new"] for report in reports[len(files) :]) == 0
    assert ledger(shell) == in_order
    amounts = [row[0] for row in shell.rows("amount")]
    assert sorted(amounts) == sorted(entry.amount for entry in bank.entries)
    assert [row[0] for row in shell.rows("balance", "accounts")] == [bank.closing]


@pytest.mark.engine("duckdb")  # its own process opens the store in a folder
@pytest.mark.requirement("import.killed")
@pytest.mark.long
def test_a_kill_in_the_middle_loses_and_doubles_nothing(
    bank: Chain, files: list[Path], in_order: tuple[object, ...], shell: Shell
) -> None:
    folder = shell.folder
    for after in (1, 6, 11):  # reports that are seen before the process is killed
        command = [*BANKDATA, "import", "--user", "eva", "--json"]
        settings = environment(False, DATA_DIR=str(folder))
        with Popen(
            [*command, *map(str, files)], env=settings, cwd=ROOT, stdout=PIPE, stderr=DEVNULL, text=True
        ) as running:
            assert running.stdout is not None
            for _ in range(after):
                assert running.stdout.readline()
            running.send_signal(signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
        stored = {row[0] for row in shell.rows("batch_id")}
        jobs = shell.rows("status", "jobs")
        assert {row[0] for row in jobs} == {"completed"}
        assert len(stored) >= after - 3  # days without a booking leave none
    shell.import_(*files)
    assert ledger(shell) == in_order


@pytest.mark.requirement("import.balance")
@pytest.mark.parametrize("is_report_first", [True, False])
def test_the_balance_of_a_day_is_that_of_its_statement_not_of_its_intraday_report(
    is_report_first: bool, bank: Chain, but_for_the_last_day: Path, tmp_path: Path, write: Callable[..., Path]
) -> None:
    shell = Shell(ENGINE.copy(but_for_the_last_day, tmp_path / "data"))
    (report, statement), balance = contents(bank.files[-1].content), [(bank.closing, bank.entries[-1].day)]
    files = [write("report.xml", report), write("statement.xml", statement)]
    shell.import_(*(files if is_report_first else files[::-1]))
    assert shell.rows("balance, balance_date", "accounts") == balance
    assert len(shell.rows("id")) == len(bank.entries)


def contents(container: bytes) -> list[bytes]:
    """The files of a ZIP container."""
    with zipfile.ZipFile(io.BytesIO(container)) as opened:
        return [opened.read(name) for name in opened.namelist()]
