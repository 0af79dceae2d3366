"""GET /accounts (interface 4.2), and a user's changes to their accounts: rename, hide, merge, separate, delete."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from msgspec import Struct

from analytics.messages import message
from analytics.minor_digits import in_digits
from auth.principal import Principal
from connectors.text import YEARS
from handlers import json_shapes
from handlers.json_shapes import members, money
from handlers.names import Json
from handlers.operations.imports import rebuilding
from handlers.operations.selection import covered_accounts, owner_of
from handlers.web.errors import BadRequest, Conflicting, NotFound
from handlers.web.request import Answer, Request
from handlers.web.steps.parameters import read_date
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from handlers.work.sync.statement_files import ConnectionBusy, say_balances
from storage import accounts, transactions
from storage.accounts import StoredAccount
from storage.database import Transaction
from storage.importing import same_accounts
from storage.notices import looks
from storage.transactions import Selection
from storage.undo_and_merge import merges, rebuild
from storage.undo_and_merge.merges import NotMerged, NotOneAccount
from storage.undo_and_merge.rebuild import Rebuilt, SharedByOthers
from storage.users import User


def list_accounts(_services: Services, request: Request, reading: UserData) -> Answer:
    """List the accounts that the caller may read, in the order in which they first appeared, with balances and the
    status of their connections; hidden ones are left out."""
    statuses = reading.statuses
    return Answer(
        body={
            "accounts": [
                json_shapes.account(each, statuses[each.connection_id])
                for each in covered_accounts(reading.accounts, request.principal)
            ]
        }
    )


ACCOUNT_NOT_FOUND = "Account not found"


def list_hidden_accounts(services: Services, request: Request, *, with_shown: bool = False) -> Json:
    """List the hidden accounts, which no other operation lists, and the others where they are wanted, too. They are
    hidden by the user, or until the user says whether they are the same as another account (`perhapsSameAs`)."""
    user_id = owner_of(request)
    owned = accounts.every(services.of(user_id), user_id)
    return {
        "accounts": [
            _shape(each, request.principal)
            for each in covered_accounts(owned, request.principal)
            if each.is_hidden or with_shown
        ]
    }


def change_account(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Change the user's name for an account, trimmed, or how far it may go below zero (null restores what the source
    says), or hide it or show it again; return the account. Raises NotFound and BadRequest."""
    user_id = owner_of(request)
    currency = _find(services, request.principal, id).currency
    line = Decimal(str(body["creditLine"])) if body.get("creditLine") is not None else None
    if line is not None and not accounts.is_credit_line(line, currency):
        raise BadRequest("creditLine: has more digits after the point than {currency}", currency=currency)
    name = body.get("name")
    if name is not None and not accounts.is_name(name):
        raise BadRequest("name: must have printable characters")

    def work(session: Transaction) -> None:
        if "name" in body:
            given = name.strip() if name is not None else None
            accounts.rename(session, user_id=user_id, account_id=id, name=given)
        if "creditLine" in body:
            accounts.set_credit_line(session, user_id=user_id, account_id=id, amount=line)
            looks.look_by(session, user_id, services.clock.today())
        if "isHidden" in body:
            now = services.clock.now()
            same_accounts.hide(session, user_id=user_id, account_id=id, is_hidden=body["isHidden"], now=now)

    services.change(user_id, work)
    return _shape(_find(services, request.principal, id), request.principal)


def list_merged_accounts(services: Services, request: Request) -> Json:
    """List the accounts that were merged into others, sorted by id, each with the id of the one that holds its bookings
    (`into`)."""
    user_id = owner_of(request)
    merged = merges.merged_accounts(services.of(user_id), user_id)
    return {
        "accounts": [
            {"id": each.id, "accountName": each.name, **members(each, "iban", "bankName", "into")}
            for each in merged
            if request.principal.covers(each.into)
        ]
    }


def merge_account(services: Services, request: Request, *, id: str, dry_run: bool, body: Mapping[str, Any]) -> Json:
    """Merge two entries of one real account: the account in the body's `into` gets the bookings of `id`, each counted
    once, and all later ones; with `continues` also where the bank has given the account a new IBAN. Return the counts
    of `Merged` and the balance; a dry run stores nothing. Raises NotFound and BadRequest."""
    user = services.user(owner_of(request))
    source, target = (_find(services, request.principal, each) for each in (id, body["into"]))
    try:
        merged = merge(services, user, source, target, continues=body.get("continues", False), is_dry_run=dry_run)
    except NotOneAccount as error:
        raise BadRequest("into: {reason}", reason=message(str(error))) from error
    return {
        **rebuilding(merged.rebuilt),
        "isDryRun": dry_run,
        "bookings": merged.bookings,
        "inBoth": merged.in_both,
        "balance": None if merged.balance is None else money(merged.balance, target.currency),
        **members(merged, "balanceDate"),
        "currency": target.currency,
        "accessNarrowed": merged.access_narrowed,
    }


def separate_account(services: Services, request: Request, *, id: str, dry_run: bool) -> Json:
    """Undo the merging of this account into another one: it is an account of its own again. Return how many bookings
    were removed and added; a dry run stores nothing. Raises NotFound, also where the caller may not read that one."""
    user = services.user(owner_of(request))
    merged = merges.merged_accounts(services.of(user.id), user.id)
    if not any(each.id == id and request.principal.covers(each.into) for each in merged):
        raise NotFound(ACCOUNT_NOT_FOUND)
    try:
        rebuilt = separate(services, user, id, is_dry_run=dry_run)
    except NotMerged as error:
        raise NotFound(ACCOUNT_NOT_FOUND) from error
    return rebuilding(rebuilt)


