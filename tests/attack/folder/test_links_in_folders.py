"""Links and swaps in a connected folder: whoever may write into it gets no file read or moved that lies elsewhere."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest

from analytics.records import AccountRecord, Record, TransactionRecord
from connectors.connector import Connection, Misconfigured
from connectors.sources.folder import Folder, checked_folder
from tests.conftest import NOW

TODAY = date(2026, 11, 20)


def read_file(file: BinaryIO, _user_id: str, _warn: Callable[[str], None]) -> Iterator[Record]:
    """A line is an amount."""
    yield AccountRecord(stable_key="k", currency="EUR")
    for line in file.read().decode().splitlines():
        yield TransactionRecord(amount=Decimal(line), currency="EUR", booking_date=TODAY)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """The folder that is connected."""
    (tmp_path / "mine").mkdir()
    return checked_folder(str(tmp_path / "mine"))


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """The folder of somebody else, with a statement in it."""
    (tmp_path / "theirs").mkdir()
    put(tmp_path / "theirs" / "a.xml", "1000.00")
    return tmp_path / "theirs"


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    written = NOW.replace(tzinfo=UTC).timestamp() - 60
    os.utime(path, (written, written))
    return path


def connection(folder: Path) -> Connection:
    return Connection(id="con_1", user_id="u1", bank_name="Bank", settings={"folder": str(folder)})


def amounts(records: Iterator[Record]) -> list[str]:
    return [str(record.amount) for record in records if isinstance(record, TransactionRecord)]


@pytest.mark.requirement("folder.links")
@pytest.mark.parametrize("name", ["done", "failed"])
@pytest.mark.parametrize("kind", ["link", "link to nothing", "file"])
def test_a_link_in_place_of_done_or_failed_moves_nothing_and_is_said(
    mine: Path, theirs: Path, name: str, kind: str
) -> None:
    put(mine / "b.xml", "1.00")
    match kind:
        case "link":
            (mine / name).symlink_to(theirs)
        case "link to nothing":
            (mine / name).symlink_to(theirs / "gone")
        case "file":
            (mine / name).write_text("1.00")
    with pytest.raises(Misconfigured) as refusal:
        Folder(read_file).start_refresh(connection(mine), now=NOW)
    assert str(refusal.value) == f"{name} in the folder of this connection is not a folder. Move it away."
    assert sorted(path.name for path in theirs.iterdir()) == ["a.xml"]
    assert (mine / "b.xml").exists()


@pytest.mark.requirement("folder.links")
def test_done_that_becomes_a_link_during_the_sync_moves_nothing(mine: Path, theirs: Path) -> None:
    put(mine / "b.xml", "1.00")
    connector, source = Folder(read_file), connection(mine)
    handle = connector.start_refresh(source, now=NOW)
    (batch,) = connector.fetch(source, handle, cursor=None, today=TODAY)
    (mine / "done").symlink_to(theirs)
    with pytest.raises(OSError, match="done"):
        connector.settle(source, handle, batch=batch, refusal=None)
    assert sorted(path.name for path in theirs.iterdir()) == ["a.xml"]
    assert (mine / "b.xml").exists()


@pytest.mark.requirement("folder.links")
def test_a_file_that_becomes_a_link_between_look_and_read_is_not_followed(mine: Path, theirs: Path) -> None:
    path = put(mine / "b.xml", "1.00")
    connector, source = Folder(read_file), connection(mine)
    handle = connector.start_refresh(source, now=NOW)
    path.unlink()
    path.symlink_to(theirs / "a.xml")
    assert list(connector.fetch(source, handle, cursor=None, today=TODAY)) == []


@pytest.mark.requirement("folder.links")
def test_a_file_swapped_while_it_is_read_is_read_as_it_was_hashed(mine: Path, theirs: Path) -> None:
    path = put(mine / "b.xml", "1.00")
    connector, source = Folder(read_file), connection(mine)
    handle = connector.start_refresh(source, now=NOW)
    read = []
    for batch in connector.fetch(source, handle, cursor=None, today=TODAY):
        path.unlink()
        path.symlink_to(theirs / "a.xml")
        read += amounts(batch.records)
        connector.settle(source, handle, batch=batch, refusal=None)
    assert read == ["1.00"]
    assert path.is_symlink()
    assert (theirs / "a.xml").exists()


@pytest.mark.requirement("folder.links")
def test_a_file_swapped_for_a_link_in_the_last_moment_goes_back_to_its_place(
    mine: Path, theirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(mine / "b.xml", "1.00")
    connector, source = Folder(read_file), connection(mine)
    handle = connector.start_refresh(source, now=NOW)
    (batch,) = connector.fetch(source, handle, cursor=None, today=TODAY)
    rename = os.rename

    def swapped(name: str, place: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        monkeypatch.setattr(os, "rename", rename)
        path.unlink()
        path.symlink_to(theirs / "a.xml")
        rename(name, place, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", swapped)
    connector.settle(source, handle, batch=batch, refusal=None)
    assert path.is_symlink()
    assert list((mine / "done").iterdir()) == []
    assert (theirs / "a.xml").exists()


@pytest.mark.requirement("folder.links")
@pytest.mark.parametrize("above", ["mine", ""])
def test_a_folder_that_becomes_a_link_or_lies_below_one_is_not_entered(
    tmp_path: Path, theirs: Path, above: str
) -> None:
    folder = tmp_path / "home" / "mine"
    folder.mkdir(parents=True)
    source = connection(checked_folder(str(folder)))
    (tmp_path / "other").mkdir()
    theirs.rename(tmp_path / "other" / "mine")
    if above:
        folder.rmdir()
        folder.symlink_to(tmp_path / "other" / "mine")
    else:
        folder.parent.rename(tmp_path / "was home")
        folder.parent.symlink_to(tmp_path / "other")
    with pytest.raises(Misconfigured):
        Folder(read_file).start_refresh(source, now=NOW)
    assert not Folder(read_file).has_news(source, now=NOW)


@pytest.mark.requirement("folder.links")
def test_a_pipe_is_no_file_and_keeps_nobody_waiting(mine: Path) -> None:
    connector, source = Folder(read_file), connection(mine)
    put(mine / "b.xml", "1.00")
    handle = connector.start_refresh(source, now=NOW)
    (mine / "b.xml").unlink()
    os.mkfifo(mine / "b.xml")
    assert list(connector.fetch(source, handle, cursor=None, today=TODAY)) == []
    assert connector.start_refresh(source, now=NOW) == {"files": []}


@pytest.mark.requirement("folder.links")
def test_moving_a_file_never_replaces_one_whatever_it_is_called(mine: Path) -> None:
    for text in ("1.00", "2.00"):
        put(mine / "b.xml", text)
        connector, source = Folder(read_file), connection(mine)
        handle = connector.start_refresh(source, now=datetime(2026, 11, 20, 13))  # noqa: DTZ001 - as the store keeps it
        for batch in connector.fetch(source, handle, cursor=None, today=TODAY):
            connector.settle(source, handle, batch=batch, refusal=None)
    assert {path.name: path.read_text() for path in (mine / "done").iterdir()} == {"b.xml": "1.00", "b.2.xml": "2.00"}
