"""Commands for a user's own rules and corrections, and for what they say about recurring payments."""

from datetime import datetime
from pathlib import Path
from typing import TextIO

import click

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


@rules.command("edit")
@click.argument("rule_id")
@click.option("--user", required=True, help="Whose rule.")
@click.option("--field", help="What is compared.")
@click.option("--operator", help="How: contains, equals or startswith.")
@click.option("--value", help="With what.")
@click.option("--category", help="Category that it gives, a finer one or one of the user's own; empty for none.")
@click.option("--merchant", help="Merchant that it gives; empty for none.")
@click.option("--type", "type_", help="Type that it gives; empty for none.")
@click.option("--tag", "tags", multiple=True, help="Tag that it gives, given once for each of them; empty for none.")
@data_option
def rules_edit(
    rule_id: str, user: str, type_: str | None, tags: tuple[str, ...], data_dir: Path | None, **words: str | None
) -> None:
    """Change a rule in its place, and apply it to all stored bookings."""
    said = {**words, "type": type_}
    changes: dict[str, object] = {name: value or None for name, value in said.items() if value is not None}
    if tags:
        changes["tags"] = [tag for tag in tags if tag]
    run("rules edit", data_dir, user=user, rule_id=rule_id, changes=changes)


@rules.command("order")
@click.argument("rule_ids", nargs=-1, required=True, metavar="RULE_ID...")
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_order(rule_ids: tuple[str, ...], user: str, data_dir: Path | None) -> None:
    """Ask the rules in this order, each named once, and apply them to all stored bookings."""
    run("rules order", data_dir, user=user, rule_ids=list(rule_ids))


@rules.command("apply")
@click.option("--user", required=True, help="Whose bookings.")
@data_option
def rules_apply(user: str, data_dir: Path | None) -> None:
    """Apply the rules to all stored bookings again."""
    run("rules apply", data_dir, user=user)


@click.group()
def subscriptions() -> None:
    """A user's recurring payments, and what they say about them."""


@subscriptions.command("list")
@click.option("--user", required=True, help="Whose payments.")
@data_option
def subscriptions_list(user: str, data_dir: Path | None) -> None:
    """List every recurring payment: id, direction, state, rhythm, latest amount, what the user says, name."""
    run("subscriptions list", data_dir, user=user)


@subscriptions.command("add")
@click.argument("name")
@click.argument("amount")
@click.option(
    "--every", required=True, type=click.Choice(["week", "two-weeks", "month", "quarter", "year"]), help="How often."
)
@click.option("--next", "next_day", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The next day it is due.")
@click.option("--account", required=True, help="The account it is paid from or to: id, IBAN or name.")
@click.option("--incoming", "is_incoming", is_flag=True, help="It comes in; without this it goes out.")
@click.option("--user", required=True, help="Whose payment.")
@data_option
def subscriptions_add(
    name: str,
    amount: str,
    every: str,
    next_day: datetime,
    account: str,
    is_incoming: bool,
    user: str,
    data_dir: Path | None,
) -> None:
    """Add a recurring payment that is not found, NAME as its bookings call it. Prints its id."""
    run(
        "subscriptions add",
        data_dir,
        user=user,
        name=name,
        amount=amount,
        every=every,
        next_day=next_day.date().isoformat(),
        account=account,
        is_incoming=is_incoming,
    )


@subscriptions.command("remove")
@click.argument("subscription_id")
@click.option("--user", required=True, help="Whose payment.")
@data_option
def subscriptions_remove(subscription_id: str, user: str, data_dir: Path | None) -> None:
    """Take away a recurring payment that was added by hand."""
    run("subscriptions remove", data_dir, user=user, subscription_id=subscription_id)


@subscriptions.command("confirm")
@click.argument("subscription_id")
@click.option("--user", required=True, help="Whose payment.")
@data_option
def subscriptions_confirm(subscription_id: str, user: str, data_dir: Path | None) -> None:
    """Say that a recurring payment is one."""
    _decide("confirm", "confirmed", subscription_id, user, data_dir)


@subscriptions.command("dismiss")
@click.argument("subscription_id")
@click.option("--user", required=True, help="Whose payment.")
@data_option
def subscriptions_dismiss(subscription_id: str, user: str, data_dir: Path | None) -> None:
    """Say that a recurring payment is none: no list, forecast or calendar has it any more."""
    _decide("dismiss", "dismissed", subscription_id, user, data_dir)


@subscriptions.command("reset")
@click.argument("subscription_id")
@click.option("--user", required=True, help="Whose payment.")
@data_option
def subscriptions_reset(subscription_id: str, user: str, data_dir: Path | None) -> None:
    """Take back what was said about a recurring payment."""
    _decide("reset", "none", subscription_id, user, data_dir)


def _decide(verb: str, confirmation: str, subscription_id: str, user: str, data_dir: Path | None) -> None:
    run(f"subscriptions {verb}", data_dir, user=user, subscription_id=subscription_id, confirmation=confirmation)


@click.command()
@click.argument("transaction_id")
@click.argument("place", metavar="CATEGORY")
@click.option("--user", required=True, help="Whose booking.")
@click.option("--one", is_flag=True, help="This booking alone.")
@data_option
def correct(transaction_id: str, place: str, user: str, one: bool, data_dir: Path | None) -> None:
    """Correct a booking's category, and that of all other bookings with its counterpart, past and future.

    CATEGORY is one of the thirteen, a finer one, or a name of the user's own: `bankdata categories list` shows them."""
    run("correct", data_dir, user=user, transaction_id=transaction_id, place=place, is_one=one)
