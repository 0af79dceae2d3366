"""The embedded engine: one DuckDB file, opened by one process, with a cursor for each call."""

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from storage.boundary import undo_on_failure
from storage.changes.incarnation import LIFE
from storage.database import (
    CONFLICT_PAUSES,
    Conflict,
    Database,
    DiskFailed,
    Now,
    Session,
    StoreError,
    StoreFull,
    StoreInUse,
    StoreUnreadable,
    Transaction,
    disk_failed,
    retry,
    state_in,
    utc_now,
)
from storage.engines.duckdb_session import (
    Cursor,
    OpenTransaction,
    first_line,
)
from storage.user_states import States

T = TypeVar("T")

log = logging.getLogger("bankdata.store")

CURSORS_KEPT_MAX = 8  # idle ones, enough for as many threads at once; further ones are closed after use
MEMORY_LIMIT = "128MB"  # the server's promise is 400 MB in all; larger sorts spill to disk
ROW_GROUP_ROWS = 10 * 2048  # compressed together, to stay within the limit above: a sixth of DuckDB's default
FILE_OPTIONS = f"STORAGE_VERSION 'v1.2.0', ROW_GROUP_SIZE {ROW_GROUP_ROWS}"
STORE = "store"  # the name of the attached file in SQL


class DuckDBFile:
    """One open DuckDB file (`storage.database.Store`). The root connection never leaves this class."""

    is_shared = False
    losses = 0

    def __init__(self, path: Path, *, now: Now = utc_now, export_folder: Path | None = None) -> None:
        """Open or create the file. Raises StoreInUse and StoreUnreadable. `now` gives the time of events at each
        commit; only in `export_folder` (None: `backups` beside the file) can `copy_to` write."""
        self.path = path
        self._now = now
        self._root = _connect(path)
        self._states = States()
        self._idle: list[Cursor] = []
        self._parsed: dict[str, duckdb.Statement] = {}
        self._opening = threading.Lock()
        self._in_use = 0
        self._is_closed = self._must_open_again = False
        self._export_folder = export_folder or path.parent / "backups"
        _harden(self._root, self._export_folder)

    def close(self) -> None:
        """Write everything into the file and close it; waits a second or two for a call that another thread is
        making."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        if not self._must_open_again:
            with suppress(duckdb.Error):
                self._root.execute("CHECKPOINT")
        for pause in CONFLICT_PAUSES:
            try:
                self._root.close()
            except duckdb.Error:  # busy with a call of another thread: DuckDB refuses instead of waiting
                time.sleep(pause)
            else:
                return

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a connection: none, because every call has a cursor of its own."""
        return 0

    @property
    def bytes(self) -> int:
        """The size of the file and its write-ahead log, in bytes."""
        files = (self.path, self.path.with_name(f"{self.path.name}.wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def state(self, user_id: str) -> int:
        """The state of the user's data, raised by every commit that changes what the user can read; 0 for nobody."""
        return self._states.present(user_id, lambda: state_in(self.of(user_id), user_id))

    async def state_without_thread(self, user_id: str) -> int | None:
        """The state of the user's data if it is known in memory, else None; costs no query."""
        return self._states.in_memory(user_id)

    def of(self, user_id: str) -> Database:  # noqa: ARG002 - there is no wall between users in one file
        """The store for this user, the same as for everybody: one file has no second wall."""
        return _FileDatabase(self._session, self._states, self._now)

    def for_everybody(self) -> Database:
        """The store for no user in particular."""
        return _FileDatabase(self._session, self._states, self._now)

    @contextmanager
    def reading(
        self, user_id: str, *, in_one_statement: bool = False
    ) -> Iterator[tuple[Session, Callable[[int], None]]]:
        """A transaction, and a function to call with the state of the user's data that it sees, so that memory keeps
        it."""
        mark = self._states.mark(user_id)
        database = self.of(user_id)
        with nullcontext(database) if in_one_statement else database.transaction() as session:
            yield session, lambda state: self._states.learn(user_id, state, mark=mark)

    def migrating(self) -> AbstractContextManager[Transaction]:
        """An ordinary transaction: only one process opens the file, so no other can change the schema meanwhile."""
        return self.for_everybody().transaction()

    def apart(self) -> AbstractContextManager[Database]:
        """A session of the store as any other, because no statement of this engine takes minutes."""
        return nullcontext(self.for_everybody())

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy to a new file below the export folder, while reading and writing go on; the copy has
        no incarnation yet (`storage.changes.incarnation`)."""
        with self._session() as session:
            session.execute(f"ATTACH {_quote(path)} AS copy ({FILE_OPTIONS})")
            try:
                session.execute(f"COPY FROM DATABASE {STORE} TO copy")
                session.execute("DELETE FROM copy.settings WHERE name = $1", LIFE)
                session.execute("CHECKPOINT copy")  # else the deletion stays in a log beside it, as at a shutdown
            finally:
                session.execute("DETACH copy")

    @contextmanager
    def _session(self) -> Iterator[Cursor]:
        """A cursor for one use; closed afterwards if the use failed, else kept for the next one."""
        with self._opening:
            if self._must_open_again:
                self._open_again()
            self._in_use += 1
        session: Cursor | None = None
        is_whole = False
        try:
            session = self._idle.pop() if self._idle else Cursor(_using_store(self._root.cursor()), self._parsed)
            yield session
            is_whole = True
        except (StoreFull, DiskFailed):
            self._must_open_again = True
            raise
        finally:
            if session is not None and is_whole and len(self._idle) < CURSORS_KEPT_MAX and not self._is_closed:
                self._idle.append(session)
            elif session is not None:
                session.close()
            with self._opening:
                self._in_use -= 1

    def _open_again(self) -> None:
        """Open the file again after a failure of the disk, because DuckDB 2.0 overwrites its own memory when it writes
        after a write that failed. Raises DiskFailed while that does not work, or somebody uses the former connection:
        two at once would write into one file."""
        if self._in_use:
            raise DiskFailed(DiskFailed.__doc__)
        while self._idle:
            self._idle.pop().close()
        try:
            with suppress(duckdb.Error):
                self._root.close()
            self._root = _connect(self.path)
            _harden(self._root, self._export_folder)
        except (duckdb.Error, StoreError) as error:
            raise disk_failed(error) from error
        self._states.forget()
        self._must_open_again = False
        log.warning("the store was opened again")


class _FileDatabase(Database):
    """Queries to an open file (`storage.database.Database`), each on a cursor of its own."""

    is_shared = False

    def __init__(self, session: Callable[[], AbstractContextManager[Cursor]], states: States, now: Now) -> None:
        self._session = session
        self._states = states
        self._now = now

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction: all or nothing. Raises Conflict when another transaction was faster."""
        with self._session() as kept:
            session = OpenTransaction(kept, self._states, self._now)
            try:
                session.execute("BEGIN")
                is_kept = False
                try:
                    yield session
                    session.settle()
                    session.execute("COMMIT")
                    is_kept = True
                finally:
                    if not is_kept:
                        with suppress(StoreError, Conflict):  # a commit that failed has undone everything itself
                            session.execute("ROLLBACK")
            finally:
                session.end()

    def run_alone(self, sql: str, work: Callable[[Any], T]) -> T:  # noqa: ARG002 - what a Database is asked
        """Run a single statement, again if need be: it has to wait for a transaction on the same rows, as in
        PostgreSQL."""
        return retry(self._session, work)


def _connect(path: Path) -> duckdb.DuckDBPyConnection:
    _check_name(path)
    try:
        if not os.access(path.parent, os.W_OK, effective_ids=True):  # the write-ahead log stands beside the store
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        empty = os.fstat(descriptor).st_size == 0
        os.close(descriptor)
        if empty:
            path.unlink()  # DuckDB refuses an empty file; the folder's mode (0700) keeps the new one private
        connection = duckdb.connect(
            config={
                "threads": 1,
                "memory_limit": MEMORY_LIMIT,
                "temp_directory": f"{path}.tmp",
                "checkpoint_threshold": "64MB",
                "late_materialization_max_rows": 0,  # the first rows of few: to fetch them apart takes as long again
                "zstd_min_string_length": 2**31,  # never: to read one long text it unpacks those around it
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
            },
        )
        with undo_on_failure(connection.close):
            connection.execute(f"ATTACH {_quote(path)} AS {STORE} ({FILE_OPTIONS})")
            _using_store(connection)
        path.chmod(0o600)
    except OSError as error:
        raise StoreUnreadable(
            f"{path} cannot be opened for writing: {error.strerror}. Every command needs a store and a folder that it"
            " may write; look at who owns them."
        ) from error
    except duckdb.Error as error:
        raise _not_opened(path, error) from error
    return connection


def check_free(path: Path) -> None:
    """Raise StoreInUse for a file that another process has open, or StoreUnreadable; writes nothing."""
    _check_name(path)
    try:
        duckdb.connect(str(path), read_only=True).close()
    except duckdb.Error as error:
        raise _not_opened(path, error) from error


def _not_opened(path: Path, error: duckdb.Error) -> StoreError:
    if "set lock on file" in str(error):
        return StoreInUse(f"{path} is open in another process. Stop it first.")
    return StoreUnreadable(f"{path} cannot be read as a store: {first_line(error)}")


def _check_name(path: Path) -> None:
    """Raise StoreUnreadable for a path with a question mark, a backslash or what is no UTF-8, of which DuckDB would
    make another name."""
    name = str(path)
    if "?" in name or "\\" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise StoreUnreadable(f"{name!r} cannot be the path of a store: it has a ? or \\ in it, or is no UTF-8.")


def _using_store(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Let table names in SQL refer to the attached file, and return the connection."""
    connection.execute(f"USE {STORE}")
    return connection


def _quote(path: Path | str) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _harden(connection: duckdb.DuckDBPyConnection, export_folder: Path) -> None:
    """Cut SQL off from the network and from all files but the store and those in the export folder; DuckDB accepts
    these settings only in this order."""
    connection.execute(f"SET allowed_directories = [{_quote(f'{export_folder}/')}]")
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")  # `close` makes one, where writing is safe
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
