"""PostgreSQL under the store, for several processes and machines: a pool of connections, and one snapshot for each
transaction."""

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from secrets import randbits
from typing import Any, TypeVar
from urllib.parse import urlsplit

import polars as pl
import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import Literal
from psycopg_pool import ConnectionPool, PoolTimeout

from storage.database import (
    ACTING_FOR,
    Conflict,
    ConstraintViolated,
    Row,
    StoreError,
    StoreFull,
    StoreUnavailable,
    Transaction,
    acting_for,
    state_in,
    tried_again,
)
from storage.engines import distribution
from storage.engines.asked_states import AskedStates
from storage.engines.dialect import POSTGRESQL

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

WAIT_SECONDS = 2.0  # for a connection; then the request is told to come again
WAIT_SECONDS_DOWN = 0.1  # the same while no connection can be made: who waits keeps a thread from others
CONNECT_SECONDS = 3
STATEMENT_SECONDS = 30  # of a request; imports take their time (storage.engines.dialect)
STAGED_ROWS_MAX = 5_000  # that travel as arrays; more go into a temporary table, which costs rows of the catalogue
COPIED_ROWS = 10_000  # in one piece: bounds memory
MIGRATION_LOCK = 6_911_320_450_233_417  # of all programs that use the database only this one asks for this number
SNAPSHOT = psycopg.IsolationLevel.REPEATABLE_READ
EACH_ALONE = psycopg.IsolationLevel.READ_COMMITTED
# Not set_config(): that does not reach the machines of a cluster. PostgreSQL alone takes the first for a word of ours
ACT_FOR = "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL app.user_id = "
# A cluster copies such rows to its machines unless they are asked for back, and COPY is what policies refuse
COPIED_TO_MACHINES = re.compile(r"INSERT INTO (?!.*\b(?:RETURNING|ON CONFLICT)\b).*\bSELECT\b", re.DOTALL)
IN_BYTE_ORDER = "SELECT string_agg(letter, '' ORDER BY letter) FROM (VALUES ('a'), ('Z'), ('ä'), ('_')) AS said(letter)"
GONE = re.compile("08|57|53300|25006")  # beginnings of SQLSTATEs: no connection, shut down, no slot, a standby
DEAD = "57P"  # the server ends this connection; it may also end without a word


class _ConnectionDead(StoreUnavailable):
    """The connection has ended; the next one may be as good as ever."""


