"""The store as its queries see it: sessions, transactions, and errors.

Every query function takes a `Session` first: a `Database` (each statement on its own) or an open transaction. A
`Database` belongs to one user or to everybody, and the `Store` gives access to rows only through one. There is one SQL
text for DuckDB and PostgreSQL (`$1` parameters, TEXT, TIMESTAMP in UTC); where the two differ, a query asks whether the
store `is_shared`.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import random
from typing import Any, Protocol, TypeVar

import polars as pl
from msgspec import Struct
from msgspec.structs import asdict

from storage.boundary import Away

Row = dict[str, Any]
T = TypeVar("T")
S = TypeVar("S")
Now = Callable[[], datetime]
"""The current time in UTC without a zone, as the store keeps times."""

CONFLICT_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # seconds: the winner may be committing
VIOLATIONS_MAX = 6  # of these pauses, while a row that stands in the way may not be visible yet


NOBODY = ""  # no user has this id

log = logging.getLogger("bankdata.store")
log.addHandler(logging.NullHandler())  # a command, which keeps no log, says by itself what it failed of


class StoreError(Exception):
    """The store cannot be used."""


class StoreInUse(StoreError):
    """The store is open in another process; DuckDB lets one process open it at a time."""


class StoreUnreadable(StoreError):
    """The store file cannot be read."""


class StoreFull(StoreError, Away):
    """The disk of the store is full; nothing of this change was stored."""


def store_full() -> StoreFull:
    """Log that the disk is full, because callers only hear that the service cannot be used, and return the failure to
    raise."""
    log.error(StoreFull.__doc__)
    return StoreFull(StoreFull.__doc__)


class StoreUnavailable(StoreError, Away):
    """The database does not answer at present. Nothing of this change was stored; try again in a moment."""


class UserBusy(StoreUnavailable):
    """Another change of this user's data is being stored. Nothing of this one was stored; try again in a moment."""

    def __init__(self, user_id: str) -> None:
        super().__init__(self.__doc__)
        self.user_id = user_id


class DiskFailed(StoreUnavailable):
    """The disk of the store has failed; nothing of this change was stored. Try again in a moment."""


def disk_failed(error: Exception) -> DiskFailed:
    """Log what the disk did, because callers only hear that the service cannot be used, and return the failure to
    raise."""
    log.error("the disk of the store has failed: %s", str(error).partition("\n")[0])
    return DiskFailed(DiskFailed.__doc__)


class NoSuchTable(Exception):
    """A statement names a table that a DuckDB store does not have."""


class Conflict(Exception):
    """Another transaction changed the same rows first."""


class ConstraintViolated(Conflict):
    """A row with this key exists already, or a required value is missing."""


class Session(Protocol):
    """The interface that query functions use to read and write rows and frames, alone or inside a transaction."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may be at work in the store: PostgreSQL, and not the file of one process."""

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        """The rows of a statement (also of INSERT, UPDATE, DELETE ... RETURNING), as dicts by column name."""

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run an INSERT, UPDATE or DELETE; returns how many rows it changed."""

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        """The rows of a query as a frame with exactly the columns and types of `schema`."""

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Add the frame's rows to a table; columns are matched by name, absent ones become null."""

    def changes(self, user_id: str) -> None:
        """Declare that this transaction changes what the user can read: raises the state of their data, once per
        transaction.

        Call it before other statements unless `hold` was called; it waits as `hold` does.
        """


class Transaction(Session, Protocol):
    """A session whose statements succeed or fail together."""

    def coming_state(self, user_id: str) -> int:
        """The state that the user's data will have once this transaction, which has to call `changes` too, is
        committed; waits as `hold` does. Some engines count that as calling `changes`."""

    def hold(self, user_id: str) -> None:
        """Wait until no other transaction holds this user, then hold them. Raises UserBusy when that takes too long
        (`storage.engines.held_users`).

        Call it first in a transaction that reads or writes much of a user to change it: another one of the same user
        waits here, and has done no work yet if it then has to start over.
        """

    def stage(self, name: str, frame: pl.DataFrame) -> AbstractContextManager[None]:
        """Make the frame's rows readable as a table of this name, after FROM or JOIN, inside the `with` block."""


