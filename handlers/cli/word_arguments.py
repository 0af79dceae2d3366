"""Commands for what users say about their bookings: notes, tags, parts, own categories, targets."""

import re
from pathlib import Path
from typing import Any

import click

from handlers.cli.server_or_here import group, plain_command, user_option

AMOUNT = re.compile(r"\d{1,15}(\.\d{1,5})?")


class PartOfBooking(click.ParamType[dict[str, str]]):
    """A command-line value AMOUNT=CATEGORY: an amount without sign, and a category, finer category or own category."""

    name = "AMOUNT=CATEGORY"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        """The amount and the category as they were typed."""
        amount, _, place = value.partition("=")
        if not AMOUNT.fullmatch(amount):
            self.fail(f"{amount!r} is no amount such as 12.50.", param, ctx)
        return {"amount": amount, "place": place}


def _changes(
    *,
    note: str | None,
    tags: tuple[str, ...],
    no_tags: bool,
    splits: tuple[dict[str, str], ...],
    no_splits: bool,
    **given: Any,
) -> dict[str, Any]:
    """The arguments of the command `annotate`: `changes` of the booking, and `tags` to add to its present ones. With
    --no-tags, the typed tags stand in `changes` instead, where they replace all present ones."""
    changes: dict[str, object] = {} if note is None else {"note": note}
    if no_tags:
        changes["tags"] = list(tags)
    if splits or no_splits:
        changes["splits"] = list(splits)
    return {**given, "changes": changes, "tags": () if no_tags else tags}


annotate = plain_command(
    "annotate",
    "Add a note and tags to one booking, or divide it into parts.",
    click.argument("transaction_id"),
    user_option("Whose booking."),
    click.option("--note", help="A note in place of the one that is there; empty for none."),
    click.option("--tag", "tags", multiple=True, help="A tag more; may be given several times."),
    click.option("--no-tags", is_flag=True, help="Take all tags back first."),
    click.option("--split", "splits", multiple=True, type=PartOfBooking(), help="A part; all of them are the whole."),
    click.option("--no-splits", is_flag=True, help="Take the parts back."),
    prepare=_changes,
)

words = group(
    "words",
    "Everything that a user says of their bookings, out of one store and into another.",
    plain_command(
        "words export",
        "Print everything a user has said, as JSON lines.",
        user_option("Whose words."),
    ),
    plain_command(
        "words import",
        "Import such a file, where the user has said nothing here.",
        click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path)),
        user_option("Whose words."),
    ),
)

category_option = user_option("Whose category.")
categories = group(
    "categories",
    "Categories under names of a user's own, each below one of the thirteen or below a finer one.",
    plain_command(
        "categories list",
        "Print each category with the finer and own ones below it.",
        user_option("Whose categories."),
    ),
    plain_command(
        "categories add",
        "Add a category under a name of the user's own.",
        click.argument("name"),
        click.option("--below", required=True, metavar="CODE", help="A category or a finer one."),
        category_option,
    ),
    plain_command(
        "categories rename",
        "Rename it; its bookings stay in it.",
        click.argument("name"),
        click.argument("new_name"),
        category_option,
    ),
    plain_command(
        "categories remove",
        "Remove it; its bookings keep the category above it.",
        click.argument("name"),
        category_option,
    ),
)

targets = group(
    "targets",
    "Amounts to compare with what was spent in a category, a finer one, or one of the user's own.",
    plain_command(
        "targets list",
        "Print the targets of a month, what was spent, and what is left.",
        click.option("--month", metavar="YYYY-MM", help="Another month than this one."),
        user_option("Whose targets."),
    ),
    plain_command(
        "targets set",
        "Set an amount that applies until you set another; 0 ends it.",
        click.argument("place"),
        click.argument("amount"),
        click.option(
            "--per",
            "period",
            type=click.Choice(["month", "year"]),
            default="month",
            help="Of a month, or of a year.",
        ),
        click.option("--from", "month", metavar="YYYY-MM", help="The month from which it holds; without it this one."),
        user_option("Whose target."),
    ),
)
