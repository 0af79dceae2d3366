"""The PostgreSQL engine for several processes and machines: a pool of connections, and one snapshot per transaction."""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from random import random
from typing import ClassVar, TypeVar

import psycopg
from psycopg import errors
from psycopg.sql import Literal
from psycopg_pool import ConnectionPool

from storage.boundary import undo_on_failure
from storage.database import (
    NOBODY,
    Database,
    Now,
    Session,
    StoreError,
    StoreUnavailable,
    Transaction,
    UserBusy,
    state_in,
    utc_now,
)
from storage.engines import distribution
from storage.engines.asked_states import AskedStates
from storage.engines.held_users import HeldUsers
from storage.engines.postgresql_connections import (
    arguments_of,
    check,
    first_line,
    is_connection_lost,
    is_read_only,
    refusal,
    set_utc,
    translate_errors,
)
from storage.engines.postgresql_session import Statements, as_stored
from storage.engines.watched_connection import (
    PATIENT_SECONDS,
    SILENT_SECONDS,
    ServerSilent,
    WatchedConnection,
)

T = TypeVar("T")
Connection = WatchedConnection

WAIT_SECONDS = 2.0  # for a free connection; after that, the client is told to try again later
WAIT_SECONDS_DOWN = 0.1  # the same while no connection can be made, because a waiting caller occupies a thread
LOCK_SECONDS = 10  # how long a migration waits for a table, because everybody else waits behind it
MIGRATION_LOCK = 6_911_320_450_233_417  # an arbitrary number that no other program using the database locks
HELD_PAUSES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)  # seconds between looks whether a user is held; the last for ever
SNAPSHOT = psycopg.IsolationLevel.REPEATABLE_READ
EACH_ALONE = psycopg.IsolationLevel.READ_COMMITTED
# Not set_config(), which does not reach the machines of a cluster. Plain PostgreSQL takes the first for a custom
# setting
ACT_FOR = "SET LOCAL citus.propagate_set_commands = 'local'; SET LOCAL app.user_id = "
TABLE_IN_USE = (
    f"The tables cannot be brought up to date: one has been in use for {LOCK_SECONDS} seconds, which pg_stat_activity"
    " tells of. Nothing has been changed; start again when that is over."
)
NOT_BEHIND_A_POOLER = (
    "Indexes cannot be built behind a pooler. Run `bankdata build-indexes` with BANKDATA_DATABASE_URL set to the"
    " address of PostgreSQL itself and BANKDATA_DATABASE_PREPARE to on."
)

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
            check(self.for_everybody(), url, prepare=prepare)
            if app_url:
                check(self.of(NOBODY), app_url, prepare=prepare)
            # Not behind a pooler, which may give each question another connection; and of many machines one that is
            # away would keep the answers of the others waiting
            if prepare and not distribution.is_distributed(self.for_everybody()):
                self._asked_states = AskedStates(
                    lambda: WatchedConnection.connect(url, **arguments_of(url, prepare=True)), on_silence=self._drain
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
            configure=None if prepare else set_utc,
            kwargs=arguments_of(url, prepare=prepare),
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
            arguments = arguments_of(self._url, prepare=True)
            with translate_errors(), closing(WatchedConnection.connect(self._url, **arguments)) as own:
                Statements(own, self._now).wait_for_long()
                own.execute(b"SET statement_timeout = 0")
                own.execute(f"SET lock_timeout = {PATIENT_SECONDS * 1000:.0f}".encode())
                yield Statements(own, self._now)
        except errors.LockNotAvailable as error:
            raise StoreUnavailable(f"A transaction has been open for {PATIENT_SECONDS:g} seconds.") from error

    @contextmanager
    def reading(
        self, user_id: str, *, in_one_statement: bool = False
    ) -> Iterator[tuple[Session, Callable[[int], None]]]:
        """A transaction of the user, and a function that ignores the state, because this engine keeps no states in
        memory."""
        database = self.of(user_id)
        with nullcontext(database) if in_one_statement else database.transaction() as session:
            yield session, lambda _state: None

    def copy_to(self, path: Path) -> None:  # noqa: ARG002 - what a Store is asked
        """Always raises StoreError: PostgreSQL has tools of its own for backups."""
        raise StoreError("A PostgreSQL store is backed up with its own tools: pg_dump -Fc, or a base backup with WAL.")

    @contextmanager
    def _connection(self, pool: ConnectionPool[Connection]) -> Iterator[Connection]:
        with translate_errors():
            connection = pool.getconn(WAIT_SECONDS_DOWN if self._is_down.is_set() else None)
            self._is_down.clear()
            connection.patience, connection.awaited = self._patience, None
            try:
                yield connection
                with suppress(psycopg.Error):  # the caller's work is done, whatever becomes of its connection now
                    if connection.opened_at > self._gone_at and not (self._is_away and is_read_only(connection)):
                        self._say(is_away=False, words="back")
            except psycopg.Error as error:
                if not is_connection_lost(connection, error):
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
        self._say(is_away=True, words=f"away: {first_line(error)}")

    def _note_unreachable(self, url: str, *, prepare: bool) -> None:
        """Note that no connection can be made, and log the reason once."""
        self._is_down.set()
        if self._is_opened and not self._is_away and (reason := refusal(url, prepare=prepare)):
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
    def transaction(self, isolation: psycopg.IsolationLevel = SNAPSHOT) -> Iterator["Statements"]:
        """Open a transaction: all or nothing, in one snapshot. Raises Conflict when another transaction was faster."""
        with self._connection(self._pool) as connection:
            connection.isolation_level = isolation
            with connection.transaction():
                if self._user_id is not None:  # only until the end of the transaction: others use the connection next
                    said = Literal(as_stored(self._user_id)).as_string(connection)
                    connection.execute(f"{ACT_FOR}{said}".encode(), prepare=False)
                session = Statements(connection, self._now, sees_all=self._user_id is None)
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
    def _session(self) -> Iterator["Statements"]:
        """A session for a single statement; for one user it is a transaction, because the user is set for a transaction
        only."""
        if self._user_id is not None:
            with self.transaction(EACH_ALONE) as session:
                yield session
            return
        with self._connection(self._pool) as connection:
            yield Statements(connection, self._now)
