"""The command line `bankdata`. Its commands work whether or not a server runs: then they ask it to do the work."""

import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from getpass import GetPassWarning
from pathlib import Path
from secrets import token_urlsafe
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from analytics.facts import CATEGORIES
from handlers import control
from handlers.control import CommandError, NoServer
from handlers.listener import CannotListen, listening_socket
from handlers.settings import SettingError, Settings, load

if TYPE_CHECKING:
    from handlers.services import Services

EXPORT_FORMATS = ("csv", "jsonl", "parquet", "camt053", "ofx", "beancount")
PATHS = ("file", "folder", "path")  # arguments that name files, whose names may be any bytes
TTL_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}

data_option = click.option(
    "--data",
    "data_dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the store, the keys and the control socket.  [default: BANKDATA_DATA_DIR]",
)


class Terminal:
    """A report for a person: results on standard output, notes and a progress bar on standard error."""

    def __init__(self) -> None:
        self._bar_shown = False

    def line(self, text: str) -> None:
        """A line of the result."""
        self.end()
        click.echo(text)

    def note(self, text: str) -> None:
        """A line for the person."""
        self.end()
        click.echo(text, err=True)

    def progress(self, label: str, done: int, total: int) -> None:
        """Redraw the bar; without a terminal nothing is drawn."""
        if not sys.stderr.isatty():
            return
        filled = 30 * done // max(1, total)
        click.echo(f"\r\x1b[2K[{'#' * filled}{'.' * (30 - filled)}] {label}", nl=False, err=True)
        self._bar_shown = True

    def end(self) -> None:
        """Leave the line of the bar."""
        if self._bar_shown:
            click.echo(err=True)
            self._bar_shown = False


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="banking-data-service", prog_name="bankdata")
def main() -> None:
    """Read access to your own bank accounts, for the apps and assistants you allow.

    Try it: `bankdata demo`. For real: `bankdata users add NAME`, `bankdata connect ...`, `bankdata serve`.
    Settings come from the environment (BANKDATA_...); docs/operations.md lists them.
    """
    os.umask(0o077)  # whatever is written is about somebody's money: nobody else reads it, wherever the folder is
    os.umask(0o077)  # whatever is written is the owner's alone


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65_535), help="Port to listen on.")
@data_option
@click.option("--fresh", is_flag=True, help="Throw the demo's store away first.")
def demo(host: str, port: int, data_dir: Path | None, fresh: bool) -> None:
    """Serve five invented users of a demo bank: demo, solo, empty, lapsed, globe."""
    settings = _settings(data_dir, address=_address(host, port))
    from handlers.demo import prepare, welcome  # the server's libraries take a second to load

    with _listener(host, port) as listener:
        if fresh:
            _forget_demo(settings)
        terminal = Terminal()
        terminal.progress("Opening the store", 0, 1)
        services = _opened(settings, for_server=True)
        try:
            prepare(services, terminal)
        except CommandError as error:
            services.close()
            _stop(str(error))
        terminal.end()
        _serve(services, listener, ready=lambda: welcome(services, terminal))


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65_535), help="Port to listen on.")
@data_option
def serve(host: str, port: int, data_dir: Path | None) -> None:
    """Serve the accounts of the users in the store."""
    settings = _settings(data_dir, address=_address(host, port))
    from handlers.services import IS_DEMO
    from storage import memory, users

    with _listener(host, port) as listener:
        services = _opened(settings, for_server=True)
        if memory.recall(services.database, IS_DEMO) is not None:
            services.close()
            _stop(f"{settings.data_dir} holds the demo. Serve it with `bankdata demo`, or choose another --data DIR.")
        has_users = bool(users.everyone(services.database))

        def ready() -> None:
            click.echo(f"Serving {settings.base_url} (documentation: {settings.public_url}/docs)", err=True)
            if not has_users:
                click.echo("There are no users yet. Add one with `bankdata users add NAME`.", err=True)

        _serve(services, listener, ready=ready)


