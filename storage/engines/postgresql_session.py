"""SQL on one connection to a PostgreSQL server."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import polars as pl
import psycopg
from psycopg import errors
from psycopg.types.string import TextLoader

from storage.changes.first_answers import written_table
from storage.database import (
    Now,
    Row,
    UserBusy,
    utc_now,
    without_zone,
)
from storage.engines import settling
from storage.engines.watched_connection import (
    LOOK_SECONDS,
    PATIENT_SECONDS,
    LongStatement,
    WatchedConnection,
)

Connection = WatchedConnection
Cursor = psycopg.Cursor[tuple[Any, ...]]
STAGED_ROWS_MAX = 5_000  # that travel as arrays; more go into a temporary table, which adds rows to the catalogue
COPIED_ROWS = 10_000  # in one piece: bounds memory
# The pid is asked for, because behind a pooler it is not the one that the connection was given at its start
PATIENT = "SELECT set_config('statement_timeout', $1, TRUE), pg_backend_pid() AS pid"
HOLD = "SELECT state FROM users WHERE id = $1 FOR UPDATE NOWAIT"
# Also by the clock: a user who is removed and added again must not get an earlier state
NEXT_STATE = (
    "UPDATE users SET state = greatest(state + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::BIGINT)"
    " WHERE id = $1 RETURNING state"
)
# A cluster copies such rows to its machines with COPY, which policies refuse, unless rows are returned
COPIED_TO_MACHINES = re.compile(r"INSERT INTO (?!.*\b(?:RETURNING|ON CONFLICT)\b).*\bSELECT\b", re.DOTALL)


class Statements:
    """A session on one connection; outside a transaction, each statement is committed by itself. `sees_all` is False
    for a session that sees only the rows of one user."""

    is_shared = True

    def __init__(self, connection: Connection, now: Now = utc_now, *, sees_all: bool = True) -> None:
        self._now = now
        self._connection = connection
        self._sees_all = sees_all
        self._staged: dict[str, tuple[str, Sequence[list[Any]]]] = {}
        self._held: dict[str, int] = {}  # with the state before
        self._changed: dict[str, int] = {}
        self._written: set[str | None] = set()  # tables

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        cursor = self._run(sql, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in (cursor.fetchall() if names else ())]

    def execute(self, sql: str, *parameters: Any) -> int:
        return max(self._run(sql, parameters).rowcount, 0)

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        asked = self._connection.cursor()
        asked.adapters.register_loader("numeric", TextLoader)  # a Decimal for each amount takes longer than the rest
        cursor = self._run(sql, parameters, asked)
        names = [column.name for column in cursor.description or ()]
        columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
        found = dict(zip(names, columns, strict=True))
        return pl.DataFrame([_series(name, found[name], dtype) for name, dtype in schema.items()])

    def append(self, table: str, frame: pl.DataFrame) -> None:
        if frame.is_empty():
            return
        if self._sees_all:
            self._copy(table, frame)
            return
        columns = ", ".join(frame.columns)
        with self.stage("appended", frame):  # PostgreSQL refuses COPY where policies hide rows of the table
            self.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM appended")

    def _copy(self, table: str, frame: pl.DataFrame) -> None:
        self._written.add(table)
        # An empty text is quoted and a null is not, by which COPY tells them apart
        with self._connection.cursor().copy(
            f"COPY {table} ({', '.join(frame.columns)}) FROM STDIN (FORMAT csv)".encode()
        ) as copy:
            for piece in frame.iter_slices(COPIED_ROWS):
                copy.write(piece.write_csv(include_header=False, quote_style="non_numeric"))

    def wait_for_long(self, seconds: float = 0, user_id: str | None = None) -> None:
        """Allow every further statement of this transaction `seconds` (0: no limit), even if the server is silent.
        After LOOK_SECONDS of silence another connection looks whether the server still works on it and, with `user_id`,
        whether the machine with this user's rows answers; if not, the statement is cancelled."""
        [row] = self.rows(PATIENT, f"{seconds:.0f}s")
        self._connection.patience, self._connection.awaited = LOOK_SECONDS, LongStatement(row["pid"], user_id)

    def hold(self, user_id: str) -> None:
        self.wait_for_long(PATIENT_SECONDS, user_id)
        self._take(user_id)

    def coming_state(self, user_id: str) -> int:
        self.changes(user_id)
        return self._changed[user_id]

    def changes(self, user_id: str) -> None:
        if user_id not in self._changed:
            self._take(user_id)
            changed = self.rows(NEXT_STATE, user_id)
            self._changed[user_id] = int(changed[0]["state"]) if changed else 0

    def _take(self, user_id: str) -> None:
        """Lock the user's row. Raises UserBusy where another transaction has it: to wait here would keep a
        connection."""
        if user_id not in self._held:
            try:
                held = self.rows(HOLD, user_id)
            except errors.LockNotAvailable as error:
                raise UserBusy(user_id) from error
            self._held[user_id] = int(held[0]["state"]) if held else 0

    def settle(self) -> None:
        """Finish a transaction that is about to be committed: record changed accounts, events and first answers of the
        users it changed."""
        for user_id, state in self._changed.items():
            before = self._held[user_id]
            settling.settle(self, user_id, before=before, state=state, now=self._now(), written=self._written)

    @contextmanager
    def stage(self, name: str, frame: pl.DataFrame) -> Iterator[None]:
        types = {column: _type_of(dtype) for column, dtype in frame.schema.items()}
        if frame.height <= STAGED_ROWS_MAX:
            columns = [frame[column].to_list() for column in types]
            arrays = ", ".join(f"${{}}::{type_}[]" for type_ in types.values())
            self._staged[name] = (f"unnest({arrays}) AS {name}({', '.join(types)})", columns)
            try:
                yield
            finally:
                del self._staged[name]
            return
        defined = ", ".join(f"{column} {type_}" for column, type_ in types.items())
        self.execute(f"CREATE TEMP TABLE {name} ({defined}) ON COMMIT DROP")
        self._copy(name, frame)
        self.execute(f"ANALYZE {name}")
        try:
            yield
        finally:
            with suppress(psycopg.Error):  # a failed transaction drops the table itself
                self.execute(f"DROP TABLE {name}")

    def _run(self, sql: str, parameters: Sequence[Any], cursor: Cursor | None = None) -> Cursor:
        if not self._sees_all and COPIED_TO_MACHINES.match(sql):
            sql = f"{sql} RETURNING 1"
        values = [as_stored(value) for value in parameters]
        for name, (fragment, columns) in self._staged.items():
            place = re.compile(rf"\b(FROM|JOIN) {name}\b")
            if place.search(sql):
                numbers = range(len(values) + 1, len(values) + len(columns) + 1)
                sql = place.sub(rf"\1 {fragment.format(*numbers)}", sql)
                values += columns
        found = (cursor or self._connection.cursor(binary=True)).execute(sql.encode(), values or None)
        if found.rowcount > 0:
            self._written.add(written_table(sql))
        return found


def as_stored(value: Any) -> Any:
    """The value as PostgreSQL stores it: texts without U+0000, moments in UTC without a zone."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [as_stored(each) for each in value]
    return without_zone(value)


def _series(name: str, values: Sequence[Any], dtype: pl.DataType) -> pl.Series:
    """A column of a frame; decimals come as texts."""
    if dtype.is_decimal():
        return pl.Series(name, values, dtype=pl.String).cast(dtype)
    return pl.Series(name, values, dtype=dtype)


def _type_of(dtype: pl.DataType) -> str:
    """The PostgreSQL column type that holds values of this Polars type exactly."""
    if isinstance(dtype, pl.Decimal):
        return f"NUMERIC({dtype.precision}, {dtype.scale})"
    if dtype.is_integer():
        return "BIGINT"
    return {pl.String: "TEXT", pl.Date: "DATE", pl.Boolean: "BOOLEAN", pl.Datetime: "TIMESTAMP"}[dtype.base_type()]
