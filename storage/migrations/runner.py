"""Numbered SQL migrations: the schema of a store, and the way from an older schema to it."""

import re
from datetime import datetime
from functools import cache
from importlib import resources

from msgspec import Struct

from storage import users
from storage.database import NoSuchTable, Session, Store, StoreError
from storage.engines import distribution

FILE_NAME = re.compile(r"(\d{3})_[a-z_]+\.sql")
COMMENT = re.compile(r"--(?! only )[^\n]*")
ONLY = re.compile(r"^-- only (duckdb|postgresql)$", re.MULTILINE)
NEEDS = re.compile(r"^-- needs (\d{3})$", re.MULTILINE)  # what a program must know; by default this migration
INDEX = re.compile(r"CREATE INDEX (\w+) ON ")
KEYED = re.compile(r"(?:CREATE|ALTER) TABLE (\w+)\b.*?\bPRIMARY KEY", re.DOTALL)
KEYLESS = re.compile(r"(?:DROP TABLE|ALTER TABLE) (\w+)(?: DROP CONSTRAINT \w+_pkey)?$")
RENAMED = re.compile(r"ALTER TABLE (\w+) RENAME TO (\w+)$")
INDEX_GONE = re.compile(r"(?:DROP INDEX|ALTER TABLE \w+ DROP CONSTRAINT) (\w+)$")  # alone: else it changes a key
NAMES_TAKEN = 15  # the number of the migration that needs Python to fill its table
SCHEMA_VERSION = (
    "CREATE TABLE schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMP NOT NULL)"
)
HAS_VERSION = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_name = 'schema_version' AND table_schema = current_schema()"
)


class StoreNewer(StoreError):
    """The store was written by a newer version of this program."""


class Migration(Struct, frozen=True):
    """One file of storage/migrations; each runs once, in a transaction of its own."""

    number: int
    name: str
    sql: str

    @property
    def needs(self) -> int:
        """The schema version that a program must at least know to run on a store with this migration."""
        said = NEEDS.search(self.sql)
        return int(said[1]) if said is not None else self.number


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations that this program knows, in order."""
    found = []
    for entry in (resources.files("storage") / "migrations").iterdir():
        match = FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), entry.name, entry.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.number))


def migrate(store: Store, *, now: datetime) -> list[str]:
    """Run the migrations that the store lacks; returns the names of the files that ran here. Raises StoreNewer, and
    then nothing has changed."""
    everybody, known = store.for_everybody(), migrations()
    version = current_version(everybody)
    is_in_use = store.is_shared and version > 0
    if version > known[-1].number and _needed_version(everybody, beyond=known[-1].number) > known[-1].number:
        raise StoreNewer(
            f"The store has schema version {version}, this program knows {known[-1].number}. "
            "Update the program or restore a backup."
        )
    return [each.name for each in known if each.number > version and _run(store, each, now, is_in_use=is_in_use)]


def indexes() -> tuple[dict[str, str], dict[str, str]]:
    """The CREATE INDEX statements of all indexes that a PostgreSQL store has besides its keys, and the statements that
    drop those that it had before; both by index name."""
    made: dict[str, str] = {}
    gone: dict[str, str] = {}
    for statement in (each for migration in migrations() for each in _statements(migration.sql, is_shared=True)):
        if new := INDEX.match(statement):
            made[new[1]] = statement
        elif old := INDEX_GONE.match(statement):
            made.pop(old[1], None)
            gone[old[1]] = statement
    return made, gone


def keyed_tables(*, is_shared: bool) -> set[str]:
    """The tables that have a primary key after all migrations, in PostgreSQL (`is_shared`) or DuckDB."""
    keyed = {"schema_version"}
    for statement in (each for migration in migrations() for each in _statements(migration.sql, is_shared=is_shared)):
        if made := KEYED.match(statement):
            keyed.add(made[1])
        elif gone := KEYLESS.match(statement):
            keyed.discard(gone[1])
        elif (renamed := RENAMED.match(statement)) and renamed[1] in keyed:
            keyed = keyed - {renamed[1]} | {renamed[2]}
    return keyed


def version_needed_after(version: int) -> int:
    """The schema version that a program must at least know to run on a store of this version after this program has
    brought it up to date; 0 where there is nothing to bring."""
    return max((each.needs for each in migrations() if each.number > version), default=0)


def current_version(session: Session) -> int:
    """The number of the last migration that ran; 0 for a new store."""
    if session.is_shared and not session.rows(HAS_VERSION):
        return 0
    try:
        return _highest_number(session)
    except NoSuchTable:  # DuckDB would take 10 ms of every start and command to list its tables
        return 0


def _highest_number(session: Session) -> int:
    return int(session.rows("SELECT coalesce(max(number), 0) AS number FROM schema_version")[0]["number"])


def _needed_version(session: Session, *, beyond: int) -> int:
    """The schema version that a program must at least know to run on a store with migrations newer than `beyond`."""
    rows = session.rows("SELECT max(coalesce(needs, number)) AS needed FROM schema_version WHERE number > $1", beyond)
    return int(rows[0]["needed"])


def _run(store: Store, migration: Migration, now: datetime, *, is_in_use: bool) -> bool:
    """Run a migration unless another process starting at the same time has run it; True if it was run here. Indexes of
    tables in use, new ones and what they replace, are left to `storage.migrations.later_indexes`."""
    with store.migrating() as session:
        # To ask whether there is a table at all takes 3 ms: a new store would be asked at each of its migrations
        is_new = migration.number == 1 and not session.rows(HAS_VERSION)
        version = 0 if is_new else _highest_number(session)
        if version >= migration.number:
            return False
        with distribution.keep_distributed(session):
            if version == 0:
                session.execute(SCHEMA_VERSION)
            for statement in _statements(migration.sql, is_shared=session.is_shared):
                if not (is_in_use and (INDEX.match(statement) or INDEX_GONE.match(statement))):
                    # An index that another start, finding the schema half made, left to `later_indexes` is not there
                    session.execute(statement.replace("DROP INDEX", "DROP INDEX IF EXISTS", 1))
            if migration.number == NAMES_TAKEN:
                users.take_names(session)
        session.execute(
            "INSERT INTO schema_version (number, name, applied_at) VALUES ($1, $2, $3)",
            *(migration.number, migration.name, now),
        )
        if migration.needs < migration.number:
            session.execute("UPDATE schema_version SET needs = $2 WHERE number = $1", migration.number, migration.needs)
    return True


def _statements(sql: str, *, is_shared: bool) -> list[str]:
    """The statements of a migration for PostgreSQL (`is_shared`) or DuckDB.

    A semicolon ends a statement and occurs in no text. A line `-- only postgresql` (or duckdb) above a statement
    restricts it to that engine.
    """
    found, engine = [], "postgresql" if is_shared else "duckdb"
    for part in COMMENT.sub("", sql).split(";"):
        only = ONLY.search(part)
        statement = ONLY.sub("", part).strip()
        if statement and (only is None or only[1] == engine):
            found.append(statement)
    return found
