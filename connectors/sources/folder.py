"""A bank connection whose source is a folder: statement files that a person, a bank client or a script puts there.

What is new is read by the ordinary sync; afterwards a file lies in `done/`, or in `failed/` beside a `.reason` file.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path

from connectors.connector import Connection, Json, Misconfigured, Ready, Waiting
from connectors.limits import FILE_BYTES_MAX
from storage.importing.records import Batch, Record

QUIET_SECONDS = 5.0  # a file that changed more recently may still be written
PARTIAL_ENDINGS = (".part", ".partial", ".tmp", ".crdownload", ".reason")
FILES_MAX = 1000  # of one sync; the next one goes on
DONE, FAILED = "done", "failed"

ReadFile = Callable[[Path], Iterator[Record]]


class Folder:
    """Implements `Connector`; `settings` of a connection are {"folder": absolute path}."""

    name = "folder"

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        """Which files are new; raises Misconfigured when the folder cannot be read."""
        return {"files": [path.name for path in _new_files(_folder(connection), now)[:FILES_MAX]]}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:  # noqa: ARG002 - the protocol names them
        """A folder is always ready."""
        return Ready()

    def fetch(
        self,
        connection: Connection,
        handle: Json,
        *,
        cursor: Json | None,  # noqa: ARG002 - what was read has left the folder
        today: date,  # noqa: ARG002 - as above
    ) -> Iterator[Batch]:
        """One batch per file, in the order of their names; its records raise what is wrong with the file."""
        folder = _folder(connection)
        for name in handle["files"]:
            path = folder / name
            if _is_plain_file(path):
                yield Batch(id=batch_id(path), records=self._read_file(path))

    def next_cursor(self, connection: Connection, handle: Json, *, today: date) -> Json:  # noqa: ARG002 - as above
        """The day of the last look; the folder itself says what is new."""
        return {"day": today.isoformat()}

    def finish(self, connection: Connection, handle: Json, *, outcomes: Mapping[str, str | None]) -> None:
        """Move what was imported to done/ and what was refused to failed/, with the reason beside it."""
        folder = _folder(connection)
        for name in handle["files"]:
            path = folder / name
            if not _is_plain_file(path):
                continue
            identity = batch_id(path)
            if identity in outcomes:
                _put_away(path, outcomes[identity])


def batch_id(path: Path) -> str:
    """The same file is the same batch, wherever it lies and whatever it is called; one too large to be read has no
    other mark than its name."""
    if path.stat().st_size > FILE_BYTES_MAX:
        return f"file:too large:{path.name}"
    with path.open("rb") as stream:
        return f"file:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def checked_folder(text: str) -> Path:
    """The folder of a new connection, absolute and without symbolic links; raises Misconfigured."""
    path = Path(text).expanduser()
    if not path.is_dir():
        raise Misconfigured(f"There is no folder {path}.")
    return path.resolve()


def _folder(connection: Connection) -> Path:
    folder = Path(str(connection.settings.get("folder", "")))
    if not folder.is_absolute() or folder.resolve() != folder or not folder.is_dir():
        raise Misconfigured("The folder of this connection cannot be read.", detail=connection.id)
    return folder


def _new_files(folder: Path, now: datetime) -> list[Path]:
    try:
        entries = sorted(folder.iterdir(), key=lambda path: path.name)
    except OSError as error:
        raise Misconfigured("The folder of this connection cannot be read.", detail=str(error.errno)) from error
    return [path for path in entries if _is_complete(path, now)]


def _is_complete(path: Path, now: datetime) -> bool:
    """Whether the file is a statement in waiting that is no longer being written."""
    if not is_waiting(path):
        return False
    status = path.stat()
    written = datetime.fromtimestamp(status.st_mtime, UTC).replace(tzinfo=None)
    return status.st_size > 0 and (now - written).total_seconds() >= QUIET_SECONDS


def is_waiting(path: Path) -> bool:
    """Whether a sync looks at the file: no folder, no link, not hidden, not named as a part."""
    return not path.name.startswith(".") and not path.name.lower().endswith(PARTIAL_ENDINGS) and _is_plain_file(path)


def _is_plain_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _put_away(path: Path, reason: str | None) -> None:
    """Move the file; one of the same name that lies there already keeps its place."""
    target = path.parent / (DONE if reason is None else FAILED)
    target.mkdir(mode=0o700, exist_ok=True)
    place = target / path.name
    number = 1
    while place.exists():
        number += 1
        place = target / f"{path.stem}.{number}{path.suffix}"
    path.rename(place)
    if reason is not None:
        place.with_name(f"{place.name}.reason").write_text(f"{reason}\n", encoding="utf-8")
