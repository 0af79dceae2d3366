"""`bankdata upgrade-check`: the rehearsal of an upgrade on a copy of a backup."""

import hashlib
import shutil
import tarfile
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handlers.commands.control_socket import CommandError
from handlers.commands.rehearsals import upgrade_check
from handlers.settings import load
from storage import backup
from storage.database import Store
from storage.engines.duckdb_file import DuckDBFile
from storage.migrations import runner
from tests.archives import unpack
from tests.cli.conftest import bankdata

RELEASED = Path(__file__).parents[1] / "storage" / "released" / "data.tar.xz"


class Said:
    """A report that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A data folder whose one backup is a store of the first released program."""
    folder = tmp_path / "data" / "backups" / "20261122-120000"
    folder.mkdir(parents=True)
    with tarfile.open(RELEASED) as archive:
        unpack(archive, tmp_path / "out")
    for name in ("bankdata.duckdb", "oauth-keys.json"):
        (path,) = (tmp_path / "out").rglob(name)
        shutil.copy2(path, folder / name)
    return tmp_path / "data"


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.requirement("upgrade.check")
def test_a_backup_of_the_first_release_is_taken_over_and_nothing_is_touched(released: Path) -> None:
    before = contents(released)
    done = bankdata("upgrade-check", "--data", released)
    assert done.code == 0, done.err
    first, steps, *names = done.lines[: 2 + len(runner.migrations()) - 4]
    assert first == f"backup     {released / 'backups' / '20261122-120000'}, schema version 4"
    assert steps.startswith(f"steps      {len(runner.migrations()) - 4} steps in ")
    assert [name.strip() for name in names] == [each.name for each in runner.migrations()[4:]]
    kept, back, verdict = done.lines[-3:]
    assert back == "way back   the backup alone: the old program cannot use the new store"
    assert kept.startswith("kept       2 users, ")
    assert verdict.startswith("ok ")
    assert contents(released) == before


@pytest.mark.requirement("upgrade.check")
def test_a_backup_of_this_program_needs_no_step(tmp_path: Path) -> None:
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    assert bankdata("backup", "--data", tmp_path).code == 0
    done = bankdata("upgrade-check", "--data", tmp_path)
    assert done.code == 0, done.err
    assert done.lines[1] == "steps      none: store and program belong together"


@pytest.mark.requirement("upgrade.check")
def test_the_newest_backup_is_rehearsed_unless_another_is_named(released: Path) -> None:
    newer = released / "backups" / "20261122-120001"
    shutil.copytree(released / "backups" / "20261122-120000", newer)
    assert bankdata("upgrade-check", "--data", released).lines[0].startswith(f"backup     {newer},")
    older = released / "backups" / "20261122-120000"
    assert bankdata("upgrade-check", older, "--data", released).lines[0].startswith(f"backup     {older},")


@pytest.mark.requirement("upgrade.check")
def test_a_store_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "backups" / "20261122-120000"
    folder.mkdir(parents=True)
    with closing(DuckDBFile(folder / backup.STORE_NAME)) as database:
        runner.migrate(database, now=datetime(2026, 11, 22, tzinfo=UTC).replace(tzinfo=None))
        database.for_everybody().execute("UPDATE schema_version SET number = 999 WHERE number = 1")
    done = bankdata("upgrade-check", "--data", tmp_path)
    assert done.failed_with("The store has schema version 999, this program knows")


@pytest.mark.requirement("upgrade.check")
def test_without_a_backup_it_says_how_to_make_one(tmp_path: Path) -> None:
    assert bankdata("upgrade-check", "--data", tmp_path).failed_with("Make one: bankdata backup")
    (tmp_path / "backups").mkdir()
    assert bankdata("upgrade-check", "--data", tmp_path).failed_with("Make one: bankdata backup")


@pytest.mark.requirement("upgrade.check")
def test_a_folder_that_is_no_backup_and_damaged_keys_are_refused_in_one_sentence(released: Path) -> None:
    folder = released / "backups" / "20261122-120000"
    (folder / "oauth-keys.json").write_text("{")
    assert bankdata("upgrade-check", "--data", released).failed_with("oauth-keys.json")
    (folder / backup.STORE_NAME).unlink()
    assert bankdata("upgrade-check", folder, "--data", released).failed_with(
        "is no backup: it holds no bankdata.duckdb."
    )
    assert bankdata("upgrade-check", folder, "--data", released / "missing").failed_with("No such file or directory.")


@pytest.mark.requirement("upgrade.check")
def test_a_step_that_loses_a_booking_is_noticed(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate = runner.migrate

    def careless(store: Store, *, now: datetime) -> list[str]:
        done = migrate(store, now=now)
        store.for_everybody().execute("DELETE FROM transactions WHERE id = (SELECT min(id) FROM transactions)")
        return done

    monkeypatch.setattr(runner, "migrate", careless)
    with pytest.raises(CommandError, match=r"The upgrade changed what the store holds: .* Do not upgrade\."):
        upgrade_check(load({}, data_dir=released), Said())


@pytest.mark.requirement("upgrade.check")
def test_a_full_disk_is_noticed_before_the_copy(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "FREE_BYTES_MIN", 2**62)
    with pytest.raises(CommandError, match=r"The rehearsal needs \d+ MB on the disk of .*; \d+ MB are free\."):
        upgrade_check(load({}, data_dir=released), Said())
    assert [path.name for path in released.iterdir()] == ["backups"]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("upgrade.check")
def test_a_dump_is_restored_into_postgresql(tmp_path: Path) -> None:
    refused = bankdata("upgrade-check", "--restored", "--data", tmp_path)
    assert refused.failed_with("Set BANKDATA_DATABASE_URL to the PostgreSQL database that the dump was restored into.")
