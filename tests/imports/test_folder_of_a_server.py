"""A folder connection of a running server: what is new is read, what is hostile put away, and the log tells nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handlers.commands.control_socket import CommandError
from tests.imports.command_line import Shell
from tests.imports.statement_chain import IBAN, SHOPS, chain
from tests.imports.test_refused_files import ATTACKS
from tests.service.conftest import Served, running


@pytest.fixture
def served(shell: Shell) -> Iterator[Served]:
    with running(shell.folder, command="serve", settings={"SYNC_COOLDOWN_SECONDS": "0"}) as server:
        yield server


def put(path: Path, content: bytes) -> None:
    """A file that was written a minute ago."""
    path.write_bytes(content)
    written = path.stat().st_mtime - 60
    os.utime(path, (written, written))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.requirement("folder.done-and-failed")
@pytest.mark.requirement("log.no-personal-data")
@pytest.mark.long
def test_good_files_are_imported_hostile_ones_put_away_and_the_log_names_nobody(served: Served, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "bank", tmp_path / "elsewhere.csv"
    folder.mkdir()
    served.command("connect folder", folder=str(folder), user="eva", bank="Ordner")
    bank = chain(3)
    elsewhere.write_text("Date,Description,Amount,Currency\n2026-03-01,Elsewhere,-3.50,EUR\n")
    for file in bank.files:
        put(folder / file.name, file.content)
    (folder / "link.csv").symlink_to(elsewhere)

    lines = served.command("sync", user="eva")

    assert lines == [f"eva\tOrdner\t{len(bank.entries)} new transactions"]
    assert names(folder / "done") == {file.name for file in bank.files}

    for name, content in ATTACKS.items():
        if content:
            put(folder / name, content)
    put(folder / "again.xml", bank.files[0].content)
    refused = {name for name, content in ATTACKS.items() if content}
    with pytest.raises(CommandError, match=f"^{len(refused)} files refused"):
        served.command("sync", user="eva")
    assert names(folder / "failed") == refused | {f"{name}.reason" for name in refused}
    for name in refused:
        reason = (folder / "failed" / f"{name}.reason").read_text()
        assert reason[0].isupper()
        assert reason.endswith(".\n")
    assert names(folder) == {"done", "failed", "link.csv"}

    put(folder / "bad.csv", b"not a statement")
    with pytest.raises(CommandError):
        served.command("sync", user="eva")
    assert "bad.csv" in names(folder / "failed")
    assert served.command("sync", user="eva") == ["eva\tOrdner\t0 new transactions"]  # the worker goes on
    assert served.client("eva").get("/accounts").json()["accounts"][0]["iban"] == IBAN

    log = served.log.read_text()
    assert "Traceback" not in log
    for word in (*SHOPS, IBAN, "Einkauf", "Coffee", "E2E-", "Ordner", "again.xml"):
        assert word not in log


@pytest.mark.requirement("folder.of-its-own")
@pytest.mark.long
def test_a_folder_that_holds_other_things_is_not_connected_and_stays_as_it_is(served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "Downloads"
    folder.mkdir()
    put(folder / "holiday.jpg", b"\xff\xd8\xff\xe0 a picture")
    with pytest.raises(CommandError, match=r"holds files that are not statements, such as 'holiday\.jpg'"):
        served.command("connect folder", folder=str(folder), user="eva", bank="Ordner")
    assert names(folder) == {"holiday.jpg"}
