"""Runs a client program and plays the person in its browser: opens what it prints, signs in, allows."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tests.oauth.conftest import fields

FOLDER = Path(__file__).parent
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "clients.md"
PASSWORD = "umbrella-kettle-violin"
SECONDS_MAX = 60
PACKAGES = ("oauth4webapi", "openid-client", "@modelcontextprotocol/sdk")

# Without node there is nothing to run the JavaScript clients with; .ci/run installs it
collect_ignore = [] if shutil.which("npm") else ["test_javascript_clients.py"]

Run = Callable[..., str]


def documented(language: str, holding: str) -> str:
    """The example in docs/clients.md of this language that holds a text."""
    blocks = re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if holding in block]
    return str(block)


@pytest.fixture(scope="session")
def example() -> Callable[[str, str], str]:
    return documented


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the JavaScript clients installed."""
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    npm = shutil.which("npm") or "npm"
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES]
    subprocess.run(command, cwd=folder, check=True, timeout=300, capture_output=True)
    return folder


@pytest.fixture
def run(live: Any, tmp_path: Path) -> Iterator[Run]:
    """Runs a program text against the live server and returns what it printed."""
    processes: list[subprocess.Popen[str]] = []

    def start(text: str, command: str, folder: Path = tmp_path, suffix: str = "", answers_code: bool = False) -> str:
        base = live.server.policy.public_url
        file = folder / f"client{len(processes)}{suffix}"
        file.write_text(text.replace("http://127.0.0.1:8000", base))
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "OAUTHLIB_INSECURE_TRANSPORT": "1"}
        process = subprocess.Popen(
            [command, str(file)],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        processes.append(process)
        deadline = threading.Timer(SECONDS_MAX, process.kill)
        deadline.start()
        assert process.stdout is not None
        printed = ""
        with httpx.Client(base_url=base, follow_redirects=False, timeout=60) as browser:
            for line in process.stdout:
                printed += line
                match = re.match(r"Open (http\S+)", line)
                if match:
                    back = allow(browser, match[1])
                    if answers_code:
                        assert process.stdin is not None
                        process.stdin.write(dict(httpx.URL(back).params)["code"] + "\n")
                        process.stdin.flush()
                    else:
                        httpx.get(back, timeout=60)
        code = process.wait(SECONDS_MAX)
        deadline.cancel()
        assert code == 0, printed
        return printed

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def allow(browser: httpx.Client, address: str) -> str:
    """Where the browser is sent after signing in, if need be, and allowing."""
    page = browser.get(address)
    if "/oauth/login" in page.headers["location"]:
        form = fields(browser.get(page.headers["location"]).text)
        page = browser.post("/oauth/login", data={**form, "username": "alice", "password": PASSWORD})
    assert urlsplit(page.headers["location"]).path == "/oauth/consent"
    form = fields(browser.get(page.headers["location"]).text)
    return browser.post("/oauth/consent", data={**form, "decision": "allow"}).headers["location"]


@pytest.fixture(scope="session")
def python() -> str:
    return sys.executable
