"""Decides where a command runs: in the server that has the store open, else in this process."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handlers.cli.interrupts import first_interrupt
from handlers.cli.terminal import Terminal, confirm, stop
from handlers.commands import control_socket
from handlers.commands.control_socket import CommandError, Interrupted, NoServer
from handlers.settings import SettingError, Settings, load

if TYPE_CHECKING:
    from handlers.work.services import Services

MAKES_A_STORE = ("users add",)  # the only command that may: a mistyped folder must not become an empty store

NEGATIVE = re.compile(r"-[0-9]")  # how an amount may begin, and no option does

Parameter = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What `click.argument` and `click.option` return."""

data_option: Parameter = click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the store, the keys and the control socket.  [default: BANKDATA_DATA_DIR]",
)


def confirmation_option(question: str) -> Parameter:
    """The option --yes, without which the person is asked first and a no aborts the command; `question` may name
    parameters that stand before."""

    def ask(context: click.Context, _parameter: click.Parameter, is_sure: bool) -> None:
        if not is_sure:
            confirm(question.format(**context.params))

    return click.option("--yes", is_flag=True, expose_value=False, callback=ask, help="Do not ask.")


def user_option(help_text: str, *, is_required: bool = True) -> Parameter:
    """The option --user, which names a user."""
    return click.option("--user", required=is_required, help=help_text)


class _Command(click.Command):
    """A command that takes a minus with digits for an amount, not for an option that does not exist."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what was typed, as click does."""
        ctx.ignore_unknown_options = any(NEGATIVE.match(each) for each in args)
        return super().parse_args(ctx, args)


def plain_command(
    typed: str,
    help_text: str,
    *parameters: Parameter,
    carried_out: str | None = None,
    prepare: Callable[..., Mapping[str, Any]] = dict,
    **fixed: Any,
) -> click.Command:
    """The command typed as `typed`, which passes what `prepare` makes of its parameters, and the `fixed` ones, to the
    function in handlers/commands of the same name, or to the one called `carried_out`."""

    def command(data_dir: Path | None, **given: Any) -> None:
        run(carried_out or typed, data_dir, **prepare(**given), **fixed)

    return _command(typed, help_text, parameters, command)


def group(name: str, help_text: str, *commands: click.Command) -> click.Group:
    """The group of the commands that begin with this word."""
    return click.Group(name, help=help_text, commands=commands)


def local_command(typed: str, help_text: str, *parameters: Parameter, module: str) -> click.Command:
    """The command typed as `typed`, which this process carries out even if a server runs: it passes settings and
    parameters to the function of the same name in this module of handlers/commands."""

    def command(data_dir: Path | None, **given: Any) -> None:
        loaded = import_module(f"handlers.commands.{module}")  # takes a second
        with reporting_to(Terminal()) as terminal:
            getattr(loaded, typed.replace("-", "_"))(settings_of(data_dir), terminal, **given)

    return _command(typed, help_text, parameters, command)


def _command(
    typed: str, help_text: str, parameters: Iterable[Parameter], command: Callable[..., None]
) -> click.Command:
    for parameter in (data_option, *reversed([*parameters])):
        command = parameter(command)
    return click.command(typed.rpartition(" ")[2], cls=_Command, help=help_text)(command)


def run(command: str, data_dir: Path | None, *, terminal: Terminal | None = None, **arguments: Any) -> None:
    """Run a command of handlers/commands in the server that has the store open, or else in this process, and print what
    it reports; a failure ends the program with the reason."""
    settings = settings_of(data_dir)
    sent = {name: _as_json(value) for name, value in arguments.items()}
    changes = (each.items() for each in sent.values() if isinstance(each, dict))
    for name, value in chain(sent.items(), *changes):
        if isinstance(value, str) and not _is_text(value):
            stop(f"{name.replace('_', ' ').capitalize()} {value!r} is not a text in UTF-8.")
    with reporting_to(terminal or Terminal()) as report:
        try:
            control_socket.ask(settings.data_dir, command, sent, report, on_interrupt=first_interrupt)
        except NoServer:
            from handlers.commands.table import perform  # a second of loading that a running server saves us

            with closing(open_service(settings, may_make=command in MAKES_A_STORE)) as services:
                perform(services, command, sent, report)


@contextmanager
def reporting_to(terminal: Terminal) -> Iterator[Terminal]:
    """A context with the terminal to which a command reports; if the command fails or is interrupted, the program ends
    and says why."""
    try:
        yield terminal
    except CommandError as error:
        terminal.end()
        stop(str(error))
    except Interrupted as interrupted:
        terminal.note(str(interrupted))
        raise click.Abort from None
    terminal.end()


def settings_of(data_dir: Path | None, **address: str) -> Settings:
    """The settings of the environment; an invalid one ends the program with the reason. `data_dir` and `address` as in
    `load`."""
    try:
        return load(os.environ, data_dir=data_dir, **address)
    except SettingError as error:
        stop(str(error))


def open_service(
    settings: Settings,
    *,
    for_server: bool = False,
    may_make: bool = True,
    has_live_demo: bool = False,
    sends_webhooks: bool = False,
) -> "Services":
    """The open service of these settings; says on standard error when it made a store and, unless it is `for_server`,
    when this machine lacks a key. A store that cannot be opened ends the program, and so does a missing one unless this
    command `may_make` it."""
    is_new = not _has_store(settings)
    if not may_make:
        check_store(settings)
    from handlers.work.services import open_services
    from storage.database import StoreError, StoreInUse

    try:
        services = open_services(
            settings, for_server=for_server, has_live_demo=has_live_demo, sends_webhooks=sends_webhooks
        )
    except StoreInUse:
        if for_server:
            stop(
                f"Another process has {settings.store_path} open. One process serves a DuckDB store: stop the other"
                " one, or give this one a folder of its own with --data DIR."
            )
        stop(f"Another process has {settings.store_path} open and does not listen for commands. Stop it first.")
    except StoreError as error:
        stop(str(error))
    except OSError as error:
        stop(f"The data folder {settings.data_dir} cannot be used: {error.strerror or error}.")
    if is_new and settings.store_path is not None:
        click.echo(f"Made a new store in {settings.store_path.parent}.", err=True)
    if services.missing_key is not None and not for_server:
        click.echo(services.missing_key, err=True)
    return services


def check_store(settings: Settings) -> None:
    """Stop the command if the store that it needs does not exist."""
    if not _has_store(settings):
        stop(
            f"There is no store at {settings.store_path}. Name its folder with --data DIR or BANKDATA_DATA_DIR, or make"
            " one with `bankdata users add NAME`."
        )


def _has_store(settings: Settings) -> bool:
    if settings.store_path is None:
        return True  # PostgreSQL: the operator made the database, and missing tables are created in it
    try:
        return settings.store_path.exists() and settings.store_path.stat().st_size > 0  # a copy that broke off is none
    except OSError as error:
        stop(f"The data folder {settings.data_dir} cannot be used: {error.strerror or error}.")


def _as_json(value: Any) -> Any:
    """An argument as the control socket carries it; paths are made absolute, for the server runs in another folder, and
    a moment becomes its day, YYYY-MM-DD."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, datetime):
        return value.date().isoformat()
    return [_as_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_text(value: str) -> bool:
    """Whether this text can be encoded: bytes of a command line that are not UTF-8 arrive as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)
