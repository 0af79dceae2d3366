"""What a request may see on PostgreSQL: the rows of one user, whatever a statement says, and of no connection more."""

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import polars as pl
import pytest

from storage import documents, users
from storage.database import NOBODY, Store, StoreError, StoreUnavailable
from storage.engines import second_wall
from storage.engines.opening import open_database
from storage.engines.postgresql import PostgreSQL
from storage.engines.postgresql_session import STAGED_ROWS_MAX
from storage.keys.places import SealedKeys
from storage.migrations import runner
from storage.row_owners import OF_ALL, OF_USERS
from tests.conftest import NOW
from tests.engines import APP_ROLE, ENGINE, Cluster, OpenStore, tables_of

pytestmark = [pytest.mark.engine("one server"), pytest.mark.requirement("postgresql.second-wall")]

EVA, TOM = "u1", "u2"
RULES = "SELECT user_id, rules FROM user_rules ORDER BY user_id"


@pytest.fixture
def name(tmp_path: Path, database: OpenStore) -> str:
    """The database of a store with two users."""
    for user_id in (EVA, TOM):
        users.add(
            database,
            name=user_id,
            user_id=user_id,
            password_hash=None,
            has_subscription=True,
            home_currency="EUR",
            now=NOW,
        )
        database.execute("INSERT INTO user_rules (user_id, rules) VALUES ($1, $2)", user_id, f"of {user_id}")
    return ENGINE.url(tmp_path / "bankdata.duckdb").rpartition("/")[2]


@pytest.fixture
def walled(name: str) -> Iterator[Store]:
    """The same behind the wall, on one connection that is used again and again."""
    with closing(open_database(ENGINE.cluster.url(name), app_url=ENGINE.cluster.app_url(name), pool=1)) as opened:
        second_wall.build(opened)
        yield opened


def test_a_statement_that_forgets_the_user_sees_the_rows_of_one_alone(walled: Store) -> None:
    assert walled.of(EVA).rows(RULES) == [{"user_id": EVA, "rules": "of u1"}]
    assert walled.of(EVA).rows("SELECT id FROM users") == [{"id": EVA}]
    assert walled.of(EVA).rows("SELECT rules FROM user_rules WHERE user_id = $1", TOM) == []
    with walled.of(EVA).transaction() as session:
        assert session.rows(RULES) == [{"user_id": EVA, "rules": "of u1"}]
    assert len(walled.for_everybody().rows(RULES)) == 2, "the worker and commands see all"


def test_rows_of_another_user_can_be_neither_changed_nor_made(walled: Store) -> None:
    assert walled.of(EVA).execute("UPDATE user_rules SET rules = 'mine'") == 1
    assert walled.of(EVA).execute("DELETE FROM user_rules WHERE user_id = $1", TOM) == 0
    with pytest.raises(Exception, match="row-level security policy"):
        walled.of(EVA).execute("INSERT INTO user_rules (user_id, rules) VALUES ($1, 'foreign')", TOM)
    with pytest.raises(Exception, match="row-level security policy"):
        walled.of(EVA).execute("UPDATE user_rules SET user_id = $1", TOM)
    assert walled.for_everybody().rows(RULES) == [{"user_id": EVA, "rules": "mine"}, {"user_id": TOM, "rules": "of u2"}]


@pytest.mark.parametrize("table", [table for table in OF_ALL if table not in second_wall.READ_BY_ALL])
def test_what_belongs_to_nobody_is_out_of_sight(walled: Store, table: str) -> None:
    with pytest.raises(Exception, match=f"permission denied for table {table}"):
        walled.of(EVA).rows(f"SELECT count(*) AS found FROM {table}")


def test_rates_and_profiles_are_read_and_not_written(walled: Store) -> None:
    documents.add(walled.for_everybody(), "rates", "1.1", now=NOW)
    assert documents.find(walled.of(EVA), "rates") == "1.1"
    with pytest.raises(Exception, match="permission denied"):
        documents.remove(walled.of(EVA), "rates")


