"""The accountIds rule, once: which of the user's accounts a request is about (interface 4.1, decision 6)."""

from collections.abc import Sequence

from handlers.http.errors import BadRequest
from storage.accounts import Selected, StoredAccount

AMBIGUOUS = "accountIds: required, because you have several accounts. GET /accounts lists their ids"
UNKNOWN = "accountIds: contains an id that is not one of your accounts. GET /accounts lists their ids"


def selected_accounts(owned: Sequence[StoredAccount], account_ids: str | None) -> Selected:
    """Those of a user's accounts that a comma-separated list names, or the only one there is."""
    wanted = listed_ids(account_ids)
    if not wanted:
        if len(owned) > 1:
            raise BadRequest(AMBIGUOUS)
        return Selected(list(owned), is_everything=True)
    if not wanted <= {account.id for account in owned}:
        raise BadRequest(UNKNOWN)
    chosen = [account for account in owned if account.id in wanted]
    return Selected(chosen, is_everything=len(chosen) == len(owned))


def selected_or_all(owned: Sequence[StoredAccount], account_ids: str | None) -> Selected:
    """The same for operations beyond the interface, whose list may always be left out: that means all accounts."""
    return selected_accounts(owned, account_ids) if listed_ids(account_ids) else Selected(list(owned), True)


def listed_ids(account_ids: str | None) -> set[str]:
    """Split on commas, trimmed, each once; an empty string lists nothing."""
    return {part.strip() for part in (account_ids or "").split(",")} - {""}
