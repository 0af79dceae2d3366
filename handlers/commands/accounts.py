"""The accounts of a user: listed, renamed, hidden, merged, deleted."""

from connectors import limits
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import counted
from handlers.operations.account_changes import called
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from storage import accounts, transactions, users
from storage.accounts import AccountAmbiguous, AccountUnknown, StoredAccount
from storage.database import Session
from storage.transactions import Selection
from storage.undo_and_merge import rebuild
from storage.undo_and_merge.rebuild import NotOneAccount, SameAccount
from storage.users import User


def list_accounts(services: Services, report: Report, *, user: str | None) -> None:
    """The accounts with what tells them apart; hidden ones too."""
    for owner in [users.named(services.database, user)] if user else users.everyone(services.database):
        for each in accounts.every(services.database, owner.id):
            count = transactions.count(services.database, owner.id, Selection(account_ids=[each.id]))
            balance = "no balance" if each.balance is None else f"{each.balance.normalize():f}"
            cells = (
                each.id,
                owner.name,
                each.name or "",
                each.iban or "",
                each.bank_name,
                f"{balance} {each.currency}",
                counted(count, "booking"),
                "hidden" if each.is_hidden else "shown",
            )
            report.line("\t".join(cells))


def rename_account(services: Services, report: Report, *, user: str, account: str, name: str | None) -> None:
    """A name of the user's own, which later imports leave alone; None gives the source's name back."""
    owner = users.named(services.database, user)
    chosen = chosen_account(services.database, owner, account)
    if name is not None:
        name = name.strip()
        if not name or len(name) > limits.NAME_CHARACTERS_MAX or not name.isprintable():
            raise CommandError(
                f"The name of an account has 1 to {limits.NAME_CHARACTERS_MAX} characters, all printable."
            )
    services.database.atomically(
        lambda session: accounts.rename(session, user_id=owner.id, account_id=chosen.id, name=name)
    )
    report.note(f"The account is called {name} now." if name else "The account has the name of its bank again.")


def hide_account(services: Services, report: Report, *, user: str, account: str, is_hidden: bool) -> None:
    """Leave an account out of everything that apps see, or show it again; its data are kept and go on growing."""
    owner = users.named(services.database, user)
    chosen = chosen_account(services.database, owner, account)
    since = services.clock.now() if is_hidden else None
    services.database.atomically(
        lambda session: accounts.hide(session, user_id=owner.id, account_id=chosen.id, since=since)
    )
    detect_after_import(services.database, [owner.id], today=services.clock.today())
    report.note(
        "Hidden: apps no longer see it, and no figure counts it. `bankdata accounts show` brings it back."
        if is_hidden
        else "Shown again."
    )


def merge_accounts(services: Services, report: Report, *, user: str, account: str, into: str) -> None:
    """Two accounts that are one: all bookings in the second, each once; what comes for either goes there."""
    owner = users.named(services.database, user)
    source, target = (chosen_account(services.database, owner, each) for each in (account, into))
    now = services.clock.now()
    try:
        rebuild.check_mergeable(services.database, owner.id, source_id=source.id, target_id=target.id)
        services.authorization.grants.keep_exclusions(owner.id, source_id=source.id, target_id=target.id)
        rebuilt = services.database.atomically(
            lambda session: rebuild.merge(session, user=owner, source_id=source.id, target_id=target.id, now=now)
        )
    except (SameAccount, NotOneAccount) as error:
        raise CommandError(str(error)) from error
    detect_after_import(services.database, [owner.id], today=services.clock.today())
    services.authorization.record.note(owner.id, "mergeAccount")
    doubles = rebuilt.removed - rebuilt.added
    report.line(
        f"Merged {called(source)} into {called(target)}: {counted(doubles, 'booking')} stood in both and count once."
    )


def delete_account(services: Services, report: Report, *, user: str, account: str) -> None:
    """An account with its bookings and statements; a later import of the same brings it back."""
    owner = users.named(services.database, user)
    chosen, now = chosen_account(services.database, owner, account), services.clock.now()
    rebuilt = services.database.atomically(
        lambda session: rebuild.delete(session, user=owner, account_id=chosen.id, now=now)
    )
    detect_after_import(services.database, [owner.id], today=services.clock.today())
    services.authorization.record.note(owner.id, "deleteAccount")
    report.note(
        f"Deleted {called(chosen)} with {counted(rebuilt.removed, 'booking')}."
        " A later import or sync of the same account brings it back; to keep it away, hide it instead."
    )


def chosen_account(session: Session, owner: User, id_or_name: str) -> StoredAccount:
    """The account of this id, IBAN or name; raises CommandError."""
    try:
        return accounts.named(session, owner.id, id_or_name)
    except (AccountUnknown, AccountAmbiguous) as error:
        raise CommandError(str(error)) from error
