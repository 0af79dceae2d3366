"""Commands for what has been imported: list it, take it back."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run

user_option = click.option("--user", required=True, help="Whose imports.")


@click.group()
def imports() -> None:
    """The imports and syncs of a user."""


@imports.command("list")
@user_option
@data_option
def imports_list(user: str, data_dir: Path | None) -> None:
    """List imports that can be taken back: id, when (UTC), files or bank, accounts, new bookings."""
    run("imports list", data_dir, user=user)


@imports.command("undo")
@click.argument("import_id")
@user_option
@data_option
def imports_undo(import_id: str, user: str, data_dir: Path | None) -> None:
    """Take back exactly what an import brought, in any order: bookings, balances, statements.

    What another import reported, too, stays. A live bank is asked for everything again at its next sync.
    """
    run("imports undo", data_dir, user=user, import_id=import_id)
