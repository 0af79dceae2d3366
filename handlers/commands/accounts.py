"""Commands on a user's accounts: list, rename, credit line, hide, merge, separate, delete, watch a balance."""

import re
from datetime import date
from decimal import Decimal

from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.json_shapes import money_text
from handlers.operations.accounts import merge, separate
from handlers.work.services import Services
from storage import accounts, transactions, users
from storage.database import Session, Transaction
from storage.events import outbox
from storage.importing import same_accounts
from storage.notices import looks
from storage.transactions import Selection
from storage.undo_and_merge import merges, rebuild
from storage.users import User

OFF = "off"
AMOUNT = re.compile(r"-?[0-9]{1,15}([.][0-9]{1,5})?", re.ASCII)


def list_accounts(services: Services, report: Report, *, user: User | None) -> None:
    """List the accounts of one user or of everybody, hidden ones too, one a line: id, user, name, IBAN, bank, balance,
    number of bookings, and whether it is shown, hidden, or perhaps the same as another one."""
    for owner in [user] if user else users.everyone(services.everybody):
        for each in accounts.every(services.everybody, owner.id):
            count = transactions.count(services.everybody, owner.id, Selection(account_ids=[each.id]))
            cells = (
                each.id,
                owner.name,
                each.name or "",
                each.iban or "",
                each.bank_name,
                _balance(each.balance, each.currency, each.balance_date) or f"no balance {each.currency}",
                quantity(count, "booking"),
                f"the same as {each.same_as}?" if each.same_as else "hidden" if each.is_hidden else "shown",
            )
            report.line("\t".join(cells))


def rename_account(services: Services, report: Report, *, user: User, account: str, name: str | None) -> None:
    """Give an account a name of the user's own, trimmed, which later imports leave alone, and note it in the access
    record; None restores the name from the source."""
    chosen = accounts.resolve(services.everybody, user.id, account)
    if name is not None:
        name = name.strip()
        if not accounts.is_name(name):
            raise CommandError(
                f"The name of an account has 1 to {accounts.NAME_CHARACTERS_MAX} characters, all printable."
            )
    services.everybody.atomically(
        lambda session: accounts.rename(session, user_id=user.id, account_id=chosen.id, name=name)
    )
    services.authorization.record.note(user.id, "changeAccount")
    report.note(f"The account is called {name} now." if name else "The account has the name of its bank again.")


def set_credit_line(services: Services, report: Report, *, user: User, account: str, amount: str | None) -> None:
    """Say how far an account may go below zero, in its currency, before its user is warned, and note it in the access
    record; None restores what the bank says."""
    chosen = accounts.resolve(services.everybody, user.id, account)
    line = Decimal(amount) if amount is not None and AMOUNT.fullmatch(amount) else None
    if amount is not None and (line is None or not accounts.is_credit_line(line, chosen.currency)):
        raise CommandError("A credit line is 0 or more, such as 500, in the digits of the account's currency.")

    def work(session: Transaction) -> None:
        accounts.set_credit_line(session, user_id=user.id, account_id=chosen.id, amount=line)
        looks.look_by(session, user.id, services.clock.today())

    services.change(user.id, work)
    services.authorization.record.note(user.id, "changeAccount")
    report.note(
        f"The credit line of {chosen.label} is the one of its bank again."
        if line is None
        else f"{chosen.label} may go below zero by {money_text(line, chosen.currency)} {chosen.currency}."
    )


def hide_account(services: Services, report: Report, *, user: User, account: str, is_hidden: bool) -> None:
    """Leave an account out of everything that apps see or, unless `is_hidden`, show it again, and note it in the user's
    access record; its data are kept and go on growing."""
    chosen = accounts.resolve(services.everybody, user.id, account)
    now = services.clock.now()
    services.change(
        user.id,
        lambda session: same_accounts.hide(
            session, user_id=user.id, account_id=chosen.id, is_hidden=is_hidden, now=now
        ),
    )
    services.authorization.record.note(user.id, "changeAccount")
    report.note(
        "Hidden: apps no longer see it, and no figure counts it. `bankdata accounts show` brings it back."
        if is_hidden
        else "Shown again."
    )


