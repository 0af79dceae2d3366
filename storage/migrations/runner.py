"""Numbered SQL migrations: what a store file must look like, and how an older one gets there."""

import re
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from storage.database import Database, Session, StoreError

FILE_NAME = re.compile(r"(\d{3})_[a-z_]+\.sql")


class StoreNewer(StoreError):
    """The store was written by a newer version of this program."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of storage/migrations; each runs once, in a transaction of its own."""

    number: int
    name: str
    sql: str


def migrations() -> list[Migration]:
    """All migrations this program knows, in order."""
    found = []
    for entry in (resources.files("storage") / "migrations").iterdir():
        match = FILE_NAME.fullmatch(entry.name)
        if match:
            found.append(Migration(int(match[1]), entry.name, entry.read_text(encoding="utf-8")))
    return sorted(found, key=lambda migration: migration.number)


def migrate(database: Database, *, now: datetime) -> list[str]:
    """Bring the store up to date; the names of the files that ran. Raises StoreNewer, and then changed nothing."""
    database.execute(
        "CREATE TABLE IF NOT EXISTS schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
        " applied_at TIMESTAMP NOT NULL)"
    )
    version = current_version(database)
    known = migrations()
    if version > known[-1].number:
        raise StoreNewer(
            f"The store has schema version {version}, this program knows {known[-1].number}. "
            "Update the program or restore a backup."
        )
    pending = [migration for migration in known if migration.number > version]
    for migration in pending:
        with database.transaction() as session:
            for statement in _statements(migration.sql):
                session.execute(statement)
            session.execute("INSERT INTO schema_version VALUES ($1, $2, $3)", migration.number, migration.name, now)
    return [migration.name for migration in pending]


def current_version(session: Session) -> int:
    """The number of the last migration that ran, 0 for a new store."""
    return int(session.rows("SELECT coalesce(max(number), 0) AS number FROM schema_version")[0]["number"])


def _statements(sql: str) -> list[str]:
    """The statements of a migration; a semicolon ends one and stands nowhere else, not even in a comment."""
    without_comments = re.sub(r"--[^\n]*", "", sql)
    return [statement.strip() for statement in without_comments.split(";") if statement.strip()]
