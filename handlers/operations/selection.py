"""The accountIds rule, once: which of the user's accounts a request is about (interface 4.1, decision 6)."""

from handlers.http.errors import BadRequest
from storage import accounts
from storage.accounts import Selected
from storage.database import Session

AMBIGUOUS = "accountIds: required, because you have several accounts. GET /accounts lists their ids"
UNKNOWN = "accountIds: contains an id that is not one of your accounts. GET /accounts lists their ids"


def selected_accounts(session: Session, user_id: str, account_ids: str | None) -> Selected:
    """The accounts that a comma-separated list names, or the only one there is."""
    owned = accounts.of_user(session, user_id)
    wanted = listed_ids(account_ids)
    if not wanted:
        if len(owned) > 1:
            raise BadRequest(AMBIGUOUS)
        return Selected(owned, is_everything=True)
    if not wanted <= {account.id for account in owned}:
        raise BadRequest(UNKNOWN)
    chosen = [account for account in owned if account.id in wanted]
    return Selected(chosen, is_everything=len(chosen) == len(owned))


def listed_ids(account_ids: str | None) -> set[str]:
    """Split on commas, trimmed, each once; an empty string lists nothing."""
    return {part.strip() for part in (account_ids or "").split(",")} - {""}
