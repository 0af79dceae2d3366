"""What every room's tests share: examples that are the same in every run, and a store in a folder of its own."""

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from storage.database import Database
from storage.migrations import runner

settings.register_profile(
    "project", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("project"), derandomize=False, max_examples=1500)
settings.load_profile("project")

NOW = datetime(2026, 11, 20, 12, 0, 0)  # noqa: DTZ001 - the store keeps UTC without zone


def examples(count: int) -> int:
    """So many examples of a property in the gate; 25 times as many under `--hypothesis-profile thorough`."""
    return count * settings().max_examples // 60


@pytest.fixture
def now() -> datetime:
    """Noon of the day on which the tests live."""
    return NOW


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty, migrated store: a real DuckDB file."""
    opened = empty_store(tmp_path / "bankdata.duckdb")
    yield opened
    opened.close()


def empty_store(path: Path) -> Database:
    """An empty, migrated store in a new file."""
    path.write_bytes(_migrated())
    return Database(path)


def empty_folder(path: Path) -> Path:
    """A new data folder with such a store, as `open_services` would make it in a third of a second."""
    path.mkdir(mode=0o700)
    (path / "bankdata.duckdb").write_bytes(_migrated())
    return path


@cache
def _migrated() -> bytes:
    """The file of an empty store: the migrations run once, and not for each of a thousand tests."""
    with TemporaryDirectory() as folder:
        made = Database(Path(folder) / "bankdata.duckdb")
        runner.migrate(made, now=NOW)
        made.close()
        return (Path(folder) / "bankdata.duckdb").read_bytes()
