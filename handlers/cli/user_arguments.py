"""Commands for the users, the people who may sign in."""

import sys
import warnings
from getpass import GetPassWarning
from secrets import token_urlsafe
from typing import Any

import click

from handlers.cli.server_or_here import confirmation_option, group, plain_command
from handlers.cli.terminal import stop


def _with_password(*, password_stdin: bool, is_random: bool, **given: Any) -> dict[str, Any]:
    return {**given, "password": _password(password_stdin, is_random), "is_generated": is_random}


def _password(from_stdin: bool, is_random: bool) -> str:
    if from_stdin and is_random:
        raise click.UsageError("Use either --password-stdin or --random.")
    if is_random:
        return token_urlsafe(18)
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", GetPassWarning)  # without a terminal, the typed password would be shown
            return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    except GetPassWarning:
        stop("There is no terminal to ask for the password. Use --password-stdin or --random.")


password_options = (
    click.option("--password-stdin", is_flag=True, help="Read the password from standard input."),
    click.option("--random", "is_random", is_flag=True, help="Make up a password and print it."),
)
users = group(
    "users",
    "The people who may sign in.",
    plain_command("users list", "List users with subscription and number of bank connections."),
    plain_command(
        "users add",
        "Add a user.",
        click.argument("name"),
        *password_options,
        click.option(
            "--no-subscription",
            "has_subscription",
            flag_value=False,
            default=True,
            help="The data endpoints send this user to the billing page.",
        ),
        prepare=_with_password,
    ),
    plain_command(
        "users passwd",
        "Change a user's password, and sign out the user's browsers.",
        click.argument("name"),
        *password_options,
        prepare=_with_password,
    ),
    plain_command(
        "users second-factor",
        "Turn off the second factor of a user who has lost it.",
        click.argument("state", type=click.Choice(["off"]), expose_value=False),  # people turn it on
        click.argument("name"),
    ),
    plain_command(
        "users subscription",
        "Set whether a user has an active subscription.",
        click.argument("name"),
        click.argument("active", type=click.Choice(["on", "off"]), callback=lambda *given: given[2] == "on"),
    ),
    plain_command(
        "users currency",
        "Set the home currency of a user, such as CHF.",
        click.argument("name"),
        click.argument("currency"),
    ),
    plain_command("users invite", "Print an address at which somebody can become a user, once, within seven days."),
    plain_command("users uninvite", "Revoke all invitations that nobody has used."),
    plain_command(
        "users password-link",
        "Print an address at which a user's password can be set anew, once, within 24 hours.",
        click.argument("name"),
    ),
    plain_command(
        "users sign-in-link",
        "Print an address at which a user can sign in once, within ten minutes.",
        click.argument("name"),
    ),
    plain_command(
        "users link",
        "Link a user to the provider's subject.",
        click.argument("name"),
        click.argument("subject"),
    ),
    plain_command("users unlink", "Unlink a user from the provider.", click.argument("name")),
    plain_command(
        "users operator",
        "Set whether a user is an operator, who looks after people on /operator.",
        click.argument("name"),
        click.argument("active", type=click.Choice(["on", "off"]), callback=lambda *given: given[2] == "on"),
    ),
    plain_command("users pause", "Pause a user: no sign-in, no apps, no syncs.", click.argument("name")),
    plain_command("users unpause", "Let a paused user go on.", click.argument("name")),
    plain_command(
        "users remove",
        "Delete a user with accounts, transactions and grants.",
        click.argument("name"),
        confirmation_option("Delete {name} with all accounts and transactions?"),
    ),
)
