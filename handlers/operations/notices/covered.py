"""Which notices a caller may see: by kind, and by the accounts that they are about."""

from collections.abc import Collection

from auth.principal import PAGE, Principal
from auth.scopes import READ_ACCOUNTS, READ_CASHFLOW, READ_TRANSACTIONS

OF_PAYEES = {
    **dict.fromkeys(("overdraft.ahead", "price.raised", "income.late"), READ_CASHFLOW),
    **dict.fromkeys(("debit.new", "charge.double", "payment.failed"), READ_TRANSACTIONS),
    **dict.fromkeys(("booking.duplicate", "booking.unsorted"), READ_TRANSACTIONS),
}
"""The scope that a kind about bookings and payees needs; a grant of figures only sees none of these."""
OF_THE_PAGE = ("access.", "server.")


def may_see(caller: Principal, kind: str, account_ids: Collection[str]) -> bool:
    """Whether the caller may see a notice of this kind that is about these accounts, all of which they have to cover;
    about none, only who covers everything."""
    if kind.startswith(OF_THE_PAGE):
        return caller.client_id == PAGE
    if OF_PAYEES.get(kind, READ_ACCOUNTS) not in caller.scopes or (kind in OF_PAYEES and caller.figures_only):
        return False
    return all(caller.covers(id_) for id_ in account_ids) if account_ids else caller.is_whole
