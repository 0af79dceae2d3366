"""Commands for a user's own rules and corrections."""

from pathlib import Path
from typing import TextIO

import click

from analytics.classification.facts import CATEGORIES
from handlers.cli.server_or_here import data_option, run
from handlers.cli.terminal import stop


@click.group()
def rules() -> None:
    """A user's own rules for category, merchant and type; docs/rules.md shows the format."""


@rules.command("add")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_add(file: TextIO, user: str, data_dir: Path | None) -> None:
    """Append the rules of a file of JSON lines (- for standard input)."""
    try:
        text = file.read()
    except UnicodeDecodeError:
        stop(f"{file.name}: not a text in UTF-8.")
    run("rules add", data_dir, user=user, text=text)


@rules.command("list")
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_list(user: str, data_dir: Path | None) -> None:
    """Print the rules in their order, as JSON lines."""
    run("rules list", data_dir, user=user)


@rules.command("remove")
@click.argument("rule_id")
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_remove(rule_id: str, user: str, data_dir: Path | None) -> None:
    """Remove a rule."""
    run("rules remove", data_dir, user=user, rule_id=rule_id)


@rules.command("apply")
@click.option("--user", required=True, help="Whose bookings.")
@data_option
def rules_apply(user: str, data_dir: Path | None) -> None:
    """Apply the rules to all stored bookings again."""
    run("rules apply", data_dir, user=user)


@click.command()
@click.argument("transaction_id")
@click.argument("category", metavar="CATEGORY", type=click.Choice(CATEGORIES))
@click.option("--user", required=True, help="Whose booking.")
@data_option
def correct(transaction_id: str, category: str, user: str, data_dir: Path | None) -> None:
    """Correct a booking's category, and that of all other bookings with its counterpart, past and future."""
    run("correct", data_dir, user=user, transaction_id=transaction_id, category=category)
