"""The command that measures: its options say what data to build, how hard to load the server, and where the figures
go."""

import json
import signal
import tempfile
from pathlib import Path
from shutil import rmtree
from zoneinfo import ZoneInfo

import click

from handlers.cli.terminal import Terminal, stop
from handlers.commands.control_socket import CommandError

ROWS_MAX = 100_000_000
NEEDS_CHECKOUT = "`bankdata bench` comes with a checkout of the project: clone it and pip install -e '.[dev]' there."


@click.command()
@click.option("--rows", default="100000", show_default=True, help="Bookings; several sizes by commas show the growth.")
@click.option("--per-user", default=1000, show_default=True, type=click.IntRange(1, 1_000_000), help="Bookings a user.")
@click.option("--connections", default=8, show_default=True, type=click.IntRange(1, 200), help="Requests at a time.")
@click.option("--seconds", default=3.0, show_default=True, type=click.FloatRange(0.1, 600), help="For each operation.")
@click.option("--peers", is_flag=True, help="Measure others on the same rows too.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there.")
@click.option("--plot", "plot_file", type=click.Path(dir_okay=False, path_type=Path), help="Draw them there, as SVG.")
@click.option("--keep", is_flag=True, help="Leave the stores where they are.")
@click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where a folder for the stores is made.  [default: the one for temporary files]",
)
def bench(
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
    """Measure this machine: requests a second, latency, processor time and memory, on invented data."""
    try:
        from tests.benchmarks.bench import measurement
        from tests.benchmarks.bench import peers as others
    except ModuleNotFoundError:
        stop(NEEDS_CHECKOUT)
    from handlers.clock import Clock
    from tests.benchmarks.bench.data import Size
    from tests.benchmarks.bench.figures import Plan
    from tests.benchmarks.bench.plot import plot
    from tests.benchmarks.bench.report import as_json, tables

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
