"""Migrations: each once and in order, and a store of a newer program is left alone."""

import re
from contextlib import closing
from datetime import datetime
from pathlib import Path
from shutil import copy

import pytest

from storage.database import Row
from storage.engines.duckdb_file import DuckDBFile
from storage.engines.duckdb_session import Cursor
from storage.migrations import runner, soundness
from storage.migrations.runner import StoreNewer
from tests.engines import OpenStore
from tests.storage.conftest import dump

SILENT = 31  # the first ones: of the programs before them none knows the word
ADDS = re.compile(
    r"CREATE TABLE|CREATE INDEX|ALTER TABLE \w+ ADD COLUMN (?!.*NOT NULL(?!.*DEFAULT))"
    # Without them it is slower. These two keys no program has ever written over (ON CONFLICT)
    r"|DROP INDEX|ALTER TABLE (?:journal|contribution_bookings) DROP CONSTRAINT \w+_pkey$"
    r"|ALTER TABLE \w+ (?:SET \(fillfactor|REPLICA IDENTITY)"
    r"|DELETE FROM detections$",  # what is not there is found anew
    re.DOTALL,
)


@pytest.mark.requirement("store.newer")
def test_the_keys_that_migrations_are_read_to_make_are_those_of_a_store(database: OpenStore) -> None:
    there = {row["table_name"] for row in database.rows(soundness.KEYS)}
    assert runner.keyed_tables(is_shared=database.is_shared) == there
    assert soundness.missing(database) == []


@pytest.mark.requirement("store.newer")
def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(database: OpenStore, now: datetime) -> None:
    database.execute("INSERT INTO schema_version (number, name, applied_at) VALUES (999, '999_future.sql', $1)", now)
    before = dump(database)
    with pytest.raises(StoreNewer, match=r"schema version 999.*Update the program or restore a backup"):
        runner.migrate(database, now=now)
    assert dump(database) == before


@pytest.mark.requirement("store.newer")
def test_a_store_of_a_newer_version_that_needs_no_newer_program_is_used(database: OpenStore, now: datetime) -> None:
    newest = runner.migrations()[-1].number
    row = "INSERT INTO schema_version (number, name, applied_at, needs) VALUES ($1, 'later.sql', $2, $3)"
    database.execute(row, 998, now, newest)
    assert runner.migrate(database, now=now) == []
    database.execute(row, 999, now, newest + 1)
    with pytest.raises(StoreNewer):
        runner.migrate(database, now=now)


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.newer")
def test_a_start_learns_the_version_of_a_store_without_a_list_of_its_tables(
    database: OpenStore, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    rows = Cursor.rows

    def watched(cursor: Cursor, sql: str, *given: object) -> list[Row]:
        asked.append(sql)
        return rows(cursor, sql, *given)

    monkeypatch.setattr(Cursor, "rows", watched)
    assert runner.migrate(database, now=now) == []
    assert asked
    assert not any("information_schema" in sql for sql in asked)


@pytest.mark.requirement("store.newer")
def test_a_migration_says_which_programs_may_run_on_what_it_made(
    database: OpenStore, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = runner.Migration(999, "999_later.sql", "-- A column.\n-- needs 022\nALTER TABLE jobs ADD COLUMN n INTEGER")
    known = [*runner.migrations(), later]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    assert runner.migrate(database, now=now) == ["999_later.sql"]
    assert database.rows("SELECT needs FROM schema_version WHERE number = 999") == [{"needs": 22}]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("upgrade.back")
def test_each_migration_says_which_programs_may_run_on_what_it_made_and_older_ones_only_where_it_adds() -> None:
    for each in runner.migrations()[SILENT:]:
        assert runner.NEEDS.search(each.sql), f"{each.name} does not say `-- needs`: which programs may run on it?"
        if each.needs < each.number:
            for statement in [
                *runner._statements(each.sql, is_shared=True),
                *runner._statements(each.sql, is_shared=False),
            ]:
                assert ADDS.match(statement), f"{each.name} changes what programs of {each.needs} know: {statement}"


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("upgrade.back")
@pytest.mark.parametrize(
    ("statement", "adds"),
    [
        ("CREATE TABLE a (b TEXT NOT NULL)", True),
        ("CREATE INDEX a ON b (c)", True),
        ("ALTER TABLE a ADD COLUMN b TEXT", True),
        ("ALTER TABLE a ADD COLUMN b INTEGER NOT NULL DEFAULT 0", True),
        ("DROP INDEX a", True),
        ("ALTER TABLE journal DROP CONSTRAINT journal_pkey", True),
        ("ALTER TABLE a DROP CONSTRAINT a_pkey", False),
        ("ALTER TABLE a ADD COLUMN b TEXT NOT NULL", False),
        ("ALTER TABLE a DROP COLUMN b", False),
        ("ALTER TABLE a RENAME TO b", False),
        ("CREATE UNIQUE INDEX a ON b (c)", False),
        ("DROP TABLE a", False),
        ("UPDATE a SET b = 1", False),
    ],
)
def test_what_adds_and_what_an_older_program_could_stumble_over(statement: str, adds: bool) -> None:
    assert bool(ADDS.match(statement)) is adds


@pytest.mark.requirement("upgrade.back")
def test_what_a_store_needs_after_an_upgrade_is_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [runner.Migration(n, "", text) for n, text in ((7, ""), (8, "-- needs 006"), (9, "-- needs 007"))]
    monkeypatch.setattr(runner, "migrations", lambda: made)
    assert [runner.version_needed_after(version) for version in (6, 7, 8, 9)] == [7, 7, 7, 0]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.migrations")
def test_migrations_run_once_in_order_and_from_every_older_version(tmp_path: Path, now: datetime) -> None:
    known = runner.migrations()
    assert [each.number for each in known] == list(range(1, len(known) + 1))
    whole = DuckDBFile(tmp_path / "whole.duckdb")
    assert runner.migrate(whole, now=now) == [each.name for each in known]
    assert runner.migrate(whole, now=now) == []
    columns = "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY table_name, column_name"
    expected = whole.for_everybody().rows(columns)
    growing = tmp_path / "growing.duckdb"
    for done in range(1, len(known)):
        with pytest.MonkeyPatch.context() as patched, closing(DuckDBFile(growing)) as older:
            patched.setattr(runner, "migrations", lambda done=done: known[:done])
            assert runner.migrate(older, now=now) == [known[done - 1].name]
        with closing(DuckDBFile(Path(copy(growing, tmp_path / f"older{done}.duckdb")))) as older:
            assert runner.migrate(older, now=now) == [each.name for each in known[done:]]
            assert older.for_everybody().rows(columns) == expected
    whole.close()
