"""Commands for a user's own rules and corrections, and for what they say about recurring payments."""

from typing import Any, TextIO

import click

from handlers.cli.server_or_here import group, plain_command, user_option
from handlers.cli.terminal import stop


def _text(*, file: TextIO, **given: Any) -> dict[str, Any]:
    try:
        return {**given, "text": file.read()}
    except UnicodeDecodeError:
        stop(f"{file.name}: not a text in UTF-8.")


def _changes(*, rule_id: str, user: str, tags: tuple[str, ...], **words: str | None) -> dict[str, Any]:
    changes: dict[str, object] = {name: value or None for name, value in words.items() if value is not None}
    if tags:
        changes["tags"] = [tag for tag in tags if tag]
    return {"user": user, "rule_id": rule_id, "changes": changes}


rules = group(
    "rules",
    "A user's own rules for category, merchant and type; docs/rules.md shows the format.",
    plain_command("rules list", "Print the rules in order, as JSON lines.", user_option("Whose rules.")),
    plain_command("rules remove", "Remove a rule.", click.argument("rule_id"), user_option("Whose rules.")),
    plain_command(
        "rules order",
        "Set the order of the rules; name each rule once.\n\nApplies them to all stored bookings.",
        click.argument("rule_ids", nargs=-1, required=True, metavar="RULE_ID..."),
        user_option("Whose rules."),
    ),
    plain_command("rules apply", "Apply the rules to all stored bookings again.", user_option("Whose bookings.")),
    plain_command(
        "rules add",
        "Append rules from JSON lines (- for standard input).",
        click.argument("file", type=click.File("r", encoding="utf-8")),
        user_option("Whose rules."),
        prepare=_text,
    ),
    plain_command(
        "rules edit",
        "Change a rule, and apply it to all stored bookings.",
        click.argument("rule_id"),
        user_option("Whose rule."),
        click.option("--field", help="What is compared."),
        click.option("--operator", help="How: contains, equals or startswith."),
        click.option("--value", help="With what."),
        click.option(
            "--category", help="Category that it gives, a finer one or one of the user's own; empty for none."
        ),
        click.option("--merchant", help="Merchant that it gives; empty for none."),
        click.option("--type", help="Type that it gives; empty for none."),
        click.option(
            "--tag", "tags", multiple=True, help="Tag that it gives, given once for each of them; empty for none."
        ),
        prepare=_changes,
    ),
)


subscription = (click.argument("subscription_id"), user_option("Whose payment."))
subscriptions = group(
    "subscriptions",
    "A user's recurring payments, and what they say about them.",
    plain_command(
        "subscriptions list",
        "List every recurring payment with its id.\n\nThen direction, state, rhythm, amount, what the user says, name.",
        user_option("Whose payments."),
    ),
    plain_command(
        "subscriptions add",
        "Add a recurring payment that is not found. Prints its id.\n\nNAME as its bookings call it.",
        click.argument("name"),
        click.argument("amount"),
        click.option(
            "--every",
            required=True,
            type=click.Choice(["week", "two-weeks", "month", "quarter", "year"]),
            help="How often.",
        ),
        click.option(
            "--next", "next_day", required=True, type=click.DateTime(["%Y-%m-%d"]), help="The next day it is due."
        ),
        click.option("--account", required=True, help="The account it is paid from or to: id, IBAN or name."),
        click.option("--incoming", "is_incoming", is_flag=True, help="It comes in; without this it goes out."),
        user_option("Whose payment."),
    ),
    plain_command("subscriptions remove", "Remove a recurring payment that was added by hand.", *subscription),
    plain_command(
        "subscriptions confirm",
        "Confirm a recurring payment.",
        *subscription,
        confirmation="confirmed",
    ),
    plain_command(
        "subscriptions dismiss",
        "Dismiss a recurring payment from lists, forecast and calendar.",
        *subscription,
        confirmation="dismissed",
    ),
    plain_command(
        "subscriptions reset",
        "Undo a confirmation or dismissal.",
        *subscription,
        confirmation="none",
    ),
)

correct = plain_command(
    "correct",
    """Correct the category of a booking and of others with its counterpart.

    CATEGORY is one of the thirteen, a finer one, or a name of the user's own: `bankdata categories list` shows them.
    """,
    click.argument("transaction_id"),
    click.argument("place", metavar="CATEGORY"),
    user_option("Whose booking."),
    click.option("--one", "is_one", is_flag=True, help="This booking alone."),
)
