"""A connection whose source is a folder with statement files that a person, a bank client or a script puts there.

An ordinary sync reads new files; afterwards a file is in `done/`, or in `failed/` beside a `.reason` file. Whoever may
write into the folder may swap files, folders and links at any moment. So nothing is looked up twice by a path: the
folder is opened once, everything in it is reached through that descriptor and without following links, and a file is
hashed and read through one descriptor of its own.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from analytics.records import Batch, Record
from connectors.archive import is_of_the_system
from connectors.connector import Connection, Connector, Json, MalformedFile, Misconfigured
from connectors.limits import FILE_BYTES_MAX

QUIET_SECONDS = 5.0  # a file that changed more recently may still be written
PARTIAL_ENDINGS = (".part", ".partial", ".tmp", ".crdownload", ".reason")
NAME_BYTES_MAX = 230  # of a file put away: with a number and ".reason" behind it, it has to fit into 255
FILES_MAX = 1000  # in one sync; the next one continues
DONE, FAILED = "done", "failed"
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # NONBLOCK: opening a pipe must not wait for its writer
NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
UNREADABLE_FOLDER = "The folder of this connection cannot be read."

ReadFile = Callable[[BinaryIO, str, Callable[[str], None]], Iterator[Record]]
"""A function that reads a file for a user id; the callback gets warnings for the user."""


class Folder(Connector):
    """The source folder. The settings of a connection are {"folder": absolute path}."""

    name = "folder"
    is_local = True
    unattended_syncs_max = None

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        """The handle, with the names of the new files, 1,000 at most. Raises Misconfigured when the folder, or a folder
        for read files, cannot be used."""
        with _open_folder(connection) as folder:
            for name in (DONE, FAILED):
                _check_place(folder, name)
            return {"files": _new_files(folder, now)[:FILES_MAX]}

    def fetch(
        self,
        connection: Connection,
        handle: Json,
        *,
        cursor: Json | None,  # noqa: ARG002 - files that were read have left the folder
        today: date,  # noqa: ARG002 - as above
    ) -> Iterator[Batch]:
        """One batch per file that is still there, in the order of their names; reading its records raises the errors of
        the file, and MalformedFile for one that this process may not read."""
        with _open_folder(connection) as folder:
            for name in handle["files"]:
                try:
                    file = _plain_file(folder, _real_name(folder, name))
                except PermissionError:
                    yield Batch(id=_id_of_unreadable(name), name=name, records=_refuse_reading())
                    continue
                if file is not None:
                    with file:
                        warnings: list[str] = []
                        records = self._read_file(file, connection.user_id, warnings.append)
                        yield Batch(id=batch_id(file, name), name=name, records=records, warnings=warnings)

    def settle(
        self,
        connection: Connection,
        handle: Json,  # noqa: ARG002 - the protocol names it
        *,
        batch: Batch,
        refusal: str | None,
    ) -> None:
        """Move the file to done/ or, if it was refused, to failed/ with the reason beside it; unless it has been
        replaced since."""
        assert batch.name is not None, "a batch of a folder is named after its file"
        name = batch.name
        with _open_folder(connection) as folder:
            real = _real_name(folder, name)
            try:
                file = _plain_file(folder, real)
            except PermissionError:
                if batch.id == _id_of_unreadable(name):
                    _put_away(folder, real, os.stat(real, dir_fd=folder, follow_symlinks=False), refusal)
                return
            if file is not None:
                with file:  # kept open until it is moved, so that no other file can get its inode number
                    if batch_id(file, name) == batch.id:
                        _put_away(folder, real, os.fstat(file.fileno()), refusal)

    def has_news(self, connection: Connection, *, now: datetime) -> bool:
        """Whether there is a file for a sync to read (`_new_files`); an unreadable folder counts as no news, because a
        sync reports it."""
        with suppress(Misconfigured), _open_folder(connection) as folder:
            return bool(_new_files(folder, now))
        return False


def batch_id(file: BufferedReader, name: str) -> str:
    """The id of a file's batch, made of its content, whatever its place and name; of a file that is too large to read,
    made of the name. The file is at its beginning again afterwards."""
    if os.fstat(file.fileno()).st_size > FILE_BYTES_MAX:
        return f"file:too large:{name}"
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return f"file:{digest}"


def _id_of_unreadable(name: str) -> str:
    return f"file:not readable:{name}"


def _refuse_reading() -> Iterator[Record]:
    def refuse() -> Record:
        raise MalformedFile("the file cannot be read: permission denied.")

    return (refuse() for _ in range(1))


def checked_folder(text: str) -> Path:
    """The folder of a new connection, absolute and without symbolic links. Raises Misconfigured."""
    path = Path(text).expanduser()
    if not path.is_dir():
        raise Misconfigured("There is no folder {path}.", path=path)
    return path.resolve()


def is_waiting(path: Path) -> bool:
    """Whether syncs take the file for a statement: no folder, no link, not hidden, not named as an incomplete file.
    They read it once it has content and is no longer being written."""
    with suppress(OSError):
        return _has_statement_name(path.name) and stat.S_ISREG(os.lstat(path).st_mode)
    return False


@contextmanager
def _open_folder(connection: Connection) -> Iterator[int]:
    """The folder's descriptor, reached from the root step by step so that no part of the path is a link. Raises
    Misconfigured."""
    path = Path(str(connection.settings.get("folder", "")))
    if not path.is_absolute():
        raise Misconfigured(UNREADABLE_FOLDER, detail=connection.id)
    try:
        folder = os.open("/", FOLDER_FLAGS)
        for number, part in enumerate(path.parts[1:], start=2):
            above = folder
            # the folders above it need not be readable
            flags = FOLDER_FLAGS if number == len(path.parts) else FOLDER_FLAGS | getattr(os, "O_PATH", 0)
            try:
                folder = os.open(part, flags, dir_fd=above)
            finally:
                os.close(above)
    except OSError as error:
        raise Misconfigured(UNREADABLE_FOLDER, detail=f"{connection.id} {error.strerror}") from error
    try:
        yield folder
    finally:
        os.close(folder)


def _check_place(folder: int, name: str) -> None:
    """Raise Misconfigured where the folder for read files is no real folder: a link would move files anywhere, even
    into other users' folders."""
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise Misconfigured("{name} in the folder of this connection is not a folder. Move it away.", name=name)


