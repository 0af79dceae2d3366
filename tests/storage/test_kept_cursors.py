"""Cursors and parsed statements are used again, a few of them, and never one that failed."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from storage.database import Transaction
from storage.engines import duckdb_file, duckdb_session
from storage.engines.duckdb_file import DuckDBFile
from tests.conftest import empty_store

VALUE = "SELECT value FROM settings WHERE name = $1"


pytestmark = pytest.mark.engine("duckdb")


@pytest.mark.requirement("store.kept-cursors")
def test_a_cursor_serves_one_after_the_other_and_none_that_failed(database: Any) -> None:
    with database.transaction() as first:
        assert first.rows(VALUE, "x") == []
    assert len(database._idle) == 1
    kept = database._idle[0]

    def fail(session: Transaction) -> None:
        session.execute("INSERT INTO settings (name, value) VALUES ('x', 'y')")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        database.atomically(fail)
    assert kept not in database._idle
    assert database.rows(VALUE, "x") == []


@pytest.mark.requirement("store.kept-cursors")
def test_a_statement_that_is_kept_sees_what_was_changed_meanwhile(database: Any) -> None:
    for number in range(3):
        assert database.execute("DELETE FROM settings WHERE name = $1", "x") == min(number, 1)
        database.execute("INSERT INTO settings (name, value) VALUES ($1, $2)", "x", str(number))
        assert database.rows(VALUE, "x") == [{"value": str(number)}]
    database.execute("ALTER TABLE settings ADD COLUMN more TEXT DEFAULT 'm'")
    assert database.rows("SELECT * FROM settings WHERE name = $1", "x") == [{"name": "x", "value": "2", "more": "m"}]


@pytest.mark.requirement("store.kept-cursors")
def test_only_so_many_cursors_and_statements_are_kept(database: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duckdb_file, "CURSORS_KEPT_MAX", 2)
    monkeypatch.setattr(duckdb_session, "STATEMENTS_KEPT_MAX", 2)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(database.transaction())
    assert len(database._idle) == 2
    for number in range(5):
        assert database.rows(f"SELECT {number} AS n") == [{"n": number}]
        assert len(database._idle[-1]._parsed) <= 2


@pytest.mark.requirement("store.kept-cursors")
def test_a_session_that_outlives_its_store_does_not_keep_the_file_open(tmp_path: Path) -> None:
    empty_store(tmp_path / "bankdata.duckdb").close()
    database = DuckDBFile(tmp_path / "bankdata.duckdb")
    with database._session() as session:
        session.rows("SELECT 1 AS n")
        database.close()
    DuckDBFile(tmp_path / "bankdata.duckdb").close()
