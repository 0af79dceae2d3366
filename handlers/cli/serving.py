"""The two commands that start a server: one over the accounts in the store, one over a demo bank."""

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handlers.cli.server_or_here import data_option, open_service, settings_of
from handlers.cli.terminal import Terminal, stop
from handlers.commands.control_socket import CommandError
from handlers.settings import IN_CLEAR, Settings
from handlers.web.sockets.listening_socket import CannotListen, listening_socket

if TYPE_CHECKING:
    from handlers.work.services import Services

EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared

host_option = click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
port_option = click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65_535), help="Port to listen on."
)


@click.command()
@host_option
@port_option
@data_option
@click.option("--fresh", is_flag=True, help="Throw the demo's store away first.")
@click.option("--live", is_flag=True, help="Let people connect a bank that asks for a sign-in or a TAN.")
def demo(host: str, port: int, data_dir: Path | None, fresh: bool, live: bool) -> None:
    """Serve five invented users of a demo bank."""
    settings = _settings(host, port, data_dir)
    from handlers.commands.demo import prepare, welcome  # the server's libraries take a second to load

    with _listener(host, port) as listener:
        _warn(settings)
        if fresh:
            _forget_demo(settings)
        terminal = Terminal()
        terminal.progress("Opening the store", 0, 1)
        services = open_service(settings, for_server=True, has_live_demo=live, sends_webhooks=True)
        try:
            prepare(services, terminal)
        except CommandError as error:
            services.close()
            stop(str(error))
        terminal.end()
        _serve(services, listener, ready=lambda: welcome(services, terminal))


@click.command()
@host_option
@port_option
@data_option
@click.option(
    "--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that serve; PostgreSQL only."
)
@click.option("--webhooks", is_flag=True, help="Tell the addresses that apps name what happens.")
def serve(host: str, port: int, data_dir: Path | None, workers: int, webhooks: bool) -> None:
    """Serve the users in the store."""
    settings = _settings(host, port, data_dir)
    if workers > 1:
        _check_that_many_can_serve(settings)
    from handlers.work.services import IS_DEMO
    from storage import store_facts, users

    with _listener(host, port) as listener:
        _warn(settings)
        services = open_service(settings, for_server=True, sends_webhooks=webhooks)
        if store_facts.recall(services.everybody, IS_DEMO) is not None:
            services.close()
            stop(f"{settings.data_dir} holds the demo. Serve it with `bankdata demo`, or choose another --data DIR.")
        first_link = None if users.is_anybody(services.everybody) else services.authorization.links.first()

        def ready() -> None:
            click.echo(f"Serving {settings.base_url} (documentation: {settings.public_url}/docs)", err=True)
            if first_link is not None:
                click.echo("There are no users yet. Add one with `bankdata users add NAME`,", err=True)
                click.echo("or become the first at this address, which works once, within 24 hours:", err=True)
                click.echo(first_link, err=True)

        if workers > 1:
            from handlers.workers import run

            services.close()  # opening it made the schema and the keys, so that the workers find them
            run(settings, workers, listener=listener, ready=ready, until=threading.Event(), sends_webhooks=webhooks)
            return
        _serve(services, listener, ready=ready)


def _check_that_many_can_serve(settings: Settings) -> None:
    if settings.store_path is not None:
        stop(
            f"One process serves a DuckDB store, and {settings.store_path} is one. Several need PostgreSQL:"
            " BANKDATA_DATABASE_URL=postgresql://..."
        )
    if settings.rate_limit is not None and settings.rate_limit_url == "memory://":
        stop(
            "Several processes have to count requests together: set BANKDATA_RATE_LIMIT_URL to a Redis, such as"
            " redis://127.0.0.1:6379, or BANKDATA_RATE_LIMIT=off."
        )


def _settings(host: str, port: int, data_dir: Path | None) -> Settings:
    """The settings of a server that listens at this host and port. A host that means all addresses stops the command
    where BANKDATA_PUBLIC_URL is not set, since clients would be told an address they cannot reach."""
    settings = settings_of(data_dir, address=_address(host, port))
    if host in EVERYWHERE and not os.environ.get("BANKDATA_PUBLIC_URL"):
        stop(
            f"On {host} others can connect, and they need to be told where: set BANKDATA_PUBLIC_URL to the address"
            f" under which they reach this server, such as http://192.168.1.20:{port}."
        )
    return settings


def _warn(settings: Settings) -> None:
    if settings.is_in_clear:
        click.echo(f"Warning: {IN_CLEAR}", err=True)


def _address(host: str, port: int) -> str:
    """The address under which this machine reaches a server that listens at this host and port: by 127.0.0.1 if it
    listens on all addresses."""
    name = "127.0.0.1" if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def _listener(host: str, port: int) -> socket.socket:
    try:
        return listening_socket(host, port)
    except CannotListen as error:
        stop(str(error))


def _forget_demo(settings: Settings) -> None:
    """Delete the demo's DuckDB store, if there is one; a store of real users or a PostgreSQL database stops the
    command."""
    path = settings.store_path
    if path is None:
        stop("--fresh deletes files only. Make a new database for the demo, and drop the old one.")
    if not path.exists():
        return
    from handlers.work.services import IS_DEMO
    from storage import store_facts

    services = open_service(settings, for_server=True)
    is_demo = store_facts.recall(services.everybody, IS_DEMO) is not None
    services.close()
    if not is_demo:
        stop(f"{settings.data_dir} holds real users. Give the demo a folder of its own with --data DIR.")
    for file in (path, path.with_name(path.name + ".wal")):
        file.unlink(missing_ok=True)


def _serve(services: "Services", listener: socket.socket, *, ready: Callable[[], None]) -> None:
    from handlers.server import run
    from handlers.web.steps.rate_limit import CountsUnusable
    from storage.database import StoreError

    try:
        run(services, listener=listener, ready=ready)
    except (CannotListen, CountsUnusable, StoreError) as error:
        services.close()
        stop(str(error))