def say_balance(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Store what the user says an account held at the end of a day, as an import of its own, which can be undone like
    any other; return its id and the balance that the account now has. Raises NotFound, BadRequest and Conflicting."""
    user, clock = services.user(owner_of(request)), services.clock
    account, day = _find(services, request.principal, id), read_date(body["date"])
    amount = Decimal(str(body["amount"]))
    if day > clock.today():
        raise BadRequest("date: must not be after today")
    if day.year not in YEARS:
        raise BadRequest("date: must not be before {first}", first=YEARS.start)
    if amount != in_digits(amount, account.currency):
        raise BadRequest("amount: has more digits after the point than {currency}", currency=account.currency)
    try:
        report = services.change(
            user.id,
            lambda session: say_balances(
                session, {day: amount}, user=user, account_id=id, currency=account.currency, clock=clock
            ),
        )
    except ConnectionBusy as error:
        raise Conflicting(str(error)) from error
    now = _find(services, request.principal, id)
    assert now.balance is not None, "it has just been said"
    return {"importId": report.id, "balance": money(now.balance, now.currency), "balanceDate": f"{now.balance_date}"}


def delete_account(services: Services, request: Request, *, id: str, name: str) -> Json:
    """Delete an account with its bookings and statements; the caller has to give its name, or its IBAN if it has none,
    else BadRequest is raised; an account that somebody shares raises Conflicting. A later import brings the account
    back. Return how many bookings were removed."""
    user, now = services.user(owner_of(request)), services.clock.now()
    account = _find(services, request.principal, id)
    if name != account.label:
        raise BadRequest("name: must be the name of the account, or its IBAN if it has none")
    try:
        return rebuilding(
            services.change(user.id, lambda session: rebuild.delete(session, user=user, account_id=id, now=now))
        )
    except SharedByOthers as error:
        raise Conflicting(str(error)) from error


def _shape(account: StoredAccount, caller: Principal) -> Json:
    return {
        "id": account.id,
        "accountName": account.name,
        **members(account, "iban", "bankName", "isHidden"),
        "perhapsSameAs": account.same_as if account.same_as and caller.covers(account.same_as) else None,
        "creditLine": None if account.credit_line is None else money(account.credit_line, account.currency),
    }


def _find(services: Services, caller: Principal, account_id: str) -> StoredAccount:
    owned = covered_accounts(accounts.every(services.of(caller.user_id), caller.user_id), caller)
    account = next((each for each in owned if each.id == account_id), None)
    if account is None:
        raise NotFound(ACCOUNT_NOT_FOUND)
    return account


class Merged(Struct, frozen=True, kw_only=True):
    """The outcome of a merge: how many `bookings` the source account had, how many of those the target account had too
    (`in_both`), the balance of the merged account with its day, and how many apps could read the target but not the
    source, and so may not read the merged account (`access_narrowed`)."""

    rebuilt: Rebuilt
    bookings: int
    in_both: int
    balance: Decimal | None
    balance_date: date | None
    access_narrowed: int


def merge(
    services: Services,
    user: User,
    source: StoredAccount,
    target: StoredAccount,
    *,
    continues: bool = False,
    is_dry_run: bool,
) -> Merged:
    """Make `source` a part of `target` (`continues` as in `merges.merge`), which is first excluded from the grants that
    cover it but not `source`, and return the outcome; a dry run only computes it. No grant is narrowed for a new
    `source`, about which the user is still being asked. Raises NotOneAccount."""
    grants, both = services.authorization.grants, {"source_id": source.id, "target_id": target.id}

    def work(session: Transaction) -> tuple[Rebuilt, StoredAccount]:
        now = services.clock.now()
        rebuilt = merges.merge(session, user=user, **both, continues=continues, now=now)
        whole = next(each for each in accounts.every(session, user.id) if each.id == target.id)
        return rebuilt, whole

    merges.check_mergeable(services.of(user.id), user.id, **both, continues=continues)
    bookings = transactions.count(services.of(user.id), user.id, Selection(account_ids=[source.id]))
    is_new = source.same_as == target.id  # a new account: no app has been given or refused this one account
    narrowed = [] if is_new else grants.widened_by_merge(user.id, **both)
    if narrowed and not is_dry_run:
        grants.keep_exclusions(user.id, **both)
    rebuilt, whole = services.change(user.id, work, is_dry_run=is_dry_run)
    return Merged(
        rebuilt=rebuilt,
        bookings=bookings,
        in_both=max(0, rebuilt.fewer),
        balance=whole.balance,
        balance_date=whole.balance_date,
        access_narrowed=len(narrowed),
    )


def separate(services: Services, user: User, account_id: str, *, is_dry_run: bool = False) -> Rebuilt:
    """Make an account that was merged into another an account of its own again; a dry run only computes the outcome.
    Raises NotMerged."""
    now = services.clock.now()
    return services.change(
        user.id,
        lambda session: merges.separate(session, user=user, source_id=account_id, now=now),
        is_dry_run=is_dry_run,
    )
