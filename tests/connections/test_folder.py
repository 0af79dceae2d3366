"""A folder as a bank connection: what is new is read, what was read is put away, what is not finished waits."""

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from connectors.connector import Connection, MalformedFile, Misconfigured, Ready
from connectors.sources.folder import Folder, checked_folder
from storage.importing.records import AccountRecord, Record, TransactionRecord

NOW = datetime(2026, 11, 20, 12, 0)  # noqa: DTZ001 - the store keeps UTC without zone
TODAY = date(2026, 11, 20)


def read_file(path: Path) -> Iterator[Record]:
    """A statement reader for these tests: a line is an amount, `?` cannot be read."""
    yield AccountRecord(stable_key="k", currency="EUR")
    for line in path.read_text().splitlines():
        if line == "?":
            raise MalformedFile("line 1: not an amount.")
        yield TransactionRecord(amount=Decimal(line), currency="EUR", booking_date=TODAY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return checked_folder(str(tmp_path))


def connection(folder: Path) -> Connection:
    return Connection(id="con_1", user_id="u1", bank_name="Bank", settings={"folder": str(folder)})


def put(path: Path, text: str, *, seconds_old: float = 60) -> Path:
    path.write_text(text)
    written = NOW.replace(tzinfo=UTC).timestamp() - seconds_old
    os.utime(path, (written, written))
    return path


def sync(folder: Path) -> list[str]:
    """One sync by hand; the names of the files it looked at."""
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW)
    assert connector.poll_refresh(source, handle, now=NOW) == Ready()
    outcomes: dict[str, str | None] = {}
    for batch in connector.fetch(source, handle, cursor=None, today=TODAY):
        try:
            list(batch.records)
            outcomes[batch.id] = None
        except MalformedFile as error:
            outcomes[batch.id] = str(error)
    connector.finish(source, handle, outcomes=outcomes)
    return list(handle["files"])


@pytest.mark.requirement("folder.done-and-failed")
def test_a_good_file_is_put_into_done_and_a_bad_one_into_failed_with_its_reason(folder: Path) -> None:
    put(folder / "a.xml", "1.00")
    put(folder / "b.xml", "?")
    assert sync(folder) == ["a.xml", "b.xml"]
    assert sorted(path.name for path in folder.iterdir()) == ["done", "failed"]
    assert (folder / "done" / "a.xml").read_text() == "1.00"
    assert (folder / "failed" / "b.xml").read_text() == "?"
    assert (folder / "failed" / "b.xml.reason").read_text() == "line 1: not an amount.\n"


@pytest.mark.requirement("folder.half-written")
@pytest.mark.parametrize(
    ("name", "seconds_old", "is_read"),
    [
        ("a.xml", 5, True),
        ("a.xml", 4.9, False),
        ("a.xml.part", 60, False),
        ("A.XML.CRDOWNLOAD", 60, False),
        (".a.xml", 60, False),
        ("a.reason", 60, False),
    ],
)
def test_a_file_that_may_still_be_written_is_left_alone(
    folder: Path, name: str, seconds_old: float, is_read: bool
) -> None:
    put(folder / name, "1.00", seconds_old=seconds_old)
    assert sync(folder) == ([name] if is_read else [])
    assert (folder / name).exists() is not is_read


@pytest.mark.requirement("folder.half-written")
def test_an_empty_file_waits_for_its_content(folder: Path) -> None:
    put(folder / "a.xml", "")
    assert sync(folder) == []


@pytest.mark.requirement("folder.links")
def test_links_and_folders_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = put(tmp_path_factory.mktemp("outside") / "secret", "1.00")
    (folder / "link.xml").symlink_to(outside)
    (folder / "sub").mkdir()
    put(folder / "sub" / "a.xml", "1.00")
    assert sync(folder) == []
    assert outside.exists()


@pytest.mark.requirement("folder.done-and-failed")
def test_a_second_file_of_the_same_name_does_not_replace_the_first(folder: Path) -> None:
    for text in ("1.00", "2.00", "3.00"):
        put(folder / "a.xml", text)
        sync(folder)
    names = sorted(path.name for path in (folder / "done").iterdir())
    assert names == ["a.2.xml", "a.3.xml", "a.xml"]


@pytest.mark.requirement("folder.gone")
def test_a_folder_that_is_gone_or_moved_is_said_so(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured):
        Folder(read_file).start_refresh(connection(folder / "gone"), now=NOW)
    with pytest.raises(Misconfigured):
        checked_folder(str(tmp_path / "gone"))
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(Misconfigured):
        Folder(read_file).start_refresh(connection(tmp_path / "link"), now=NOW)


@pytest.mark.requirement("folder.gone")
def test_a_file_that_vanishes_between_look_and_read_is_no_failure(folder: Path) -> None:
    path = put(folder / "a.xml", "1.00")
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW + timedelta(seconds=1))
    path.unlink()
    assert list(connector.fetch(source, handle, cursor=None, today=TODAY)) == []
    connector.finish(source, handle, outcomes={})
