"""`bankdata distribute`: what it refuses everywhere, and what it does on a cluster (docs/testing.md).

There every test of storage runs on spread stores, and a statement that asks all machines fails its test.
"""

from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from handlers.commands.control_socket import CommandError
from handlers.commands.larger_stores import distribute as command
from handlers.settings import load
from storage import users
from storage.engines import distribution
from storage.migrations import runner
from storage.migrations.runner import Migration
from storage.row_owners import OF_ALL, OF_USERS
from tests.conftest import NOW
from tests.engines import ENGINE, KEYS_SECRET, OpenStore, opened
from tests.service.conftest import Said

on_a_cluster = pytest.mark.engine("citus")


@pytest.mark.requirement("distribute.refused")
def test_a_store_that_cannot_be_spread_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Set BANKDATA_DATABASE_URL to the PostgreSQL database"):
        command(load({}, data_dir=tmp_path), Said())


@pytest.mark.engine("postgresql")
@pytest.mark.requirement("distribute.refused")
def test_a_database_without_citus_is_refused_in_a_sentence(tmp_path: Path) -> None:
    ENGINE.cluster.sql("CREATE DATABASE alone TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")
    given = {"BANKDATA_DATABASE_URL": ENGINE.cluster.url("alone"), "BANKDATA_KEYS_SECRET": KEYS_SECRET}
    with pytest.raises(CommandError, match=r"This PostgreSQL has no Citus: CREATE EXTENSION citus"):
        command(load(given, data_dir=tmp_path), Said())


def add(database: OpenStore, name: str) -> str:
    user = users.add(
        database, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=NOW, user_id=f"u{name}"
    )
    amounts = pl.DataFrame({"user_id": [user.id] * 9, "sequence": range(9), "transaction_id": map(str, range(9))})
    said = pl.lit("added").alias("change"), pl.lit("job").alias("job_id"), pl.lit(NOW).alias("recorded_at")
    database.append("journal", amounts.with_columns(*said))
    return user.id


def tables_by_kind(database: OpenStore) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in database.rows("SELECT logicalrelid::TEXT AS name, partmethod::TEXT AS kind FROM pg_dist_partition"):
        if "." not in row["name"]:  # of another test's schema
            found.setdefault(row["kind"], set()).add(row["name"])
    return found


@on_a_cluster
@pytest.mark.requirement("distribute")
def test_a_filled_store_is_spread_by_user_whole_and_once(tmp_path: Path) -> None:
    assert ENGINE.citus is not None
    with closing(opened(ENGINE.citus.plain(tmp_path / "filled"))) as database:
        added = [add(database, name) for name in ("eva", "tom", "ada", "kim")]
        done = distribution.distribute(database, alone=False)
        assert (set(done.spread), set(done.local)) == (set(OF_USERS), set(OF_ALL))
        assert (done.machines, done.shards) == (2, 4)
        assert tables_by_kind(database) == {"h": set(OF_USERS), "n": set(OF_ALL)}
        for user_id in added:
            assert len(database.rows("SELECT sequence FROM journal WHERE user_id = $1", user_id)) == 9
        [left] = database.rows("SELECT pg_relation_size('journal'::REGCLASS) AS bytes")
        assert left == {"bytes": 0}, "no copy of the rows is left on the coordinator"
        again = distribution.distribute(database, alone=False)
        assert (again.spread, again.local) == ((), ())


@on_a_cluster
@pytest.mark.requirement("distribute")
def test_a_table_of_a_later_migration_is_spread_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "ALTER TABLE jobs ADD COLUMN n INTEGER; CREATE TABLE later (user_id TEXT NOT NULL, n INTEGER NOT NULL)"
    later = Migration(999, "999_later.sql", sql)
    known = [*runner.migrations(), later]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    monkeypatch.setattr(distribution, "OF_USERS", {**OF_USERS, "later": "user_id"})
    with closing(opened(ENGINE.url(tmp_path / "store"))) as database:
        assert runner.migrate(database, now=NOW) == ["999_later.sql"]
        assert "later" in tables_by_kind(database)["h"]
