"""A real `bankdata demo` in a process of its own, for tools that know nothing of Python."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.cli.conftest import bankdata

COMMAND = str(Path(sys.executable).with_name("bankdata"))
SCOPES = "read:accounts read:transactions read:cashflow"
WRITING = "write:imports write:rules write:accounts read:annotations write:annotations"
START_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status, the header fields in lower case, the body as JSON."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Demo:
    """A running demo: where it answers, and where its store is."""

    origin: str
    folder: Path

    @property
    def base_url(self) -> str:
        return f"{self.origin}/api/v1"

    def token(self, user: str, scope: str = SCOPES) -> str:
        """An access token with every scope that reads, from the command line."""
        return self.command("token", "--user", user, "--scope", scope)

    def command(self, *words: str) -> str:
        """What a command prints that is typed beside the server, without waiting for another Python to start."""
        done = bankdata(*words, "--data", self.folder)
        if done.code != 0:
            raise RuntimeError(f"{words} failed: {done.err}")
        return done.out.strip()

    def call(self, method: str, path: str, token: str) -> Answer:
        """One request of the data interface; refusals are answers too."""
        request = Request(self.base_url + path, method=method, headers={"Authorization": f"Bearer {token}"})
        try:
            with urlopen(request, timeout=60) as response:
                return Answer(response.status, _lower(response.headers), json.load(response))
        except HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, _lower(refusal.headers), json.load(refusal))

    def read(self, path: str, token: str) -> Any:
        """The body of a GET that must succeed."""
        answer = self.call("GET", path, token)
        if answer.status != 200:
            raise RuntimeError(f"GET {path} answered {answer.status}: {answer.body}")
        return answer.body

    def finished_sync(self, token: str) -> str:
        """A sync job of the user, read until its end; a running one is waited for."""
        deadline = time.monotonic() + START_SECONDS
        while (started := self.call("POST", "/sync", token)).status == 429 and time.monotonic() < deadline:
            time.sleep(min(2, int(started.headers["retry-after"])))
        jobs = [job["syncId"] for job in started.body["syncJobs"]]
        while any(self.read(f"/sync/{job}", token)["status"] not in ("completed", "failed") for job in jobs):
            if time.monotonic() > deadline:
                raise RuntimeError(f"These jobs do not end: {jobs}")
            time.sleep(0.05)
        return str(jobs[0])


@contextmanager
def running_demo(folder: Path, **settings: str) -> Iterator[Demo]:
    """`bankdata demo` over `folder` on a free port, with settings like RATE_LIMIT="off", until the block ends."""
    port = _free_port()
    with (folder / "demo.log").open("ab") as log:
        process = subprocess.Popen(
            [COMMAND, "demo", "--data", str(folder / "data"), "--port", str(port)],
            env=environment(**settings),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    demo = Demo(f"http://127.0.0.1:{port}", folder / "data")
    try:
        _wait(demo, process, folder / "demo.log")
        yield demo
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment(**settings: str) -> dict[str, str]:
    """This process's environment without any setting of the service but the given ones, and without coverage: these
    servers are there for the tools of others."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("BANKDATA_", "COVERAGE_"))}
    return inherited | {f"BANKDATA_{name}": value for name, value in settings.items()}


def _wait(demo: Demo, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urlopen(f"{demo.origin}/api/openapi.json", timeout=60):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The demo does not answer:\n{log.read_text(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
