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
from tests.archives import unpack
from tests.engines import ENGINE

ROOT = Path(__file__).parents[2]
OF_THE_STORE = ("contributions", "jobs", "kept_cursors", "detections", "documents", "second_wall", "complete_windows")
NAME_ALL_TABLES = "before_every_table or later_version_brings"


def oldest() -> int:
    """The number of the last migration that the oldest program knows which may run on a store of now."""
    numbers = [each.number for each in runner.migrations()]
    return next(number for number in numbers if runner.version_needed_after(number) <= number)


def program(number: int) -> str | None:
    """The last commit that knew this migration and no later one; None where the history has none."""
    folder = "storage/migrations/"
    added = said_by_git("log", "--diff-filter=A", "--format=%H", "--", f"{folder}{number + 1:03d}_*.sql").split()
    before = f"{added[-1]}^" if added else ""
    known = said_by_git("ls-tree", "--name-only", before, folder).split() if added else []
    return before if any(each.startswith(f"{folder}{number:03d}_") for each in known) else None


def said_by_git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout


@pytest.mark.no_cover
@pytest.mark.engine("one server" if ENGINE.name == "postgresql" else "duckdb")
@pytest.mark.requirement("upgrade.back")
@pytest.mark.long
def test_the_oldest_program_that_may_runs_its_own_tests_on_stores_of_this_one(tmp_path: Path) -> None:
    older = filter(None, map(program, range(oldest(), runner.migrations()[-1].number)))
    commit = next(older, None)
    if commit is None:
        pytest.skip("no program that may run on a store of this one is in this clone: git fetch --unshallow")
    files = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(files)) as archive:
        unpack(archive, tmp_path)
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    named = (tmp_path / "tests/storage" / f"test_{name}.py" for name in OF_THE_STORE)
    chosen = ["--engine", ENGINE.name, "-k", f"not ({NAME_ALL_TABLES})", "-x", "-p", "stores_of_a_newer_program"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *filter(Path.exists, named), *chosen, "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": f"{tmp_path}:{Path(__file__).parent}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert " passed" in done.stdout
