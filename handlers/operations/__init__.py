"""Which function answers which operation of openapi.json; the contract itself names no Python."""

from collections.abc import Mapping
from functools import partial

from handlers.http.request import Operation
from handlers.operations import accounts, explanations, reports, sync, transactions
from handlers.services import Services

FUNCTIONS: Mapping[str, Operation] = {
    "listAccounts": accounts.list_accounts,
    "listTransactions": transactions.list_transactions,
    "getTransaction": transactions.get_transaction,
    "getCashflow": reports.get_cashflow,
    "getSnapshot": reports.get_snapshot,
    "listSubscriptions": reports.list_subscriptions,
    "startSync": sync.start_sync,
    "getSyncJob": sync.get_sync_job,
    "listCashflowTransactions": explanations.list_cashflow_transactions,
    "listCategoryTransactions": explanations.list_category_transactions,
    "listSubscriptionDetails": explanations.list_subscription_details,
    "getSubscription": explanations.get_subscription,
    "explainTransaction": explanations.explain_transaction,
}
"""By operationId; each takes the services, the request, and the contract's parameters in snake_case."""


def operations(services: Services) -> Mapping[str, Operation]:
    """The table bound to one open service."""
    return {name: partial(function, services) for name, function in FUNCTIONS.items()}
