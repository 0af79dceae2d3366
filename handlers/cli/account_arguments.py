"""Commands for accounts: list, rename, hide, show, merge, separate, delete."""

from pathlib import Path

import click

from handlers.cli.server_or_here import data_option, run
from handlers.cli.terminal import confirm

user_option = click.option("--user", required=True, help="Whose account it is.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.group()
def accounts() -> None:
    """The accounts of the users. An ACCOUNT is given by its id, IBAN or name."""


@accounts.command("list")
@click.option("--user", help="Only this user's.")
@data_option
def accounts_list(user: str | None, data_dir: Path | None) -> None:
    """List accounts: id, user, name, IBAN, bank, balance, number of bookings, shown or hidden."""
    run("accounts list", data_dir, user=user)


@accounts.command("rename")
@click.argument("account")
@click.argument("name", required=False)
@user_option
@data_option
def accounts_rename(account: str, name: str | None, user: str, data_dir: Path | None) -> None:
    """Give an account a name of your own, which later imports leave alone; without NAME take it away again."""
    run("accounts rename", data_dir, user=user, account=account, name=name)


@accounts.command("hide")
@click.argument("account")
@user_option
@data_option
def accounts_hide(account: str, user: str, data_dir: Path | None) -> None:
    """Leave an account out of what apps see and of every figure; its data are kept and go on growing."""
    run("accounts hide", data_dir, user=user, account=account, is_hidden=True)


@accounts.command("show")
@click.argument("account")
@user_option
@data_option
def accounts_show(account: str, user: str, data_dir: Path | None) -> None:
    """Show a hidden account again."""
    run("accounts show", data_dir, user=user, account=account, is_hidden=False)


@accounts.command("merge")
@click.argument("account")
@click.argument("into")
@user_option
@yes_option
@data_option
def accounts_merge(account: str, into: str, user: str, yes: bool, data_dir: Path | None) -> None:
    """Make ACCOUNT a part of the account INTO: the same account that came from two sources.

    A booking that both have counts once. What comes later for either goes to INTO.
    """
    if not yes:
        run("accounts merge", data_dir, user=user, account=account, into=into, is_dry_run=True)
        confirm("Merge them?")
    run("accounts merge", data_dir, user=user, account=account, into=into)


@accounts.command("separate")
@click.argument("account")
@user_option
@data_option
def accounts_separate(account: str, user: str, data_dir: Path | None) -> None:
    """Take a merge back: ACCOUNT, which was merged into another one, stands by itself again.

    Its later bookings are its own, too. Apps that lost sight of the merged account do not get it back.
    """
    run("accounts separate", data_dir, user=user, account=account)


@accounts.command("delete")
@click.argument("account")
@user_option
@yes_option
@data_option
def accounts_delete(account: str, user: str, yes: bool, data_dir: Path | None) -> None:
    """Delete an account with its bookings and statements. A later import of the same brings it back."""
    if not yes:
        confirm(f"Delete {account} with all bookings?")
    run("accounts delete", data_dir, user=user, account=account)


@click.group()
def alerts() -> None:
    """What apps that listen to events are told of."""


@alerts.command("balance", context_settings={"ignore_unknown_options": True})
@click.argument("account")
@click.argument("amount")
@user_option
@data_option
def alerts_balance(account: str, amount: str, user: str, data_dir: Path | None) -> None:
    """Tell when the balance of ACCOUNT comes below AMOUNT, once until it was above it again; `off` ends that."""
    run("alerts balance", data_dir, user=user, account=account, amount=amount)
