"""Indexes that an upgrade adds are built beside the requests, so that no start waits for one."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from handlers.commands.control_socket import CommandError
from handlers.commands.larger_stores import build_indexes
from handlers.settings import load
from handlers.work import index_building
from handlers.work.index_building import keep_building
from storage import store_facts
from storage.database import StoreError, StoreUnavailable
from storage.engines import postgresql
from storage.engines.opening import open_database
from storage.migrations import later_indexes, runner
from tests.cli.conftest import bankdata
from tests.engines import ENGINE, STORE, OpenStore, opened
from tests.service.conftest import Said, running

one_server = pytest.mark.engine("one server")
pytestmark = pytest.mark.requirement("upgrade.indexes")
SQL = "-- Amounts are looked up.\n-- only postgresql\nCREATE INDEX by_amount ON transactions (user_id, amount);"
NAMES = "SELECT indexname FROM pg_indexes WHERE indexname = 'by_amount' AND schemaname = current_schema()"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release with one more index."""
    known = [*runner.migrations(), runner.Migration(999, "999_later.sql", SQL)]
    monkeypatch.setattr(runner, "migrations", lambda: known)


@pytest.fixture
def upgraded(database: OpenStore, later: None, now: datetime) -> OpenStore:
    """A store of before, opened by that release."""
    assert runner.migrate(database, now=now) == ["999_later.sql"]
    return database