@main.group()
def users() -> None:
    """The people who may sign in."""


password_options = (
    click.option("--password-stdin", is_flag=True, help="Read the password from standard input."),
    click.option("--random", "is_random", is_flag=True, help="Make a password up and print it."),
)


@users.command("add")
@click.argument("name")
@password_options[0]
@password_options[1]
@click.option("--no-subscription", is_flag=True, help="The data endpoints send this user to the billing page.")
@data_option
def users_add(name: str, password_stdin: bool, is_random: bool, no_subscription: bool, data_dir: Path | None) -> None:
    """Add a user."""
    password = _password(password_stdin, is_random)
    _run(
        "users add",
        data_dir,
        name=name,
        password=password,
        is_generated=is_random,
        has_subscription=not no_subscription,
    )


@users.command("list")
@data_option
def users_list(data_dir: Path | None) -> None:
    """List users with subscription and number of bank connections."""
    _run("users list", data_dir)


@users.command("passwd")
@click.argument("name")
@password_options[0]
@password_options[1]
@data_option
def users_passwd(name: str, password_stdin: bool, is_random: bool, data_dir: Path | None) -> None:
    """Change a user's password and sign the user's browsers out."""
    _run("users passwd", data_dir, name=name, password=_password(password_stdin, is_random), is_generated=is_random)


@users.command("subscription")
@click.argument("name")
@click.argument("state", type=click.Choice(["on", "off"]))
@data_option
def users_subscription(name: str, state: str, data_dir: Path | None) -> None:
    """Say whether a user has an active subscription."""
    _run("users subscription", data_dir, name=name, active=state == "on")


@users.command("currency")
@click.argument("name")
@click.argument("currency")
@data_option
def users_currency(name: str, currency: str, data_dir: Path | None) -> None:
    """Choose the currency of a user's figures over several currencies, such as CHF."""
    _run("users currency", data_dir, name=name, currency=currency)


@users.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
def users_remove(name: str, yes: bool, data_dir: Path | None) -> None:
    """Delete a user with accounts, transactions and connected apps."""
    if not yes:
        click.confirm(f"Delete {name} with all accounts and transactions?", abort=True, err=True)
    _run("users remove", data_dir, name=name)


