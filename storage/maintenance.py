"""Looking after the store: consistent copies, and the order of the big table."""

import functools
import shutil
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import count
from pathlib import Path

from storage.database import Database, Row, Session, StoreError, Transaction

FREE_BYTES_MIN = 500 * 2**20
STORE_NAME = "bankdata.duckdb"
ROWS_SORTED_AT_ONCE = 100_000  # some 60 MB of the 256 that the engine may use

_BACKING_UP = threading.Lock()  # the copy is attached to the store under one name


class BackupFailed(StoreError):
    """The copy could not be written."""


def backup(database: Database, folder: Path, *, also: Iterable[Path] = ()) -> Path:
    """Copy the store as it is now, and these files, into a new folder under the export folder; that folder, with a
    number behind its name where that is taken.

    Readers and writers go on meanwhile. Copying the live file instead would not be a backup. The folder has its name
    only when it is complete; a copy that fails leaves none.
    """
    partial = folder.with_name(f".{folder.name}.part")
    with _BACKING_UP:
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
            partial.mkdir(mode=0o700)
            database.copy_to(partial / STORE_NAME)
            (partial / STORE_NAME).chmod(0o600)
            for path in also:
                shutil.copy2(path, partial / path.name)
            free = next(each for each in _numbered(folder) if not each.exists())
            return partial.rename(free)
        except OSError as error:
            raise BackupFailed(f"The backup could not be written to {folder}: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _numbered(folder: Path) -> Iterator[Path]:
    yield folder
    for number in count(2):
        yield folder.with_name(f"{folder.name}-{number}")


def compact(database: Database, *, rows_at_once: int = ROWS_SORTED_AT_ONCE) -> int:
    """Sort the transactions by user, day and id again; concurrent imports survive it; how many rows there are.

    Rows imported since the last time lie unsorted at the end and are scanned by every query: about 1.5 ms for a
    million of them. One slice after the other moves to the end of the table, each in a transaction of its own: memory
    stays bounded, and one that breaks off has sorted less. Not `CREATE TABLE AS ... ORDER BY` and rename: that loses
    imports committed meanwhile.
    """
    moved = 0
    for each in _slices(database, rows_at_once):
        moved += database.atomically(functools.partial(_move_to_the_end, slice_=each))
    return moved


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """Neighbouring users, or neighbouring days of one user with very many rows; both ends included."""

    first_user: str
    last_user: str
    first_day: date = date.min
    last_day: date = date.max


def _slices(session: Session, rows_max: int) -> Iterator[_Slice]:
    users = session.rows("SELECT user_id, count(*) AS n FROM transactions GROUP BY user_id ORDER BY user_id")
    for group in _grouped(users, rows_max):
        first, last = group[0]["user_id"], group[-1]["user_id"]
        if len(group) > 1 or group[0]["n"] <= rows_max:
            yield _Slice(first_user=first, last_user=last)
            continue
        days = session.rows(
            "SELECT booking_date AS day, count(*) AS n FROM transactions WHERE user_id = $1"
            " GROUP BY booking_date ORDER BY booking_date DESC",
            first,
        )
        for piece in _grouped(days, rows_max):
            yield _Slice(first_user=first, last_user=last, first_day=piece[-1]["day"], last_day=piece[0]["day"])


def _grouped(counted: Iterable[Row], rows_max: int) -> Iterator[list[Row]]:
    """Neighbours with together at most so many rows (`n`), or one that has more by itself."""
    group: list[Row] = []
    rows = 0
    for each in counted:
        if group and rows + each["n"] > rows_max:
            yield group
            group, rows = [], 0
        group.append(each)
        rows += each["n"]
    if group:
        yield group


def _move_to_the_end(session: Transaction, slice_: _Slice) -> int:
    condition = "user_id BETWEEN $1 AND $2 AND booking_date BETWEEN $3 AND $4"
    ends = (slice_.first_user, slice_.last_user, slice_.first_day, slice_.last_day)
    session.execute(
        f"CREATE TEMP TABLE sorted AS SELECT * FROM transactions WHERE {condition}"
        " ORDER BY user_id, booking_date DESC, id",
        *ends,
    )
    session.execute(f"DELETE FROM transactions WHERE {condition}", *ends)
    moved = session.execute("INSERT INTO transactions SELECT * FROM sorted")
    session.execute("DROP TABLE sorted")
    return moved
