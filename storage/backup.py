"""Backups: consistent copies of the store while it is in use."""

import fcntl
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory

from storage.database import Store, StoreError

FREE_BYTES_MIN = 500 * 2**20
STORE_NAME = "bankdata.duckdb"

MADE_HERE = re.compile(r"(\d{8}-\d{6})(?:-(\d+))?")  # the folder names that `bankdata backup` gives, and no others
INCOMPLETE = re.compile(rf"\.{MADE_HERE.pattern}\.part")  # those of folders whose copy is not complete

_BACKING_UP = threading.Lock()  # the copy is attached to the store under one name


class BackupFailed(StoreError):
    """The copy could not be written."""


def backup(store: Store, folder: Path, *, also: Iterable[Path] = ()) -> Path:
    """Copy the store and the files `also` into a new folder, and return its path.

    If `folder` is taken, a number is added to its name. Readers and writers go on meanwhile, which is why the live file
    is not simply copied. The folder gets its name only when the copy is complete; a copy that fails leaves nothing
    behind. Raises BackupFailed, and StoreError where the engine cannot be copied.
    """
    partial = folder.with_name(f".{folder.name}.part")
    with _BACKING_UP:
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in folder.parent.iterdir():
                if INCOMPLETE.fullmatch(left.name):  # of a process that was killed
                    shutil.rmtree(left, ignore_errors=True)
            partial.mkdir(mode=0o700)
            store.copy_to(partial / STORE_NAME)
            (partial / STORE_NAME).chmod(0o600)
            # Put back with the store, it takes the place of the log that a killed server left, which DuckDB would add
            (partial / f"{STORE_NAME}.wal").touch(mode=0o600)
            for path in also:
                shutil.copy2(path, partial / path.name)
            numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
            return partial.rename(next(each for each in chain([folder], numbered) if not each.exists()))
        except OSError as error:
            raise BackupFailed(f"The backup could not be written to {folder}: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def list_backups(backups: Path) -> list[Path]:
    """The backups in this folder, oldest first: folders that are named as `bankdata backup` names them and hold a
    store."""
    found = [
        (match[1], int(match[2] or 1), path)
        for path in backups.iterdir()
        if (match := MADE_HERE.fullmatch(path.name)) and (path / STORE_NAME).is_file() and not path.is_symlink()
    ]
    return [path for _, _, path in sorted(found)]


def remove_older(made: Path, *, keep: int) -> list[Path]:
    """Delete all backups in the folder of the one just `made` but that and the newest others, `keep` (1 or more) in
    all; returns the deleted ones. Names tell their age, and a clock that was wrong may have given any of them. Raises
    BackupFailed."""
    others = [each for each in list_backups(made.parent) if each != made]
    older = others[: max(0, len(others) - keep + 1)]
    for path in older:
        try:
            shutil.rmtree(path)
        except OSError as error:
            raise BackupFailed(f"The old backup {path} could not be deleted: {error.strerror or error}.") from error
    return older


@contextmanager
def working_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A private folder for copies of a store, deleted with them at the end; before, those that killed processes left
    are deleted."""
    for left in parent.glob(f"{prefix}*"):
        with suppress(OSError), _held(left):  # NFS keeps the folder, empty, while a file in it is open
            shutil.rmtree(left)
    with TemporaryDirectory(prefix=prefix, dir=parent) as place, _held(Path(place)):
        yield Path(place)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A context in which other processes cannot hold the folder; if this one is killed, they can. Raises OSError where
    another holds it."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)  # NFS locks nothing that is only read
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