@main.command()
@click.option("--user", required=True, help="Whom the token speaks for.")
@click.option(
    "--scope",
    default="read:accounts read:transactions read:cashflow",
    show_default=True,
    help="What it allows, separated by blanks.",
)
@click.option("--ttl", default="1h", show_default=True, help="How long it lives: 90s, 15m, 1h or 30d.")
@data_option
def token(user: str, scope: str, ttl: str, data_dir: Path | None) -> None:
    """Print an access token, alone on standard output."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([smhd]?)", ttl)
    if match is None:
        raise click.BadParameter("expected a number with s, m, h or d, such as 1h", param_hint="--ttl")
    _run("token", data_dir, user=user, scope=scope, seconds=int(match[1]) * TTL_UNITS[match[2] or "s"])


@main.group()
def connect() -> None:
    """Connect a bank to a user, with a first sync."""


@connect.command("demo")
@click.option("--user", required=True, help="Whose bank it is.")
@click.option("--accounts", type=click.IntRange(1, 100), help="How many accounts.")
@click.option("--bank", help="Name of the bank.  [default: Musterbank]")
@click.option(
    "--fault",
    type=click.Choice(["fails", "needs_user", "slow", "rate_limited", "consent_expired"]),
    help="What goes wrong from the next sync on.",
)
@data_option
def connect_demo(user: str, accounts: int | None, bank: str | None, fault: str | None, data_dir: Path | None) -> None:
    """The demo bank: invented bookings that grow day by day."""
    settings = {"accounts": accounts} if accounts else {}
    _run("connect", data_dir, connector="demo", user=user, bank=bank, settings=settings, fault=fault)


@connect.command("folder")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--user", required=True, help="Whose accounts the statements are about.")
@click.option("--bank", help="Name of the connection.  [default: name of the folder]")
@data_option
def connect_folder(folder: Path, user: str, bank: str | None, data_dir: Path | None) -> None:
    """A folder of statement files: every sync reads what is new and moves it to done/ or failed/."""
    _run("connect folder", data_dir, folder=str(folder.resolve()), user=user, bank=bank)


@main.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--user", help="Whose accounts the statements are about.")
@click.option("--connection", help="Name of the connection they belong to.  [default: Statement files]")
@click.option("--dry-run", is_flag=True, help="Read and report, keep nothing.")
@click.option("--json", "is_json", is_flag=True, help="One line of JSON per file.")
@click.option("--explain", is_flag=True, help="Say what was recognised in the files and why; import nothing.")
@data_option
def import_(
    files: tuple[Path, ...],
    user: str | None,
    connection: str | None,
    dry_run: bool,
    is_json: bool,
    explain: bool,
    data_dir: Path | None,
) -> None:
    """Import statement files: camt, MT940, OFX, bank CSV, or a ZIP of them, recognised by their content."""
    if explain:
        _explain(files, _settings(data_dir))
        return
    if user is None:
        raise click.UsageError("Missing option '--user'.")
    _run(
        "import",
        data_dir,
        user=user,
        files=[str(path.absolute()) for path in files],
        connection=connection,
        is_dry_run=dry_run,
        is_json=is_json,
    )


@main.command()
@click.option("--user", required=True, help="Whose transactions.")
@click.option("--format", "format_", required=True, type=click.Choice(EXPORT_FORMATS), help="What kind of file.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to.  [default: standard output]")
@data_option
def export(user: str, format_: str, output: Path | None, data_dir: Path | None) -> None:
    """Write all booked transactions of a user as csv, jsonl, parquet, camt053, ofx or beancount.

    csv, camt053 and ofx can be imported again and bring no new row.
    """
    if output is not None:
        _run("export", data_dir, user=user, format_=format_, path=str(output.absolute()))
        return
    with TemporaryDirectory(prefix="bankdata-") as folder:
        path = Path(folder) / "export"
        _run("export", data_dir, user=user, format_=format_, path=str(path))
        with path.open("rb") as stream:
            copyfileobj(stream, sys.stdout.buffer)


@main.group()
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
        _stop(f"{file.name}: not a text in UTF-8.")
    _run("rules add", data_dir, user=user, text=text)


@rules.command("list")
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_list(user: str, data_dir: Path | None) -> None:
    """Print the rules in their order, as JSON lines."""
    _run("rules list", data_dir, user=user)


@rules.command("remove")
@click.argument("rule_id")
@click.option("--user", required=True, help="Whose rules.")
@data_option
def rules_remove(rule_id: str, user: str, data_dir: Path | None) -> None:
    """Forget a rule."""
    _run("rules remove", data_dir, user=user, rule_id=rule_id)


@rules.command("apply")
@click.option("--user", required=True, help="Whose bookings.")
@data_option
def rules_apply(user: str, data_dir: Path | None) -> None:
    """Read all stored bookings anew under the rules of today."""
    _run("rules apply", data_dir, user=user)


@main.command()
@click.argument("transaction_id")
@click.argument("category", type=click.Choice(CATEGORIES))
@click.option("--user", required=True, help="Whose booking.")
@data_option
def correct(transaction_id: str, category: str, user: str, data_dir: Path | None) -> None:
    """Correct a booking's category, for its counterpart's other bookings too, past and to come."""
    _run("correct", data_dir, user=user, transaction_id=transaction_id, category=category)


@main.group()
def rates() -> None:
    """Reference rates of the European Central Bank, for sums over several currencies."""


@rates.command("update")
@click.option(
    "--file",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="eurofxref-hist.zip or .csv.",
)
@data_option
def rates_update(file: Path, data_dir: Path | None) -> None:
    """Take newer rates from an ECB file."""
    _run("rates update", data_dir, file=str(file.absolute()))


@main.group("connections")
def connections_() -> None:
    """The bank connections of the users."""


@connections_.command("list")
@click.option("--user", help="Only this user's.")
@data_option
def connections_list(user: str | None, data_dir: Path | None) -> None:
    """List connections: id, user, bank, kind, state."""
    _run("connections list", data_dir, user=user)


@connections_.command("remove")
@click.argument("connection_id")
@click.option("--user", required=True, help="Whose connection.")
@data_option
def connections_remove(connection_id: str, user: str, data_dir: Path | None) -> None:
    """End a connection; its accounts and transactions stay readable."""
    _run("connections remove", data_dir, user=user, connection_id=connection_id)


@main.command()
@click.option("--user", help="Only this user's banks.  [default: everybody's]")
@data_option
def sync(user: str | None, data_dir: Path | None) -> None:
    """Fetch fresh data from the connected banks."""
    _run("sync", data_dir, user=user)


@main.group()
def clock() -> None:
    """The clock of a demo server."""


@clock.command("advance")
@click.argument("seconds", type=click.IntRange(1, 10 * 366 * 86_400))
@data_option
def clock_advance(seconds: int, data_dir: Path | None) -> None:
    """Move a demo server's clock: tokens expire, cool-downs end, the bank grows new days."""
    _run("clock advance", data_dir, seconds=seconds)