class Database(Session, Protocol):
    """The store as one user sees it, or as all users together. Safe to use from any thread. Each engine says how it
    opens a transaction and runs a single statement."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Open a transaction: all or nothing, in one snapshot. Raises Conflict when another transaction was faster."""

    def run_alone(self, sql: str, work: Callable[[Session], T]) -> T:
        """The result of `work`, which runs the single statement `sql`, perhaps several times."""

    def atomically(self, work: Callable[[Transaction], T]) -> T:
        """The result of `work` inside a transaction, tried again when another transaction was faster (`retry`), so that
        `work` may run several times."""
        return retry(self.transaction, work)

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        return self.run_alone(sql, lambda session: session.rows(sql, *parameters))

    def execute(self, sql: str, *parameters: Any) -> int:
        return self.run_alone(sql, lambda session: session.execute(sql, *parameters))

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        return self.run_alone(sql, lambda session: session.frame(sql, *parameters, schema=schema))

    def append(self, table: str, frame: pl.DataFrame) -> None:
        self.run_alone("COPY", lambda session: session.append(table, frame))

    def changes(self, user_id: str) -> None:
        self.atomically(lambda session: session.changes(user_id))


class Store(Protocol):
    """One open store, safe to use from any thread. Rows are read and written through `of` a user or `for_everybody`."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may be at work in the store: PostgreSQL, and not the file of one process."""

    @property
    def path(self) -> Path | None:
        """The file of the store; None where the store is not a file of this machine."""

    @property
    def bytes(self) -> int:
        """The size of the store in bytes."""

    @property
    def losses(self) -> int:
        """How often connections to the database were given up as lost, so that it may be another one now; 0 for a
        file."""

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a connection to the database; 0 where the engine has no connections."""

    def close(self) -> None:
        """Close the store."""

    def of(self, user_id: str) -> Database:
        """The store for this user: with a second wall (`storage.engines.second_wall`) only the rows of this user are
        visible, and for NOBODY only those that everybody may read."""

    def for_everybody(self) -> Database:
        """The store for no user in particular, with all rows visible: for signing in, the worker and commands."""

    def state(self, user_id: str) -> int:
        """The state of the user's data, a number that rises with every commit that changes what they can read; 0 for
        nobody."""

    async def state_without_thread(self, user_id: str) -> int | None:
        """The state of the user's data, read on an event loop without a thread; None where that is not possible."""

    def reading(
        self, user_id: str, *, in_one_statement: bool = False
    ) -> AbstractContextManager[tuple[Session, Callable[[int], None]]]:
        """A transaction of the user (none, for a caller who reads `in_one_statement`), and a function to call with the
        state of the user's data that it sees, so that the state is remembered in memory."""

    def migrating(self) -> AbstractContextManager[Transaction]:
        """A transaction that changes the schema; only one runs at a time, however many processes start."""

    def apart(self) -> AbstractContextManager[Session]:
        """A session for statements that cannot stand in a transaction and may take minutes, without making others wait.
        Raises StoreError where there is no connection for it."""

    def copy_to(self, path: Path) -> None:
        """Write a consistent copy to a new file, while reading and writing go on. Raises StoreError where the engine
        cannot."""


def utc_now() -> datetime:
    """The current time of this machine's clock in UTC, without a zone, for a store that is opened without the service's
    clock."""
    return datetime.now(UTC).replace(tzinfo=None)


