"""The service as a client meets it: `bankdata demo` in a process and on a port of its own, over a copied store."""

import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from handlers.commands import control_socket
from tests.engines import ENGINE, made_once
from tests.engines import free_port as free_port

ALL_SCOPES = "read:accounts read:transactions read:cashflow"
START_SECONDS_MAX = 600.0  # four seconds on an idle machine
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # for plain HTTP: reading whom to believe takes each client 16 ms
BANKDATA = Path(sys.executable).with_name("bankdata")

Json = dict[str, Any]


def environment(is_measured: bool = True, /, **settings: str) -> dict[str, str]:
    """The environment without settings of whoever runs the tests, and with buffers as people have them. A process that
    will be killed writes no coverage and need not be measured, which takes as long again as its start."""
    left_out = ("BANKDATA_", "PYTHONUNBUFFERED", *(() if is_measured else ("COVERAGE_",)))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, **{f"BANKDATA_{name}": value for name, value in settings.items()}}


@dataclass
class Said:
    """A report that keeps the lines of the result."""

    lines: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


@dataclass
class Served:
    """A running `bankdata demo` or `bankdata serve`."""

    folder: Path
    port: int
    process: "subprocess.Popen[str]"
    log: Path
    clients: dict[tuple[str, str], httpx.Client] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.address}/api/v1"

    def command(self, name: str, /, **arguments: Any) -> list[str]:
        """A command of `bankdata` through the control socket, as the command line does it; the lines it prints."""
        said = Said()
        control_socket.ask(self.folder, name, arguments, said)
        return said.lines

    def token(self, user: str, scope: str = ALL_SCOPES, seconds: int = 30 * 86_400) -> str:
        (token,) = self.command("token", user=user, scope=scope, seconds=seconds)
        return token

    def client(self, user: str, scope: str = ALL_SCOPES) -> httpx.Client:
        """A client with a token of this user, kept for the life of the server."""
        if (user, scope) not in self.clients:
            self.clients[user, scope] = self.bare(self.token(user, scope))
        return self.clients[user, scope]

    def bare(self, token: str | None = None) -> httpx.Client:
        """A client with this token or none; connections are its own."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.base_url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)

    def advance(self, seconds: int) -> None:
        self.command("clock advance", seconds=seconds)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the process by a signal; its exit code."""
        for client in self.clients.values():
            client.close()
        self.clients.clear()
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()
        return code


Start = Callable[..., Served]


def start(
    folder: Path,
    *,
    command: str = "demo",
    settings: Mapping[str, str] | None = None,
    is_measured: bool = True,
    arguments: Sequence[str] = (),
) -> Served:
    """Start a server and wait until it answers."""
    port = free_port()
    log = folder.with_name(f"{folder.name}.{port}.log")
    told = {**ENGINE.environment(folder), **environment(is_measured, **{"RATE_LIMIT": "off", **(settings or {})})}
    program: list[str | Path] = [BANKDATA]
    if "COVERAGE_PROCESS_CONFIG" in told:
        told["COVERAGE_AFTER_LOADING"] = told.pop("COVERAGE_PROCESS_CONFIG")
        program = [sys.executable, "-P", Path(__file__).with_name("traced_server.py")]
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*program, command, "--data", folder, "--port", str(port), *arguments],
            env=told,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    served = Served(folder, port, process, log)
    deadline = time.monotonic() + START_SECONDS_MAX
    with httpx.Client(timeout=60, trust_env=False, verify=NO_TLS) as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                process.communicate()
                raise AssertionError(f"the server ended at its start: {log.read_text()}")
            try:
                if client.get(f"{served.address}/api/openapi.json").status_code == 200:
                    return served
            except httpx.TransportError:
                time.sleep(0.05)
    process.kill()
    process.communicate()
    raise AssertionError(f"the server did not start: {log.read_text()}")


@contextmanager
def running(folder: Path, **how: Any) -> Iterator[Served]:
    """A server that ends with the block."""
    served = start(folder, **how)
    try:
        yield served
    finally:
        served.stop()


def _make_demo(folder: Path) -> None:
    with running(folder, is_measured=False) as served:
        assert served.stop() == 0, served.log.read_text()


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `bankdata demo` makes in an empty place, with no server; tests copy it."""
    return made_once(tmp_path_factory.getbasetemp(), "demo", _make_demo)


@pytest.fixture(scope="session")
def copied(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes copies of the demo's folder."""
    return lambda: ENGINE.copy(demo_store, tmp_path_factory.mktemp("copy") / "data")


@pytest.fixture(scope="session")
def service(copied: Callable[[], Path]) -> Iterator[Served]:
    """The server of all tests that only read."""
    with running(copied(), is_measured=ENGINE.name == "duckdb") as served:
        yield served
    assert "Traceback" not in served.log.read_text()


@pytest.fixture(scope="module")
def own_service(copied: Callable[[], Path]) -> Iterator[Served]:
    """A server for the tests of one module, which may move its clock and add users."""
    with running(copied(), is_measured=ENGINE.name == "duckdb") as served:
        yield served
    assert "Traceback" not in served.log.read_text()


def get(client: httpx.Client, path: str, **parameters: Any) -> Any:
    """The body of a request that has to succeed."""
    answer = client.get(path, params=parameters)
    assert answer.status_code == 200, (path, parameters, answer.status_code, answer.text)
    return answer.json()


def account_ids(client: httpx.Client) -> list[str]:
    return [account["id"] for account in get(client, "/accounts")["accounts"]]


def everything(client: httpx.Client, **parameters: Any) -> list[Json]:
    """All transactions of a selection, page by page."""
    ids = ",".join(account_ids(client))
    rows: list[Json] = []
    page = 1
    while True:
        asked = {"accountIds": ids, "perPage": 100, "page": page, **parameters}
        body = get(client, "/transactions", **asked)
        rows += body["transactions"]
        if page >= body["pagination"]["pageCount"]:
            return rows
        page += 1


def errors_of(answers: Sequence[httpx.Response]) -> set[str]:
    return {answer.json()["error"] for answer in answers}