@main.group()
def clients() -> None:
    """The OAuth clients (apps) that are registered."""


@clients.command("list")
@data_option
def clients_list(data_dir: Path | None) -> None:
    """List clients: id, name, who registered it, redirect addresses."""
    _run("clients list", data_dir)


@clients.command("add")
@click.argument("name")
@click.argument("redirect_uris", nargs=-1, required=True)
@data_option
def clients_add(name: str, redirect_uris: tuple[str, ...], data_dir: Path | None) -> None:
    """Register a client that never expires and print its id."""
    _run("clients add", data_dir, name=name, redirect_uris=list(redirect_uris))


@clients.command("remove")
@click.argument("client_id")
@data_option
def clients_remove(client_id: str, data_dir: Path | None) -> None:
    """Delete a client and end its grants."""
    _run("clients remove", data_dir, client_id=client_id)


@main.group()
def grants() -> None:
    """Which apps are connected to which users."""


@grants.command("list")
@click.option("--user", help="Only this user's.")
@data_option
def grants_list(user: str | None, data_dir: Path | None) -> None:
    """List grants: id, user, app, scopes."""
    _run("grants list", data_dir, user=user)


@grants.command("revoke")
@click.argument("grant_id")
@data_option
def grants_revoke(grant_id: str, data_dir: Path | None) -> None:
    """End a grant; its tokens stop working at once."""
    _run("grants revoke", data_dir, grant_id=grant_id)


@main.group()
def keys() -> None:
    """The keys that sign access tokens."""


@keys.command("rotate")
@data_option
def keys_rotate(data_dir: Path | None) -> None:
    """Put a new signing key in charge; tokens of the old one live out their hour."""
    _run("keys rotate", data_dir)


@main.command("registration-token")
@data_option
def registration_token(data_dir: Path | None) -> None:
    """Print the token that client registration asks for under BANKDATA_REGISTRATION=token."""
    _run("registration-token", data_dir)


@main.command()
@data_option
def check(data_dir: Path | None) -> None:
    """Say whether settings, store and keys are as they should be, and how to mend what is not."""
    _run("check", data_dir)


@main.command()
@data_option
def backup(data_dir: Path | None) -> None:
    """Copy store and keys into a new folder under the data folder, also while the server runs."""
    _run("backup", data_dir)


@main.command()
@data_option
def compact(data_dir: Path | None) -> None:
    """Sort the stored transactions again; worth it after a million new ones."""
    _run("compact", data_dir)


