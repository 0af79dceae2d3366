"""Commands for the users, the people who may sign in."""

import sys
import warnings
from getpass import GetPassWarning
from pathlib import Path
from secrets import token_urlsafe

import click

from handlers.cli.server_or_here import data_option, plain_command, run
from handlers.cli.terminal import confirm, stop

stdin_option = click.option("--password-stdin", is_flag=True, help="Read the password from standard input.")
random_option = click.option("--random", "is_random", is_flag=True, help="Make up a password and print it.")


users = click.Group(
    "users",
    help="The people who may sign in.",
    commands=[
        plain_command("users list", "List users with subscription and number of bank connections."),
        plain_command(
            "users currency",
            "Choose the currency of a user's figures over several currencies, such as CHF.",
            click.argument("name"),
            click.argument("currency"),
        ),
    ],
)


@users.command("add")
@click.argument("name")
@stdin_option
@random_option
@click.option("--no-subscription", is_flag=True, help="The data endpoints send this user to the billing page.")
@data_option
def users_add(name: str, password_stdin: bool, is_random: bool, no_subscription: bool, data_dir: Path | None) -> None:
    """Add a user."""
    password = _password(password_stdin, is_random)
    run(
        "users add",
        data_dir,
        name=name,
        password=password,
        is_generated=is_random,
        has_subscription=not no_subscription,
    )


@users.command("passwd")
@click.argument("name")
@stdin_option
@random_option
@data_option
def users_passwd(name: str, password_stdin: bool, is_random: bool, data_dir: Path | None) -> None:
    """Change a user's password and sign the user's browsers out."""
    run("users passwd", data_dir, name=name, password=_password(password_stdin, is_random), is_generated=is_random)


@users.command("second-factor")
@click.argument("state", type=click.Choice(["off"]))
@click.argument("name")
@data_option
def users_second_factor(state: str, name: str, data_dir: Path | None) -> None:  # noqa: ARG001 - people turn it on
    """Turn off the second factor of a user who has lost it, and the recovery codes too."""
    run("users second-factor", data_dir, name=name)


@users.command("subscription")
@click.argument("name")
@click.argument("state", type=click.Choice(["on", "off"]))
@data_option
def users_subscription(name: str, state: str, data_dir: Path | None) -> None:
    """Say whether a user has an active subscription."""
    run("users subscription", data_dir, name=name, active=state == "on")


@users.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
def users_remove(name: str, yes: bool, data_dir: Path | None) -> None:
    """Delete a user with accounts, transactions and connected apps."""
    if not yes:
        confirm(f"Delete {name} with all accounts and transactions?")
    run("users remove", data_dir, name=name)


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
