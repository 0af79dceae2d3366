"""A folder as a bank connection: what is new is read, what was read is put away, what is not finished waits."""

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO

import pytest
from msgspec.structs import replace

from analytics.records import AccountRecord, Batch, Record, TransactionRecord
from connectors.connector import Connection, HasNews, MalformedFile, Misconfigured, Ready
from connectors.sources.folder import FILE_FLAGS, Folder, checked_folder, is_waiting
from connectors.sources.uploads import Uploads

NOW = datetime(2026, 11, 20, 12, 0)  # noqa: DTZ001 - the store keeps UTC without zone
TODAY = date(2026, 11, 20)


def read_file(file: BinaryIO, _user_id: str, _warn: Callable[[str], None]) -> Iterator[Record]:
    """A statement reader for these tests: a line is an amount, `?` cannot be read."""
    yield AccountRecord(stable_key="k", currency="EUR")
    for line in file.read().decode().splitlines():
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
    for batch in connector.fetch(source, handle, cursor=None, today=TODAY):
        refusal = None
        try:
            list(batch.records)
        except MalformedFile as error:
            refusal = str(error)
        connector.settle(source, handle, batch=batch, refusal=refusal)
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


@pytest.mark.requirement("folder.done-and-failed")
def test_a_name_that_is_no_text_stops_nobody_and_is_shown_with_its_bytes_written_out(folder: Path) -> None:
    put(folder / os.fsdecode(b"b\xff.xml"), "?")
    put(folder / "a.xml", "1.00")
    put(folder / os.fsdecode(b"c\xfe.xml"), "2.00")
    assert sync(folder) == ["a.xml", r"b\xff.xml", r"c\xfe.xml"]
    assert sorted(path.name for path in (folder / "done").iterdir()) == ["a.xml", r"c\xfe.xml"]
    assert (folder / "failed" / r"b\xff.xml").read_text() == "?"
    assert sync(folder) == []


@pytest.mark.requirement("folder.done-and-failed")
@pytest.mark.parametrize(
    "name", [b"\xff" * 120 + b".xml", b"l" * 251 + b".xml", "ü".encode() * 126 + b".xm", b"a." + b"e" * 250]
)
def test_a_name_too_long_for_what_is_put_behind_it_is_cut(folder: Path, name: bytes) -> None:
    for text, place in (("?", "failed"), ("?", "failed"), ("1.00", "done")):
        put(folder / os.fsdecode(name), text)
        assert len(sync(folder)) == 1
        assert text in [path.read_text() for path in (folder / place).iterdir()]
    told = [path for path in (folder / "failed").iterdir() if path.name.endswith(".reason")]
    assert [path.read_text() for path in told] == ["line 1: not an amount.\n"] * 2
    assert sorted(path.name for path in folder.iterdir()) == ["done", "failed"]


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
        ("Thumbs.db", 60, False),
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
    with pytest.raises(Misconfigured) as refusal:
        checked_folder(str(tmp_path / "gone"))
    assert str(refusal.value) == f"There is no folder {tmp_path / 'gone'}."
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(Misconfigured):
        Folder(read_file).start_refresh(connection(tmp_path / "link"), now=NOW)


@pytest.mark.requirement("folder.gone")
def test_a_connection_without_a_folder_is_said_so() -> None:
    with pytest.raises(Misconfigured):
        Folder(read_file).start_refresh(replace(connection(Path("/")), settings={}), now=NOW)


@pytest.mark.requirement("folder.gone")
def test_a_file_that_vanishes_is_no_failure_whenever_it_does(folder: Path) -> None:
    path = put(folder / "a.xml", "1.00")
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW + timedelta(seconds=1))
    (batch,) = connector.fetch(source, handle, cursor=None, today=TODAY)
    path.unlink()
    connector.settle(source, handle, batch=batch, refusal=None)
    assert list(connector.fetch(source, handle, cursor=None, today=TODAY)) == []
    assert list(folder.iterdir()) == []


@pytest.mark.requirement("folder.done-and-failed")
def test_a_file_that_was_replaced_after_it_was_read_waits_for_the_next_sync(folder: Path) -> None:
    path = put(folder / "a.xml", "1.00")
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW)
    (batch,) = connector.fetch(source, handle, cursor=None, today=TODAY)
    put(path, "2.00")
    connector.settle(source, handle, batch=batch, refusal=None)
    assert path.read_text() == "2.00"
    assert sync(folder) == ["a.xml"]


