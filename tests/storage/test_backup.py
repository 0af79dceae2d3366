"""Backups: whole while imports run, and never over an older one."""

import errno
import fcntl
import os
import shutil
import threading
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from analytics.records import StatementRecord
from handlers.commands import upkeep
from handlers.commands.control_socket import CommandError
from handlers.metrics import Figures
from handlers.settings import load
from handlers.work.services import open_services
from storage import backup
from storage.engines.duckdb_file import DuckDBFile
from storage.migrations import runner
from tests.engines import whole
from tests.service.conftest import Said
from tests.storage.conftest import Bank, bookings, dump, make_bank

pytestmark = pytest.mark.engine("duckdb")


@pytest.mark.requirement("backup")
def test_a_backup_of_nine_days_ago_is_told_by_check_and_to_monitors(tmp_path: Path) -> None:
    said = Said()
    with closing(open_services(load({}, data_dir=tmp_path / "data"))) as services:
        assert "bankdata_backup_timestamp_seconds" not in Figures(services).text().decode()
        upkeep.back_up(services, said)
        upkeep.check(services, said)
        made = services.clock.now()
        services.clock.offset += timedelta(days=9)
        with pytest.raises(CommandError, match="1 problem found"):
            upkeep.check(services, said)
        told = Figures(services).text().decode()
    assert f"WRONG      The newest backup is of {made:%Y-%m-%d}: see why the nightly one fails." in said.lines
    assert f"backup     {made:%Y-%m-%d %H:%M} UTC" in said.lines
    assert "bankdata_backup_timestamp_seconds" in told
    assert "bankdata_disk_free_bytes" in told
    assert "bankdata_archive_failing" not in told  # of a store in a file


@pytest.mark.requirement("backup")
def test_a_backup_made_while_imports_run_is_whole_and_can_be_opened(bank: Bank, tmp_path: Path, now: datetime) -> None:
    stop = threading.Event()
    acknowledged: list[int] = [0]

    def imports() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows = bookings(f"2026-11-02 | -{number}.01 | A | {number}\n2026-11-02 | -{number}.02 | B | {number}")
            bank.bring(rows, statement=StatementRecord(closing=None))
            acknowledged[0] = 2 * number

    writer = threading.Thread(target=imports)
    writer.start()
    copies = []
    try:
        for number in range(4):
            least = acknowledged[0]
            folder = tmp_path / "backups" / str(number)
            copies.append((least, backup.backup(bank.database, folder)))
    finally:
        stop.set()
        writer.join()
    for least, folder in copies:
        copy = whole(DuckDBFile(folder / backup.STORE_NAME))
        assert runner.migrate(copy, now=now) == []
        rows = copy.rows("SELECT count(*) AS n FROM transactions")[0]["n"]
        assert rows >= least
        assert rows % 2 == 0, "half an import"
        assert copy.rows("SELECT count(*) AS n FROM journal")[0]["n"] == rows
        last = copy.rows("SELECT max(sequence) AS n FROM journal")[0]["n"]
        assert copy.rows("SELECT state AS n FROM users")[0]["n"] == (last or 0)
        copy.close()


@pytest.mark.requirement("backup")
def test_a_backup_holds_everything_and_an_older_one_is_never_overwritten(bank: Bank, tmp_path: Path) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
    key = tmp_path / "key.json"
    key.write_text("secret")
    folder = backup.backup(bank.database, tmp_path / "backups" / "one", also=[key])
    assert (folder / "key.json").read_text() == "secret"
    assert folder.stat().st_mode & 0o777 == 0o700
    copy = whole(DuckDBFile(folder / backup.STORE_NAME))
    assert dump(copy) == dump(bank.database)
    copy.close()
    assert backup.backup(bank.database, folder) == folder.with_name("one-2")
    assert (folder / "key.json").read_text() == "secret"


@pytest.mark.requirement("backup")
def test_the_log_of_a_killed_server_is_not_added_to_the_backup_that_takes_its_place(
    tmp_path: Path, now: datetime
) -> None:
    store = whole(DuckDBFile(tmp_path / backup.STORE_NAME))
    runner.migrate(store, now=now)
    store.close()  # as commands did before the server
    store = whole(DuckDBFile(tmp_path / backup.STORE_NAME))
    make_bank(store, now).bring(bookings("2026-11-02 | -5.00 | A | a"))
    killed = tmp_path / "killed"
    killed.mkdir()
    shutil.copy2(tmp_path / "bankdata.duckdb.wal", killed)
    for path in backup.backup(store, tmp_path / "backups" / "one").iterdir():
        shutil.copy2(path, killed)
    store.close()
    restored = whole(DuckDBFile(killed / backup.STORE_NAME))
    assert restored.rows("SELECT count(*) AS n FROM transactions") == [{"n": 1}]
    restored.close()


@pytest.mark.requirement("backup")
def test_a_backup_removes_what_killed_ones_have_left_and_nothing_else(bank: Bank, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    for name in (".20261127-033000.part", ".20261126-033000-2.part", ".mine.part", "20261125-033000"):
        (folder / name).mkdir(parents=True)
        (folder / name / backup.STORE_NAME).write_text("")
    backup.backup(bank.database, folder / "20261128-033000")
    assert {path.name for path in folder.iterdir()} == {".mine.part", "20261125-033000", "20261128-033000"}


@pytest.mark.requirement("backup")
@pytest.mark.parametrize("is_network_drive", [False, True])
def test_copies_that_killed_processes_left_go_and_those_of_others_at_work_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_network_drive: bool
) -> None:
    flock = fcntl.flock

    def lock_as_nfs_does(descriptor: int, kind: int) -> None:
        if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        flock(descriptor, kind)

    if is_network_drive:
        monkeypatch.setattr(fcntl, "flock", lock_as_nfs_does)
    killed, mine = tmp_path / ".check-killed", tmp_path / "check-mine"
    for folder in (killed, mine):
        folder.mkdir()
        (folder / backup.STORE_NAME).write_bytes(b"store")
    with backup.working_folder(tmp_path, ".check-") as first:
        (first / backup.STORE_NAME).write_bytes(b"store")
        with backup.working_folder(tmp_path, ".check-") as second:
            assert set(tmp_path.iterdir()) == {first, second, mine}
        assert (first / backup.STORE_NAME).exists()
    assert list(tmp_path.iterdir()) == [mine]
