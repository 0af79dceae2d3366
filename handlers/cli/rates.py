"""Commands for reference rates."""

from pathlib import Path

import click

from handlers.cli.place import data_option, run


@click.group()
def rates() -> None:
    """Reference rates of the European Central Bank, for sums over several currencies."""


@rates.command("update")
@click.option(
    "--file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="eurofxref-hist.zip or .csv.",
)
@data_option
def rates_update(file: Path, data_dir: Path | None) -> None:
    """Take newer rates from an ECB file."""
    run("rates update", data_dir, file=str(file.absolute()))
