"""What every room's tests share: examples that are the same in every run, and a store in a folder of its own."""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from storage.database import Database
from tests.engines import ENGINE, NONE, programs

settings.register_profile(
    "project", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("project"), derandomize=False, max_examples=1500)
settings.load_profile("project")

NOW = datetime(2026, 11, 20, 12, 0, 0)  # noqa: DTZ001 - the store keeps UTC without zone


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--engine postgresql` runs the same tests over PostgreSQL."""
    parser.addoption("--engine", choices=("duckdb", "postgresql"), default="duckdb")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the engine before the first store is made."""
    ENGINE.name = config.getoption("--engine")
    if ENGINE.name == "postgresql" and programs() is None:
        raise pytest.UsageError(NONE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is about the file of the other engine, or about the other engine alone."""
    for item in items:
        marker = item.get_closest_marker("engine")
        if marker is not None and marker.args[0] != ENGINE.name:
            item.add_marker(pytest.mark.skip(reason=f"about {marker.args[0]} alone"))


def pytest_unconfigure() -> None:
    """Stop the cluster that was started."""
    ENGINE.end()


def examples(count: int) -> int:
    """So many examples of a property in the gate; 25 times as many under `--hypothesis-profile thorough`."""
    return count * settings().max_examples // 60


@pytest.fixture(autouse=True)
def traced() -> Iterator[None]:
    """A test that takes the tracer away hides from coverage what every test after it runs: that test fails."""
    before = sys.gettrace()
    yield
    assert (sys.gettrace() is None) == (before is None), "the tracer of coverage was not put back"


@pytest.fixture
def now() -> datetime:
    """Noon of the day on which the tests live."""
    return NOW


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """An empty, migrated store: a real one, of the chosen engine."""
    opened = empty_store(tmp_path / "bankdata.duckdb")
    yield opened
    opened.close()


def empty_store(path: Path) -> Database:
    """An empty, migrated store in a new file."""
    return ENGINE.empty_store(path)


def empty_folder(path: Path) -> Path:
    """A new data folder with such a store, as `open_services` would make it in a third of a second."""
    path.mkdir(mode=0o700)
    ENGINE.empty_store(path / "bankdata.duckdb").close()
    return path
