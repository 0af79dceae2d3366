"""What had to be guessed of a CSV file is said by every way in; what nothing decides is not imported."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.bank_csv.layouts import UNSIGNED
from tests.imports.command_line import Shell

SIGNED = "Date,Payee,Amount\n2026-03-01,Baker,-3.50\n"
UNSURE = "Date,Payee,Amount\n2026-03-01,Baker,3.50\n"
GUESS = (
    'Guessed: booking date from "Date", amount from "Amount", payee or payer from "Payee"; signs as written; '
    "currency EUR assumed, as the file names none."
)
OPEN = GUESS.replace("as written", "unknown")

pytestmark = pytest.mark.requirement("import.guesses")


def test_a_command_says_what_was_guessed_and_refuses_what_nothing_decides(
    shell: Shell, write: Callable[..., Path]
) -> None:
    path = write("a.csv", SIGNED)
    assert f"  {GUESS}" in shell("import", "--user", "eva", "--dry-run", path).stdout.splitlines()
    assert f"  {GUESS}" in shell("import", "--explain", path).stdout.splitlines()
    unsure = write("b.csv", UNSURE)
    assert f"  refused: {UNSIGNED}" in shell("import", "--explain", unsure, code=1).stdout.splitlines()
    refused = shell("import", "--user", "eva", unsure, code=1)
    assert refused.stdout.splitlines() == [f"{unsure}: refused: {UNSIGNED}", f"  {OPEN}"]
    [report] = shell.import_(path)
    assert (report["new"], report["guesses"]) == (1, [GUESS])
    assert shell.rows_of("eva", "count(*)") == [(1,)]


def test_a_folder_says_what_was_guessed_and_leaves_out_what_nothing_decides(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "statements"
    folder.mkdir()
    for name, text in (("a.csv", SIGNED), ("b.csv", UNSURE)):
        (folder / name).write_text(text)
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    told = shell("connect", "folder", folder, "--user", "eva", "--bank", "Files", code=1)
    assert f"Files: a.csv: {GUESS}" in told.stdout.splitlines()
    assert f"Files: b.csv: refused: {UNSIGNED}" in told.stdout.splitlines()
    assert "1 file refused." in told.stderr
    assert [path.name for path in (folder / "done").iterdir()] == ["a.csv"]
    (folder / "c.csv").write_text(SIGNED)
    os.utime(folder / "c.csv", (1_700_000_000, 1_700_000_000))
    again = shell("sync", "--user", "eva", "--force")
    assert f"Files: c.csv: {GUESS}" in again.stdout.splitlines()
