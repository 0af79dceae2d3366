"""Commands for accounts: list, rename, hide, show, merge, separate, delete; and what is told of them."""

from pathlib import Path

import click

from handlers.cli.server_or_here import confirmation_option, data_option, group, plain_command, run, user_option
from handlers.cli.terminal import confirm

account_argument = click.argument("account")
owner_option = user_option("Whose account it is.")

accounts = group(
    "accounts",
    "The accounts of the users. An ACCOUNT is given by its id, IBAN or name.",
    plain_command(
        "accounts list",
        "List accounts with balance, number of bookings, shown or hidden.\n\nId, user, name, IBAN and bank first.",
        user_option("Only this user's.", is_required=False),
    ),
    plain_command(
        "accounts rename",
        "Name an account; without NAME, use the bank's name again.",
        account_argument,
        click.argument("name", required=False),
        owner_option,
    ),
    plain_command(
        "accounts credit-line",
        "How far it may go below zero; without AMOUNT, as its bank says.",
        account_argument,
        click.argument("amount", required=False),
        owner_option,
    ),
    plain_command(
        "accounts hide",
        "Hide an account from apps and figures; its data is kept.",
        account_argument,
        owner_option,
        is_hidden=True,
    ),
    plain_command("accounts show", "Show a hidden account again.", account_argument, owner_option, is_hidden=False),
    plain_command(
        "accounts separate",
        """Undo a merge: ACCOUNT is an account of its own again.

        Its later bookings are its own, too. Apps that lost sight of the merged account do not get it back.
        """,
        account_argument,
        owner_option,
    ),
    plain_command(
        "accounts delete",
        "Delete an account with its bookings and statements. A later import of the same brings it back.",
        account_argument,
        owner_option,
        confirmation_option("Delete {account} with all bookings?"),
    ),
)


@accounts.command("merge")
@account_argument
@click.argument("into")
@owner_option
@click.option("--continues", is_flag=True, help="The bank has given the account a new IBAN: ACCOUNT continues INTO.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
def _merge(account: str, into: str, user: str, continues: bool, yes: bool, data_dir: Path | None) -> None:
    """Merge ACCOUNT into INTO: one account from two sources, or under a new IBAN.

    A booking that both have counts once. What comes later for either goes to INTO.
    """
    if not yes:
        run("accounts merge", data_dir, user=user, account=account, into=into, continues=continues, is_dry_run=True)
        confirm("Merge them?")
    run("accounts merge", data_dir, user=user, account=account, into=into, continues=continues)


alerts = group(
    "alerts",
    "Limits below which a balance causes an event for apps.",
    plain_command(
        "alerts balance",
        "Report when a balance falls below AMOUNT; `off` ends that.\n\nOnce, until it was above again.",
        account_argument,
        click.argument("amount"),
        owner_option,
    ),
)
notices = group(
    "notices",
    "What needs its person in time.",
    plain_command(
        "notices list",
        "List what a user is told.",
        click.option(
            "--state",
            type=click.Choice(["open", "read", "snoozed", "dismissed", "over", "withdrawn"]),
            default="open",
            help="Only in this state; without it what is open.",
        ),
        user_option("Who is told."),
    ),
    plain_command(
        "notices renew-push-key",
        "End what is pushed; browsers subscribe again.",
    ),
    plain_command("notices settings", "Show when and how.", user_option("Who.")),
    plain_command("notices targets", "Show where.", user_option("Who.")),
    plain_command("notices test", "Send a test there.", click.argument("target_id"), user_option("Whose.")),
)
