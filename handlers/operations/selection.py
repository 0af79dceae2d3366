"""Selects the accounts (interface 4.1, decision 6) and checks the days that a request is about."""

from collections.abc import Callable, Collection, Sequence
from datetime import date

from auth.principal import Principal
from auth.scopes import WRITE_ACCOUNTS
from handlers.web.errors import BadRequest, Forbidden, NotFound
from handlers.web.request import Request
from storage import accounts
from storage.accounts import SelectedAccounts, StoredAccount
from storage.database import Row, Session

AMBIGUOUS = "accountIds: required, because you have several accounts. GET /accounts lists their ids"
UNKNOWN = "accountIds: contains an id that is not one of your accounts. GET /accounts lists their ids"


def covered_accounts(owned: Sequence[StoredAccount], caller: Principal) -> list[StoredAccount]:
    """Those of a user's accounts that the caller may read, in the same order; operations decide by this function or,
    about a single account, by `Principal.covers`."""
    if caller.coverage is None:
        return list(owned)
    return [account for account in owned if caller.covers(account.id)]


def sight_of(session: Session, caller: Principal) -> Callable[[str], bool]:
    """Says of the id of an account whether the caller may read it, for operations that reach hidden accounts, too;
    those need write:accounts."""
    if WRITE_ACCOUNTS in caller.scopes:
        return caller.covers
    hidden = {each.id for each in accounts.every(session, caller.user_id) if each.is_hidden}
    return lambda account_id: account_id not in hidden and caller.covers(account_id)


def selected_accounts(
    everything: Sequence[StoredAccount], account_ids: str | None, caller: Principal
) -> SelectedAccounts:
    """The accounts in a comma-separated list of ids, or the only account if none is named. Raises BadRequest for an id
    that the caller may not read, and where none is named although they may read several.

    Under a grant of some accounts no selection counts as everything, so that every read names its accounts.
    """
    wanted = listed_ids(account_ids) if account_ids else None
    owned = covered_accounts(everything, caller)
    may_be_everything = caller.coverage is None
    if not wanted:
        if len(owned) > 1:
            raise BadRequest(AMBIGUOUS)
        return SelectedAccounts(owned, is_everything=may_be_everything)
    if not wanted <= {account.id for account in owned}:
        raise BadRequest(UNKNOWN)
    chosen = [account for account in owned if account.id in wanted]
    return SelectedAccounts(chosen, is_everything=may_be_everything and len(chosen) == len(owned))


def selected_or_all(
    everything: Sequence[StoredAccount], account_ids: str | None, caller: Principal
) -> SelectedAccounts:
    """The accounts in a comma-separated list of ids, or without one all that the caller may read; for operations beyond
    the interface. Raises BadRequest for an id that the caller may not read."""
    if listed_ids(account_ids):
        return selected_accounts(everything, account_ids, caller)
    return SelectedAccounts(covered_accounts(everything, caller), is_everything=caller.coverage is None)


def readable_booking(booking: Row | None, caller: Principal) -> Row:
    """The booking that was found. Raises NotFound where there is none, or only one that the caller may not read."""
    if booking is None or not caller.covers(booking["account_id"]):
        raise NotFound("Transaction not found")
    return booking


def check_window(date_from: date | None, date_to: date | None) -> None:
    """Raise BadRequest for a window that ends before it begins; both days belong to it, and either may be left out."""
    if date_from and date_to and date_from > date_to:
        raise BadRequest("dateFrom: must not be after dateTo")


def owner_of(request: Request) -> str:
    """The user's id, for operations that change something: rules and merges reach all accounts, so a caller with a
    grant of only some accounts is refused with Forbidden."""
    if not request.principal.is_whole:
        raise Forbidden("This needs access to all accounts")
    return request.principal.user_id


def listed_ids(account_ids: str | None) -> set[str]:
    """The ids in a comma-separated list, trimmed and each once; None and an empty string list none."""
    return {part.strip() for part in (account_ids or "").split(",")} - {""}


def listed_values(name: str, text: str | None, allowed: Collection[str]) -> tuple[str, ...]:
    """The values of a comma-separated list, trimmed and each once, in its order; raises BadRequest for one that is not
    allowed."""
    values = tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))
    if not set(values) <= set(allowed):
        raise BadRequest("{name}: must be of {allowed}, separated by commas", name=name, allowed=", ".join(allowed))
    return values
