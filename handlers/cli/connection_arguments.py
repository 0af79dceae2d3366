"""Commands for bank connections: connect a bank, list, end, sync."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run

owner_option = click.option("--user", required=True, help="Whose accounts they are.")
renewed_option = click.option(
    "--bank", help="Name of the connection; one that exists is renewed.  [default: the bank's]"
)
trace_option = click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A new file for what is said to the provider, every value masked.",
)


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
@click.option("--consent-days", type=click.IntRange(1, 3650), help="After how many days the consent ends.")
@data_option
def connect_demo(
    user: str,
    accounts: int | None,
    bank: str | None,
    fault: str | None,
    consent_days: int | None,
    data_dir: Path | None,
) -> None:
    """The demo bank: invented bookings that grow day by day."""
    settings = {"accounts": accounts} if accounts else {}
    run(
        "connect",
        data_dir,
        connector="demo",
        user=user,
        bank=bank,
        settings=settings,
        fault=fault,
        consent_days=consent_days,
    )


@connect.command("folder")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--user", required=True, help="Whose accounts the statements are about.")
@click.option("--bank", help="Name of the connection.  [default: name of the folder]")
@click.option("--account", help="The account of files that do not say theirs, by id, IBAN or name.")
@data_option
def connect_folder(folder: Path, user: str, bank: str | None, account: str | None, data_dir: Path | None) -> None:
    """A folder of statement files: every sync reads what is new and moves it to done/ or failed/."""
    run("connect folder", data_dir, folder=str(folder.resolve()), user=user, bank=bank, account=account)


@connect.command("simplefin")
@owner_option
@click.option("--bank", help="Name of the connection.  [default: SimpleFIN]")
@trace_option
@data_option
def connect_simplefin(user: str, bank: str | None, trace: Path | None, data_dir: Path | None) -> None:
    """Banks in the United States and Canada, through SimpleFIN: asks for a token."""
    run("connect live", data_dir, source="simplefin", user=user, bank=bank, trace=_absolute(trace))


@connect.command("finapi")
@owner_option
@renewed_option
@trace_option
@data_option
def connect_finapi(user: str, bank: str | None, trace: Path | None, data_dir: Path | None) -> None:
    """Banks in Germany and Europe, through finAPI: prints the address where the person signs in."""
    run("connect live", data_dir, source="finapi", user=user, bank=bank, trace=_absolute(trace))


@connect.command("fints")
@owner_option
@renewed_option
@click.option("--url", help="The bank's address for FinTS with PIN and TAN.")
@click.option("--bank-code", help="The bank's eight digits (BLZ).")
@click.option("--login", help="The login of its online banking; asked for if left out.")
@data_option
def connect_fints(
    user: str, bank: str | None, url: str | None, bank_code: str | None, login: str | None, data_dir: Path | None
) -> None:
    """A bank in Germany, asked straight by FinTS: asks for the PIN, and for a TAN where the bank wants one."""
    named = {"url": url, "bank_code": bank_code, "login": login}
    given = {name: value for name, value in named.items() if value}
    run("connect live", data_dir, source="fints", user=user, bank=bank, given=given)


@connect.command("enable-banking")
@owner_option
@click.option("--country", help="Where the bank is, two letters; asked for where it is not given.")
@click.option("--bank", help="The bank, as Enable Banking calls it; asked for where it is not given.")
@click.option("--business", is_flag=True, help="The accounts are a company's.")
@trace_option
@data_option
def connect_enable_banking(
    user: str, country: str | None, bank: str | None, business: bool, trace: Path | None, data_dir: Path | None
) -> None:
    """Banks in Europe, through Enable Banking: prints an address where the person signs in at the bank."""
    named = {"country": country, "bank": bank, "psu_type": "business" if business else None}
    given = {name: value for name, value in named.items() if value}
    run("connect live", data_dir, source="enable-banking", user=user, given=given, trace=_absolute(trace))


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
@click.option(
    "--force", is_flag=True, help="Those synced less than 30 minutes ago, too; never more than a bank allows."
)
@data_option
def sync(user: str | None, force: bool, data_dir: Path | None) -> None:
    """Fetch fresh data from the connected banks."""
    run("sync", data_dir, user=user, is_forced=force)


def _absolute(path: Path | None) -> str | None:
    return str(path.absolute()) if path is not None else None
