"""Commands for bank connections: connect a bank, list, end, sync."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from handlers.cli.server_or_here import group, plain_command, user_option

owner_option = user_option("Whose accounts they are.")
renewed_option = click.option(
    "--bank", help="Name of the connection; one that exists is renewed.  [default: the bank's]"
)
trace_option = click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A new file for what is said to the provider, every value masked.",
)


def _as_answers(*names: str) -> Callable[..., dict[str, Any]]:
    """A function that moves these parameters, as far as they were typed, into the argument `given`: answers that the
    source then need not ask for."""

    def prepare(**typed: Any) -> dict[str, Any]:
        rest = {name: value for name, value in typed.items() if name not in names}
        return {**rest, "given": {name: typed[name] for name in names if typed[name]}}

    return prepare


connect = group(
    "connect",
    "Connect a bank to a user, with a first sync.",
    plain_command(
        "connect folder",
        "Connect a folder of statement files.\n\nEvery sync reads what is new and moves it to done/ or failed/.",
        click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)),
        user_option("Whose accounts the statements are about."),
        click.option("--bank", help="Name of the connection.  [default: name of the folder]"),
        click.option("--account", help="The account of files that do not say theirs, by id, IBAN or name."),
    ),
    plain_command(
        "connect simplefin",
        "Connect banks in the United States and Canada through SimpleFIN.\n\nAsks for a token.",
        owner_option,
        click.option("--bank", help="Name of the connection.  [default: SimpleFIN]"),
        trace_option,
        carried_out="connect live",
        source="simplefin",
    ),
    plain_command(
        "connect finapi",
        "Connect banks in Germany and Europe through finAPI.\n\nPrints the address where the person signs in.",
        owner_option,
        renewed_option,
        trace_option,
        carried_out="connect live",
        source="finapi",
    ),
    plain_command(
        "connect demo",
        "Connect the demo bank.",
        user_option("Whose bank it is."),
        click.option("--accounts", type=click.IntRange(1, 100), help="How many accounts."),
        click.option("--bank", help="Name of the bank.  [default: Musterbank]"),
        click.option(
            "--fault",
            type=click.Choice(["fails", "needs_user", "slow", "rate_limited", "consent_expired"]),
            help="What goes wrong from the next sync on.",
        ),
        click.option("--consent-days", type=click.IntRange(1, 3650), help="After how many days the consent ends."),
        carried_out="connect",
        prepare=lambda accounts, **given: {**given, "settings": {"accounts": accounts} if accounts else {}},
        connector="demo",
    ),
    plain_command(
        "connect fints",
        "Connect a bank in Germany by FinTS.\n\nAsks for the PIN, and for a TAN where the bank wants one.",
        owner_option,
        renewed_option,
        click.option("--url", help="The bank's address for FinTS with PIN and TAN."),
        click.option("--bank-code", help="The bank's eight digits (BLZ)."),
        click.option("--login", help="The login of its online banking; asked for if left out."),
        carried_out="connect live",
        prepare=_as_answers("url", "bank_code", "login"),
        source="fints",
    ),
    plain_command(
        "connect enable-banking",
        "Connect banks in Europe through Enable Banking.\n\nPrints the address where the person signs in at the bank.",
        owner_option,
        click.option("--country", help="Where the bank is, two letters; asked for where it is not given."),
        click.option("--bank", help="The bank, as Enable Banking calls it; asked for where it is not given."),
        click.option("--business", "psu_type", flag_value="business", help="The accounts are a company's."),
        trace_option,
        carried_out="connect live",
        prepare=_as_answers("country", "bank", "psu_type"),
        source="enable-banking",
    ),
)

connections = group(
    "connections",
    "The bank connections of the users.",
    plain_command(
        "connections list",
        "List bank connections with their state.\n\nId, user, bank, kind, state.",
        user_option("Only this user's.", is_required=False),
    ),
    plain_command(
        "connections remove",
        "End a connection; its accounts stay readable.",
        click.argument("connection_id"),
        user_option("Whose connection."),
    ),
)

sync = plain_command(
    "sync",
    "Fetch new data from the connected banks.",
    user_option("Only this user's banks.  [default: everybody's]", is_required=False),
    click.option(
        "--force",
        "is_forced",
        is_flag=True,
        help="Those synced less than 30 minutes ago, too; never more than a bank allows.",
    ),
)
