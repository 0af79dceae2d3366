"""The PostgreSQL engine for several processes and machines: a pool of connections, and one snapshot per transaction."""

import logging
import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from random import random
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import polars as pl
import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import Literal
from psycopg.types.string import TextLoader
from psycopg_pool import ConnectionPool

from storage.boundary import undo_on_failure
from storage.changes import account_states
from storage.database import (
    NOBODY,
    Conflict,
    ConstraintViolated,
    Database,
    Now,
    Row,
    Session,
    StoreError,
    StoreUnavailable,
    Transaction,
    UserBusy,
    disk_failed,
    state_in,
    store_full,
    utc_now,
    without_zone,
)
from storage.engines import distribution
from storage.engines.asked_states import AskedStates
from storage.engines.held_users import HeldUsers
from storage.engines.watched_connection import (
    LOOK_SECONDS,
    PATIENT_SECONDS,
    PEER,
    SILENT_SECONDS,
    LongStatement,
    ServerSilent,
    WatchedConnection,
)
from storage.events import outbox

T = TypeVar("T")
Connection = WatchedConnection
Cursor = psycopg.Cursor[tuple[Any, ...]]

WAIT_SECONDS = 2.0  # for a free connection; after that, the client is told to try again later
WAIT_SECONDS_DOWN = 0.1  # the same while no connection can be made, because a waiting caller occupies a thread
CONNECT_SECONDS = 3
STATEMENT_SECONDS = 30  # of a command; requests wait for less (`is_serving`), imports and migrations for longer
LOCK_SECONDS = 10  # how long a migration waits for a table, because everybody else waits behind it
STAGED_ROWS_MAX = 5_000  # that travel as arrays; more go into a temporary table, which adds rows to the catalogue
COPIED_ROWS = 10_000  # in one piece: bounds memory
# What the server does about a session whose other end has died, so that its transaction does not keep a user's row for
# the two hours of the kernel. TCP's limit also counts while we read nothing, so it is longer than ours in `PEER`; a
# transaction may be idle while an import computes between two statements
WHEN_WE_ARE_GONE = {
    "tcp_user_timeout": "10s",
    "tcp_keepalives_idle": "5s",
    "tcp_keepalives_interval": "2s",
    "tcp_keepalives_count": "3",
    "client_connection_check_interval": "5s",
    "idle_in_transaction_session_timeout": f"{PATIENT_SECONDS:.0f}s",
}
# The pid is asked for, because behind a pooler it is not the one that the connection was given at its start
PATIENT = "SELECT set_config('statement_timeout', $1, TRUE), pg_backend_pid() AS pid"
MIGRATION_LOCK = 6_911_320_450_233_417  # an arbitrary number that no other program using the database locks
HOLD = "SELECT id FROM users WHERE id = $1 FOR UPDATE NOWAIT"
HELD_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)  # seconds between looks whether a user is held; the last for ever
# Also by the clock: a user who is removed and added again must not get an earlier state
NEXT_STATE = (
    "UPDATE users SET state = greatest(state + 1, (extract(epoch FROM statement_timestamp()) * 1000000)::BIGINT)"
    " WHERE id = $1 RETURNING state"
)
SNAPSHOT = psycopg.IsolationLevel.REPEATABLE_READ
EACH_ALONE = psycopg.IsolationLevel.READ_COMMITTED
# Not set_config(), which does not reach the machines of a cluster. Plain PostgreSQL takes the first for a custom
# setting
ACT_FOR = "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL app.user_id = "
# A cluster copies such rows to its machines with COPY, which policies refuse, unless rows are returned
COPIED_TO_MACHINES = re.compile(r"INSERT INTO (?!.*\b(?:RETURNING|ON CONFLICT)\b).*\bSELECT\b", re.DOTALL)
TABLE_IN_USE = (
    f"The tables cannot be brought up to date: one has been in use for {LOCK_SECONDS} seconds, which pg_stat_activity"
    " tells of. Nothing has been changed; start again when that is over."
)
MAY_NOT = (
    "The role of BANKDATA_DATABASE_URL must own its tables and be allowed to make more. A superuser says in this"
    " database: GRANT ALL ON SCHEMA public TO role; ALTER ROLE role SET search_path = public."
)
NOT_BEHIND_A_POOLER = (
    "Indexes cannot be built behind a pooler. Run `bankdata build-indexes` with BANKDATA_DATABASE_URL set to the"
    " address of PostgreSQL itself and BANKDATA_DATABASE_PREPARE to on."
)
WRITABLE = "read-write"  # connect to the primary, not to a standby, among several hosts or behind one address
IN_BYTE_ORDER = "SELECT string_agg(letter, '' ORDER BY letter) FROM (VALUES ('a'), ('Z'), ('ä'), ('_')) AS said(letter)"
GONE = re.compile("08|57|53300")  # first digits of SQLSTATEs: no connection, shut down, no slot
DEAD = "57P"  # the server ends this connection; a connection may also end without a message
OF_A_HOST = re.compile(r"- host: .*?, hostaddr: \S+: (.*)")  # how psycopg reports each of several hosts

