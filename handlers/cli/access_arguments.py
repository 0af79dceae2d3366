"""Commands for what apps need to read: tokens, clients, grants, keys."""

import re
from datetime import datetime
from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run

TTL_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@click.command()
@click.option("--user", required=True, help="Whom the token speaks for.")
@click.option(
    "--scope",
    default="read:accounts read:transactions read:cashflow",
    show_default=True,
    help="What it allows, separated by spaces.",
)
@click.option("--assistants", is_flag=True, help="For PUBLIC_URL/mcp instead of the data interface.")
@click.option("--ttl", default="1h", show_default=True, help="How long it lives: 90s, 15m, 1h or 30d.")
@data_option
def token(user: str, scope: str, assistants: bool, ttl: str, data_dir: Path | None) -> None:
    """Print an access token, alone on standard output."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([smhd]?)", ttl)
    if match is None:
        raise click.BadParameter("expected a number with s, m, h or d, such as 1h", param_hint="--ttl")
    seconds = int(match[1]) * TTL_UNITS[match[2] or "s"]
    run("token", data_dir, user=user, scope=scope, seconds=seconds, for_assistants=assistants)


@click.command("simplefin-token")
@click.option("--user", required=True, help="Whose accounts the app reads.")
@click.option("--name", required=True, help="What the app is called on the account page.")
@click.option("--account", "accounts", multiple=True, help="Only this account: id, IBAN or name. Can be repeated.")
@click.option("--figures-only", is_flag=True, help="Balances, and no bookings.")
@click.option("--lasts", type=int, default=365, show_default=True, help="After how many days the access ends.")
@data_option
def simplefin_token(
    user: str, name: str, accounts: tuple[str, ...], figures_only: bool, lasts: int, data_dir: Path | None
) -> None:
    """Print a setup token for an app that speaks SimpleFIN, alone on standard output.

    It is pasted into the app, works once and for 24 hours."""
    run(
        "simplefin-token",
        data_dir,
        user=user,
        app_name=name,
        accounts=list(accounts),
        figures_only=figures_only,
        days=lasts,
    )


@click.group()
def calendar() -> None:
    """The calendar of a user's recurring payments, for calendar apps."""


@calendar.command("link")
@click.option("--user", required=True, help="Whose payments the calendar shows.")
@data_option
def calendar_link(user: str, data_dir: Path | None) -> None:
    """Print a new address of the calendar, alone on standard output; the one before ends.

    Whoever has the address sees when which recurring payment is due."""
    run("calendar link", data_dir, user=user)


@calendar.command("revoke")
@click.option("--user", required=True, help="Whose calendar.")
@data_option
def calendar_revoke(user: str, data_dir: Path | None) -> None:
    """End the address of the calendar."""
    run("calendar revoke", data_dir, user=user)


@click.group()
def clients() -> None:
    """The OAuth clients (apps) that are registered."""


@clients.command("list")
@data_option
def clients_list(data_dir: Path | None) -> None:
    """List clients: id, name, who registered it, redirect addresses."""
    run("clients list", data_dir)


@clients.command("add")
@click.argument("name")
@click.argument("redirect_uris", nargs=-1, required=True)
@data_option
def clients_add(name: str, redirect_uris: tuple[str, ...], data_dir: Path | None) -> None:
    """Register a client that never expires and print its id."""
    run("clients add", data_dir, name=name, redirect_uris=list(redirect_uris))


@clients.command("remove")
@click.argument("client_id")
@data_option
def clients_remove(client_id: str, data_dir: Path | None) -> None:
    """Delete a client and end its grants."""
    run("clients remove", data_dir, client_id=client_id)


@click.group()
def grants() -> None:
    """Which apps are connected to which users."""


@grants.command("list")
@click.option("--user", help="Only this user's.")
@data_option
def grants_list(user: str | None, data_dir: Path | None) -> None:
    """List grants: id, user, app, scopes."""
    run("grants list", data_dir, user=user)


@grants.command("revoke")
@click.argument("grant_id")
@data_option
def grants_revoke(grant_id: str, data_dir: Path | None) -> None:
    """End a grant; its tokens stop working at once."""
    run("grants revoke", data_dir, grant_id=grant_id)


@click.command()
@click.option("--user", required=True, help="Whose record.")
@click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="The first day, such as 2026-11-01.")
@click.option("--json", "as_json", is_flag=True, help="A line of JSON for each entry.")
@data_option
def log(user: str, since: datetime | None, as_json: bool, data_dir: Path | None) -> None:
    """Show which app read what and what was done to the account.

    One line for each hour (UTC), app and operation: when, who, what, how often, how many of these were refused."""
    run("log", data_dir, user=user, since=since.date().isoformat() if since else None, as_json=as_json)


@click.group()
def keys() -> None:
    """The keys that sign access tokens, and those that encrypt what opens banks."""


@keys.command("rotate")
@click.option("--connections", "of_connections", is_flag=True, help="The key that encrypts what opens banks instead.")
@data_option
def keys_rotate(of_connections: bool, data_dir: Path | None) -> None:
    """Sign with a new key from now on; tokens signed by the old one stay valid for their hour."""
    run("keys rotate", data_dir, of_connections=of_connections)


@keys.command("reseal")
@data_option
def keys_reseal(data_dir: Path | None) -> None:
    """Seal the keys in PostgreSQL with the first line of BANKDATA_KEYS_SECRET, to change that secret."""
    run("keys reseal", data_dir)


@click.command("registration-token")
@data_option
def registration_token(data_dir: Path | None) -> None:
    """Print the token that client registration asks for under BANKDATA_REGISTRATION=token."""
    run("registration-token", data_dir)
