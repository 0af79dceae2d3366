"""Commands for the profiles that people write for CSV files."""

from pathlib import Path
from typing import Any

import click

from handlers.cli.server_or_here import group, plain_command, user_option

keeper_option = user_option(
    "Those that count for the files of this user alone, instead of everybody's.", is_required=False
)


def _checked(*, user: str | None, account: str | None, **given: Any) -> dict[str, Any]:
    if account is not None and user is None:
        raise click.UsageError("An account is somebody's: say whose with --user.")
    return {**given, "user": user, "account": account}


profiles = group(
    "profiles",
    "Profiles of your own for CSV files; docs/csv-profiles.md shows the format.",
    plain_command("profiles list", "List CSV profiles, or those of a user.", keeper_option),
    plain_command(
        "profiles remove",
        "Remove a profile; what was imported with it stays.",
        click.argument("name"),
        keeper_option,
    ),
    plain_command(
        "profiles add",
        "Add the profile in FILE, or replace it.",
        click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        keeper_option,
        click.option(
            "--account", help="With --user: the account of files that do not say theirs, by id, IBAN or name."
        ),
        prepare=_checked,
    ),
)
