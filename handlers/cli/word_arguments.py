"""Commands for what a person says of their bookings."""

from pathlib import Path

import click

from analytics.classification.facts import CATEGORIES
from handlers.cli.server_or_here import data_option, run


class CategoryCode(click.Choice[str]):
    """A category, or a finer one, whose table is read only where it is needed."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The code as it is."""
        from analytics.classification.leaves import LEAVES

        return value if value in LEAVES else super().convert(value, param, ctx)


PLACE = CategoryCode(CATEGORIES)


def placed(code: str) -> dict[str, str]:
    """The member of an annotation that says this category."""
    return {"category" if code in CATEGORIES else "detailedCategory": code}


@click.command()
@click.argument("transaction_id")
@click.option("--user", required=True, help="Whose booking.")
@click.option("--note", help="A note in place of the one that is there; empty for none.")
@click.option("--tag", "tags", multiple=True, help="A tag more; may be given several times.")
@click.option("--no-tags", is_flag=True, help="Take all tags back first.")
@data_option
def annotate(
    transaction_id: str, user: str, note: str | None, tags: tuple[str, ...], no_tags: bool, data_dir: Path | None
) -> None:
    """Put a note and tags beside one booking."""
    changes: dict[str, object] = {} if note is None else {"note": note}
    if no_tags:
        changes["tags"] = list(tags)
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
