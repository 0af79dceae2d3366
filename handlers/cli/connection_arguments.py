"""Commands for bank connections: connect a bank, list, end, sync."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run


@click.group()
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
    run("connect", data_dir, connector="demo", user=user, bank=bank, settings=settings, fault=fault)


@connect.command("folder")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--user", required=True, help="Whose accounts the statements are about.")
@click.option("--bank", help="Name of the connection.  [default: name of the folder]")
@click.option("--account", help="The account of files that do not say theirs, by id, IBAN or name.")
@data_option
def connect_folder(folder: Path, user: str, bank: str | None, account: str | None, data_dir: Path | None) -> None:
    """A folder of statement files: every sync reads what is new and moves it to done/ or failed/."""
    run("connect folder", data_dir, folder=str(folder.resolve()), user=user, bank=bank, account=account)


@click.group()
def connections() -> None:
    """The bank connections of the users."""


@connections.command("list")
@click.option("--user", help="Only this user's.")
@data_option
def connections_list(user: str | None, data_dir: Path | None) -> None:
    """List connections: id, user, bank, kind, state."""
    run("connections list", data_dir, user=user)


@connections.command("remove")
@click.argument("connection_id")
@click.option("--user", required=True, help="Whose connection.")
@data_option
def connections_remove(connection_id: str, user: str, data_dir: Path | None) -> None:
    """End a connection; its accounts and transactions stay readable."""
    run("connections remove", data_dir, user=user, connection_id=connection_id)


@click.command()
@click.option("--user", help="Only this user's banks.  [default: everybody's]")
@data_option
def sync(user: str | None, data_dir: Path | None) -> None:
    """Fetch fresh data from the connected banks."""
    run("sync", data_dir, user=user)
