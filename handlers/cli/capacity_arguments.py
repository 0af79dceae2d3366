"""The command that computes what a service of some size needs."""

from pathlib import Path

import click

from handlers.capacity import capacity as compute
from handlers.cli.server_or_here import data_option, settings_of
from handlers.cli.terminal import Terminal

AMOUNT = click.IntRange(0, 10**12)


@click.command()
@click.option("--users", required=True, type=AMOUNT, help="How many people.")
@click.option("--bookings", required=True, type=AMOUNT, help="How many bookings all of them have together.")
@click.option("--connections", required=True, type=AMOUNT, help="How many bank connections all of them have together.")
@data_option
def capacity(users: int, bookings: int, connections: int, data_dir: Path | None) -> None:
    """Compute disk, memory, cores and database connections for a service of this size, from measured constants."""
    compute(settings_of(data_dir), Terminal(), users=users, bookings=bookings, connections=connections)
