"""SQL on one cursor of a DuckDB file, and what its failures mean."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import duckdb
import polars as pl

from storage.changes.first_answers import written_table
from storage.database import (
    Conflict,
    ConstraintViolated,
    NoSuchTable,
    Now,
    Row,
    StoreUnreadable,
    disk_failed,
    state_in,
    store_full,
    without_zone,
)
from storage.engines import settling
from storage.user_states import States

STATEMENTS_KEPT_MAX = 1_000  # parsed statements, some 4 kB each; an import has 200 of its own
ARRAYS_MAX, ARRAY_ROWS_MAX = 8, 1_000  # columns and rows that travel as arrays: half the time of a staged frame
ARRAYS: Mapping[pl.DataType, str] = {
    pl.String(): "TEXT",
    pl.Date(): "DATE",
    pl.Boolean(): "BOOLEAN",
    pl.Datetime("us"): "TIMESTAMP",
    pl.Int32(): "BIGINT",
    pl.Int64(): "BIGINT",
}
DISK_FULL = re.compile("no space left|file too large|disk quota exceeded", re.IGNORECASE)  # ENOSPC, EFBIG, EDQUOT
DISK_ERROR = re.compile(r"input/output error|could not (read from|write|fsync|truncate) |fsync failed", re.IGNORECASE)
INVALIDATED = "has been invalidated"  # by such an error, until the file is opened again


class Cursor:
    """A session on one DuckDB cursor. The cursors of a file share their parsed statements, of which each run takes a
    copy; parsing is a third of the time of a short statement."""

    is_shared = False

    def __init__(self, cursor: duckdb.DuckDBPyConnection, parsed: dict[str, duckdb.Statement]) -> None:
        self._cursor = cursor
        self._parsed = parsed

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        with translate_errors():
            result = self._cursor.execute(self._statement(sql), [without_zone(value) for value in parameters])
            names = [column[0] for column in result.description or ()]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def execute(self, sql: str, *parameters: Any) -> int:
        with translate_errors():
            result = self._cursor.execute(self._statement(sql), [without_zone(value) for value in parameters])
            changed = max(result.rowcount, 0)
            result.fetchall()  # a result that is not read to its end keeps its transaction open
            return changed

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        with translate_errors():
            # As a relation does it, which plans the statement once before, for the names and types of its columns
            result = self._cursor._submit(sql, [without_zone(value) for value in parameters] or None, "stream")
            found = pl.DataFrame(_ArrowStream(result.arrow_capsule))
        if list(found.schema.items()) == list(schema.items()):
            return found
        return found.select(pl.col(name).cast(dtype) for name, dtype in schema.items())

    def append(self, table: str, frame: pl.DataFrame) -> None:
        if frame.is_empty():
            return
        columns = ", ".join(frame.columns)
        types = [ARRAYS.get(dtype) for dtype in frame.dtypes]
        if None not in types and frame.width <= ARRAYS_MAX and frame.height <= ARRAY_ROWS_MAX:
            values = ", ".join(f"unnest(${place}::{type_}[])" for place, type_ in enumerate(types, 1))
            self.execute(f"INSERT INTO {table} ({columns}) SELECT {values}", *(each.to_list() for each in frame))
            return
        with self.stage("appended_rows", frame):
            self.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM appended_rows")

    @contextmanager
    def stage(self, name: str, frame: pl.DataFrame) -> Iterator[None]:
        stream = _ArrowStream(frame.__arrow_c_stream__)
        with translate_errors():
            self._cursor.register(name, stream)
        try:
            yield
        finally:
            with suppress(duckdb.TransactionException):  # the conflict being raised says more, and leads to another try
                self._cursor.unregister(name)
            stream.let_go()

    def close(self) -> None:
        self._cursor.close()

    def _statement(self, sql: str) -> duckdb.Statement:
        parsed = self._parsed.get(sql)
        if parsed is None:
            if len(self._parsed) >= STATEMENTS_KEPT_MAX:
                self._parsed.clear()
            [parsed] = self._cursor.extract_statements(sql)
            self._parsed[sql] = parsed
        return parsed


class OpenTransaction(Cursor):
    """A session on a cursor that has begun a transaction."""

    def __init__(self, kept: Cursor, states: States, now: Now) -> None:
        super().__init__(kept._cursor, kept._parsed)
        self._states = states
        self._now = now
        self._held: dict[str, threading.RLock] = {}
        self._coming: dict[str, int] = {}
        self._changed: dict[str, int] = {}  # with the state before
        self._written: set[str | None] = set()  # tables

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        found = super().rows(sql, *parameters)
        if found:
            self._written.add(written_table(sql))
        return found

    def execute(self, sql: str, *parameters: Any) -> int:
        changed = super().execute(sql, *parameters)
        if changed:
            self._written.add(written_table(sql))
        return changed

    def hold(self, user_id: str) -> None:
        # DuckDB has no row locks, and reports a conflict only at the commit. It takes its snapshot with the first
        # statement that reads or writes the store; after this wait, the snapshot has what the other transaction wrote
        if user_id not in self._held:
            self._held[user_id] = self._states.turn(user_id)

    def coming_state(self, user_id: str) -> int:
        # Not `state + 1`: DuckDB does not see that somebody else has raised it meanwhile where this transaction has
        # changed other columns of the row before, and two commits would leave one state
        if user_id not in self._coming:
            self.hold(user_id)
            self._coming[user_id] = self._states.following(self._highest_state)
        return self._coming[user_id]

    def changes(self, user_id: str) -> None:
        if user_id not in self._changed:
            state = self.coming_state(user_id)
            self._changed[user_id] = state_in(self, user_id)
            self._states.begin(user_id)
            self.execute("UPDATE users SET state = $2 WHERE id = $1", user_id, state)

    def settle(self) -> None:
        """Finish a transaction that is about to be committed: record changed accounts, events and first answers of the
        users it changed."""
        for user_id, before in self._changed.items():
            state = self._coming[user_id]
            settling.settle(self, user_id, before=before, state=state, now=self._now(), written=self._written)

    def end(self) -> None:
        """Release the users of a transaction that has been committed or rolled back."""
        self._states.end(self._changed)
        for turn in self._held.values():
            turn.release()

    def _highest_state(self) -> int:
        return int(self.rows("SELECT coalesce(max(state), 0) AS highest FROM users")[0]["highest"])


class _ArrowStream:
    """Rows that show only their Arrow interface; for a plain Polars frame, DuckDB would import pyarrow."""

    def __init__(self, stream: Callable[[], object]) -> None:
        self._stream = stream

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._stream()

    def let_go(self) -> None:
        """Free the rows, because DuckDB keeps a registered object until the end of the transaction."""
        self._stream = pl.DataFrame().__arrow_c_stream__


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise, for a failure of the driver within, the StoreError that says what it means."""
    try:
        yield
    except duckdb.Error as error:
        if DISK_FULL.search(str(error)):  # DuckDB reports a full disk in any error class, also for a failed commit
            raise store_full() from error
        if DISK_ERROR.search(str(error)) or INVALIDATED in str(error):  # likewise in any class
            raise disk_failed(error) from error
        if isinstance(error, duckdb.ConstraintException):
            raise ConstraintViolated(first_line(error)) from error
        if isinstance(error, duckdb.CatalogException) and "does not exist" in str(error):
            raise NoSuchTable(first_line(error)) from error
        if isinstance(error, duckdb.TransactionException):
            raise Conflict(first_line(error)) from error
        if isinstance(error, duckdb.IOException) or "orrupt" in str(error):
            raise StoreUnreadable(f"The file cannot be read as a store: {first_line(error)}") from error
        raise
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # DuckDB's own words in place of what a signal's handler raised
            raise KeyboardInterrupt from error
        raise


def first_line(error: Exception) -> str:
    """What the failure says in its first line; its class where it says nothing."""
    return str(error).splitlines()[0] if str(error) else error.__class__.__name__
