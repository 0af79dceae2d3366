"""PATCH and DELETE /accounts/{id}, /accounts/merged and /accounts/{id}/merge: a user's changes to their accounts."""

from collections.abc import Mapping
from typing import Any

from handlers.http.errors import BadRequest, NotFound
from handlers.http.request import Json, Request
from handlers.json_shapes import money
from handlers.operations import account_merges, import_shapes
from handlers.operations.selection import owner_of
from handlers.services import Services
from storage import accounts, users
from storage.accounts import StoredAccount
from storage.database import Transaction
from storage.importing import same_accounts
from storage.undo_and_merge import merges, rebuild
from storage.undo_and_merge.merges import NotMerged, NotOneAccount
from storage.users import User

ACCOUNT_NOT_FOUND = "Account not found"


def list_hidden_accounts(services: Services, request: Request) -> Json:
    """List the hidden accounts, which no other operation shows."""
    user_id = owner_of(request)
    owned = accounts.every(services.of(user_id), user_id)
    return {"accounts": [_shape(each) for each in owned if each.is_hidden]}


def change_account(services: Services, request: Request, *, id: str, body: Mapping[str, Any]) -> Json:
    """Change an account's name (null restores the source's name), or hide or show it."""
    user_id = owner_of(request)
    _find(services, user_id, id)
    name = body.get("name")
    if name is not None and not (name.strip() and name.isprintable()):
        raise BadRequest("name: must have printable characters")

    def work(session: Transaction) -> None:
        if "name" in body:
            given = name.strip() if name is not None else None
            accounts.rename(session, user_id=user_id, account_id=id, name=given)
        if "isHidden" in body:
            now = services.clock.now()
            same_accounts.hide(session, user_id=user_id, account_id=id, is_hidden=body["isHidden"], now=now)

    services.change(user_id, work)
    return _shape(_find(services, user_id, id))


def list_merged_accounts(services: Services, request: Request) -> Json:
    """List the accounts that were merged into others."""
    user_id = owner_of(request)
    merged = merges.merged_accounts(services.of(user_id), user_id)
    return {
        "accounts": [
            {
                "id": each.id,
                "accountName": each.name,
                "iban": each.iban,
                "bankName": each.bank_name,
                "into": each.into,
            }
            for each in merged
        ]
    }


def merge_account(services: Services, request: Request, *, id: str, dry_run: bool, body: Mapping[str, Any]) -> Json:
    """Merge two entries of one real account: `into` gets the bookings of both, each counted once, and all later
    ones."""
    user = _user(services, request)
    source, target = (_find(services, user.id, each) for each in (id, body["into"]))
    try:
        merged = account_merges.merge(services, user, source, target, is_dry_run=dry_run)
    except NotOneAccount as error:
        raise BadRequest(f"into: {error}") from error
    return {
        **import_shapes.rebuilt(merged.rebuilt),
        "isDryRun": dry_run,
        "bookings": merged.bookings,
        "inBoth": merged.in_both,
        "balance": None if merged.balance is None else money(merged.balance, target.currency),
        "balanceDate": merged.balance_date.isoformat() if merged.balance_date is not None else None,
        "currency": target.currency,
        "accessNarrowed": merged.access_narrowed,
    }


def separate_account(services: Services, request: Request, *, id: str) -> Json:
    """Make an account that was merged into another an account of its own again."""
    try:
        rebuilt = account_merges.separate(services, _user(services, request), id)
    except NotMerged as error:
        raise NotFound(ACCOUNT_NOT_FOUND) from error
    return import_shapes.rebuilt(rebuilt)


def delete_account(services: Services, request: Request, *, id: str, name: str) -> Json:
    """Delete an account with its bookings and statements; the caller has to give its name. A later import brings it
    back."""
    user, now = _user(services, request), services.clock.now()
    account = _find(services, user.id, id)
    if name != account.called:
        raise BadRequest("name: must be the name of the account, or its IBAN if it has none")
    rebuilt = services.change(user.id, lambda session: rebuild.delete(session, user=user, account_id=id, now=now))
    return import_shapes.rebuilt(rebuilt)


def _shape(account: StoredAccount) -> Json:
    return {
        "id": account.id,
        "accountName": account.name,
        "iban": account.iban,
        "bankName": account.bank_name,
        "isHidden": account.is_hidden,
        "perhapsSameAs": account.same_as,
    }


def _find(services: Services, user_id: str, account_id: str) -> StoredAccount:
    owned = accounts.every(services.of(user_id), user_id)
    found = next((each for each in owned if each.id == account_id), None)
    if found is None:
        raise NotFound(ACCOUNT_NOT_FOUND)
    return found


def _user(services: Services, request: Request) -> User:
    user_id = owner_of(request)
    user = users.find(services.of(user_id), user_id)
    assert user is not None, "a request outlived its user"
    return user