def _explain(files: Sequence[Path], settings: Settings) -> None:
    from connectors.csv_profiles import ProfileError
    from handlers.recognition import explained
    from handlers.services import own_profiles

    try:
        profiles = own_profiles(settings)
    except ProfileError as error:
        _stop(str(error))
    for path in files:
        for line in explained(path, profiles):
            click.echo(line)


def _run(command: str, data_dir: Path | None, **arguments: Any) -> None:
    """Carry out a command here, or in the server that has the store open."""
    settings = _settings(data_dir)
    terminal = Terminal()
    for name, value in arguments.items():
        if isinstance(value, str) and name not in PATHS and not _is_text(value):
            _stop(f"{name.replace('_', ' ').capitalize()} {value!r} is not a text in UTF-8.")
    try:
        try:
            control.ask(settings.data_dir, command, arguments, terminal)
        except NoServer:
            _run_here(settings, command, arguments, terminal)
    except CommandError as error:
        terminal.end()
        _stop(str(error))
    terminal.end()


def _is_text(value: str) -> bool:
    """Whether this can be written: bytes of a command line that are no UTF-8 arrive as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _run_here(settings: Settings, command: str, arguments: Mapping[str, Any], terminal: Terminal) -> None:
    from handlers import commands  # a second of loading that a running server saves us

    with closing(_opened(settings)) as services:
        commands.perform(services, command, arguments, terminal)


def _opened(settings: Settings, *, for_server: bool = False) -> "Services":
    from auth.errors import KeysUnusable
    from handlers.services import open_services
    from storage.database import StoreError, StoreInUse

    try:
        return open_services(settings)
    except StoreInUse:
        if for_server:
            _stop(
                f"Another process has {settings.store_path} open. One process serves a DuckDB store: stop the other"
                " one, or give this one a folder of its own with --data DIR."
            )
        _stop(f"Another process has {settings.store_path} open and does not listen for commands. Stop it first.")
    except (StoreError, KeysUnusable) as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"The data folder {settings.data_dir} cannot be used: {error.strerror or error}.")


def _serve(services: "Services", listener: socket.socket, *, ready: Callable[[], None]) -> None:
    from handlers.limits import CountsUnusable
    from handlers.server import run

    try:
        run(services, listener=listener, ready=ready)
    except (CannotListen, CountsUnusable) as error:
        services.close()
        _stop(str(error))


def _listener(host: str, port: int) -> socket.socket:
    try:
        return listening_socket(host, port)
    except CannotListen as error:
        _stop(str(error))


def _settings(data_dir: Path | None, **address: str) -> Settings:
    try:
        return load(os.environ, data_dir=data_dir, **address)
    except SettingError as error:
        _stop(str(error))


def _address(host: str, port: int) -> str:
    """The address under which this machine reaches a server that listens there."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host  # noqa: S104 - compared
    return f"http://{name}:{port}"


def _forget_demo(settings: Settings) -> None:
    """Delete the store of a demo; nothing else is ever deleted."""
    if not settings.store_path.exists():
        return
    from handlers.services import IS_DEMO
    from storage import memory

    services = _opened(settings, for_server=True)
    is_demo = memory.recall(services.database, IS_DEMO) is not None
    services.close()
    if not is_demo:
        _stop(f"{settings.data_dir} holds real users. Give the demo a folder of its own with --data DIR.")
    for path in (settings.store_path, settings.store_path.with_name(settings.store_path.name + ".wal")):
        path.unlink(missing_ok=True)


def _password(from_stdin: bool, is_random: bool) -> str:
    if from_stdin and is_random:
        raise click.UsageError("--password-stdin and --random exclude each other.")
    if is_random:
        return token_urlsafe(18)
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", GetPassWarning)  # it would show on the screen what is typed
            return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    except GetPassWarning:
        _stop("There is no terminal to ask for the password. Use --password-stdin or --random.")


def _stop(message: str) -> NoReturn:
    raise click.ClickException(message)
