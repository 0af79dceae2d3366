"""Servers are started, watched and ended, whatever they do."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from handlers.commands.control_socket import CommandError
from tests.bench.conftest import AUDIENCE
from tests.benchmarks.bench import peers, servers
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.peers import Rival
from tests.benchmarks.bench.servers import free_port, running
from tests.benchmarks.bench.workload import WORKS
from tests.cli.conftest import bankdata
from tests.service.conftest import Said

POPEN = subprocess.Popen
LISTENS = """
import signal, socket, subprocess, sys, time
{before}
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    time.sleep(60)
"""
SERVES = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = BODY
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

HTTPServer(("127.0.0.1", int(sys.argv[3])), Handler).serve_forever()
"""


@pytest.mark.requirement("bench.clean")
def test_a_server_that_does_not_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    for program, words in (("raise SystemExit('Well.\\nno store there')", "no store there"), ("", "it said nothing")):
        with (
            pytest.raises(CommandError, match=f"ours did not start: {words}"),
            running("ours", ["-c", program], free_port(), AUDIENCE, tmp_path),
        ):
            raise AssertionError


@pytest.mark.requirement("bench.clean")
def test_a_server_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "STOP_SECONDS_MAX", 0.1)
    port = free_port()
    program = LISTENS.format(before="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    with running("stubborn", ["-c", program, str(port)], port, AUDIENCE, tmp_path) as server:
        pass
    assert not server.process.is_running()


@pytest.mark.requirement("bench.clean")
def test_a_signal_at_the_moment_in_which_a_server_begins_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupted(*arguments: Any, **how: Any) -> subprocess.Popen[bytes]:
        started.append(POPEN(*arguments, **how))
        signal.raise_signal(signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    port = free_port()
    with (
        pytest.raises(KeyboardInterrupt),
        running("ours", ["-c", LISTENS.format(before=""), str(port)], port, AUDIENCE, tmp_path),
    ):
        raise AssertionError
    (server,) = started
    assert server.returncode is not None


@pytest.mark.requirement("bench.truthful")
def test_processor_time_and_memory_are_those_of_children_too(tmp_path: Path) -> None:
    port = free_port()
    child = "x = bytearray(100_000_000); [i for i in range(3_000_000)]; import time; time.sleep(600)"
    before = (
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "signal.signal(signal.SIGTERM, lambda *_: (child.kill(), sys.exit()))"
    )
    with running("two", ["-c", LISTENS.format(before=before), str(port)], port, AUDIENCE, tmp_path) as server:
        alone = sum(server.process.cpu_times()[:2])
        (second,) = server.process.children()
        while sum(second.cpu_times()[:2]) < 0.05 or second.memory_info().rss < 100_000_000:
            time.sleep(0.01)
        assert server.processor_seconds() >= alone + 0.05
        assert server.memory_bytes() >= 100_000_000


@pytest.mark.requirement("bench.truthful")
def test_an_answer_that_is_no_success_is_shown(answering: Callable[..., Any]) -> None:
    with (
        answering(lambda _: (503, b"later")) as (server, _),
        pytest.raises(CommandError, match="a server answers /accounts with 503: later"),
    ):
        server.answer("/accounts", "eva")
    with pytest.raises(CommandError, match="a server does not answer"):
        server.answer("/accounts", "eva")


@pytest.mark.requirement("bench.peers")
def test_peers_need_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", (Rival(name="P", program="p.py", packages=("json", "not_there"), store="s"),))
    assert bankdata("bench", "--peers").failed_with("--peers needs packages: pip install not_there")
    monkeypatch.setattr(peers, "PEERS", (Rival(name="P", program="p.py", packages=("json",), store="s"),))
    peers.check()


@pytest.mark.requirement("bench.peers")
def test_an_installed_service_says_that_measuring_comes_with_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tests.benchmarks.bench.command", None)  # as where it cannot be imported
    assert bankdata("bench").failed_with("comes with a checkout of the project: clone it and pip install -e '.[dev]'")


@pytest.mark.requirement("bench.peers")
@pytest.mark.long
def test_a_peer_that_fails_under_load_ends_the_measurement_with_what_it_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fill.py").write_text("")
    (tmp_path / "bad.py").write_text(SERVES.replace("200", "500").replace("BODY", "b'no such table'"))
    bad = Rival(name="bad", program="bad.py", packages=(), store="s", has_our_shapes=False)
    monkeypatch.setattr(peers, "PROGRAMS", tmp_path)
    monkeypatch.setattr(peers, "PEERS", (bad,))
    stores = tmp_path / "stores"
    stores.mkdir()
    done = bankdata("bench", "--peers", "--rows", 50, "--per-user", 50, "--seconds", 0.1, "--data", stores)
    assert done.failed_with("was answered with 500: no such table")
    assert list(stores.iterdir()) == []


@pytest.mark.requirement("bench.peers")
def test_peers_are_filled_and_must_answer_as_we_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answering: Callable[..., Any]
) -> None:
    (tmp_path / "fill.py").write_text("print(1)\nprint(2)\n")
    (tmp_path / "same.py").write_text(SERVES.replace("BODY", "b'{\"found\": 1.0}'"))
    (tmp_path / "other.py").write_text(SERVES.replace("BODY", "b'[]'"))
    same = Rival(name="same", program="same.py", packages=(), store="s")
    own = Rival(name="own", program="other.py", packages=(), store="s", has_our_shapes=False)
    other = Rival(name="other", program="other.py", packages=(), store="s")
    size, said = Size(rows=200, rows_each=100), Said()
    monkeypatch.setattr(peers, "PROGRAMS", tmp_path)
    monkeypatch.setattr(peers, "PEERS", (same, own))
    with answering(lambda _: (200, b'{"found":1}')) as (ours, asked):
        with ExitStack() as stack:
            started = peers.started(stack, size, ours, tmp_path, said)
            assert [server.name for server in started] == ["same", "own"]
        assert len(asked) == len(WORKS)
        assert json.loads((tmp_path / "people.json").read_text()) == {"eva": "u1", "ben": "u2"}
        monkeypatch.setattr(peers, "PEERS", (other,))
        with (
            ExitStack() as stack,
            pytest.raises(CommandError, match=r"other answers /transactions.* differently from a server"),
        ):
            peers.started(stack, size, ours, tmp_path, said)
        (tmp_path / "fill.py").write_text("raise SystemExit(1)")
        with ExitStack() as stack, pytest.raises(CommandError, match="s could not be filled"):
            peers.started(stack, size, ours, tmp_path, said)
