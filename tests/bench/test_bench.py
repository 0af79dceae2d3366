"""`bankdata bench` in small: what it prints is what was measured, and nothing of it is left."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import pytest

from tests.benchmarks.bench.workload import REPEATED, WORKS
from tests.cli.conftest import bankdata

pytestmark = pytest.mark.long  # it starts servers and loads them

USERS = {1000: 20, 2000: 40}
SECONDS = 0.1
OURS = {size: f"bankdata, {size:,} bookings" for size in USERS}
FLOORS = ["our stack, constant answers", "bare Starlette"]


@dataclass(frozen=True)
class Ran:
    """One run, for all tests of this module."""

    out: str
    figures: dict[str, Any]
    plot: str
    left: list[Path]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("bench")
    stores = folder / "stores"
    stores.mkdir()
    figures, plot = folder / "figures.json", folder / "figures.svg"
    done = bankdata(
        *("bench", "--rows", "2000,1_000", "--per-user", 50, "--connections", 3, "--seconds", SECONDS),
        *("--json", figures, "--plot", plot, "--data", stores),
    )
    assert done.code == 0, done.err
    return Ran(done.out, json.loads(figures.read_text()), plot.read_text(), list(stores.iterdir()))


@pytest.mark.requirement("bench.truthful")
@pytest.mark.long
def test_every_operation_of_every_server_was_asked_and_cost_something(ran: Ran) -> None:
    warm = ran.figures["warm"]
    assert list(warm) == [*OURS.values(), *FLOORS]
    for works in warm.values():
        assert list(works) == list(WORKS)
        for figures in works.values():
            assert figures["requests"] > 0
            assert figures["processor"] >= 0
            assert 0 < figures["p50"] <= figures["p99"]
        assert sum(figures["processor"] * figures["requests"] for figures in works.values()) > 0


@pytest.mark.requirement("bench.truthful")
def test_the_counts_add_up(ran: Ran) -> None:
    for works in ran.figures["warm"].values():
        for figures in works.values():
            seconds = figures["requests"] / figures["requestsPerSecond"]
            assert seconds >= SECONDS
            # Half of the answers took p50 at least, on three connections
            assert figures["requests"] / 2 * figures["p50"] / 1000 <= 3 * seconds * 1.01


@pytest.mark.requirement("bench.truthful")
def test_a_first_touch_is_one_of_each_user_who_had_not_asked(ran: Ran) -> None:
    for size, users in USERS.items():
        asked = [figures["requests"] for figures in ran.figures["cold"][OURS[size]].values()]
        assert list(ran.figures["cold"][OURS[size]]) == [name for name in WORKS if name != REPEATED]
        assert sum(asked) == users // 2 - users // 2 // len(WORKS)  # the other half asks again and again
        assert max(asked) - min(asked) <= 1


@pytest.mark.requirement("bench.truthful")
def test_the_table_shows_the_figures(ran: Ran) -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in ran.out.splitlines()]
    (shown,) = (row for row in rows if row[0] == "snapshot" and row[6:7] == ["70%"])
    figures = ran.figures["warm"][OURS[2000]]["snapshot"]
    constant, bare = (ran.figures["warm"][floor]["snapshot"]["requestsPerSecond"] for floor in FLOORS)
    assert shown == [
        "snapshot",
        f"{figures['requestsPerSecond']:,.0f}",
        f"{figures['p50']:.2f} ms",
        f"{figures['p99']:.2f} ms",
        f"{figures['processor']:.3f} ms",
        f"{figures['requestsPerSecond'] / constant:.0%}",
        "70%",
        f"{figures['requestsPerSecond'] / bare:.0%}",
    ]
    assert f"2,000 bookings of 40 users, 3 connections, {SECONDS} s each" in ran.out.splitlines()[0]


@pytest.mark.requirement("bench.truthful")
def test_memory_is_that_of_a_process(ran: Ran) -> None:
    assert {name: 2**24 < size < 2**31 for name, size in ran.figures["memoryBytes"].items()} == dict.fromkeys(
        [*OURS.values(), *FLOORS], True
    )


@pytest.mark.requirement("bench.plot")
def test_the_plot_has_a_bar_for_every_figure(ran: Ran) -> None:
    root = ElementTree.fromstring(ran.plot)
    bars = [each for each in root.iter("{http://www.w3.org/2000/svg}rect") if each.get("height") == "9"]
    servers, cold = len(OURS) + len(FLOORS), len(OURS)
    assert len(bars) == 4 * servers * len(WORKS) + cold * (len(WORKS) - 1) + servers
    assert all(float(bar.get("width") or -1) >= 0 for bar in bars)


@pytest.mark.requirement("bench.clean")
def test_nothing_is_left(ran: Ran) -> None:
    assert ran.left == []


@pytest.mark.requirement("bench.clean")
@pytest.mark.long
def test_keep_leaves_the_stores_and_says_where(tmp_path: Path) -> None:
    done = bankdata("bench", "--rows", 50, "--per-user", 50, "--seconds", 0.1, "--keep", "--data", tmp_path)
    assert done.code == 0, done.err
    (folder,) = tmp_path.iterdir()
    assert f"The stores are in {folder}." in done.err
    assert (folder / "store of 50" / "bankdata.duckdb").stat().st_size > 0
    assert "first touch" not in done.out  # one user has asked before
    assert bankdata("users", "list", "--data", folder / "store of 50").lines == [
        "person0\tactive subscription\t1 bank connection"
    ]


@pytest.mark.requirement("bench.clean")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_servers_and_removes_the_folder(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "from handlers.cli import main; main()", "bench", "--rows", "500", "--data", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("BANKDATA_")},
    )
    try:
        servers = _servers_of(process)
        process.send_signal(number)
        _, told = process.communicate(timeout=600)  # of a busy machine it gets little
    finally:
        process.kill()
    assert (process.returncode, told.strip()) == (1, "Aborted!")
    assert [server for server in servers if server.is_running()] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("bench.arguments")
@pytest.mark.parametrize("rows", ["0", "many", "1000,", "100000001", "-5"])
def test_a_size_that_is_none_is_refused(rows: str) -> None:
    done = bankdata("bench", f"--rows={rows}")
    assert done.code == 2
    assert "whole numbers from 1 to 100000000" in done.err


@pytest.mark.requirement("bench.arguments")
def test_a_folder_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    done = bankdata("bench", "--data", tmp_path / "nowhere")
    assert done.failed_with("No such file or directory")


def _servers_of(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    """The servers that it has started, as soon as there is one."""
    while process.poll() is None:
        found = [each for each in psutil.Process(process.pid).children() if "serve" in each.cmdline()]
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(process.communicate())
