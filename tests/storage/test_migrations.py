"""Migrations: each once and in order, and a store of a newer program is left alone."""

from datetime import datetime
from pathlib import Path

import pytest

from storage.database import Database
from storage.engines.duckdb_file import DuckDBFile
from storage.migrations import runner
from storage.migrations.runner import StoreNewer
from tests.storage.conftest import dump


@pytest.mark.requirement("store.newer")
def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(database: Database, now: datetime) -> None:
    database.execute("INSERT INTO schema_version (number, name, applied_at) VALUES (999, '999_future.sql', $1)", now)
    before = dump(database)
    with pytest.raises(StoreNewer, match=r"schema version 999.*Update the program or restore a backup"):
        runner.migrate(database, now=now)
    assert dump(database) == before


@pytest.mark.requirement("store.newer")
def test_a_store_of_a_newer_version_that_needs_no_newer_program_is_used(database: Database, now: datetime) -> None:
    newest = runner.migrations()[-1].number
    row = "INSERT INTO schema_version (number, name, applied_at, needs) VALUES ($1, 'later.sql', $2, $3)"
    database.execute(row, 998, now, newest)
    assert runner.migrate(database, now=now) == []
    database.execute(row, 999, now, newest + 1)
    with pytest.raises(StoreNewer):
        runner.migrate(database, now=now)


@pytest.mark.requirement("store.newer")
def test_a_migration_says_which_programs_may_run_on_what_it_made(
    database: Database, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = runner.Migration(999, "999_later.sql", "-- A column.\n-- needs 022\nALTER TABLE jobs ADD COLUMN n INTEGER")
    known = [*runner.migrations(), later]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    assert runner.migrate(database, now=now) == ["999_later.sql"]
    assert database.rows("SELECT needs FROM schema_version WHERE number = 999") == [{"needs": 22}]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.migrations")
def test_migrations_run_once_in_order_and_from_every_older_version(tmp_path: Path, now: datetime) -> None:
    known = runner.migrations()
    assert [each.number for each in known] == list(range(1, len(known) + 1))
    whole = DuckDBFile(tmp_path / "whole.duckdb")
    assert runner.migrate(whole, now=now) == [each.name for each in known]
    assert runner.migrate(whole, now=now) == []
    columns = "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY table_name, column_name"
    expected = whole.rows(columns)
    for done in range(len(known)):
        older = DuckDBFile(tmp_path / f"older{done}.duckdb")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(runner, "migrations", lambda done=done: known[: done or 1])
            runner.migrate(older, now=now)
        runner.migrate(older, now=now)
        assert older.rows(columns) == expected
        older.close()
    whole.close()
