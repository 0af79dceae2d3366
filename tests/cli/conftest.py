"""`bankdata` as a person uses it: here by click, or as a process of its own, with and without a running server."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner

from handlers.cli import main
from tests.service.conftest import BANKDATA, Served, copied, demo_store, environment, running

__all__ = ["copied", "demo_store"]  # fixtures of the service's tests, for these too


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def failed_with(self, text: str) -> bool:
        """Whether it failed with one line on standard error that holds the text, and nothing else but a new store."""
        lines = [line for line in self.err.splitlines() if not line.startswith("Made a new store in ")]
        return self.code == 1 and len(lines) == 1 and lines[0].startswith("Error: ") and text in lines[0]


def bankdata(*arguments: object, stdin: str | None = None, settings: Mapping[str, str] | None = None) -> Done:
    """Run a command in this process."""
    clean = dict.fromkeys((name for name in os.environ if name.startswith("BANKDATA_")), None)
    given = {f"BANKDATA_{name}": value for name, value in (settings or {}).items()}
    before = os.umask(0o022)
    try:
        result = CliRunner().invoke(main, [str(each) for each in arguments], input=stdin, env={**clean, **given})
    finally:
        os.umask(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def bankdata_process(*arguments: object, **settings: str) -> "subprocess.Popen[str]":
    """Start a command as a process of its own."""
    return subprocess.Popen(
        [BANKDATA, *map(str, arguments)],
        env=environment(**settings),
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # without a terminal
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


Run = Callable[..., Done]

# For a test of many commands: each opens the store anew where no server has it
mostly_beside_a_server = pytest.mark.parametrize(
    "place", [pytest.param("no server", marks=pytest.mark.long), "a server"], indirect=True, scope="module"
)


@pytest.fixture(scope="module", params=["no server", "a server"])
def place(request: pytest.FixtureRequest, copied: Callable[[], Path]) -> Iterator[Path]:
    """A demo's data folder, once by itself and once while a server has it open."""
    folder = copied()
    if request.param == "no server":
        yield folder
    else:
        with running(folder):
            yield folder


@pytest.fixture(scope="module")
def served(copied: Callable[[], Path]) -> Iterator[Served]:
    """A running demo."""
    with running(copied()) as service:
        yield service


@pytest.fixture
def run(place: Path) -> Run:
    """Runs a command on the folder."""
    return lambda *arguments, **further: bankdata(*arguments, "--data", place, **further)


NewUser = Callable[..., str]
NUMBERS = count()


@pytest.fixture
def new_user(run: Run) -> NewUser:
    """A user of its own for a test, with a bank of one account if asked for."""

    def make(*, bank: bool = False) -> str:
        name = f"person{next(NUMBERS)}"
        assert run("users", "add", name, "--random").code == 0
        if bank:
            assert run("connect", "demo", "--user", name, "--accounts", 1, "--bank", "Testbank").code == 0
        return name

    return make
