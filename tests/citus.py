"""Stores on a Citus cluster: each a schema of the one database that BANKDATA_TEST_CITUS_URL names, spread over its
workers by `storage.engines.distribution`. Making one takes seconds, so those of tests that are over are emptied and
used again. And which statements ask all machines of such a cluster, which is seen on one PostgreSQL, too."""

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from storage.engines import distribution
from storage.engines.opening import open_database
from storage.migrations import runner
from storage.row_owners import OF_ALL, OF_USERS

CITUS_URL = "BANKDATA_TEST_CITUS_URL"
SHARDS = 4  # two on each of two workers
TASKS = re.compile(r"Task Count: (\d+)")
VOLATILE = re.compile(
    r"^(?:UPDATE|DELETE)\b.*\b(?:clock_timestamp|timeofday|random|gen_random_uuid|nextval)\(", re.DOTALL
)
WATCHED = ("SELECT", "WITH", "UPDATE", "DELETE")
NAMED = re.compile(r"\b(?:FROM|JOIN|UPDATE) ([a-z_]+)")
NOW = datetime(2026, 11, 20, 12, 0, 0)  # noqa: DTZ001 - the store keeps UTC without zone
ASK_ALL = {
    "storage.users.everyone",  # commands about everybody
    "storage.users.states",  # the look after shared accounts, once for all givers
    "storage.users.paused",  # the scheduler, which waits while a machine is away
    "storage.users._keep_an_operator",  # taking an operator away
    "storage.holdings.holdings",  # the rehearsal of an upgrade
    "storage.migrations.runner._run",
    "storage.users.take_names",  # a migration, and what moves a store
    "storage.jobs.by_status",  # figures
    "storage.jobs.find_unfinished",
    "storage.connections.of_connectors",
    "storage.connections.due",
    "storage.connections.expire_consents",
    "storage.oauth.access_record.work",  # sums of everybody, kept in memory meanwhile
    "storage.oauth.access_record.remove_before",
    "storage.bank_access.connection_secrets._used_key_ids",  # commands about the keys
    "storage.bank_access.connection_secrets.unreadable_connections",
    "storage.holdings.<listcomp>",
    "storage.bank_access.connection_secrets._seal_anew",
    "storage.bank_access.connection_secrets.is_any_kept",  # only where there is no file of keys, before one is made
    "storage.importing.file_imports.forget",  # once a day
    "storage.changes.feed.forget_removed",  # as above
    "storage.events.outbox.forget",  # as above
    "storage.events.consent_notices.record",
    "storage.bank_access.connection_attempts.forget",  # as above
    "storage.notices.stored.forget",  # as above
    "storage.notices.looks.due",  # the scheduler, which waits while a machine is away
    "storage.notices.looks.past_all",  # once in a life of the store
    "storage.notices.ways.deliveries.due",  # the thread that tells, which waits while a machine is away
    "storage.notices.ways.settings.due_digests",  # as above
    "storage.notices.ways.deliveries.past_all",  # once in a life of the store
    "storage.notices.ways.deliveries.forget",  # once a day
    "storage.notices.ways.deliveries.make_due",  # after this machine's clock was set
    "storage.notices.ways.settings.plan_digests_anew",  # as above
    "storage.notices.ways.deliveries.release_all",  # only where there is one process
    "storage.notices.ways.targets.forget",  # once a day
    "storage.notices.ways.targets.owned_elsewhere",  # who enters the code of a browser, and nobody else
    "storage.users.operators",  # once an hour
    "storage.jobs.forget_impossible_pauses",  # at a start, which goes on where a machine is away
    "storage.jobs.release_all",  # only where there is one process
    "storage.webhooks.deliveries.make_due",  # after this machine's clock was set
    "storage.webhooks.deliveries.release_all",  # as above
    "storage.webhooks.deliveries.forget",  # once a day
    "storage.webhooks.deliveries.due",  # the thread that tells, which waits while a machine is away
}
"""The functions whose statements ask every machine; but for a browser that changes its person, none serves a
request where the file of keys is there."""


