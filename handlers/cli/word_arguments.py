"""Commands for what a person says of their bookings."""

import re
from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run

AMOUNT = re.compile(r"\d{1,15}(\.\d{1,5})?")


class PartOfBooking(click.ParamType[dict[str, str]]):
    """AMOUNT=CATEGORY, the amount without a sign, the category perhaps a finer one or one of the user's own."""

    name = "AMOUNT=CATEGORY"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, str]:
        """Both, as they are typed."""
        amount, _, place = value.partition("=")
        if not AMOUNT.fullmatch(amount):
            self.fail(f"{amount!r} is no amount such as 12.50.", param, ctx)
        return {"amount": amount, "place": place}


@click.command()
@click.argument("transaction_id")
@click.option("--user", required=True, help="Whose booking.")
@click.option("--note", help="A note in place of the one that is there; empty for none.")
@click.option("--tag", "tags", multiple=True, help="A tag more; may be given several times.")
@click.option("--no-tags", is_flag=True, help="Take all tags back first.")
@click.option("--split", "splits", multiple=True, type=PartOfBooking(), help="A part; all of them are the whole.")
@click.option("--no-splits", is_flag=True, help="Take the parts back.")
@data_option
def annotate(
    transaction_id: str,
    user: str,
    note: str | None,
    tags: tuple[str, ...],
    no_tags: bool,
    splits: tuple[dict[str, str], ...],
    no_splits: bool,
    data_dir: Path | None,
) -> None:
    """Put a note and tags beside one booking, and divide it into parts."""
    changes: dict[str, object] = {} if note is None else {"note": note}
    if no_tags:
        changes["tags"] = list(tags)
    if splits or no_splits:
        changes["splits"] = list(splits)
    more = [] if no_tags else list(tags)
    run("annotate", data_dir, user=user, transaction_id=transaction_id, changes=changes, tags=more)


@click.group()
def words() -> None:
    """Everything that a user says of their bookings, out of one store and into another."""


@words.command("export")
@click.option("--user", required=True, help="Whose words.")
@data_option
def words_export(user: str, data_dir: Path | None) -> None:
    """Print rules, corrections, notes, tags and categories of single bookings as JSON lines."""
    run("words export", data_dir, user=user)


@words.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--user", required=True, help="Whose words.")
@data_option
def words_import(file: Path, user: str, data_dir: Path | None) -> None:
    """Take over what such a file says and the user has not said here."""
    run("words import", data_dir, user=user, path=str(file.absolute()))


@click.group()
def categories() -> None:
    """Categories under names of a user's own, each below one of the thirteen or below a finer one."""


@categories.command("list")
@click.option("--user", required=True, help="Whose categories.")
@data_option
def categories_list(user: str, data_dir: Path | None) -> None:
    """Print each category with the finer ones and the user's own below it."""
    run("categories list", data_dir, user=user)


@categories.command("add")
@click.argument("name")
@click.option("--below", required=True, metavar="CODE", help="A category or a finer one.")
@click.option("--user", required=True, help="Whose category.")
@data_option
def categories_add(name: str, below: str, user: str, data_dir: Path | None) -> None:
    """Add a category under a name of the user's own."""
    run("categories add", data_dir, user=user, name=name, below=below)


@categories.command("rename")
@click.argument("name")
@click.argument("new_name")
@click.option("--user", required=True, help="Whose category.")
@data_option
def categories_rename(name: str, new_name: str, user: str, data_dir: Path | None) -> None:
    """Give it another name; what is in it stays in it."""
    run("categories rename", data_dir, user=user, name=name, new_name=new_name)


@categories.command("remove")
@click.argument("name")
@click.option("--user", required=True, help="Whose category.")
@data_option
def categories_remove(name: str, user: str, data_dir: Path | None) -> None:
    """Forget it; what is in it stays at its place."""
    run("categories remove", data_dir, user=user, name=name)


@click.group()
def targets() -> None:
    """Amounts to compare with what was spent in a category, a finer one, or one of the user's own."""


@targets.command("list")
@click.option("--user", required=True, help="Whose targets.")
@click.option("--month", metavar="YYYY-MM", help="Another month than this one.")
@data_option
def targets_list(user: str, month: str | None, data_dir: Path | None) -> None:
    """Print what holds in a month, what was spent, and what is left."""
    run("targets list", data_dir, user=user, month=month)


@targets.command("set")
@click.argument("place")
@click.argument("amount")
@click.option("--user", required=True, help="Whose target.")
@click.option(
    "--per", "period", type=click.Choice(["month", "year"]), default="month", help="Of a month, or of a year."
)
@click.option("--from", "month", metavar="YYYY-MM", help="The month from which it holds; without it this one.")
@data_option
def targets_set(place: str, amount: str, user: str, period: str, month: str | None, data_dir: Path | None) -> None:
    """Let it hold until another one does; 0 ends it."""
    run("targets set", data_dir, user=user, place=place, amount=amount, period=period, month=month)
