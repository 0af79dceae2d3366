"""The incarnation of a store on PostgreSQL while it is open: a standby that lacks the last commits is promoted."""

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from storage import store_facts
from storage.changes.incarnation import Life
from storage.database import StoreUnavailable
from storage.migrations import runner
from tests.conftest import NOW
from tests.engines import Cluster, opened

pytestmark = pytest.mark.engine("postgresql")


@pytest.fixture
def mortal() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.remove()


def lose_commits(cluster: Cluster) -> None:
    """The cluster goes on from what it was when it was last stopped, on a timeline of its own, as a standby that is
    promoted does."""
    cluster.stop()
    data, standby = cluster.folder / "data", cluster.folder / "standby"
    shutil.rmtree(data)
    shutil.copytree(standby, data, copy_function=shutil.copy2)
    for path in (data, *data.rglob("*")):
        shutil.chown(path, cluster.folder.stat().st_uid)
    data.chmod(0o700)
    (data / "recovery.signal").touch()
    with (data / "postgresql.conf").open("a") as settings:
        settings.write("restore_command = 'false'\n")
    cluster.start()


@pytest.mark.requirement("changes.cursors")
def test_after_a_failover_that_lost_commits_every_process_begins_the_same_new_incarnation(mortal: Cluster) -> None:
    with closing(opened(mortal.url("postgres"))) as database:
        runner.migrate(database, now=NOW)
        Life(database)
    mortal.sql("CHECKPOINT")
    mortal.stop()
    shutil.copytree(mortal.folder / "data", mortal.folder / "standby", copy_function=shutil.copy2)
    mortal.start()
    with closing(opened(mortal.url("postgres"))) as one, closing(opened(mortal.url("postgres"))) as other:
        lives = Life(one), Life(other)
        before = lives[0].present
        store_facts.remember(one, "told", "and lost")
        assert [life.is_doubtful for life in lives] == [False, False]
        lose_commits(mortal)
        for database, life in zip((one, other), lives, strict=True):
            with suppress(StoreUnavailable):
                assert store_facts.recall(database, "told") is None
            assert life.is_doubtful
            life.settle()
            assert not life.is_doubtful
        later = Life(one).present
        assert (lives[0].present, lives[1].present) == (later, later)
        assert (later.id == before.id, later.key == before.key) == (False, True)