def test_keys_are_out_of_sight_sealed_as_they_are(walled: Store) -> None:
    place = SealedKeys(walled.for_everybody(), "keys", "a secret of the operator", lambda: NOW)
    documents.add(walled.for_everybody(), place.name, "ciphertext", now=NOW)
    assert documents.find(walled.for_everybody(), place.name) == "ciphertext"
    assert documents.find(walled.of(EVA), place.name) is None


@pytest.mark.parametrize("rows", [3, STAGED_ROWS_MAX + 1])
def test_frames_are_appended_for_a_user(walled: Store, rows: int) -> None:
    numbers = [f"{each}" for each in range(rows)]
    frame = pl.DataFrame({"user_id": [EVA] * rows, "job_id": numbers, "connection_id": numbers})
    frame = frame.with_columns(called_at=pl.lit(NOW))
    with walled.of(EVA).transaction() as session:
        session.append("source_calls", frame)
    assert walled.of(EVA).rows("SELECT count(*) AS found FROM source_calls") == [{"found": rows}]
    assert walled.of(TOM).rows("SELECT count(*) AS found FROM source_calls") == [{"found": 0}]


def test_a_connection_keeps_nothing_of_the_user_before(walled: Store) -> None:
    which = "SELECT pg_backend_pid() AS pid, current_setting('app.user_id', true) AS user_id"
    before = walled.of(EVA).rows(which)[0]
    with suppress(ZeroDivisionError), walled.of(EVA).transaction() as session:
        session.rows(RULES)
        raise ZeroDivisionError
    with pytest.raises(Exception, match="division by zero"):
        walled.of(EVA).rows("SELECT 1 / 0 AS wrong")
    after = walled.of(NOBODY).rows(which)[0]
    assert walled.of(NOBODY).rows(RULES) == []
    assert (before["pid"], before["user_id"]) == (after["pid"], EVA)
    # As if somebody had forgotten to say for whom, on the very connection
    assert isinstance(walled, PostgreSQL)
    assert walled._app_pool is not None
    with walled._app_pool.connection() as connection:
        assert connection.info.backend_pid == before["pid"]
        assert connection.execute(RULES.encode()).fetchall() == []


def test_after_a_crash_in_between_the_next_user_sees_his_own(walled: Store) -> None:
    with suppress(StoreUnavailable), walled.of(EVA).transaction() as session:
        pid = session.rows("SELECT pg_backend_pid() AS pid")[0]["pid"]
        session.execute("UPDATE user_rules SET rules = 'half'")
        ENGINE.cluster.sql(f"SELECT pg_terminate_backend({pid})")
        session.rows(RULES)
    assert walled.of(TOM).rows(RULES) == [{"user_id": TOM, "rules": "of u2"}]
    assert walled.for_everybody().rows(RULES)[0] == {"user_id": EVA, "rules": "of u1"}