def close_to_us(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the file must not be read, even by root, as whom the tests may run."""
    opened = os.open

    def closed(name: str, *given: int, **named: int) -> int:
        if name == path.name and named["dir_fd"] and given[0] == FILE_FLAGS:
            raise PermissionError(13, "Permission denied")
        return opened(name, *given, **named)

    monkeypatch.setattr("connectors.sources.folder.os.open", closed)


@pytest.mark.requirement("folder.refusals")
def test_a_file_that_must_not_be_read_is_refused_and_put_away(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_to_us(put(folder / "a.xml", "1.00"), monkeypatch)
    assert sync(folder) == ["a.xml"]
    assert (folder / "failed" / "a.xml.reason").read_text() == "the file cannot be read: permission denied.\n"


@pytest.mark.requirement("folder.done-and-failed")
def test_an_older_reason_of_the_same_name_is_replaced(folder: Path) -> None:
    (folder / "failed").mkdir()
    (folder / "failed" / "a.xml.reason").write_text("old")
    put(folder / "a.xml", "?")
    sync(folder)
    assert (folder / "failed" / "a.xml.reason").read_text() == "line 1: not an amount.\n"


@pytest.mark.requirement("folder.by-itself")
def test_a_folder_has_news_when_a_file_waits_in_it(folder: Path) -> None:
    connector, source = Folder(read_file), connection(folder)
    assert not connector.has_news(source, now=NOW)
    put(folder / "a.xml", "1.00", seconds_old=4)
    assert not connector.has_news(source, now=NOW)
    put(folder / "a.xml", "1.00", seconds_old=6)
    assert connector.has_news(source, now=NOW)
    assert not connector.has_news(connection(folder / "gone"), now=NOW)


@pytest.mark.requirement("folder.links")
def test_what_is_no_file_does_not_wait(folder: Path) -> None:
    assert is_waiting(put(folder / "a.xml", "1.00"))
    assert not is_waiting(folder / "gone.xml")
    assert not is_waiting(folder)


@pytest.mark.requirement("decision 49")
def test_uploads_have_nothing_to_fetch_or_to_say(folder: Path) -> None:
    uploads, source = Uploads(), connection(folder)
    assert list(uploads.fetch(source, uploads.start_refresh(source, now=NOW), cursor=None, today=TODAY)) == []
    assert uploads.poll_refresh(source, {}, now=NOW) == Ready()
    assert not isinstance(uploads, HasNews)
    uploads.settle(source, {}, batch=Batch(id="b", records=iter(())), refusal=None)


@pytest.mark.requirement("folder.refusals")
def test_a_file_that_was_read_and_is_closed_to_us_since_stays_where_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(folder / "a.xml", "1.00")
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW)
    (batch,) = connector.fetch(source, handle, cursor=None, today=TODAY)
    close_to_us(path, monkeypatch)
    connector.settle(source, handle, batch=batch, refusal=None)
    assert path.exists()


@pytest.mark.requirement("folder.same-file")
def test_a_file_too_large_to_be_read_is_known_by_its_name_and_others_by_their_content(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.sources.folder.FILE_BYTES_MAX", len("1.00"))
    for name, text in (("a.xml", "1.00"), ("b.xml", "10.00"), ("c.xml", "1.00")):
        put(folder / name, text)
    connector, source = Folder(read_file), connection(folder)
    handle = connector.start_refresh(source, now=NOW)
    first, large, second = (batch.id for batch in connector.fetch(source, handle, cursor=None, today=TODAY))
    assert large == "file:too large:b.xml"
    assert first == second == f"file:{hashlib.sha256(b'1.00').hexdigest()}"


@pytest.mark.requirement("folder.gone")
def test_a_file_that_goes_while_the_folder_is_looked_through_is_no_news(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder / "a.xml", "1.00")

    def gone(name: str) -> bool:
        (folder / name).unlink()
        return True

    monkeypatch.setattr("connectors.sources.folder._has_statement_name", gone)
    assert not Folder(read_file).has_news(connection(folder), now=NOW)