class Citus:
    """The stores of one run of tests."""

    def __init__(self, url: str) -> None:
        self.address = url
        self._names: dict[Path, str] = {}
        self._free: list[str] = []
        self._made: list[str] = []

    def url(self, file: Path) -> str:
        """Of the store of this name, empty at first."""
        if file not in self._names:
            self._names[file] = self._emptied(self._free.pop()) if self._free else self._new()
        return self._url_of(self._names[file])

    def copy(self, source: Path, target: Path) -> None:
        """One more store with the same rows."""
        self.url(target)
        before, after = self._names[source], self._names[target]
        for table in (*OF_USERS, *OF_ALL):
            columns = ", ".join(
                row[0]
                for row in self._sql(
                    "SELECT column_name FROM information_schema.columns"
                    f" WHERE table_schema = '{before}' AND table_name = '{table}'"
                )
            )
            if table != "schema_version":
                self._sql(f"INSERT INTO {after}.{table} ({columns}) SELECT {columns} FROM {before}.{table}")

    def free(self, folder: Path) -> None:
        """The stores in this folder are needed no more. One with a schema of a test is not used again."""
        newest = runner.migrations()[-1].number
        for file in [each for each in self._names if each.is_relative_to(folder)]:
            name = self._names.pop(file)
            if not self._sql(f"SELECT number FROM {name}.schema_version WHERE number > {newest}"):
                self._free.append(name)

    def remove(self) -> None:
        """Nothing is left of all of them."""
        for name in self._made:
            self._sql(f"DROP SCHEMA {name} CASCADE")

    def plain(self, file: Path) -> str:
        """A migrated store of this name that is not spread yet."""
        self._names[file] = name = self._schema()
        with closing(open_database(self._url_of(name))) as database:
            runner.migrate(database, now=NOW)
        return self._url_of(name)

    def _new(self) -> str:
        name = self._schema()
        with closing(open_database(self._url_of(name))) as database:
            runner.migrate(database, now=NOW)
            distribution.distribute(database, alone=False)
        return name

    def _schema(self) -> str:
        name = f"t_{token_hex(8)}"
        self._sql(f"CREATE SCHEMA {name}")
        self._made.append(name)
        return name

    def _emptied(self, name: str) -> str:
        tables = [f"{name}.{table}" for table in (*OF_USERS, *OF_ALL) if table != "schema_version"]
        made = f"SELECT tablename FROM pg_tables WHERE schemaname = '{name}'"
        others = {row[0] for row in self._sql(made)} - {*OF_USERS, *OF_ALL}  # of a test
        done = [*(f"DROP TABLE {name}.{other}" for other in others), *(f"DELETE FROM {table}" for table in tables)]
        self._sql("; ".join(done))
        return name

    def _url_of(self, name: str) -> str:
        return f"{self.address}?options=-csearch_path%3D{name}%20-ccitus.shard_count%3D{SHARDS}"

    def _sql(self, statement: str) -> list[Any]:
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


class Watch:
    """What the statements of this process ask of how many machines. On a cluster its plan says so, elsewhere the text:
    it names a user wherever it names a table of users."""

    def __init__(self, *, is_cluster: bool) -> None:
        self._is_cluster = is_cluster
        self._seen: set[str] = set()

    @contextmanager
    def watching(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
        """The statements of storage that asked all machines meanwhile and are not among those that may."""
        from storage.engines.postgresql_session import Statements

        asked_all: list[str] = []
        run = Statements._run

        def watched(session: Statements, sql: str, parameters: Sequence[Any], *more: Any) -> Any:
            if sql not in self._seen and sql.startswith(WATCHED):
                self._seen.add(sql)
                by = _asked_by()
                if by is not None and by not in ASK_ALL and self._asks_all(run, session, sql, parameters):
                    asked_all.append(f"{by}: {sql}")
            return run(session, sql, parameters, *more)

        monkeypatch.setattr(Statements, "_run", watched)
        yield asked_all

    def _asks_all(self, run: Any, session: Any, sql: str, parameters: Sequence[Any]) -> bool:
        if VOLATILE.search(sql):
            return True  # a cluster refuses it
        if not self._is_cluster:
            named = {table for table in NAMED.findall(sql) if table in OF_USERS}
            return not all(re.search(rf"\b{OF_USERS[table]} = (\$\d|ANY)", sql) for table in named)
        from psycopg import RawCursor

        from storage.engines.postgresql_session import Statements
        from storage.engines.watched_connection import WatchedConnection

        plan = ""
        # Elsewhere, for the plan alone would bind the rest of the transaction; what is staged here is not there
        dsn = session._connection.info.dsn
        with suppress(Exception), WatchedConnection.connect(dsn, cursor_factory=RawCursor) as connection:
            aside = Statements(connection)
            aside._staged = session._staged
            plan = "\n".join(row[0] for row in run(aside, f"EXPLAIN {sql}", parameters).fetchall())
        return any(int(count) > 1 for count in TASKS.findall(plan))


def _asked_by() -> str | None:
    """The function of storage whose statement runs; None for one of a test."""
    frame = sys._getframe()
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("storage.") and not module.startswith(("storage.engines", "storage.database")):
            return f"{module}.{frame.f_code.co_name}"
        if module.startswith("tests.") and module != __name__:
            return None
        frame = frame.f_back
    return None
