"""The way back: the oldest program that may run on a store of this one runs its own tests of the store on such stores.

It is taken from the history of this repository: the last commit before the first migration that it does not know.
"""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from storage.migrations import runner
from tests.engines import ENGINE

ROOT = Path(__file__).parents[2]
OF_THE_STORE = (
    "(test_contributions or test_jobs or test_kept_cursors or test_detections or test_documents or test_second_wall or"
    " test_complete_windows) and not before_every_table and not later_version_brings"  # these two name all tables
)


def oldest() -> int:
    """The number of the last migration that the oldest program knows which may run on a store of now."""
    numbers = [each.number for each in runner.migrations()]
    return next(number for number in numbers if runner.needed_after(number) <= number)


def program(number: int) -> bytes:
    """The files of the last program that knew this migration and no later one."""
    later = f"storage/migrations/{number + 1:03d}_*.sql"
    found = subprocess.run(
        ["git", "log", "--diff-filter=A", "--format=%H", "--", later], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    if not found:
        pytest.skip(f"the program before {later} is not in this clone: git fetch --unshallow")
    return subprocess.run(["git", "archive", f"{found[-1]}^"], cwd=ROOT, capture_output=True, check=True).stdout


@pytest.mark.no_cover
@pytest.mark.engine("one server" if ENGINE.name == "postgresql" else "duckdb")
@pytest.mark.requirement("upgrade.back")
def test_the_oldest_program_that_may_runs_its_own_tests_on_stores_of_this_one(tmp_path: Path) -> None:
    known = oldest()
    if known == runner.migrations()[-1].number:
        pytest.skip("no older program may run on a store of this one")
    with tarfile.open(fileobj=BytesIO(program(known))) as archive:
        archive.extractall(tmp_path, filter="data")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    chosen = ["--engine", ENGINE.name, "-k", OF_THE_STORE, "-x", "-p", "stores_of_a_newer_program"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/storage", *chosen, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
