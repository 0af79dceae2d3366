"""Commands for the profiles that people write for CSV files."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run


@click.group()
def profiles() -> None:
    """Profiles of your own for CSV files; docs/csv-profiles.md shows the format."""


_user = click.option("--user", help="Those that count for the files of this user alone, instead of everybody's.")


@profiles.command("list")
@_user
@data_option
def profiles_list(user: str | None, data_dir: Path | None) -> None:
    """Print name and bank of each; of a user id and file."""
    run("profiles list", data_dir, user=user)


@profiles.command("add")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_user
@click.option("--account", help="With --user: the account of files that do not say theirs, by id, IBAN or name.")
@data_option
def profiles_add(file: Path, user: str | None, account: str | None, data_dir: Path | None) -> None:
    """Add the profile in FILE, or replace the one of the same name; of a user the one for the same columns."""
    if account is not None and user is None:
        raise click.UsageError("An account is somebody's: say whose with --user.")
    run("profiles add", data_dir, file=str(file.absolute()), user=user, account=account)


@profiles.command("remove")
@click.argument("name")
@_user
@data_option
def profiles_remove(name: str, user: str | None, data_dir: Path | None) -> None:
    """Remove a profile, of a user by its id; what was imported by it stays."""
    run("profiles remove", data_dir, name=name, user=user)
