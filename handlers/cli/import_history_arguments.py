"""Commands for past imports: list them, undo one."""

import click

from handlers.cli.server_or_here import plain_command, user_option

imports = click.Group(
    "imports",
    help="The imports and syncs of a user.",
    commands=[
        plain_command(
            "imports list",
            "List imports that can be taken back: id, when (UTC), files or bank, accounts, new bookings.",
            user_option("Whose imports."),
        ),
        plain_command(
            "imports undo",
            """Take back exactly what an import brought, in any order: bookings, balances, statements.

            What another import reported, too, stays. A live bank is asked for everything again at its next sync.
            """,
            click.argument("import_id"),
            user_option("Whose imports."),
        ),
    ],
)
