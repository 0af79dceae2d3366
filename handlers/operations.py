"""Which function answers which operation of openapi.json; the contract itself names no Python."""

from collections.abc import Callable, Mapping
from functools import partial

from handlers import accounts, reports, sync, transactions
from handlers.request import Answer, Operation
from handlers.services import Services

FUNCTIONS: Mapping[str, Callable[..., Answer]] = {
    "listAccounts": accounts.list_accounts,
    "listTransactions": transactions.list_transactions,
    "getTransaction": transactions.get_transaction,
    "getCashflow": reports.get_cashflow,
    "getSnapshot": reports.get_snapshot,
    "listSubscriptions": reports.list_subscriptions,
    "startSync": sync.start_sync,
    "getSyncJob": sync.get_sync_job,
}
"""By operationId; each takes the services, the request, and the contract's parameters in snake_case."""


def operations(services: Services) -> Mapping[str, Operation]:
    """The table bound to one open service."""
    return {name: partial(function, services) for name, function in FUNCTIONS.items()}