class PostgreSQL:
    """One database on a server (`storage.database.Database`)."""

    dialect = POSTGRESQL
    path = None

    def __init__(self, url: str, *, app_url: str = "", connections_max: int = 10, prepare: bool = True) -> None:
        """Connect; raises StoreUnavailable, and StoreError for a database whose texts are not in the order of their
        bytes. `prepare` has to be off behind a pooler that gives each transaction another connection. `app_url` is
        the same database for a role that sees rows of one user at a time (`storage.engines.second_wall`)."""
        self._is_down = threading.Event()
        self._pool = self._connected(url, connections_max, prepare)
        self._app_pool = self._connected(app_url, connections_max, prepare) if app_url else None
        self._asked_states: AskedStates | None = None
        try:
            for each, whose in ((url, None), (app_url, "")):
                if each:
                    with acting_for(whose):
                        self._check(each)
            # Not behind a pooler, which may give each question another connection; and of many machines one that is
            # away would keep the answers of the others waiting
            if prepare and not distribution.is_distributed(self):
                self._asked_states = AskedStates(lambda: psycopg.connect(url, **_arguments(url, prepare=True)))
        except BaseException:
            self.close()
            raise

    def _connected(self, url: str, connections_max: int, prepare: bool) -> ConnectionPool[Connection]:
        return ConnectionPool(
            url,
            min_size=1,
            max_size=connections_max,
            timeout=WAIT_SECONDS,
            reconnect_timeout=WAIT_SECONDS_DOWN,  # whoever asks next tries again
            reconnect_failed=lambda _pool: self._is_down.set(),
            kwargs=_arguments(url, prepare=prepare),
            open=True,
        )

    def _check(self, url: str) -> None:
        try:
            encoding = self.rows("SHOW server_encoding")[0]["server_encoding"]
            order = self.rows(IN_BYTE_ORDER)[0]["string_agg"]
        except StoreUnavailable as error:
            reason = _first_line(error.__cause__ or error)
            raise StoreUnavailable(f"The database at {_without_secrets(url)} cannot be used: {reason}") from error
        if (encoding, order) != ("UTF8", "Z_aä"):
            raise StoreError(
                "The database keeps its texts in another order than that of their bytes. Make one with CREATE DATABASE"
                " bankdata TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'."
            )

    def close(self) -> None:
        """Let go of all connections."""
        if self._asked_states is not None:
            self._asked_states.close()
        for pool in self._pools:
            pool.close()

    @property
    def _pools(self) -> list[ConnectionPool[Connection]]:
        return [pool for pool in (self._pool, self._app_pool) if pool is not None]

    @property
    def bytes(self) -> int:
        """The size of the database; on a distributed one that of this node."""
        return int(self.rows("SELECT pg_database_size(current_database()) AS size")[0]["size"])

    def state(self, user_id: str) -> int:
        """The state of the user's data; 0 for nobody. Another process may have changed it, so the store says."""
        return state_in(self, user_id)

    async def known_state(self, user_id: str) -> int | None:
        """The same, asked without a thread; None where that does not work, for whatever reason."""
        return await self._asked_states.of(user_id) if self._asked_states is not None else None

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        return self._alone(sql, lambda session: session.rows(sql, *parameters))

    def execute(self, sql: str, *parameters: Any) -> int:
        return self._alone(sql, lambda session: session.execute(sql, *parameters))

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        return self._alone(sql, lambda session: session.frame(sql, *parameters, schema=schema))

    def append(self, table: str, frame: pl.DataFrame) -> None:
        self._alone("COPY", lambda session: session.append(table, frame))

    def changes(self, user_id: str) -> None:
        self._alone("UPDATE", lambda session: session.changes(user_id))

    def transaction(self) -> AbstractContextManager[Transaction]:
        """All or nothing, in one snapshot; raises Conflict when another transaction was first."""
        return self._transaction(SNAPSHOT)

    @contextmanager
    def migrating(self) -> Iterator[Transaction]:
        """A transaction that changes the schema, one at a time however many processes start. What it reads is what the
        one before has left, so each of its statements sees a snapshot of its own."""
        with self._transaction(EACH_ALONE) as session:
            session.rows("SELECT pg_advisory_xact_lock($1) AS locked", MIGRATION_LOCK)
            yield session

    @contextmanager
    def reading(
        self,
        user_id: str,  # noqa: ARG002 - what a Database is asked
    ) -> Iterator[tuple[Transaction, Callable[[int], None]]]:
        """A transaction; nothing is remembered of states."""
        with self.transaction() as session:
            yield session, lambda _state: None

    def atomically(self, work: Callable[[Transaction], T]) -> T:
        """The result of `work` inside a transaction, tried again when another one was first."""
        return tried_again(self.transaction, work)

    def copy_to(self, path: Path) -> None:  # noqa: ARG002 - what a Database is asked
        """PostgreSQL has its own tools for this."""
        raise StoreError("A PostgreSQL store is backed up with its own tools: pg_dump -Fc, or a base backup with WAL.")

    def _alone(self, sql: str, work: Callable[["_Statements"], T]) -> T:
        """A statement on its own. A reading one is tried once more when its connection turns out to be dead."""
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
        """For a statement on its own: a transaction too, where it has to be said for whom."""
        pool, user_id = self._for_whom()
        if user_id is not None:
            with self._transaction(EACH_ALONE) as session:
                yield session
            return
        with self._connection(pool) as connection:
            yield _Statements(connection)

    @contextmanager
    def _transaction(self, isolation: psycopg.IsolationLevel) -> Iterator["_Statements"]:
        pool, user_id = self._for_whom()
        with self._connection(pool) as connection:
            connection.isolation_level = isolation
            with connection.transaction():
                if user_id is not None:  # until the end of the transaction: the connection keeps nothing of it
                    connection.execute(f"{ACT_FOR}{Literal(user_id).as_string(connection)}".encode(), prepare=False)
                yield _Statements(connection, sees_all=user_id is None)

    def _for_whom(self) -> tuple[ConnectionPool[Connection], str | None]:
        """Where the next statements are asked, and the one user whose rows they see; None: those of everybody."""
        user_id = ACTING_FOR.get()
        if self._app_pool is None or user_id is None:
            return self._pool, None
        return self._app_pool, user_id

    @contextmanager
    def _connection(self, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        with _translated(self._dead):
            connection = pool.getconn(WAIT_SECONDS_DOWN if self._is_down.is_set() else None)
            self._is_down.clear()
            try:
                yield connection
            finally:
                pool.putconn(connection)

    def _dead(self) -> None:
        """A connection is dead: the others have most likely died with it."""
        self._is_down.set()
        for pool in self._pools:
            pool.drain()


class _Statements:
    """A session on one connection; alone, each statement is committed by itself. It `sees_all` rows, or those of one
    user."""

    dialect = POSTGRESQL

    def __init__(self, connection: Connection, *, sees_all: bool = True) -> None:
        self._connection = connection
        self._sees_all = sees_all
        self._staged: dict[str, tuple[str, Sequence[list[Any]]]] = {}
        self._changed: set[str] = set()

    def rows(self, sql: str, *parameters: Any) -> list[Row]:
        cursor = self._run(sql, parameters)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in (cursor.fetchall() if names else ())]

    def execute(self, sql: str, *parameters: Any) -> int:
        return max(self._run(sql, parameters).rowcount, 0)

    def frame(self, sql: str, *parameters: Any, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        cursor = self._run(sql, parameters)
        names = [column.name for column in cursor.description or ()]
        columns = list(zip(*cursor.fetchall(), strict=True)) or [()] * len(names)
        found = dict(zip(names, columns, strict=True))
        return pl.DataFrame([pl.Series(name, found[name], dtype=dtype) for name, dtype in schema.items()])

    def append(self, table: str, frame: pl.DataFrame) -> None:
        if frame.is_empty():
            return
        if self._sees_all:
            self._copy(table, frame)
            return
        columns = ", ".join(frame.columns)
        with self.staged("appended", frame):  # PostgreSQL refuses COPY into a table of which not all rows may be seen
            self.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM appended")

    def _copy(self, table: str, frame: pl.DataFrame) -> None:
        # An empty text is quoted and a null is not, by which COPY tells them apart
        with self._connection.cursor().copy(
            f"COPY {table} ({', '.join(frame.columns)}) FROM STDIN (FORMAT csv)".encode()
        ) as copy:
            for piece in frame.iter_slices(COPIED_ROWS):
                copy.write(piece.write_csv(include_header=False, quote_style="non_numeric"))

    def hold(self, user_id: str) -> None:
        self.execute("SET LOCAL statement_timeout = 0")  # an import's statements take the time they take
        self.rows("SELECT id FROM users WHERE id = $1 FOR UPDATE", user_id)

    def changes(self, user_id: str) -> None:
        if user_id not in self._changed:
            self._changed.add(user_id)
            # Not the next number: a user who is removed and comes back must not have a state of before
            self.execute("UPDATE users SET state = $2 WHERE id = $1", user_id, randbits(62))

    @contextmanager
    def staged(self, name: str, frame: pl.DataFrame) -> Iterator[None]:
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
            with suppress(psycopg.Error):  # of a transaction that has failed: it drops the table itself
                self.execute(f"DROP TABLE {name}")

    def _run(self, sql: str, parameters: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        if not self._sees_all and COPIED_TO_MACHINES.match(sql):
            sql = f"{sql} RETURNING 1"
        values = [_kept(value) for value in parameters]
        for name, (fragment, columns) in self._staged.items():
            place = re.compile(rf"\b(FROM|JOIN) {name}\b")
            if place.search(sql):
                numbers = range(len(values) + 1, len(values) + len(columns) + 1)
                sql = place.sub(rf"\1 {fragment.format(*numbers)}", sql)
                values += columns
        return self._connection.execute(sql.encode(), values or None, binary=True)


def _arguments(url: str, *, prepare: bool) -> dict[str, Any]:
    """Of every connection to this database."""
    given = conninfo_to_dict(url).get("options") or ""
    options = f"-c timezone=UTC -c statement_timeout={STATEMENT_SECONDS}s {given}".rstrip()
    return {
        "autocommit": True,
        "cursor_factory": psycopg.RawCursor,
        "prepare_threshold": 5 if prepare else None,
        "connect_timeout": CONNECT_SECONDS,
        **({"options": options} if prepare else {}),  # poolers refuse options, too
    }


def _kept(value: Any) -> Any:
    """What can be compared with texts that PostgreSQL keeps: it knows no U+0000."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [_kept(each) for each in value]
    return value


def _type_of(dtype: pl.DataType) -> str:
    """The column type that keeps values of this type exactly."""
    if isinstance(dtype, pl.Decimal):
        return f"NUMERIC({dtype.precision}, {dtype.scale})"
    if dtype.is_integer():
        return "BIGINT"
    return {pl.String: "TEXT", pl.Date: "DATE", pl.Boolean: "BOOLEAN", pl.Datetime: "TIMESTAMP"}[dtype.base_type()]


@contextmanager
def _translated(dead: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except (errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise Conflict(_first_line(error)) from error
    except psycopg.IntegrityError as error:
        raise ConstraintViolated(_first_line(error)) from error
    except errors.DiskFull as error:
        raise StoreFull(StoreFull.__doc__) from error
    except psycopg.OperationalError as error:  # a timeout of the pool is one, too
        if not isinstance(error, PoolTimeout) and (error.sqlstate or DEAD).startswith(DEAD):
            dead()
            raise _ConnectionDead(StoreUnavailable.__doc__) from error
        if error.sqlstate is None or GONE.match(error.sqlstate):
            raise StoreUnavailable(StoreUnavailable.__doc__) from error
        raise


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
