"""Commands for the profiles that people write for CSV files."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run


@click.group()
def profiles() -> None:
    """Profiles of your own for CSV files; docs/csv-profiles.md shows the format."""


@profiles.command("list")
@data_option
def profiles_list(data_dir: Path | None) -> None:
    """Print name and bank of each."""
    run("profiles list", data_dir)


@profiles.command("add")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_option
def profiles_add(file: Path, data_dir: Path | None) -> None:
    """Add the profile in FILE, or replace the one of the same name."""
    run("profiles add", data_dir, file=str(file.absolute()))


@profiles.command("remove")
@click.argument("name")
@data_option
def profiles_remove(name: str, data_dir: Path | None) -> None:
    """Remove a profile; what was imported by it stays."""
    run("profiles remove", data_dir, name=name)
