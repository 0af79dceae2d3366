"""What an operator should know of a store: tables and keys that are missing, and what a PostgreSQL server says of its
archive."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from storage import store_facts
from storage.backup import MADE_HERE, list_backups
from storage.database import Session
from storage.migrations import runner
from storage.row_owners import OF_ALL, OF_USERS

BACKED_UP = "backed_up_at"  # written by docs/deploy/base-backup.sh
KEYS = (
    "SELECT table_name FROM information_schema.table_constraints"
    " WHERE constraint_type = 'PRIMARY KEY' AND table_schema = current_schema()"
)
ARCHIVER = (
    "SELECT coalesce(last_failed_time > coalesce(last_archived_time, '-infinity'), FALSE) AS is_failing,"
    " pg_wal_lsn_diff(pg_current_wal_lsn(), coalesce("
    "(SELECT min(restart_lsn) FROM pg_replication_slots), pg_current_wal_lsn()))::BIGINT AS held,"
    " CASE WHEN current_setting('archive_mode') <> 'off' AND last_archived_wal ~ '^[0-9A-F]{24}$' THEN"
    " greatest(0, pg_wal_lsn_diff(pg_current_wal_lsn(), (('x' || substr(last_archived_wal, 9, 8))::BIT(32)::BIGINT"
    " * 4294967296 + ('x' || substr(last_archived_wal, 17, 8))::BIT(32)::BIGINT"
    " * pg_size_bytes(current_setting('wal_segment_size'))) + '0/0'::PG_LSN))::BIGINT ELSE 0 END AS waiting"
    " FROM pg_stat_archiver"
)


class Archive(Struct, frozen=True):
    """What a PostgreSQL server says of its WAL: whether the last try to archive some has failed, and how many bytes it
    keeps because they are not archived yet or a replication slot has not fetched them."""

    is_failing: bool
    kept_bytes: int


def missing(session: Session) -> list[str]:
    """The tables, and the primary keys of tables, that migrations have made and the store has not. (There are no other
    keys: docs/architecture.md.)"""
    rows = session.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
    there, keyed = {row["table_name"] for row in rows}, {row["table_name"] for row in session.rows(KEYS)}
    tables = {*OF_ALL, *OF_USERS}
    keyless = {
        table for table in tables & there & runner.keyed_tables(is_shared=session.is_shared) if table not in keyed
    }
    return [*sorted(tables - there), *(f"the primary key of {table}" for table in sorted(keyless))]


def archive(session: Session) -> Archive | None:
    """What the server says of its WAL; None for a store in a file."""
    if not session.is_shared:
        return None
    [row] = session.rows(ARCHIVER)
    return Archive(is_failing=row["is_failing"], kept_bytes=max(row["held"], row["waiting"]))


def backed_up_at(session: Session, backups: Path) -> datetime | None:
    """The time (UTC) of the newest backup: of a store in a file by the names in the folder `backups`, of PostgreSQL as
    base-backup.sh has noted it; None where none is known."""
    if session.is_shared:
        noted = store_facts.recall(session, BACKED_UP)
        return datetime.fromisoformat(noted).astimezone(UTC).replace(tzinfo=None) if noted else None
    newest = list_backups(backups)[-1:] if backups.is_dir() else []
    match = MADE_HERE.fullmatch(newest[0].name) if newest else None
    return datetime.strptime(match[1], "%Y%m%d-%H%M%S") if match else None  # noqa: DTZ007 - UTC, as the store keeps it
