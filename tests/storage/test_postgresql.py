"""PostgreSQL under the store: what it is asked for at the start, and what happens when it goes away."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace
from psycopg import errors

from storage import store_facts, users
from storage.database import Conflict, DiskFailed, Session, Store, StoreError, StoreFull, StoreUnavailable, Transaction
from storage.engines.opening import open_database
from storage.engines.postgresql_connections import translate_errors
from storage.engines.postgresql_session import STAGED_ROWS_MAX
from storage.integrity import evidence
from storage.migrations import later_indexes, runner
from tests.conftest import NOW
from tests.engines import ENGINE, Cluster, OpenStore, free_port, opened
from tests.storage.conftest import GIRO, Bank, bookings

pytestmark = pytest.mark.engine("postgresql")

SOON = 5.0  # seconds, within which a request hears that the store does not answer, or that it does again


@pytest.fixture(scope="module")
def mortal() -> Iterator[Cluster]:
    """A cluster that tests stop and start."""
    cluster = Cluster()
    yield cluster
    cluster.remove()


@pytest.mark.requirement("postgresql.order")
def test_a_database_that_sorts_texts_otherwise_than_by_their_bytes_is_refused() -> None:
    german = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'de' LOCALE 'C.UTF-8'"
    ENGINE.cluster.sql(f"CREATE DATABASE in_words TEMPLATE template0 {german}")
    with pytest.raises(StoreError, match=r"in another order than that of their bytes.*LOCALE 'C\.UTF-8'"):
        open_database(ENGINE.cluster.url("in_words"))


@pytest.mark.requirement("postgresql.unavailable")
def test_a_database_that_is_not_there_is_named_without_its_password() -> None:
    port = free_port()
    with pytest.raises(
        StoreUnavailable, match=rf"The database at postgresql://127\.0\.0\.1:{port}/none cannot"
    ) as told:
        open_database(f"postgresql://eva:secret@127.0.0.1:{port}/none")
    assert "secret" not in str(told.value)


@pytest.mark.requirement("postgresql.unavailable")
def test_a_database_that_stops_is_told_soon_and_one_that_is_back_is_used_again(mortal: Cluster) -> None:
    with closing(opened(mortal.url("postgres"))) as database:
        assert database.rows("SELECT 1 AS one") == [{"one": 1}]
        mortal.stop()
        for _ in range(3):
            began = time.monotonic()
            with pytest.raises(StoreUnavailable):
                database.rows("SELECT 1 AS one")
            assert time.monotonic() - began < SOON
        mortal.start()
        began = time.monotonic()
        while True:
            try:
                assert database.rows("SELECT 1 AS one") == [{"one": 1}]
                break
            except StoreUnavailable:
                assert time.monotonic() - began < SOON


@pytest.mark.engine("one server")
@pytest.mark.requirement("postgresql.unavailable")
def test_a_query_survives_the_end_of_its_connection_and_a_change_is_not_made_twice(database: OpenStore) -> None:
    def end_connections() -> None:
        name = database.rows("SELECT current_database() AS name")[0]["name"]
        ENGINE.cluster.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    end_connections()
    assert database.rows("SELECT 1 AS one") == [{"one": 1}]
    end_connections()
    with pytest.raises(StoreUnavailable, match="Nothing of this change was stored"):
        database.execute("INSERT INTO settings (name, value) VALUES ('a', 'b')")
    assert store_facts.recall(database, "a") is None


@pytest.mark.requirement("postgresql.unavailable")
def test_who_waits_for_a_connection_for_too_long_is_told(tmp_path: Path) -> None:
    with closing(opened(ENGINE.url(tmp_path / "one"), pool=1)) as database, database.transaction() as session:
        session.rows("SELECT 1 AS one")
        with pytest.raises(StoreUnavailable):
            database.rows("SELECT 1 AS one")


@pytest.mark.engine("one server")
@pytest.mark.requirement("store.migrations")
def test_of_many_that_start_at_once_one_makes_the_schema(tmp_path: Path) -> None:
    url = ENGINE.url(tmp_path / "new")

    def start(_: int) -> list[str]:
        with closing(open_database(url)) as database:
            return runner.migrate(database, now=NOW)

    with ThreadPoolExecutor(4) as starts:
        ran = [name for names in starts.map(start, range(4)) for name in names]
    assert sorted(ran) == [each.name for each in runner.migrations()]


@pytest.mark.engine("one server")
@pytest.mark.requirement("store.migrations")
def test_a_start_that_finds_the_schema_half_made_leaves_the_other_one_able_to_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every, run = runner.migrations(), runner._run
    place = next(at for at, each in enumerate(every) if "CREATE INDEX transactions_by_state" in each.sql)

    def run_after_another_start(store: Store, migration: runner.Migration, now: datetime, *, is_in_use: bool) -> bool:
        if migration == every[place] and not is_in_use:
            with monkeypatch.context() as other:
                other.setattr(runner, "migrations", lambda: every[: place + 1])
                assert runner.migrate(store, now=now) == [migration.name]
        return run(store, migration, now, is_in_use=is_in_use)

    monkeypatch.setattr(runner, "_run", run_after_another_start)
    with closing(open_database(ENGINE.url(tmp_path / "new"))) as store:
        assert len(runner.migrate(store, now=NOW)) == len(every) - 1
        assert list(later_indexes.build(store)) != []
        assert later_indexes.missing(store.for_everybody()) == []


@pytest.mark.requirement("postgresql.snapshot")
def test_a_transaction_sees_one_snapshot_and_the_second_of_two_changes_is_refused(database: OpenStore) -> None:
    store_facts.remember(database, "a", "1")

    def late() -> None:
        with database.transaction() as session:
            assert store_facts.recall(session, "a") == "1"
            store_facts.remember(database, "a", "2")
            assert store_facts.recall(session, "a") == "1"
            store_facts.remember(session, "a", "3")

    with pytest.raises(Conflict):
        late()
    assert store_facts.recall(database, "a") == "2"


@pytest.mark.requirement("postgresql.frames")
@pytest.mark.parametrize("rows", [0, 1, STAGED_ROWS_MAX, STAGED_ROWS_MAX + 1])
def test_staged_rows_are_there_for_as_long_as_they_are_staged(database: OpenStore, rows: int) -> None:
    frame = pl.DataFrame(
        {
            "place": pl.Series(range(rows), dtype=pl.UInt32),
            "text": pl.Series(["", None, 'a "b",\n\\N'] * rows, dtype=pl.String).head(rows),
            "amount": pl.Series(["-1.50"] * rows).cast(pl.Decimal(20, 5)),
            "day": pl.Series([NOW.date()] * rows, dtype=pl.Date),
            "at": pl.Series([NOW] * rows, dtype=pl.Datetime("us")),
            "is_new": pl.Series([True] * rows, dtype=pl.Boolean),
        }
    )
    with database.transaction() as session:
        for _ in range(2):
            with session.stage("lately", frame):
                back = session.frame(
                    "SELECT place, text, amount, day, at, is_new FROM lately ORDER BY place", schema=frame.schema
                )
            assert back.equals(frame)


@pytest.mark.requirement("postgresql.frames")
def test_a_transaction_that_failed_with_staged_rows_says_why(database: OpenStore) -> None:
    frame = pl.DataFrame({"n": range(STAGED_ROWS_MAX + 1)})
    store_facts.remember(database, "a", "1")

    def work(session: Transaction) -> None:
        with session.stage("lately", frame):
            session.execute("INSERT INTO settings (name, value) VALUES ('a', '2')")

    with pytest.raises(Conflict, match="duplicate key"):
        database.atomically(work)


@pytest.mark.requirement("import.nul")
def test_a_text_is_looked_for_without_what_no_text_here_contains(database: OpenStore) -> None:
    store_facts.remember(database, "a\0b", "1\0")
    assert database.rows("SELECT value FROM settings WHERE name = ANY($1::TEXT[])", ["ab\0"]) == [{"value": "1"}]


@pytest.mark.requirement("postgresql.backups")
def test_a_copy_is_made_by_tools_of_postgresql(database: OpenStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="pg_dump"):
        database.copy_to(tmp_path / "copy")


@pytest.mark.requirement("postgresql.unavailable")
def test_a_statement_that_takes_too_long_is_given_up_and_in_an_import_after_minutes(bank: Bank) -> None:
    def limit(session: Session) -> str:
        return str(session.rows("SHOW statement_timeout")[0]["statement_timeout"])

    assert limit(bank.database) == "30s"
    with bank.database.transaction() as session:
        session.hold(bank.user.id)
        assert limit(session) == "5min"
    assert limit(bank.database) == "30s"


@pytest.mark.requirement("postgresql.snapshot")
def test_the_size_and_the_states_are_asked_of_the_database(bank: Bank) -> None:
    assert bank.database.bytes > 1_000_000
    with bank.database.reading(bank.user.id) as (session, learn):
        learn(1)
        assert users.find(session, bank.user.id) == bank.user
    before = bank.database.state(bank.user.id)
    bank.database.changes(bank.user.id)
    assert bank.database.state(bank.user.id) != before


@pytest.mark.requirement("integrity")
def test_the_bookings_of_other_accounts_are_not_fetched_to_judge_one(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
    savings = replace(GIRO, stable_key="DE02500105170137075030", iban="DE02500105170137075030")
    [report] = bank.bring(bookings("2026-11-02 | 5.00 | A | a"), account=savings).accounts
    with bank.database.transaction() as session:
        found = evidence(session, bank.user.id, [report.account_id])
    assert found.moved["account_id"].to_list() == [report.account_id]


@pytest.mark.requirement("postgresql.order")
@pytest.mark.parametrize(
    ("setting", "said"), [("public", "permission denied for schema public"), ("''", "no schema has been selected")]
)
def test_a_role_that_may_not_make_tables_is_told_what_to_grant(mortal: Cluster, setting: str, said: str) -> None:
    role = f"may_nothing_{len(setting)}"
    mortal.sql(f"CREATE ROLE {role} LOGIN")
    mortal.sql(f"ALTER ROLE {role} SET search_path = {setting}")
    refused = pytest.raises(StoreError, match=rf"{said}.*GRANT ALL ON SCHEMA public")
    with closing(opened(mortal.url("postgres").replace("bankdata@", f"{role}@"))) as database, refused:
        runner.migrate(database, now=NOW)


@pytest.mark.requirement("postgresql.unavailable")
@pytest.mark.parametrize(
    ("said", "told"),
    [
        (errors.DiskFull(), StoreFull),
        (errors.IoError(), DiskFailed),
        (errors.LockNotAvailable(), errors.LockNotAvailable),
    ],
)
def test_a_full_disk_is_told_as_that_and_what_passes_not_by_itself_as_what_it_is(
    said: Exception, told: type[Exception]
) -> None:
    with pytest.raises(told), translate_errors():
        raise said
