"""Commands for what apps need to read: tokens, clients, grants, keys."""

import re

import click

from handlers.cli.server_or_here import group, plain_command, user_option

TTL_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    match = re.fullmatch(r"([1-9][0-9]{0,8})([smhd]?)", value)
    if match is None:
        raise click.BadParameter("expected a number with s, m, h or d, such as 1h", param_hint="--ttl")
    return int(match[1]) * TTL_UNITS[match[2] or "s"]


token = plain_command(
    "token",
    "Print an access token.",
    user_option("Whom the token speaks for."),
    click.option(
        "--scope",
        default="read:accounts read:transactions read:cashflow",
        show_default=True,
        help="What it allows, separated by spaces.",
    ),
    click.option(
        "--assistants", "for_assistants", is_flag=True, help="For PUBLIC_URL/mcp instead of the data interface."
    ),
    click.option(
        "--ttl",
        "seconds",
        default="1h",
        show_default=True,
        callback=_seconds,
        help="How long it lives: 90s, 15m, 1h or 30d.",
    ),
)

simplefin_token = plain_command(
    "simplefin-token",
    """Print a setup token for a SimpleFIN app.

    It is pasted into the app, works once and for 24 hours.""",
    user_option("Whose accounts the app reads."),
    click.option("--name", "app_name", required=True, help="What the app is called on the account page."),
    click.option("--account", "accounts", multiple=True, help="Only this account: id, IBAN or name. Can be repeated."),
    click.option("--figures-only", is_flag=True, help="Balances, and no bookings."),
    click.option(
        "--lasts", "days", type=int, default=365, show_default=True, help="After how many days the access ends."
    ),
)

calendar = group(
    "calendar",
    "The calendar of a user's recurring payments, for calendar apps.",
    plain_command(
        "calendar link",
        """Print a new calendar address; the old one ends.

        Whoever has the address sees when which recurring payment is due.""",
        user_option("Whose payments the calendar shows."),
    ),
    plain_command("calendar revoke", "End the calendar address.", user_option("Whose calendar.")),
)

clients = group(
    "clients",
    "The OAuth clients (apps) that are registered.",
    plain_command("clients list", "List the registered apps.\n\nId, name, who registered it, redirect addresses."),
    plain_command(
        "clients add",
        "Register an app that never expires; print its id.",
        click.argument("name"),
        click.argument("redirect_uris", nargs=-1, required=True),
    ),
    plain_command("clients remove", "Delete an app and end its grants.", click.argument("client_id")),
)

grants = group(
    "grants",
    "Which apps are connected to which users.",
    plain_command(
        "grants list",
        "List which apps are connected to whom.\n\nId, user, app, scopes.",
        user_option("Only this user's.", is_required=False),
    ),
    plain_command("grants revoke", "End a grant; its tokens stop working at once.", click.argument("grant_id")),
)

log = plain_command(
    "log",
    """Show which app read what, and what was done to the account.

    One line for each hour (UTC), app and operation: when, who, what, how often, how many of these were refused.""",
    user_option("Whose record."),
    click.option("--since", type=click.DateTime(["%Y-%m-%d"]), help="The first day, such as 2026-11-01."),
    click.option("--json", "as_json", is_flag=True, help="A line of JSON for each entry."),
)

keys = group(
    "keys",
    "The keys that sign access tokens, and those that encrypt what opens banks.",
    plain_command(
        "keys rotate",
        "Sign with a new key; tokens of the old one stay valid for an hour.",
        click.option(
            "--connections", "of_connections", is_flag=True, help="The key that encrypts what opens banks instead."
        ),
    ),
    plain_command(
        "keys reseal",
        "Seal the keys in PostgreSQL with a new secret.\n\nThe new one is the first line of BANKDATA_KEYS_SECRET.",
    ),
)

registration_token = plain_command("registration-token", "Print the token that BANKDATA_REGISTRATION=token asks for.")