def merge_accounts(
    services: Services,
    report: Report,
    *,
    user: User,
    account: str,
    into: str,
    continues: bool = False,
    is_dry_run: bool = False,
) -> None:
    """Merge two entries of one real account: `into` gets the bookings of both, each counted once, and all later ones,
    with `continues` also where the bank has given the account a new IBAN; the user's access record notes it. A dry run
    only reports what would happen."""
    source, target = (accounts.resolve(services.everybody, user.id, each) for each in (account, into))
    merged = merge(services, user, source, target, continues=continues, is_dry_run=is_dry_run)
    names = f"{source.label} into {target.label}"
    if is_dry_run:
        balance = _balance(merged.balance, target.currency, merged.balance_date) or "none"
        report.line(
            f"Merge {names}: {quantity(merged.bookings, 'booking')} would go there; {merged.in_both} of them"
            f" {'is' if merged.in_both == 1 else 'are'} in both and would count once. The balance would be {balance}."
            f" {quantity(merged.access_narrowed, 'app')} would no longer see it."
        )
        return
    services.authorization.record.note(user.id, "mergeAccount")
    both = "was in both and counts" if merged.in_both == 1 else "were in both and count"
    report.line(f"Merged {names}: {quantity(merged.in_both, 'booking')} {both} once.")
    report.note(f"To take it back: bankdata accounts separate {source.id} --user {user.name}")


def separate_accounts(services: Services, report: Report, *, user: User, account: str) -> None:
    """Undo a merge: make the merged account, named by id, IBAN or name, an account of its own again, and note it in the
    user's access record. CommandError if it is not clear which one is meant."""
    merged = merges.merged_accounts(services.everybody, user.id)
    chosen = [each for each in merged if account in (each.id, each.iban, each.name)]
    if len(chosen) != 1:
        listed = ", ".join(f"{each.id} ({each.name or each.iban or each.bank_name})" for each in merged) or "none"
        raise CommandError(f"No merged account is clearly {account}. Merged accounts: {listed}.")
    separate(services, user, chosen[0].id)
    services.authorization.record.note(user.id, "separateAccount")
    report.line(f"{chosen[0].name or chosen[0].id} is an account of its own again.")


def delete_account(services: Services, report: Report, *, user: User, account: str) -> None:
    """Delete an account with its bookings and statements, and note it in the user's access record; a later import of
    the same account brings it back."""
    chosen, now = accounts.resolve(services.everybody, user.id, account), services.clock.now()
    rebuilt = services.change(
        user.id, lambda session: rebuild.delete(session, user=user, account_id=chosen.id, now=now)
    )
    services.authorization.record.note(user.id, "deleteAccount")
    report.note(
        f"Deleted {chosen.label} with {quantity(rebuilt.removed, 'booking')}."
        " A later import or sync of the same account brings it back; to keep it away, hide it instead."
    )


def watch_balance(services: Services, report: Report, *, user: User, account: str, amount: str) -> None:
    """Store the limit, in the account's currency, below which its balance causes a `balance.low` event; `off` removes
    it."""
    chosen = accounts.resolve(services.everybody, user.id, account)
    if amount != OFF and not AMOUNT.fullmatch(amount):
        raise CommandError(f"An amount is a number such as 100 or -250.50, or {OFF} to watch the balance no more.")
    limit = Decimal(amount) if amount != OFF else None
    services.everybody.atomically(lambda session: outbox.set_alert(session, user.id, chosen.id, limit))
    report.note(
        f"The balance of {chosen.label} is watched no more."
        if limit is None
        else f"A balance.low event is sent when the balance of {chosen.label} falls below {amount} {chosen.currency}."
    )


def note_questions(session: Session, report: Report, owner: User) -> None:
    """Write a note for each account that may be the same as another one, with the commands by which its user
    answers."""
    for each in accounts.every(session, owner.id):
        if each.same_as is not None:
            command, whose = "bankdata accounts", f"--user {owner.name}"
            report.note(
                f"{each.label} waits for your answer. The same account:"
                f" {command} merge {each.id} {each.same_as} {whose}. Another one: {command} show {each.id} {whose}."
            )


def _balance(balance: Decimal | None, currency: str, day: date | None) -> str | None:
    """A balance as text, with the day for which its source stated it; None where there is none."""
    return f"{money_text(balance, currency)} {currency} as of {day}" if balance is not None else None
