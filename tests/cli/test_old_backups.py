"""`bankdata backup --keep N`: what goes, and what stays whatever it is called."""

import os
from pathlib import Path

import pytest

from storage.backup import STORE_NAME, BackupFailed, remove_older
from tests.cli.conftest import bankdata


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / STORE_NAME).write_bytes(b"store")


@pytest.mark.requirement("backup.keep")
def test_the_newest_stay_and_the_second_of_a_second_is_newer_than_the_first(tmp_path: Path) -> None:
    made(tmp_path, "20261120-135243-10", "20261120-135243-2", "20261120-135243", "20260101-000000")
    assert [path.name for path in remove_older(tmp_path / "20261120-135243-10", keep=2)] == [
        "20260101-000000",
        "20261120-135243",
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20261120-135243-10", "20261120-135243-2"]


@pytest.mark.requirement("backup.keep")
def test_the_one_just_made_stays_although_a_clock_that_was_wrong_named_others_later(tmp_path: Path) -> None:
    made(tmp_path, "20261120-135243", "20261121-135243", "20361122-135243")
    assert [path.name for path in remove_older(tmp_path / "20261120-135243", keep=2)] == ["20261121-135243"]
    assert [path.name for path in remove_older(tmp_path / "20261120-135243", keep=1)] == ["20361122-135243"]
    assert [path.name for path in tmp_path.iterdir()] == ["20261120-135243"]


@pytest.mark.requirement("backup.keep")
def test_as_many_as_are_kept_all_stay(tmp_path: Path) -> None:
    made(tmp_path, "20260101-000000", "20260102-000000")
    assert remove_older(tmp_path / "20260102-000000", keep=2) == []
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.requirement("backup.keep")
def test_what_is_no_backup_of_ours_stays(tmp_path: Path) -> None:
    made(tmp_path, "before-the-move", "20260101-000000-old", "20260103-000000")
    (tmp_path / "20260101-000000").mkdir()  # holds no store
    (tmp_path / "elsewhere").mkdir()
    made(tmp_path / "elsewhere", "20250101-000000")
    (tmp_path / "20250101-000000").symlink_to(tmp_path / "elsewhere" / "20250101-000000")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert remove_older(tmp_path / "20260103-000000", keep=1) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.requirement("backup.keep")
def test_one_that_cannot_be_deleted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, "20260101-000000", "20260102-000000")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", os.fspath(path))

    monkeypatch.setattr("storage.backup.shutil.rmtree", refuse)
    with pytest.raises(
        BackupFailed, match=r"The old backup .*/20260101-000000 could not be deleted: Permission denied."
    ):
        remove_older(tmp_path / "20260102-000000", keep=1)


@pytest.mark.requirement("backup.keep")
def test_the_command_keeps_as_many_as_it_is_told_and_names_the_rest(tmp_path: Path) -> None:
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path).code == 0
    made(tmp_path / "backups", "20260101-000000", "20260102-000000")
    done = bankdata("backup", "--keep", 2, "--data", tmp_path)
    assert done.code == 0, done.err
    assert done.err == f"Deleted {tmp_path / 'backups' / '20260101-000000'}.\n"
    assert sorted(path.name for path in (tmp_path / "backups").iterdir()) == [
        "20260102-000000",
        Path(done.out.strip()).name,
    ]
    refused = bankdata("backup", "--keep", 0, "--data", tmp_path)
    assert refused.code == 2
    assert len(list((tmp_path / "backups").iterdir())) == 2
