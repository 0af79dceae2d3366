"""Commands on shares between users."""

import click

from handlers.cli.server_or_here import group, plain_command, user_option

shares = group(
    "shares",
    "Which accounts one user lets another one see.",
    plain_command("shares list", "List what a user shares, and what is shared with them.", user_option("Whose.")),
    plain_command(
        "shares add",
        "Offer a user's accounts to another one, who has to accept that.",
        click.argument("name", required=False),
        user_option("Who shares."),
        click.option("--invite", is_flag=True, help="To whoever becomes a user by the address that is printed."),
        click.option("--account", multiple=True, help="Name or id of an account; none: all, later ones too."),
        click.option(
            "--until",
            type=click.DateTime(["%Y-%m-%d"]),
            help="Last day, YYYY-MM-DD; none: until somebody ends it.",
        ),
        click.option("--pass-on", is_flag=True, help="Their apps may see it, too."),
        click.option("--with-words", is_flag=True, help="Categories and notes of single bookings come along."),
    ),
    plain_command(
        "shares accept", "Accept what is offered to a user.", click.argument("share_id"), user_option("Who accepts.")
    ),
    plain_command(
        "shares end",
        "End what a user gives or gets.",
        click.argument("share_id"),
        user_option("Who ends it."),
    ),
)
