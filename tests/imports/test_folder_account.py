"""`connect folder --account`: the files of a folder that do not say which account they are about."""

import os
from pathlib import Path

import pytest

from tests.imports.command_line import Shell

FEBRUARY = "Date,Description,Amount,Currency\n2026-02-01,Grocer,-1.10,EUR\n"
MARCH = "Date,Description,Amount,Currency\n2026-03-01,Baker,-3.50,EUR\n"
APRIL = "Date,Description,Amount,Currency\n2026-04-01,Butcher,-7.20,EUR\n"
FRANCS = "Date,Description,Amount,Currency\n2026-04-02,Dairy,-4.00,CHF\n"

pytestmark = pytest.mark.requirement("folder.account")


def put(path: Path, content: str) -> None:
    """A file that nobody writes any more."""
    path.write_text(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "statements"
    made.mkdir()
    return made


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A store in which eva has an account named Cash, of a file without account."""
    made = Shell(tmp_path / "data")
    made("users", "add", "eva", "--random")
    (tmp_path / "first.csv").write_text(FEBRUARY)
    made.import_(tmp_path / "first.csv")
    [account] = made.rows_of("eva", "id", "accounts")
    made("accounts", "rename", account[0], "Cash", "--user", "eva")
    return made


def test_files_that_name_no_account_go_to_the_account_of_the_folder(shell: Shell, folder: Path) -> None:
    put(folder / "march.csv", MARCH)
    put(folder / "april.csv", APRIL)
    shell("connect", "folder", folder, "--user", "eva", "--account", "Cash")
    assert shell.rows_of("eva", "count(*) AS bookings, count(DISTINCT account_id) AS accounts") == [(3, 1)]
    assert {path.name for path in (folder / "done").iterdir()} == {"april.csv", "march.csv"}


def test_without_it_the_second_such_file_is_refused(shell: Shell, folder: Path) -> None:
    put(folder / "april.csv", APRIL)
    put(folder / "march.csv", MARCH)
    shell("connect", "folder", folder, "--user", "eva", code=1)
    assert len(list((folder / "failed").glob("*.csv"))) == 1


def test_a_file_in_another_currency_is_refused(shell: Shell, folder: Path) -> None:
    put(folder / "francs.csv", FRANCS)
    result = shell("connect", "folder", folder, "--user", "eva", "--account", "Cash", code=1)
    assert "The file is in CHF, the account in EUR." in result.stderr


def test_an_account_that_is_not_there_is_said_at_once(shell: Shell, folder: Path) -> None:
    result = shell("connect", "folder", folder, "--user", "eva", "--account", "Nothing", code=1)
    assert result.stderr.startswith("Error: ")
    assert shell.rows_of("eva", "count(*)", "connections") == [(1,)]


@pytest.mark.long
def test_the_files_follow_an_account_that_is_merged(shell: Shell, folder: Path, tmp_path: Path) -> None:
    shell("connect", "folder", folder, "--user", "eva", "--account", "Cash")
    (tmp_path / "second.csv").write_text(APRIL)
    shell("import", tmp_path / "second.csv", "--user", "eva", "--connection", "Other")
    [other] = [row[0] for row in shell.rows_of("eva", "id, given_name", "accounts") if row[1] is None]
    shell("accounts", "merge", "Cash", other, "--user", "eva", "--yes")
    put(folder / "march.csv", MARCH)
    shell("connect", "folder", folder, "--user", "eva")
    assert shell.rows_of("eva", "DISTINCT account_id") == [(other,)]


@pytest.mark.long
def test_the_files_of_an_account_that_is_deleted_speak_for_themselves(shell: Shell, folder: Path) -> None:
    shell("connect", "folder", folder, "--user", "eva", "--account", "Cash")
    shell("accounts", "delete", "Cash", "--user", "eva", "--yes")
    put(folder / "march.csv", MARCH)
    shell("connect", "folder", folder, "--user", "eva")
    assert shell.rows_of("eva", "count(*)", "accounts") == [(1,)]
