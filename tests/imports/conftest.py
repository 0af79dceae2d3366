"""What the tests of imports share: the real command line on a store of its own, and files to import."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.checked_commits import checked_commits
from tests.engines import ENGINE
from tests.imports.command_line import Shell
from tests.imports.household import Household

__all__ = ["checked_commits"]  # for these tests, too


@pytest.fixture(scope="session")
def eva_and_tom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with these two users, made once; tests copy it."""
    made = Shell(tmp_path_factory.mktemp("eva_and_tom") / "data")
    for name in ("eva", "tom"):
        made("users", "add", name, "--random")
    return made.folder


@pytest.fixture
def shell(tmp_path: Path, eva_and_tom: Path) -> Shell:
    """A store with the users eva and tom."""
    return Shell(ENGINE.copy(eva_and_tom, tmp_path / "data"))


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Puts a file of this content somewhere and says where."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / "files" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


@pytest.fixture
def new_household(tmp_path: Path) -> Iterator[Callable[[str], Household]]:
    made: list[Household] = []

    def make(name: str) -> Household:
        made.append(Household(tmp_path / name))
        return made[-1]

    yield make
    for each in made:
        each.services.close()


@pytest.fixture
def eva(new_household: Callable[[str], Household]) -> Household:
    """A household of its own."""
    return new_household("eva")