log = logging.getLogger("bankdata.store")
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # the pool logs each attempt to connect; we log the first


class _ConnectionDead(StoreUnavailable):
    """The connection was lost at once, without a wait; another connection may work."""


class PostgreSQL:
    """One database on a PostgreSQL server (`storage.database.Store`)."""

    is_shared = True
    path = None

    def __init__(
        self,
        url: str,
        *,
        now: Now = utc_now,
        app_url: str = "",
        connections_max: int = 10,
        prepare: bool = True,
        is_serving: bool = False,
    ) -> None:
        """Connect. Raises StoreUnavailable, and StoreError for a database that does not sort texts by their bytes.

        `prepare` has to be off behind a pooler that gives each transaction another connection. `app_url` is the same
        database for a role that sees rows of one user at a time (`storage.engines.second_wall`). With `is_serving`,
        somebody waits for each answer, so a silent server is given up soon. `now` gives the time of events at each
        commit.
        """
        self._now = now
        self._held_users = HeldUsers(is_patient=not is_serving)
        self._url, self._prepare = url, prepare
        self._patience = SILENT_SECONDS if is_serving else PATIENT_SECONDS
        self._is_down = threading.Event()
        self._saying = threading.Lock()
        self._is_opened = self._is_away = False
        self._gone_at = -math.inf
        self.losses = 0
        self._pool = self._open_pool(url, connections_max, prepare)
        self._app_pool = self._open_pool(app_url, connections_max, prepare) if app_url else None
        self._asked_states: AskedStates | None = None
        with undo_on_failure(self.close):
            _check(self.for_everybody(), url, prepare=prepare)
            if app_url:
                _check(self.of(NOBODY), app_url, prepare=prepare)
            # Not behind a pooler, which may give each question another connection; and of many machines one that is
            # away would keep the answers of the others waiting
            if prepare and not distribution.is_distributed(self.for_everybody()):
                self._asked_states = AskedStates(
                    lambda: WatchedConnection.connect(url, **_arguments(url, prepare=True)), on_silence=self._drain
                )
        self._is_opened = True

    def _open_pool(self, url: str, connections_max: int, prepare: bool) -> ConnectionPool[Connection]:
        return ConnectionPool(
            url,
            min_size=1,
            max_size=connections_max,
            timeout=WAIT_SECONDS,
            reconnect_timeout=WAIT_SECONDS_DOWN,  # the next caller tries again
            reconnect_failed=lambda _pool: self._note_unreachable(url, prepare=prepare),
            connection_class=WatchedConnection,
            configure=None if prepare else _set_utc,
            kwargs=_arguments(url, prepare=prepare),
            open=True,
        )

    def close(self) -> None:
        """Close all connections."""
        if self._asked_states is not None:
            self._asked_states.close()
        for pool in self._pools:
            pool.close()

    @property
    def _pools(self) -> list[ConnectionPool[Connection]]:
        return [pool for pool in (self._pool, self._app_pool) if pool is not None]

    @property
    def bytes(self) -> int:
        """The size of the database in bytes; of a distributed one, the size on this node."""
        return int(self.for_everybody().rows("SELECT pg_database_size(current_database()) AS size")[0]["size"])

    @property
    def waiting(self) -> int:
        """The number of callers that wait for a connection."""
        return sum(pool.get_stats()["requests_waiting"] for pool in self._pools)

    def state(self, user_id: str) -> int:
        """The state of the user's data, 0 for nobody; always read from the database, because other processes change it,
        too."""
        return state_in(self.of(user_id), user_id)

    async def state_without_thread(self, user_id: str) -> int | None:
        """The state of the user's data, read without a thread; None behind a pooler, on a cluster, and where it fails
        for any reason."""
        return await self._asked_states.of(user_id) if self._asked_states is not None else None

    def of(self, user_id: str) -> Database:
        """The store for this user: with a second wall, rows of other users are invisible; without one, this is the
        store for everybody."""
        return (
            _ServerDatabase(self._connection, self._app_pool, self._now, self._held_users, user_id)
            if self._app_pool is not None
            else self.for_everybody()
        )

    def for_everybody(self) -> Database:
        """The store for no user in particular, as the owner of the tables."""
        return _ServerDatabase(self._connection, self._pool, self._now, self._held_users)

    @contextmanager
    def migrating(self) -> Iterator[Transaction]:
        """A transaction that changes the schema; only one runs at a time, however many processes start.

        Each statement has a snapshot of its own, so that it sees what the migration before has left. Statements may
        take as long as they need, but wait only LOCK_SECONDS for a table in use.
        """
        try:
            everybody = _ServerDatabase(self._connection, self._pool, self._now, self._held_users)
            with everybody.transaction(EACH_ALONE) as session:
                session.wait_for_long()
                session.rows("SELECT pg_advisory_xact_lock($1) AS locked", MIGRATION_LOCK)
                session.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
                yield session
        except errors.LockNotAvailable as error:
            raise StoreUnavailable(TABLE_IN_USE) from error

    @contextmanager
    def apart(self) -> Iterator[Session]:
        """A session of single statements on a connection outside the pool, closed at the end. Raises StoreError behind
        a pooler, where its settings would reach others."""
        if not self._prepare:
            raise StoreError(NOT_BEHIND_A_POOLER)
        try:
            arguments = _arguments(self._url, prepare=True)
            with _translate_errors(), closing(WatchedConnection.connect(self._url, **arguments)) as own:
                _Statements(own, self._now).wait_for_long()
                own.execute(b"SET statement_timeout = 0")
                own.execute(f"SET lock_timeout = {PATIENT_SECONDS * 1000:.0f}".encode())
                yield _Statements(own, self._now)
        except errors.LockNotAvailable as error:
            raise StoreUnavailable(f"A transaction has been open for {PATIENT_SECONDS:g} seconds.") from error

    @contextmanager
    def reading(self, user_id: str) -> Iterator[tuple[Transaction, Callable[[int], None]]]:
        """A transaction of the user, and a function that ignores the state, because this engine keeps no states in
        memory."""
        with self.of(user_id).transaction() as session:
            yield session, lambda _state: None

    def copy_to(self, path: Path) -> None:  # noqa: ARG002 - what a Store is asked
        """Always raises StoreError: PostgreSQL has tools of its own for backups."""
        raise StoreError("A PostgreSQL store is backed up with its own tools: pg_dump -Fc, or a base backup with WAL.")

    @contextmanager
    def _connection(self, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        with _translate_errors():
            connection = pool.getconn(WAIT_SECONDS_DOWN if self._is_down.is_set() else None)
            self._is_down.clear()
            connection.patience, connection.awaited = self._patience, None
            try:
                yield connection
                with suppress(psycopg.Error):  # the caller's work is done, whatever becomes of its connection now
                    if connection.opened_at > self._gone_at and not (self._is_away and _is_read_only(connection)):
                        self._say(is_away=False, words="back")
            except psycopg.Error as error:
                if not _is_connection_lost(connection, error):
                    raise
                self._note_loss(connection, error)
                if isinstance(error, ServerSilent | errors.QueryCanceled):
                    raise
                raise _ConnectionDead(StoreUnavailable.__doc__) from error
            finally:
                pool.putconn(connection)

    def _note_loss(self, connection: Connection, error: psycopg.Error) -> None:
        """Note and log that a connection is dead or read-only; others of the same age most likely are too, so the pools
        are emptied."""
        if connection.opened_at <= self._gone_at:
            return
        self._gone_at = time.monotonic()
        self._is_down.set()
        self._drain()
        if self._asked_states is not None:
            self._asked_states.give_up()
        self._say(is_away=True, words=f"away: {_first_line(error)}")

    def _note_unreachable(self, url: str, *, prepare: bool) -> None:
        """Note that no connection can be made, and log the reason once."""
        self._is_down.set()
        if self._is_opened and not self._is_away and (reason := _refusal(url, prepare=prepare)):
            self._say(is_away=True, words=f"away: {reason}")

    def _say(self, *, is_away: bool, words: str) -> None:
        """Log that the database is away or back: once, however many threads notice it."""
        with self._saying:
            if is_away == self._is_away:
                return
            self._is_away = is_away
        log.warning("the database is %s", words)

    def _drain(self) -> None:
        self.losses += 1
        for pool in self._pools:
            pool.drain()


@dataclass(eq=False)
class _ServerDatabase(Database):
    """Queries to the database (`storage.database.Database`): as the owner of the tables, who sees all rows, or for one
    user, through the pool of a role that sees only that user's rows."""

    is_shared: ClassVar = True

    _connection: Callable[[ConnectionPool[Connection]], AbstractContextManager[Connection]]
    _pool: ConnectionPool[Connection]
    _now: Now
    _held_users: HeldUsers
    _user_id: str | None = None

    def atomically(self, work: Callable[[Transaction], T]) -> T:
        """The same for this engine. Waits for a user whom another transaction holds without a connection, which others
        need meanwhile."""
        try:
            return super().atomically(work)
        except UserBusy as busy:
            user_id = busy.user_id
        pauses = chain(HELD_PAUSES, repeat(HELD_PAUSES[-1]))
        with self._held_users.waiting(user_id) as until:
            while True:
                time.sleep(next(pauses) * (0.5 + random()))  # noqa: S311 - no secret; it parts those who wait
                try:
                    return super().atomically(work)
                except UserBusy:
                    if time.monotonic() >= until:
                        raise

    @contextmanager
    def transaction(self, isolation: psycopg.IsolationLevel = SNAPSHOT) -> Iterator["_Statements"]:
        """Open a transaction: all or nothing, in one snapshot. Raises Conflict when another transaction was faster."""
        with self._connection(self._pool) as connection:
            connection.isolation_level = isolation
            with connection.transaction():
                if self._user_id is not None:  # only until the end of the transaction: others use the connection next
                    said = Literal(_as_stored(self._user_id)).as_string(connection)
                    connection.execute(f"{ACT_FOR}{said}".encode(), prepare=False)
                session = _Statements(connection, self._now, sees_all=self._user_id is None)
                yield session
                session.settle()

    def run_alone(self, sql: str, work: Callable[[Session], T]) -> T:
        """Run a single statement. A SELECT is tried once more when its connection turns out to be dead."""
        try:
            with self._session() as session:
                return work(session)
        except _ConnectionDead:
            if not sql.startswith("SELECT"):
                raise
        with self._session() as session:
            return work(session)

    @contextmanager
    def _session(self) -> Iterator["_Statements"]:
        """A session for a single statement; for one user it is a transaction, because the user is set for a transaction
        only."""
        if self._user_id is not None:
            with self.transaction(EACH_ALONE) as session:
                yield session
            return
        with self._connection(self._pool) as connection:
            yield _Statements(connection, self._now)


class _Statements:
    """A session on one connection; outside a transaction, each statement is committed by itself. `sees_all` is False
    for a session that sees only the rows of one user."""

    is_shared = True

    def __init__(self, connection: Connection, now: Now = utc_now, *, sees_all: bool = True) -> None:
        self._now = now
        self._connection = connection
        self._sees_all = sees_all
        self._staged: dict[str, tuple[str, Sequence[list[Any]]]] = {}
        self._held: set[str] = set()
        self._changed: dict[str, int] = {}

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
                self.rows(HOLD, user_id)
            except errors.LockNotAvailable as error:
                raise UserBusy(user_id) from error
            self._held.add(user_id)

    def settle(self) -> None:
        """Finish a transaction that is about to be committed: record changed accounts and events of the users it
        changed."""
        for user_id, state in self._changed.items():
            balances = account_states.settle(self, user_id, state)
            outbox.settle(self, user_id, state, self._now(), balances)

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
        values = [_as_stored(value) for value in parameters]
        for name, (fragment, columns) in self._staged.items():
            place = re.compile(rf"\b(FROM|JOIN) {name}\b")
            if place.search(sql):
                numbers = range(len(values) + 1, len(values) + len(columns) + 1)
                sql = place.sub(rf"\1 {fragment.format(*numbers)}", sql)
                values += columns
        return (cursor or self._connection.cursor(binary=True)).execute(sql.encode(), values or None)


def _check(asked: Session, url: str, *, prepare: bool) -> None:
    try:
        encoding = asked.rows("SHOW server_encoding")[0]["server_encoding"]
        order = asked.rows(IN_BYTE_ORDER)[0]["string_agg"]
    except StoreUnavailable as error:
        reason = _refusal(url, prepare=prepare) or _first_line(error.__cause__ or error)
        raise StoreUnavailable(f"The database at {_without_secrets(url)} cannot be used: {reason}") from error
    if (encoding, order) != ("UTF8", "Z_aä"):
        raise StoreError(
            "The database keeps its texts in another order than that of their bytes. Make one with CREATE DATABASE"
            " bankdata TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'."
        )


def _arguments(url: str, *, prepare: bool) -> dict[str, Any]:
    """The arguments of psycopg for every connection to this database, except those that its URL sets itself."""
    given = conninfo_to_dict(url)
    wanted = {"connect_timeout": CONNECT_SECONDS, "target_session_attrs": WRITABLE, **PEER}
    settings = {"timezone": "UTC", "statement_timeout": f"{STATEMENT_SECONDS}s", **WHEN_WE_ARE_GONE}
    options = " ".join([*(f"-c {name}={value}" for name, value in settings.items()), str(given.get("options") or "")])
    return {
        "autocommit": True,
        "cursor_factory": psycopg.RawCursor,
        "prepare_threshold": 5 if prepare else None,
        **{name: value for name, value in wanted.items() if name not in given},
        **({"options": options.rstrip()} if prepare else {}),  # poolers refuse these, too
    }


def _set_utc(connection: Connection) -> None:
    """Set the time zone through a pooler, which repeats it on each connection that it gives. It would not repeat a
    statement timeout, so behind a pooler only the connection's own patience limits statements."""
    connection.execute(b"SET timezone = 'UTC'", prepare=False)


def _refusal(url: str, *, prepare: bool) -> str:
    """Try to connect, and return the reason why that fails, which a pool does not say; empty where it succeeds."""
    reason = ""
    try:
        with closing(WatchedConnection.connect(url, **_arguments(url, prepare=prepare))) as connection:
            connection.patience = CONNECT_SECONDS
            connection.execute(b"SELECT 1")  # a pooler accepts connections even when it has no server
    except psycopg.Error as error:
        reason = "; ".join(OF_A_HOST.findall(str(error))) or _first_line(error)
    return reason


def _as_stored(value: Any) -> Any:
    """The value as PostgreSQL stores it: texts without U+0000, moments in UTC without a zone."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_as_stored(each) for each in value]
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


def _is_connection_lost(connection: Connection, error: psycopg.Error) -> bool:
    """Whether the connection, or the server behind it, has failed or takes no writes any more, and not just a statement
    has failed."""
    return (
        connection.closed
        or (isinstance(error, psycopg.OperationalError) and (error.sqlstate or DEAD).startswith(DEAD))
        or isinstance(error, errors.ReadOnlySqlTransaction)
    )


def _is_read_only(connection: Connection) -> bool:
    """Whether nothing can be written, as the server itself says: a pooler does not pass on what changes."""
    return connection.execute(b"SHOW transaction_read_only", prepare=False).fetchone() == ("on",)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except (errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise Conflict(_first_line(error)) from error
    except psycopg.IntegrityError as error:
        raise ConstraintViolated(_first_line(error)) from error
    except (errors.InsufficientPrivilege, errors.InvalidSchemaName) as error:
        raise StoreError(f"The database refuses: {_first_line(error)}. {MAY_NOT}") from error
    except errors.DiskFull as error:
        raise store_full() from error
    except errors.IoError as error:
        raise disk_failed(error) from error
    except psycopg.OperationalError as error:  # a timeout of the pool is one, too
        if error.sqlstate is None or GONE.match(error.sqlstate):
            raise StoreUnavailable(StoreUnavailable.__doc__) from error
        raise


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