def test_users_are_kept_apart_over_few_connections_at_once(name: str) -> None:
    seen: list[tuple[str, list[str]]] = []

    def ask(user_id: str) -> None:
        for _ in range(100):
            seen.append((user_id, [row["user_id"] for row in database.of(user_id).rows(RULES)]))

    with closing(open_database(ENGINE.cluster.url(name), app_url=ENGINE.cluster.app_url(name), pool=2)) as database:
        second_wall.build(database)
        threads = [threading.Thread(target=ask, args=(user_id,)) for user_id in (EVA, TOM) * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert len(seen) == 800
    assert [each for each in seen if each[1] != [each[0]]] == []


def test_an_id_is_a_text_whatever_stands_in_it(walled: Store) -> None:
    for user_id in ("u1' OR true --", "\\'; RESET ROLE; --", 'u"1', "$1", "ü\n"):
        assert walled.of(user_id).rows(RULES) == []
        assert walled.of(user_id).rows("SELECT current_setting('app.user_id') AS said") == [{"said": user_id}]


def test_a_policy_stands_before_every_table_of_users(walled: Store) -> None:
    closed = walled.for_everybody().rows(
        "SELECT c.relname AS name, pg_get_expr(p.polqual, p.polrelid) AS says FROM pg_class AS c"
        " JOIN pg_policy AS p ON p.polrelid = c.oid WHERE c.relrowsecurity ORDER BY c.relname"
    )
    setting = "current_setting('app.user_id'::text, true)"
    assert {row["name"]: row["says"] for row in closed} == {
        **{table: f"({column} = {setting})" for table, column in OF_USERS.items()},
        "documents": "(name !~~ '%, sealed'::text)",
    }
    assert {*OF_USERS, *OF_ALL} == set(tables_of(walled.for_everybody()))


def test_a_table_that_a_later_version_brings_is_closed_at_its_start(walled: Store) -> None:
    walled.for_everybody().execute("DROP POLICY own_rows ON file_imports")
    walled.for_everybody().execute("ALTER TABLE file_imports DISABLE ROW LEVEL SECURITY")
    walled.for_everybody().execute(f"REVOKE ALL ON file_imports FROM {APP_ROLE}")
    second_wall.build(walled)
    test_a_policy_stands_before_every_table_of_users(walled)
    assert walled.of(EVA).rows("SELECT count(*) AS found FROM file_imports") == [{"found": 0}]


def test_a_role_that_no_policy_binds_is_refused(name: str) -> None:
    for whose, attributes in (("super", "SUPERUSER"), ("bypass", "BYPASSRLS"), ("member", "IN ROLE bankdata")):
        role = f"{whose}_{name}"
        ENGINE.cluster.sql(f"CREATE ROLE {role} LOGIN {attributes}")
        url = ENGINE.cluster.url(name).replace("bankdata@", f"{role}@")
        with (
            closing(open_database(ENGINE.cluster.url(name), app_url=url)) as database,
            pytest.raises(StoreError, match=rf"{role} is none: make one that owns no table"),
        ):
            second_wall.build(database)


def test_another_database_is_refused(name: str, walled: Store) -> None:
    with (
        closing(open_database(ENGINE.cluster.url(name), app_url=ENGINE.cluster.app_url("postgres"))) as database,
        pytest.raises(StoreError, match="must name the same database"),
    ):
        second_wall.build(database)


def test_a_role_of_another_server_is_refused(name: str) -> None:
    elsewhere = Cluster()
    try:
        elsewhere.sql("CREATE ROLE somebody LOGIN")
        url = elsewhere.url("postgres").replace("bankdata@", "somebody@")
        with (
            closing(open_database(ENGINE.cluster.url(name), app_url=url)) as database,
            pytest.raises(StoreError, match=r"must name the same database and .* somebody is none"),
        ):
            second_wall.build(database)
    finally:
        elsewhere.remove()


def test_a_store_in_a_file_has_no_such_wall(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="DATABASE_APP_URL is about PostgreSQL"):
        open_database(f"duckdb:///{tmp_path / 'store.duckdb'}", app_url=ENGINE.cluster.app_url("postgres"))


def test_a_role_that_may_not_come_in_is_said_at_the_start(name: str) -> None:
    url = ENGINE.cluster.url(name).replace("bankdata@", "nobody_at_all@")
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        open_database(ENGINE.cluster.url(name), app_url=url)


def test_without_a_wall_a_user_is_told_apart_by_the_statements_alone(name: str) -> None:
    with closing(open_database(ENGINE.cluster.url(name))) as store:
        assert len(store.of(EVA).rows(RULES)) == 2


def test_the_tables_of_a_new_store_are_closed_too(tmp_path: Path) -> None:
    url = ENGINE.url(tmp_path / "fresh.duckdb")
    name = url.rpartition("/")[2]
    with closing(open_database(url, app_url=ENGINE.cluster.app_url(name))) as database:
        runner.migrate(database, now=NOW)
        second_wall.build(database)
        second_wall.build(database)
        assert database.of(EVA).rows("SELECT id FROM users") == []
