"""Commands for maintaining store and keys."""

from datetime import datetime
from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, plain_command, reporting_to, settings_of
from handlers.cli.terminal import Terminal

check = plain_command(
    "check",
    "Check settings, store and keys, and say how to fix what is wrong.",
    click.option("--accounts", "has_accounts", is_flag=True, help="Also whether bookings add up to the balances."),
)
backup = plain_command(
    "backup",
    "Copy store and keys into a new folder under the data folder, also while the server runs.",
    click.option("--keep", type=click.IntRange(1, 10_000), help="Then delete all but this many of the newest backups."),
)
compact = plain_command("compact", "Sort the stored transactions again; worth it after a million new ones.")
clock = click.Group(
    "clock",
    help="The clock of a demo server.",
    commands=[
        plain_command(
            "clock advance",
            "Move a demo server's clock: tokens expire, cool-downs end, the bank grows new days.",
            click.argument("seconds", type=click.IntRange(1, 10 * 366 * 86_400)),
        )
    ],
)


@click.command("upgrade-check")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option(
    "--restored",
    "is_restored",
    is_flag=True,
    help="The PostgreSQL of the settings is a restored dump that nobody uses: bring that up to date.",
)
@data_option
def upgrade_check(folder: Path | None, is_restored: bool, data_dir: Path | None) -> None:
    """Rehearse an upgrade: open a copy of the newest backup, of FOLDER, or a restored dump with this program."""
    from handlers.commands.rehearsals import upgrade_check as rehearse  # loading it takes a second

    with reporting_to(Terminal()) as terminal:
        rehearse(settings_of(data_dir), terminal, folder=folder, is_restored=is_restored)


@click.command("restore-drill")
@click.argument("backups", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]),
    help="The instant in UTC, such as 2026-11-25T12:00:00; by default as late as there is WAL.",
)
@click.option("--point", help="Of a Citus cluster: the restore point that was set on all of its nodes.")
@data_option
def restore_drill(backups: Path, at: datetime | None, point: str | None, data_dir: Path | None) -> None:
    """Restore the newest base backup of PostgreSQL in BACKUPS on the side, and check what is in it.

    Of a Citus cluster BACKUPS holds a folder for each node, with base backups and WAL in each."""
    from handlers.commands.rehearsals import restore_drill as drill  # loading it takes a second

    with reporting_to(Terminal()) as terminal:
        drill(settings_of(data_dir), terminal, backups=backups.resolve(), at=at, point=point)


@click.command("migrate-store")
@click.option(
    "--from",
    "folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Data folder of the old store; its server is stopped.",
)
@data_option
def migrate_store(folder: Path, data_dir: Path | None) -> None:
    """Move a DuckDB store into the PostgreSQL of the settings, and compare every row; it goes on where it broke off."""
    from handlers.commands.larger_stores import migrate_store as move  # loading it takes a second

    with reporting_to(Terminal()) as terminal:
        move(settings_of(data_dir), terminal, folder=folder.resolve())


@click.command()
@data_option
def distribute(data_dir: Path | None) -> None:
    """Spread a PostgreSQL store over the machines of its Citus cluster; all servers are stopped."""
    from handlers.commands.larger_stores import distribute as spread  # loading it takes a second

    with reporting_to(Terminal()) as terminal:
        spread(settings_of(data_dir), terminal)


@click.command("build-indexes")
@data_option
def build_indexes(data_dir: Path | None) -> None:
    """Build at once the indexes that an upgrade of a PostgreSQL store has left to its servers."""
    from handlers.commands.larger_stores import build_indexes as build  # loading it takes a second

    with reporting_to(Terminal()) as terminal:
        build(settings_of(data_dir), terminal)