def retry(begin: Callable[[], AbstractContextManager[S]], work: Callable[[S], T]) -> T:
    """The result of `work` inside a transaction, tried again when another transaction was faster, some ten times within
    two seconds; then the Conflict is raised.

    A row that somebody changes is refused until that change is committed, so trying again at once would only lose
    again. A violated constraint is tried again less often: the row may have come from a transaction that was not
    visible yet.
    """
    violations = 0
    for pause in CONFLICT_PAUSES:
        try:
            with begin() as session:
                return work(session)
        except Conflict as error:
            violations += isinstance(error, ConstraintViolated)
            if violations > VIOLATIONS_MAX:
                raise
            time.sleep(pause * (0.5 + random()))  # noqa: S311 - no secret; it parts losers who would meet again
    with begin() as session:
        return work(session)


class _Rehearsed(Exception):
    """Raised at the end of a dry run, so that its transaction is rolled back."""


def atomically(database: Database, work: Callable[[Transaction], T], *, is_dry_run: bool) -> T:
    """The result of `work`, done in one transaction (tried again as by `retry`), which is rolled back if it is a dry
    run."""
    if not is_dry_run:
        return database.atomically(work)
    results: list[T] = []

    def rehearse(session: Transaction) -> None:
        results[:] = [work(session)]
        raise _Rehearsed

    with suppress(_Rehearsed):
        database.atomically(rehearse)
    return results[0]


def without_zone(value: Any) -> Any:
    """A moment in UTC without zone, as the store keeps it; anything else as it is."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def state_in(session: Session, user_id: str) -> int:
    """The state of the user's data that this session sees; 0 for a user who does not exist."""
    rows = session.rows("SELECT state FROM users WHERE id = $1", user_id)
    return int(rows[0]["state"]) if rows else 0


def columns_of(session: Session, table: str) -> dict[str, str]:
    """The columns of a table, in their order, each with its type in SQL."""
    rows = session.rows(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1"
        " AND table_schema = current_schema() ORDER BY ordinal_position",
        table,
    )
    return {row["column_name"]: row["data_type"] for row in rows}


def add_row(session: Session, table: str, /, **values: Any) -> None:
    """Add a row with these values, by column. Raises ConstraintViolated where a row with its key exists."""
    session.execute(_insertion(table, values), *values.values())


def add_row_unless_there(session: Session, table: str, /, **values: Any) -> bool:
    """Add a row with these values, by column, unless a row with its key exists; returns whether it was added."""
    return session.execute(f"{_insertion(table, values)} ON CONFLICT DO NOTHING", *values.values()) > 0


def put_row(session: Session, table: str, key: Collection[str], /, **values: Any) -> None:
    """Add a row with these values, by column; where a row with the same `key` exists, set the values there."""
    others = ", ".join(f"{name} = excluded.{name}" for name in values if name not in key)
    conflict = f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {others}"
    session.execute(_insertion(table, values) + conflict, *values.values())


def set_values(session: Session, table: str, where: Mapping[str, Any], /, **values: Any) -> bool:
    """Set these values, by column, in the rows that `where` describes, by column too: a value, None for no value, or a
    list of texts of which each will do. Returns whether there was such a row."""
    terms, given = [], []
    for name, value in where.items():
        if value is None:
            terms.append(f"{name} IS NULL")
        else:
            given.append(value)
            place = f"ANY(${len(given)}::TEXT[])" if isinstance(value, list) else f"${len(given)}"
            terms.append(f"{name} = {place}")
    wanted = ", ".join(f"{name} = ${number}" for number, name in enumerate(values, len(given) + 1))
    sql = f"UPDATE {table} SET {wanted} WHERE {' AND '.join(terms)}"
    return session.execute(sql, *given, *values.values()) > 0


def _insertion(table: str, values: Mapping[str, Any]) -> str:
    places = ", ".join(f"${number}" for number in range(1, len(values) + 1))
    return f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"


def values_of(record: Struct) -> dict[str, Any]:
    """The values of a record by field name, for the columns with the same names."""
    return asdict(record)


def names_of(record: type[Struct]) -> str:
    """The field names of a record as a list of columns in SQL."""
    return ", ".join(record.__struct_fields__)


def as_json(value: Any) -> str:
    """The JSON text of a value, as TEXT columns keep it; equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
