"""Commands for files: import statements, list and undo past imports, export bookings."""

import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any

import click

from connectors.limits import FILE_BYTES_MAX, MEGABYTE
from handlers.cli.server_or_here import data_option, group, open_service, plain_command, run, settings_of, user_option
from handlers.cli.terminal import Terminal, stop, writing
from handlers.settings import Settings

EXPORT_FORMATS = ("csv", "jsonl", "parquet", "camt053", "ofx", "beancount")


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--user", help="Whose accounts the statements are about.")
@click.option("--connection", help="Name of the connection they belong to.  [default: Statement files]")
@click.option("--account", help="The account they are about, by id, IBAN or name; for files that do not say it.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Read and report, keep nothing.")
@click.option("--json", "is_json", is_flag=True, help="One line of JSON per file.")
@click.option(
    "--explain",
    is_flag=True,
    help="Say what was recognised and why, with --user by their kept layouts too; import nothing.",
)
@data_option
def import_(files: tuple[Path, ...], user: str | None, explain: bool, data_dir: Path | None, **given: Any) -> None:
    """Import statement files: camt, MT940, OFX, QIF, bank CSV, Excel, or a ZIP of them. `-` is standard input.

    What `bankdata export` wrote comes back in every format.
    """
    if user is None and not explain:
        raise click.UsageError("Missing option '--user'.")
    with _readable(files) as (names, paths):
        if explain:
            kept = _kept_layouts(user, data_dir) if user is not None else []
            _explain(names, paths, settings_of(data_dir), kept)
        else:
            run("import", data_dir, user=user, files=paths, names=names, **given)


@click.command()
@click.option("--user", required=True, help="Whose transactions.")
@click.option("--format", "format_", required=True, type=click.Choice(EXPORT_FORMATS), help="What kind of file.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to.  [default: standard output]")
@click.option(
    "--words",
    "has_words",
    is_flag=True,
    help="Notes, tags, own categories and parts as well; in jsonl all you have said.",
)
@data_option
def export(output: Path | None, data_dir: Path | None, **given: Any) -> None:
    """Write a user's booked transactions to a file.

    Every format can be imported again and brings no new row.
    """
    is_stream = output is None or (output.exists() and not output.is_file())  # such as a pipe: a server has others
    if not is_stream:
        run("export", data_dir, **given, path=output)
        return
    if output is None and sys.stdout is None:
        raise click.UsageError("Standard output is closed: name a file with '--output'.")
    with TemporaryDirectory(prefix="bankdata-") as folder:
        path = Path(folder) / "export"
        terminal = Terminal(keeps_notes=True)
        run("export", data_dir, terminal=terminal, **given, path=path)
        with (
            writing("standard output" if output is None else str(output)),
            path.open("rb") as stream,
            nullcontext(sys.stdout.buffer) if output is None else output.open("wb") as reader,
        ):
            copyfileobj(stream, reader)
            reader.flush()  # raises where the reader has gone: then no note claims an export
        terminal.release()


imports = group(
    "imports",
    "The imports and syncs of a user.",
    plain_command(
        "imports list",
        "List imports that can be undone.\n\nId, when (UTC), files or bank, accounts, new bookings.",
        user_option("Whose imports."),
    ),
    plain_command(
        "imports undo",
        """Undo exactly what an import brought, in any order.

        What another import reported, too, stays. A live bank is asked for everything again at its next sync.
        """,
        click.argument("import_id"),
        user_option("Whose imports."),
    ),
)


@contextmanager
def _readable(files: Sequence[Path]) -> Iterator[tuple[list[str | None], list[Path]]]:
    """Paths under which a server can read each file, also more than once: of standard input, of a pipe such as
    `<(...)`, and of a file whose name is not UTF-8 that of a copy, which is deleted afterwards. Before them, what to
    call each of these in place of its path."""
    with TemporaryDirectory(prefix="bankdata-") as folder:
        names: list[str | None] = []
        paths = []
        for number, path in enumerate(files):
            text = os.fsencode(path).decode("utf-8", "replace")
            name = "standard input" if text == "-" else text
            is_copied = text == "-" or text != str(path) or path.is_fifo() or path.is_char_device()
            names.append(name if is_copied else None)
            paths.append(_copy(path, name, Path(folder) / str(number)) if is_copied else path)
        yield names, paths


def _copy(path: Path, name: str, target: Path) -> Path:
    """Copy a file to `target`, up to the bytes from which on it is refused, and return that."""
    is_input = str(path) == "-"
    if is_input and sys.stdin is None:
        raise click.UsageError("Standard input is closed.")
    try:
        with nullcontext(sys.stdin.buffer) if is_input else path.open("rb") as source, target.open("wb") as copy:
            left = FILE_BYTES_MAX + 1
            while left and (piece := source.read(min(left, MEGABYTE))):
                left -= copy.write(piece)
    except OSError as error:
        stop(f"{name} cannot be read: {error.strerror or error}.")
    return target


class _KeptOutput(Terminal):
    """A terminal that collects a command's lines in `said` instead of printing them."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def line(self, text: str) -> None:
        self.said.append(text)


def _kept_layouts(user: str, data_dir: Path | None) -> list[str]:
    """The layouts that a user keeps, each as JSON; from the running server where it has the store open."""
    lines = _KeptOutput()
    run("profiles kept", data_dir, terminal=lines, user=user)
    return lines.said


def _explain(names: Sequence[str | None], files: Sequence[Path], settings: Settings, kept: Sequence[str]) -> None:
    from msgspec import json

    from connectors.bank_csv.profile import ProfileError
    from handlers.commands.counts import quantity
    from handlers.commands.recognition import explain_file
    from handlers.work.clock import Clock
    from handlers.work.own_profiles import kept_profile, profiles_of_folder
    from storage.kept_layouts import KeptLayout

    try:
        if settings.store_path is not None:  # which a server may have open
            profiles = profiles_of_folder(settings.data_dir)
        else:
            with closing(open_service(settings)) as services:
                profiles = services.own_profiles.read()
    except ProfileError as error:
        stop(str(error))
    profiles = [*(kept_profile(json.decode(each, type=KeptLayout)) for each in kept), *profiles]
    today = Clock(settings.time_zone).today()
    each_file = [(name or str(path), path) for name, path in zip(names, files, strict=True)]
    refused = sum(not _print_lines(explain_file(name, path, profiles, today=today)) for name, path in each_file)
    if refused:
        stop(f"{refused} of {quantity(len(files), 'file')} refused.")


def _print_lines(lines: Generator[str, None, bool]) -> bool:
    """Print the lines of a generator, and return the value it ends with."""
    while True:
        try:
            click.echo(next(lines))
        except StopIteration as end:
            return bool(end.value)
