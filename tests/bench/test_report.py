"""The tables, the JSON and the plot of figures that are known."""

from datetime import datetime
from xml.etree import ElementTree

import pytest

from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.figures import Figures, Plan, Results
from tests.benchmarks.bench.measurement import STACK, STARLETTE
from tests.benchmarks.bench.peers import SQLITE
from tests.benchmarks.bench.plot import plot
from tests.benchmarks.bench.report import as_json, tables
from tests.benchmarks.bench.workload import REPEATED, WORKS

SVG = "{http://www.w3.org/2000/svg}"


def figures(answers: int, *, processor_seconds: float = 0.5) -> Figures:
    """So many answers in two seconds; each took as many milliseconds as there were answers before it, and one."""
    latencies = [number / 1000 for number in range(1, answers + 1)]
    return Figures(seconds=2, processor_seconds=processor_seconds, latencies=latencies)


def results(*, with_peers: bool) -> Results:
    sizes = [Size(rows=1000, rows_each=100), Size(rows=20_000, rows_each=100)]
    plan = Plan(sizes=sizes[with_peers:], connections=8, seconds=2, with_peers=with_peers)
    ours = ["bankdata"] if with_peers else ["small", "large"]
    made = Results(plan=plan, at=datetime.fromisoformat("2026-11-22T12:00:00"), ours=ours, loads=[1.0, 2.0, 9.0])
    others = {STACK: 400, STARLETTE: 800, **({SQLITE.name: 50} if with_peers else {})}
    for name, answers in {**dict.fromkeys(ours, 200), **others}.items():
        made.warm[name] = {work: figures(answers) for work in WORKS}
        made.memory[name] = 100 * 2**20
    made.warm[ours[-1]] = {work: figures(200, processor_seconds=0.6) for work in WORKS}
    for name in (*ours, *([SQLITE.name] if with_peers else [])):
        made.cold[name] = {work: figures(4, processor_seconds=0.02) for work in WORKS if work != REPEATED}
    return made


def shown(lines: list[str], first: str) -> list[list[str]]:
    """The cells of rows that begin like this."""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0] == first]


@pytest.mark.requirement("bench.truthful")
def test_the_tables_of_two_sizes() -> None:
    lines = list(tables(results(with_peers=False)))
    assert lines[0].startswith("22 November 2026: 20,000 bookings of 200 users, 8 connections, 2 s each, ")
    assert ", load 2.0, " in lines[0]
    assert shown(lines, "page") == [
        ["page", "100", "100.50 ms", "199.00 ms", "3.000 ms", "50%", "60%", "25%"],
        ["page", "2", "2.50 ms", "4.00 ms", "5.000 ms", "4"],
        ["page", "2.500 ms", "3.000 ms", "1.20"],
        ["page", "100", "200 (0.5 times)", "400 (0.25 times)"],
    ]
    assert shown(lines, "large") == [["large", "100"]]


@pytest.mark.requirement("bench.truthful")
def test_so_little_work_that_the_clock_did_not_move_has_no_growth() -> None:
    made = results(with_peers=False)
    made.warm["small"]["page"] = figures(200, processor_seconds=0)
    assert shown(list(tables(made)), "page")[2] == ["page", "0.000 ms", "3.000 ms", "-"]


@pytest.mark.requirement("bench.peers")
def test_the_tables_with_peers() -> None:
    lines = list(tables(results(with_peers=True)))
    assert shown(lines, "search")[2:] == [
        ["search", "100", "200 (0.5 times)", "400 (0.25 times)", "25 (4 times)"],
        ["search", "5.00 ms", "5.00 ms"],
    ]
    assert any(line.startswith(f"Bars against {SQLITE.name}: page 10, ") for line in lines)


@pytest.mark.requirement("bench.truthful")
def test_the_json_holds_the_same() -> None:
    told = as_json(results(with_peers=False))
    assert told["rows"] == [1000, 20_000]
    assert told["warm"]["large"]["search"] == {
        "requests": 200,
        "requestsPerSecond": 100.0,
        "p50": 100.5,
        "p99": 199.0,
        "processor": 3.0,
    }
    assert told["memoryBytes"]["small"] == 100 * 2**20


@pytest.mark.requirement("bench.plot")
def test_the_longer_bar_is_the_larger_figure() -> None:
    root = ElementTree.fromstring(plot(results(with_peers=False)))
    bars = [float(each.get("width") or 0) for each in root.iter(f"{SVG}rect") if each.get("height") == "9"]
    assert bars[:4] == [0.0, 0.0, 168.6, 337.2]  # 100, 100, 200 and 400 a second, of 560 pixels for 100 to 1,000
    assert len(bars) == 4 * 4 * len(WORKS) + 2 * (len(WORKS) - 1) + 4
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert {"bare Starlette", "memory of the server in MB", "cashflow"} <= set(texts)
