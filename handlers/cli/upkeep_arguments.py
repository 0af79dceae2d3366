"""Commands for maintaining store and keys, and for planning what a service needs."""

from pathlib import Path

import click

from handlers.cli.server_or_here import group, local_command, plain_command

AMOUNT = click.IntRange(0, 10**12)

check = plain_command(
    "check",
    "Check settings, store and keys.",
    click.option("--accounts", "has_accounts", is_flag=True, help="Also whether bookings add up to the balances."),
)
backup = plain_command(
    "backup",
    "Copy store and keys, also while the server runs.",
    click.option("--keep", type=click.IntRange(1, 10_000), help="Then delete all but this many of the newest backups."),
)
compact = plain_command("compact", "Sort the stored transactions at once.")
clock = group(
    "clock",
    "The clock of a demo server.",
    plain_command(
        "clock advance",
        "Move a demo server's clock forward.",
        click.argument("seconds", type=click.IntRange(1, 10 * 366 * 86_400)),
    ),
)
upgrade_check = local_command(
    "upgrade-check",
    "Rehearse an upgrade on a copy of the newest backup or of FOLDER.",
    click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False),
    click.option(
        "--restored",
        "is_restored",
        is_flag=True,
        help="The PostgreSQL of the settings is a restored dump that nobody uses: bring that up to date.",
    ),
    module="rehearsals",
)
restore_drill = local_command(
    "restore-drill",
    """Restore a base backup of PostgreSQL on the side, and check it.

    Of a Citus cluster BACKUPS holds a folder for each node, with base backups and WAL in each.""",
    click.argument("backups", type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)),
    click.option(
        "--at",
        type=click.DateTime(["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]),
        help="The instant in UTC, such as 2026-11-25T12:00:00; by default as late as there is WAL.",
    ),
    click.option("--point", help="Of a Citus cluster: the restore point that was set on all of its nodes."),
    module="rehearsals",
)
migrate_store = local_command(
    "migrate-store",
    "Move a DuckDB store into PostgreSQL, and compare every row.\n\nGoes on where it broke off.",
    click.option(
        "--from",
        "folder",
        required=True,
        type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True),
        help="Data folder of the old store; its server is stopped.",
    ),
    module="larger_stores",
)
distribute = local_command(
    "distribute",
    "Spread a PostgreSQL store over a Citus cluster.\n\nStop all servers first.",
    module="larger_stores",
)
build_indexes = local_command(
    "build-indexes",
    "Build the indexes that an upgrade has left to the servers.",
    module="larger_stores",
)
capacity = local_command(
    "capacity",
    "Compute disk, memory, cores and connections for a service of this size.",
    click.option("--users", required=True, type=AMOUNT, help="How many people."),
    click.option("--bookings", required=True, type=AMOUNT, help="How many bookings all of them have together."),
    click.option(
        "--connections", required=True, type=AMOUNT, help="How many bank connections all of them have together."
    ),
    module="capacity",
)
