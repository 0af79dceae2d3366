"""What was measured, as tables for a person and as JSON for a program."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.benchmarks.bench.figures import By, Figures, Results
from tests.benchmarks.bench.measurement import STACK, STARLETTE
from tests.benchmarks.bench.peers import SQLITE
from tests.benchmarks.bench.workload import WORKS

Row = Sequence[str]


def tables(results: Results) -> Iterator[str]:
    """Lines: what was asked and where, then tables that Markdown shows as such."""
    plan, ours = results.plan, results.ours[-1]
    size = plan.sizes[-1]
    yield (
        f"{results.at:%-d %B %Y}: {size.rows:,} bookings of {size.users:,} users, {plan.connections} connections,"
        f" {plan.seconds:g} s each, {results.machine}"
    )
    yield ""
    yield from _table(
        ("warm", "requests/s", "p50", "p99", "processor", "of our constant", "bar", "of bare Starlette"),
        [
            (
                name,
                *_shown(figures),
                f"{figures.per_second / results.warm[STACK][name].per_second:.0%}",
                f"{WORKS[name].share_min:.0%}",
                f"{figures.per_second / results.warm[STARLETTE][name].per_second:.0%}",
            )
            for name, figures in results.warm[ours].items()
        ],
    )
    yield ""
    if results.cold:  # a store of one user has nobody who has not asked
        yield from _table(
            ("first touch of a user", "requests/s", "p50", "p99", "processor", "users"),
            [(name, *_shown(figures), str(figures.answers)) for name, figures in results.cold[ours].items()],
        )
        yield ""
    if len(plan.sizes) > 1:
        yield from _growth(results)
        yield ""
    others = [name for name in results.warm if name not in results.ours]
    yield from _table(
        ("warm requests/s", ours, *others),
        [
            (name, *(_compared(results.warm, server, name, ours) for server in (ours, *others)))
            for name in results.warm[ours]
        ],
    )
    yield ""
    peers = [name for name in results.cold if name not in results.ours]
    if peers:
        bars = ", ".join(f"{work.name} {work.times_min}" for work in WORKS.values() if work.times_min)
        yield f"Bars against {SQLITE.name}: {bars}."
        yield ""
        yield from _table(
            ("processor time, first touch", ours, *peers),
            [
                (name, *(f"{results.cold[server][name].processor:.2f} ms" for server in (ours, *peers)))
                for name in results.cold[ours]
            ],
        )
        yield ""
    yield from _table(("memory", "MB"), [(server, f"{taken / 2**20:,.0f}") for server, taken in results.memory.items()])


def as_json(results: Results) -> dict[str, Any]:
    """All figures: times in milliseconds, memory in bytes."""
    plan = results.plan
    return {
        "at": results.at.isoformat(timespec="seconds"),
        "machine": results.machine,
        "rows": [size.rows for size in plan.sizes],
        "rowsPerUser": plan.sizes[-1].rows_each,
        "connections": plan.connections,
        "seconds": plan.seconds,
        "warm": _by(results.warm),
        "cold": _by(results.cold),
        "memoryBytes": results.memory,
    }


def _growth_between(smaller: float, larger: float) -> str:
    """How many times as much; a dash where so little was asked that the clock of the processor did not move."""
    return f"{larger / smaller:.2f}" if smaller else "-"


def _growth(results: Results) -> Iterator[str]:
    smallest, largest = results.ours[0], results.ours[-1]
    yield from _table(
        ("processor time, warm", *results.ours, "growth"),
        [
            (
                name,
                *(f"{results.warm[server][name].processor:.3f} ms" for server in results.ours),
                _growth_between(results.warm[smallest][name].processor, results.warm[largest][name].processor),
            )
            for name in WORKS
        ],
    )


def _shown(figures: Figures) -> Row:
    return (
        f"{figures.per_second:,.0f}",
        f"{figures.p50:.2f} ms",
        f"{figures.p99:.2f} ms",
        f"{figures.processor:.3f} ms",
    )


def _compared(by: By, server: str, work: str, ours: str) -> str:
    theirs = by[server][work].per_second
    return f"{theirs:,.0f}" if server == ours else f"{theirs:,.0f} ({by[ours][work].per_second / theirs:.2g} times)"


def _by(by: By) -> dict[str, Any]:
    return {
        server: {
            name: {
                "requests": figures.answers,
                "requestsPerSecond": figures.per_second,
                "p50": figures.p50,
                "p99": figures.p99,
                "processor": figures.processor,
            }
            for name, figures in works.items()
        }
        for server, works in by.items()
    }


def _table(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            yield f"|{'-' * (widths[0] + 2)}|" + "".join(f"{'-' * (width + 1)}:|" for width in widths[1:])