@pytest.fixture
def other(database: OpenStore, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """Somebody else who asks the same database."""
    with psycopg.connect(ENGINE.url(tmp_path / STORE)) as connection:
        yield connection


@pytest.mark.engine("postgresql")
def test_a_store_in_use_is_brought_up_to_date_without_the_index_which_is_built_afterwards(upgraded: OpenStore) -> None:
    assert upgraded.rows(NAMES) == []
    assert later_indexes.missing(upgraded) == ["by_amount"]
    assert list(later_indexes.build(upgraded)) == ["by_amount"]
    assert upgraded.rows(NAMES) == [{"indexname": "by_amount"}]
    assert later_indexes.missing(upgraded) == []
    assert list(later_indexes.build(upgraded)) == []


@one_server
@pytest.mark.usefixtures("later")
def test_a_new_store_has_it_at_once(tmp_path: Path, now: datetime) -> None:
    with closing(opened(ENGINE.url(tmp_path / "new"))) as database:
        runner.migrate(database, now=now)
        assert later_indexes.missing(database) == []


@one_server
@pytest.mark.usefixtures("later")
def test_neither_start_nor_writers_wait_for_it_and_it_waits_for_writers(
    database: OpenStore, other: psycopg.Connection, now: datetime
) -> None:
    other.execute("LOCK TABLE transactions IN ROW EXCLUSIVE MODE")  # as whoever imports
    runner.migrate(database, now=now)
    build = threading.Thread(target=lambda: list(later_indexes.build(database)))
    build.start()
    is_waiting = (
        "SELECT 1 AS one FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONC%' AND wait_event_type = 'Lock'"
    )
    while not database.rows(is_waiting):
        time.sleep(0.01)
    assert database.execute("UPDATE transactions SET amount = amount") == 0
    assert list(later_indexes.build(database)) == [], "one process builds"
    other.commit()
    build.join()
    assert later_indexes.missing(database) == []


@one_server
def test_one_that_waited_too_long_is_built_anew(
    upgraded: OpenStore, other: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "PATIENT_SECONDS", 0.1)
    other.execute("LOCK TABLE transactions IN ROW EXCLUSIVE MODE")
    with pytest.raises(StoreUnavailable, match=r"A transaction has been open for 0\.1 seconds"):
        list(later_indexes.build(upgraded))
    assert upgraded.rows(NAMES) == [{"indexname": "by_amount"}], "a leftover that is not whole"
    assert later_indexes.missing(upgraded) == ["by_amount"]
    other.commit()
    assert list(later_indexes.build(upgraded)) == ["by_amount"]
    assert later_indexes.missing(upgraded) == []


@one_server
def test_it_takes_longer_than_any_other_statement_may(database: OpenStore) -> None:
    with database.apart() as session:
        assert session.rows("SHOW statement_timeout") == [{"statement_timeout": "0"}]
        assert session.rows("SHOW lock_timeout") == [{"lock_timeout": "5min"}]


@one_server
def test_one_that_a_later_release_drops_is_not_built_again(
    upgraded: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [*runner.migrations(), runner.Migration(1000, "1000_last.sql", "DROP INDEX by_amount")]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    assert later_indexes.missing(upgraded) == []


@pytest.mark.engine("postgresql")
def test_an_index_and_a_key_are_dropped_only_when_what_replaces_them_is_built(
    upgraded: OpenStore, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    list(later_indexes.build(upgraded))
    replaced = (
        "DROP INDEX by_amount; ALTER TABLE events DROP CONSTRAINT events_pkey; CREATE INDEX by_day ON events (user_id)"
    )
    known = [*runner.migrations(), runner.Migration(1000, "1000_last.sql", replaced)]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    names = (
        "SELECT indexname AS name FROM pg_indexes WHERE indexname IN ('by_amount', 'events_pkey', 'by_day')"
        " AND schemaname = current_schema() ORDER BY indexname"
    )
    runner.migrate(upgraded, now=now)
    assert [row["name"] for row in upgraded.rows(names)] == ["by_amount", "events_pkey"]
    building = later_indexes.build(upgraded)
    assert next(building) == "by_day"
    assert [row["name"] for row in upgraded.rows(names)] == ["by_amount", "by_day", "events_pkey"]
    assert list(building) == []
    assert [row["name"] for row in upgraded.rows(names)] == ["by_day"]


@one_server
def test_a_server_builds_it_and_says_so_and_once_why_not_yet(
    upgraded: OpenStore, other: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgresql, "PATIENT_SECONDS", 0.1)
    monkeypatch.setattr(index_building, "AGAIN", 0.05)
    caplog.set_level(logging.INFO, "bankdata.store")
    other.execute("LOCK TABLE transactions IN ROW EXCLUSIVE MODE")
    tried = threading.Semaphore(0)

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            tried.release()
            return super().wait(timeout)

    built = threading.Thread(target=keep_building, args=(upgraded, Stopped()))
    built.start()
    for _ in range(2):
        tried.acquire()
    other.commit()
    built.join()
    assert [record.getMessage() for record in caplog.records] == [
        "what an upgrade has left to do waits: A transaction has been open for 0.1 seconds.",
        "the index by_amount is built",
    ]


@one_server
def test_a_server_looks_again_while_another_one_builds(upgraded: OpenStore, other: psycopg.Connection) -> None:
    other.execute(f"SELECT pg_advisory_lock({later_indexes.BUILDING_LOCK})")

    class Stopped(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            other.execute("SELECT pg_advisory_unlock_all()")
            return super().wait(timeout and 0)

    keep_building(upgraded, Stopped())
    assert later_indexes.missing(upgraded) == []


@one_server
def test_a_server_that_stops_does_not_wait_for_the_index(upgraded: OpenStore) -> None:
    stopped = threading.Event()
    stopped.set()
    keep_building(upgraded, stopped)
    assert later_indexes.missing(upgraded) == ["by_amount"]


@one_server
def test_behind_a_pooler_it_is_said_how_to_build_it(tmp_path: Path, upgraded: OpenStore) -> None:
    with (
        closing(open_database(ENGINE.url(tmp_path / STORE), prepare=False)) as pooled,
        pytest.raises(StoreError, match=r"Run `bankdata build-indexes` with .* the address of PostgreSQL itself"),
    ):
        list(later_indexes.build(pooled))


@one_server
def test_the_command_builds_it_at_once(tmp_path: Path, upgraded: OpenStore, other: psycopg.Connection) -> None:
    settings, said = ENGINE.settings(tmp_path), Said()
    other.execute(f"SELECT pg_advisory_lock({later_indexes.BUILDING_LOCK})")
    with pytest.raises(CommandError, match="Another process is building indexes: by_amount are not there yet"):
        build_indexes(settings, said)
    other.execute("SELECT pg_advisory_unlock_all()")
    build_indexes(settings, said)
    assert said.lines == ["Built by_amount.", "No index is missing."]
    with pytest.raises(CommandError, match="cannot be used"):
        build_indexes(
            load({"BANKDATA_DATABASE_URL": "postgresql://127.0.0.1:1/x", "BANKDATA_KEYS_SECRET": "s" * 32}), said
        )


@one_server
def test_what_is_missing_is_said_by_check_and_built_by_a_server(tmp_path: Path) -> None:
    environment = {name.removeprefix("BANKDATA_"): text for name, text in ENGINE.environment(tmp_path).items()}
    assert bankdata("users", "add", "eva", "--random", "--data", tmp_path, settings=environment).code == 0
    with closing(opened(ENGINE.url(tmp_path / STORE))) as database:
        database.execute("DROP INDEX transactions_by_date")
    checked = bankdata("check", "--data", tmp_path, settings=environment)
    assert (
        "indexes    transactions_by_date not there yet: a server builds them, or `bankdata build-indexes`"
        in checked.out
    )
    with running(tmp_path, command="serve") as served:
        while "the index transactions_by_date is built" not in served.log.read_text():
            time.sleep(0.02)
    built = bankdata("build-indexes", "--data", tmp_path, settings=environment)
    assert built.lines == ["No index is missing."]


def test_the_embedded_store_has_nothing_to_build(tmp_path: Path, database: OpenStore) -> None:
    with database.apart() as session:
        store_facts.remember(session, "a", "b")
    assert store_facts.recall(database, "a") == "b"
    assert (later_indexes.missing(database), list(later_indexes.build(database))) == ([], [])
    refused = bankdata("build-indexes", "--data", tmp_path)
    assert refused.failed_with("Set BANKDATA_DATABASE_URL to the PostgreSQL database whose indexes are to be built.")
