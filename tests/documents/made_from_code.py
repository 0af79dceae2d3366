"""The tables of the pages that are made from the code: `python -m tests.documents.made_from_code` writes them anew."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path

import click

from handlers.cli import main
from handlers.commands.capacity import LINK_MB
from handlers.settings import PREFIX, Settings
from handlers.work.costs import EMBEDDED, POSTGRESQL

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORES = (EMBEDDED, POSTGRESQL)
MARKED = "<!-- made from the {what}: python -m tests.documents.made_from_code -->\n{table}<!-- end -->"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command of `bankdata` as it is typed, by group."""
    todo: list[tuple[str, click.Command]] = [("bankdata", main)]
    while todo:
        name, command = todo.pop(0)
        if isinstance(command, click.Group):
            todo = [*((f"{name} {word}", below) for word, below in sorted(command.commands.items())), *todo]
        else:
            yield name, command


def table_of_commands() -> str:
    """Each command with the first sentence of its help."""
    said = {name: (command.help or "").splitlines()[0].partition(". ")[0] for name, command in commands()}
    rows = [f"| `{name.removeprefix('bankdata ')}` | {what.removesuffix('.')} |\n" for name, what in said.items()]
    return "| command | what it does |\n|---|---|\n" + "".join(rows)


def table_of_settings() -> str:
    """Each setting with its default as it would be typed, and what it means."""
    rows = [
        f"| `{PREFIX}{each.name.upper()}` | {_ticked(each.metadata['default'])} | {each.metadata['meaning']} |\n"
        for each in fields(Settings)
    ]
    return "| setting | default | meaning |\n|---|---|---|\n" + "".join(rows)


def table_of_costs() -> str:
    """What `bankdata capacity` computes with."""
    rows = [
        ("a booking", *(f"{each.booking_bytes:,} bytes" for each in STORES)),
        ("a connection with its account and a year of syncs", *(f"{each.connection_bytes:,} bytes" for each in STORES)),
        ("a user and thirteen months of an app's record", *(f"{each.user_bytes:,} bytes" for each in STORES)),
        ("a planned sync without news, CPU of the service", *(f"{each.sync_ms[0]} ms" for each in STORES)),
        ("a request, CPU of the service", *(f"{each.request_ms[0]} ms" for each in STORES)),
        ("a planned sync without news, CPU of the database", "", f"{POSTGRESQL.sync_ms[1]} ms"),
        ("a request, CPU of the database", "", f"{POSTGRESQL.request_ms[1]} ms"),
        ("a connection to the database", "", f"{LINK_MB} MB"),
    ]
    return "| | embedded store | PostgreSQL |\n|---|---|---|\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _ticked(default: str | None) -> str:
    return "" if default is None else f"`{default}`"


MADE: Mapping[str, tuple[str, Callable[[], str]]] = {
    "commands.md": ("commands", table_of_commands),
    "settings.md": ("settings", table_of_settings),
    "performance.md": ("constants", table_of_costs),
}
"""Page, and what its table is made from and by."""


def written_anew(page: str) -> str:
    """The text of the page with its table as the code says it."""
    what, table = MADE[page]
    text = (DOCS / page).read_text("utf-8")
    old = re.escape(MARKED.format(what=what, table="\0")).replace(re.escape("\0"), "(?:\\|.*\n)*")
    found, count = re.subn(old, lambda _: MARKED.format(what=what, table=table()), text)
    assert count == 1, f"{page} has no place for its table"
    return found


if __name__ == "__main__":
    for name in MADE:
        (DOCS / name).write_text(written_anew(name), "utf-8")