def _new_files(folder: int, now: datetime) -> list[str]:
    """The names of waiting statement files, sorted; without empty ones and those changed in the last five seconds,
    which may still be written."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if _has_statement_name(entry.name) and _is_complete(entry, now)]
    return sorted(map(_name_as_text, names))


def _name_as_text(name: str) -> str:
    """The name of a file with the bytes that are not UTF-8 written out, as in `b\\xff.csv`: it is stored and shown."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _real_name(folder: int, text: str) -> str:
    """The name in the folder that was written as this text; the text itself where there is none any more."""
    if "\\x" not in text:
        return text
    return next((name for name in sorted(os.listdir(folder)) if _name_as_text(name) == text), text)


def _has_statement_name(name: str) -> bool:
    return not is_of_the_system(name) and not name.lower().endswith(PARTIAL_ENDINGS)


def _is_complete(entry: os.DirEntry[str], now: datetime) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    written = datetime.fromtimestamp(status.st_mtime, UTC).replace(tzinfo=None)
    is_quiet = (now - written).total_seconds() >= QUIET_SECONDS
    return stat.S_ISREG(status.st_mode) and status.st_size > 0 and is_quiet


def _plain_file(folder: int, name: str) -> BufferedReader | None:
    """The opened file with this name; None where there is none any more, or a link, a pipe or a folder in its place.
    Raises PermissionError."""
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=folder)
    except PermissionError:
        raise
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def _put_away(folder: int, name: str, read: os.stat_result, reason: str | None) -> None:
    """Move the file that was read (`read` is its status) to done/ or, with a reason, to failed/, under another name
    where its own is taken, and write the reason beside it. A file that was put in its place meanwhile is moved back."""
    with _place(folder, DONE if reason is None else FAILED) as target:
        place = _reserve_name(target, _name_as_text(name))
        os.rename(name, place, src_dir_fd=folder, dst_dir_fd=target)
        moved = os.stat(place, dir_fd=target, follow_symlinks=False)
        if (moved.st_dev, moved.st_ino) != (read.st_dev, read.st_ino):  # swapped at the last moment: not read yet
            os.rename(place, name, src_dir_fd=target, dst_dir_fd=folder)
        elif reason is not None:
            beside = f"{place}.reason"
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=target)
            with os.fdopen(os.open(beside, NEW_FILE_FLAGS, 0o600, dir_fd=target), "w", encoding="utf-8") as stream:
                stream.write(f"{reason}\n")


@contextmanager
def _place(folder: int, name: str) -> Iterator[int]:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=folder)
    target = os.open(name, FOLDER_FLAGS, dir_fd=folder)
    try:
        yield target
    finally:
        os.close(target)


def _reserve_name(target: int, name: str) -> str:
    """An unused name, reserved by an empty file until ours replaces it; a long one is cut before its ending."""
    path = Path(name)
    ending = path.suffix.encode()[:NAME_BYTES_MAX].decode("utf-8", "ignore")
    stem = path.stem.encode()[: NAME_BYTES_MAX - len(ending.encode())].decode("utf-8", "ignore")
    number, place = 1, f"{stem}{ending}"
    while True:
        try:
            os.close(os.open(place, NEW_FILE_FLAGS, 0o600, dir_fd=target))
        except FileExistsError:
            number += 1
            place = f"{stem}.{number}{ending}"
        else:
            return place
