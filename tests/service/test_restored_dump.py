"""`bankdata upgrade-check --restored`: the rehearsal of an upgrade on a restored dump of PostgreSQL."""

from contextlib import closing
from pathlib import Path

import pytest

from storage import backup
from storage.engines.opening import open_database
from storage.migrations import runner
from tests.cli.conftest import bankdata
from tests.engines import ENGINE

pytestmark = [pytest.mark.engine("one server"), pytest.mark.requirement("upgrade.check")]


def given(folder: Path) -> dict[str, str]:
    """The settings of a store of these tests, as `bankdata` takes them."""
    return {name.removeprefix("BANKDATA_"): text for name, text in ENGINE.environment(folder).items()}


def test_a_restored_dump_of_postgresql_is_brought_up_to_date_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, copy = tmp_path / "live", tmp_path / "copy"
    assert bankdata("users", "add", "eva", "--random", "--data", live, settings=given(live)).code == 0
    ENGINE.copy(live, copy)  # as pg_restore makes it of a dump
    known = [
        *runner.migrations(),
        runner.Migration(999, "999_later.sql", "-- needs 031\nCREATE INDEX later ON users (created_at)"),
    ]
    monkeypatch.setattr(runner, "migrations", lambda: known)
    done = bankdata("upgrade-check", "--restored", "--data", tmp_path / "new", settings=given(copy))
    assert done.code == 0, done.err
    what, steps, name, index, kept, back, verdict = done.lines
    assert what.startswith("restored   postgresql://")
    assert what.endswith(f", schema version {known[-2].number}")
    assert (steps.startswith("steps      1 step in "), name) == (True, "           999_later.sql")
    assert index.startswith("index      later in ")
    assert kept.startswith("kept       1 users, ")
    assert back == "way back   the old program can be started again on the new store"
    assert verdict.startswith("ok ")
    with closing(open_database(ENGINE.url(live / backup.STORE_NAME))) as store:
        assert runner.current_version(store.for_everybody()) == known[-2].number
    wrong = {**given(copy), "KEYS_SECRET": "another secret of 32 characters or more"}
    assert bankdata("upgrade-check", "--restored", "--data", tmp_path / "new", settings=wrong).failed_with(
        "KEYS_SECRET"
    )


def test_a_database_that_is_in_use_is_not_taken_for_a_restored_dump(tmp_path: Path) -> None:
    settings = given(tmp_path)
    assert bankdata("upgrade-check", "--data", tmp_path, settings=settings).failed_with("and say --restored.")
    with closing(open_database(ENGINE.url(tmp_path / backup.STORE_NAME), pool=1)):
        refused = bankdata("upgrade-check", "--restored", "--data", tmp_path, settings=settings)
    assert refused.failed_with("has 1 other open connection. It would be changed")
    database = settings["DATABASE_URL"].rpartition("/")[2]
    assert ENGINE.cluster.sql("SELECT 1 FROM pg_tables WHERE tablename = 'users'", database) == []
