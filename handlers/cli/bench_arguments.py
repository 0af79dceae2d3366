"""The arguments of `bankdata bench`; the measurements themselves are in the benchmarks of a checkout."""

from pathlib import Path
from typing import Any

import click

from handlers.cli.terminal import stop

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
def bench(**typed: Any) -> None:
    """Measure this machine on invented data."""
    try:
        from tests.benchmarks.bench.command import measure
    except ModuleNotFoundError:
        stop(NEEDS_CHECKOUT)
    measure(**typed)
