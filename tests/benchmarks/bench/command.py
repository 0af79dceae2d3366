"""What `bankdata bench` does: what is built, how hard it is asked, and where the figures go."""

import json
import signal
import tempfile
from pathlib import Path
from shutil import rmtree
from zoneinfo import ZoneInfo

import click

from handlers.cli.terminal import Terminal, stop
from handlers.commands.control_socket import CommandError
from handlers.work.clock import Clock
from tests.benchmarks.bench import measurement
from tests.benchmarks.bench import peers as others
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.figures import Plan
from tests.benchmarks.bench.plot import plot
from tests.benchmarks.bench.report import as_json, tables

ROWS_MAX = 100_000_000


def measure(
    rows: str,
    per_user: int,
    connections: int,
    seconds: float,
    peers: bool,
    json_file: Path | None,
    plot_file: Path | None,
    keep: bool,
    data_dir: Path | None,
) -> None:
    """Build the stores, ask the servers over them, and write the figures."""
    sizes = [Size(rows=number, rows_each=per_user) for number in _sizes(rows)]
    terminal = Terminal()
    plan = Plan(sizes=sizes, connections=connections, seconds=seconds, with_peers=peers)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends like Ctrl-C: no server stays behind
    try:
        if peers:
            others.check()
        folder = Path(tempfile.mkdtemp(prefix="bankdata-bench-", dir=data_dir))
        try:
            results = measurement.measured(plan, folder, terminal, now=Clock(ZoneInfo("UTC")).now())
        finally:
            if keep:
                terminal.note(f"The stores are in {folder}.")
            else:
                rmtree(folder, ignore_errors=True)
    except (CommandError, OSError) as error:
        terminal.end()
        stop(str(error))
    for line in tables(results):
        terminal.line(line)
    if json_file:
        json_file.write_text(json.dumps(as_json(results), indent=2) + "\n")
    if plot_file:
        plot_file.write_text(plot(results))


def _sizes(text: str) -> list[int]:
    """The typed numbers of bookings, smallest first."""
    parts = text.replace("_", "").split(",")
    if not all(part.isdecimal() and 1 <= int(part) <= ROWS_MAX for part in parts):
        raise click.BadParameter(f"whole numbers from 1 to {ROWS_MAX}, such as 100000,1000000", param_hint="--rows")
    return sorted({int(part) for part in parts})
