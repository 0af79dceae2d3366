"""A plugin for the tests of an older program (`tests.storage.test_older_program`): their stores are made by the program
beside this file."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NEWER = Path(__file__).parents[2]
MIGRATE = (
    "import sys, datetime; from storage.engines.opening import open_database; from storage.migrations import runner;"
    " store = open_database(sys.argv[1]); runner.migrate(store, now=datetime.datetime(2026, 1, 1)); store.close()"
)


def pytest_configure() -> None:
    """Have the newer program make what the tests copy."""
    from tests import engines

    made_here = Path(engines.__file__)
    assert NEWER not in made_here.parents, f"{made_here} is the newer program's"

    @cache
    def migrated_file() -> bytes:
        with TemporaryDirectory() as folder:
            _make(f"duckdb:///{folder}/store")
            return (Path(folder) / "store").read_bytes()

    @cache
    def migrated_database(engine: Any) -> None:
        engine.cluster.sql(f"CREATE DATABASE {engines.TEMPLATE} {engines.EMPTY}")
        _make(engine.cluster.url(engines.TEMPLATE))

    engines._migrated_file, engines._migrated_database = migrated_file, migrated_database


def _make(url: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(NEWER)}
    subprocess.run([sys.executable, "-c", MIGRATE, url], env=environment, cwd=NEWER, check=True, timeout=60)
