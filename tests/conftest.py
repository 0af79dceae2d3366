"""What every room's tests share: examples that are the same in every run, and a store in a folder of its own."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from storage.database import Database
from storage.migrations import runner

settings.register_profile(
    "project", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")

NOW = datetime(2026, 11, 20, 12, 0, 0)  # noqa: DTZ001 - the store keeps UTC without zone


@pytest.fixture
def now() -> datetime:
    """Noon of the day on which the tests live."""
    return NOW


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty, migrated store: a real DuckDB file."""
    opened = Database(tmp_path / "bankdata.duckdb")
    runner.migrate(opened, now=NOW)
    yield opened
    opened.close()
