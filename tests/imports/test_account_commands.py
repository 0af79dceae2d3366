"""`bankdata accounts` and `bankdata imports` as a person types them."""

import os
import pty
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.imports.command_line import BANKDATA, ROOT, Shell
from tests.imports.household import put_aside
from tests.imports.test_accounts import JANUARY, THE_SAME, csv

Write = Callable[..., Path]

UNASKED = "There is nobody to ask. Use --yes to go ahead without a question.\n"


@pytest.mark.requirement("cli.accounts")
@pytest.mark.long
def test_accounts_are_listed_renamed_hidden_merged_and_deleted(shell: Shell, write: Write) -> None:
    shell("import", "--user", "eva", write("a.csv", JANUARY))
    warned = shell("import", "--user", "eva", write("a.sta", THE_SAME))
    assert "waits for your answer. The same account: bankdata accounts merge " in warned.stderr
    n26 = shell("accounts", "list").stdout.split("\t")[0]
    assert shell("accounts", "list").stdout.endswith(f"the same as {n26}?\n")
    shell("accounts", "show", "DE43280200501426292700", "--user", "eva")

    shell("accounts", "rename", "n26", "Haushalt", "--user", "eva")
    shell("accounts", "hide", "Haushalt", "--user", "eva")
    shown = [line.split("\t") for line in shell("accounts", "list").stdout.splitlines()]
    assert [row[1:3] + row[6:] for row in shown] == [
        ["eva", "Haushalt", "3 bookings", "hidden"],
        ["eva", "", "3 bookings", "shown"],
    ]
    shell("accounts", "show", "Haushalt", "--user", "eva")

    assert [row[5] for row in shown] == ["no balance EUR", "0.00 EUR as of 2026-03-31"]
    iban = shown[1][3]
    assert shell("accounts", "merge", "Haushalt", iban, "--user", "eva", code=1).stderr.endswith(UNASKED)
    merged = shell("accounts", "merge", "Haushalt", iban, "--user", "eva", "--yes")
    assert merged.stdout == f"Merged Haushalt into {iban}: 3 bookings were in both and count once.\n"
    assert shell("accounts", "separate", n26, "--user", "eva").stdout == "Haushalt is an account of its own again.\n"
    shell("accounts", "merge", n26, iban, "--user", "eva", "--yes")
    assert shell("accounts", "delete", iban, "--user", "eva", code=1).stderr.endswith(UNASKED)
    deleted = shell("accounts", "delete", iban, "--user", "eva", "--yes")
    assert f"Deleted {iban} with 3 bookings." in deleted.stderr
    assert shell("accounts", "list", "--user", "eva").stdout == ""
    assert "no account with this id or name" in shell("accounts", "show", iban, "--user", "eva", code=1).stderr


@pytest.mark.requirement("cli.imports")
@pytest.mark.long
def test_imports_are_listed_and_taken_back(shell: Shell, write: Write) -> None:
    shell("import", "--user", "eva", write("a.csv", JANUARY))
    shell("import", "--user", "eva", "--account", "N26", write("b.csv", csv(("2026-02-01", "4.00", "four"))))
    listed = [line.split("\t") for line in shell("imports", "list", "--user", "eva").stdout.splitlines()]
    assert [row[2:] for row in listed] == [["a.csv", "N26", "3 new"], ["b.csv", "N26", "1 new"]]

    first, second = (row[0] for row in listed)
    assert shell("imports", "undo", first, "--user", "eva").stdout == "Taken back: 3 bookings.\n"
    assert shell("imports", "undo", second, "--user", "eva").stdout == "Taken back: 1 booking and 1 account.\n"
    again = shell("imports", "undo", second, "--user", "eva", code=1)
    assert again.stderr == "Error: The user has no import with this id. `bankdata imports list` shows them.\n"
    assert shell("imports", "list", "--user", "eva").stdout == ""


@pytest.mark.requirement("cli.imports")
@pytest.mark.long
def test_what_another_import_words_differently_comes_to_the_fore_and_older_imports_are_named(
    shell: Shell, write: Write
) -> None:
    shell("import", "--user", "eva", write("a.csv", JANUARY))
    shell("import", "--user", "eva", "--account", "N26", write("a.sta", THE_SAME))
    first = shell("imports", "list", "--user", "eva").stdout.split("\t")[0]
    undone = shell("imports", "undo", first, "--user", "eva")
    assert "3 bookings of other imports had been hidden behind them" in undone.stderr
    services = shell.opened()
    for table in ("transactions", "statements"):
        put_aside(services.everybody, table)
    services.close()
    assert shell("imports", "list", "--user", "eva").stderr == (
        "1 older file arrived before imports were recorded and cannot be undone."
        " `bankdata accounts delete` deletes a whole account.\n"
    )


@pytest.mark.engine("duckdb")  # its own process opens the store in a folder
@pytest.mark.requirement("import.anonymous")
@pytest.mark.long
def test_the_question_is_asked_at_a_terminal(shell: Shell, write: Write) -> None:
    shell("import", "--user", "eva", write("eva.csv", JANUARY))
    partners = write("tom.csv", csv(("2026-01-10", "7.00", "another")))
    ours, theirs = pty.openpty()
    command = Popen(
        [*BANKDATA, "import", "--user", "eva", str(partners)],
        env={**os.environ, "BANKDATA_DATA_DIR": str(shell.folder)},
        cwd=ROOT,
        stdin=theirs,
        stdout=PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    asked = b""
    while b"Which one" not in asked:
        asked += os.read(ours, 1000)
    os.write(ours, b"2\n")
    printed, _ = command.communicate(timeout=120)
    os.close(ours)
    assert command.returncode == 0
    assert b"tom.csv does not say which account it is about." in asked
    assert b"  2  an account that is not there yet" in asked
    assert "1 new, 0 known" in printed
    names = [line.split("\t")[2] for line in shell("accounts", "list", "--user", "eva").stdout.splitlines()]
    assert names == ["N26", "N26 2"]


@pytest.mark.requirement("import.anonymous")
@pytest.mark.long
def test_a_connected_folder_cannot_ask_and_refuses_the_file(shell: Shell, write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "statements"
    folder.mkdir()
    for name, content in (("1.csv", JANUARY), ("2.csv", csv(("2026-01-10", "7.00", "another")))):
        path = folder / name
        path.write_text(content)
        os.utime(path, (0, 0))
    shell("connect", "folder", folder, "--user", "eva", code=1)
    reason = (folder / "failed" / "2.csv.reason").read_text()
    assert "The file does not say which account it is about" in reason
    assert [amount for (amount,) in shell.rows_of("eva", "amount")] == [10, 20, 30]
