"""The servers that are measured, each in a process of its own, and what they take of the machine."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGTERM

import psutil

from handlers.commands.control_socket import CommandError
from handlers.settings import load
from tests.benchmarks.bench.store import Audience

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS_MAX = 300  # on a machine that is busy with other things
STOP_SECONDS_MAX = 15
SETTINGS_TAKEN = ("BANKDATA_CACHE_MB",)  # others would lead to another store or another address


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredServer:
    """One that runs, and who asks it."""

    name: str
    port: int
    process: psutil.Process
    audience: Audience

    def answer(self, path: str, token: str) -> bytes:
        """What it answers once; raises CommandError unless that is a success."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_SECONDS_MAX)) as connection:
            try:
                connection.request("GET", f"/api/v1{path}", headers={"Authorization": f"Bearer {token}"})
                got = connection.getresponse()
                body = got.read()
            except OSError as error:
                raise CommandError(f"{self.name} does not answer: {error}") from error
        if got.status != 200:
            said = body[:200].decode(errors="replace")
            raise CommandError(f"{self.name} answers {path} with {got.status}: {said}")
        return body

    def processor_seconds(self) -> float:
        """The processor time that it and its children have taken so far."""
        times = [process.cpu_times() for process in self._processes()]
        # Those that have ended count with their parents
        return sum(each.user + each.system + each.children_user + each.children_system for each in times)

    def memory_bytes(self) -> int:
        """The memory that it takes; what several processes share counts once."""
        processes = self._processes()
        if len(processes) == 1:
            return int(processes[0].memory_info().rss)
        return sum(int(each.memory_full_info().pss) for each in processes)

    def _processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def running(
    name: str, arguments: Sequence[str], port: int, audience: Audience, folder: Path
) -> Iterator[MeasuredServer]:
    """Start the program with these arguments to Python, wait until it listens, and end it at last; raises
    CommandError."""
    log = folder / f"{name}.log"
    with ExitStack() as stack:
        with log.open("wb") as output, _signals_afterwards():
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for us, who end it in order
            )
            stack.callback(_end, process)
        _wait(process, port, name, log)
        yield MeasuredServer(name=name, port=port, process=psutil.Process(process.pid), audience=audience)


@contextmanager
def _signals_afterwards() -> Iterator[None]:
    """What would end us waits for the end of the block: a process that has begun is known to whoever ends it."""
    came: list[int] = []
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in (SIGINT, SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in came:
        signal.raise_signal(number)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS_MAX)
    if process.poll() is None:
        process.kill()
        process.wait()


def called(function: str, *arguments: object) -> list[str]:
    """Arguments to Python that call `main` of a module; no file of the folder we are in can get in between."""
    return ["-c", f"from {function} import main; main()", *map(str, arguments)]


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BANKDATA_") or k in SETTINGS_TAKEN}
    # The address that the tokens name, whichever port is asked
    own = {"RATE_LIMIT": "off", "LOG_LEVEL": "error", "PUBLIC_URL": load({}).public_url}
    return {**kept, **{f"BANKDATA_{name}": value for name, value in own.items()}}


def _wait(process: subprocess.Popen[bytes], port: int, name: str, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS_MAX
    while process.poll() is None and time.monotonic() < give_up:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    last = log.read_text(errors="replace").strip().splitlines()[-1:]
    raise CommandError(f"{name} did not start: {last[0] if last else 'it said nothing'}")
