"""Which function answers which operation of openapi.json; the contract itself names no Python."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from handlers.cache.reader import Needs, has
from handlers.cache.user_data import UserData
from handlers.http.request import Answer, Json, Operation, Request
from handlers.operations import (
    account_changes,
    accounts,
    connections,
    corrections,
    explanations,
    exports,
    imports,
    integrity,
    profile,
    reports,
    rules,
    sync,
    transactions,
)
from handlers.operations.cached_answers import CachedOperation, Light
from handlers.services import Services
from storage.database import acting_for

LIGHT_ROWS_MAX = 50_000  # filters by day, category and account bisect; the page itself is bounded
LIGHT_SEARCH_ROWS_MAX = 5_000  # a search that finds every row takes about 0.5 ms per 1,000

Function = Callable[..., Answer]


def _looked_up(needs: Needs) -> Light:
    """What only looks up one thing is light as soon as it is in memory."""
    return lambda data, _arguments: has(data, needs)


def _never(_data: UserData, _arguments: dict[str, Any]) -> bool:
    return False


def _light_page(data: UserData, arguments: dict[str, Any]) -> bool:
    rows_max = LIGHT_SEARCH_ROWS_MAX if arguments["search"] else LIGHT_ROWS_MAX
    return data.entries is not None and len(data.entries) <= rows_max


KEPT: Mapping[str, tuple[Function, Needs, Light]] = {
    "listAccounts": (accounts.list_accounts, "statuses", _looked_up("statuses")),
    "listTransactions": (transactions.list_transactions, "list", _light_page),
    "sumTransactions": (transactions.sum_transactions, "list", _never),
    "getTransaction": (transactions.get_transaction, "details", _looked_up("details")),
    "explainTransaction": (explanations.explain_transaction, "details", _looked_up("details")),
    "getCashflow": (reports.get_cashflow, "figures", _never),
    "getCashflowCategories": (reports.get_cashflow_categories, "figures", _never),
    "getBalances": (reports.get_balances, "figures", _never),
    "getSnapshot": (reports.get_snapshot, "figures", _never),
    "listCashflowTransactions": (explanations.list_cashflow_transactions, "explained", _never),
    "listCategoryTransactions": (explanations.list_category_transactions, "explained", _never),
    "listSubscriptions": (reports.list_subscriptions, "accounts", _never),
    "listSubscriptionDetails": (explanations.list_subscription_details, "accounts", _never),
    "getSubscription": (explanations.get_subscription, "accounts", _never),
}
"""By operationId: reads one user's data, each answer of one state of them; takes the services, the request, what is
read, and the contract's parameters in snake_case."""

OTHERS: Mapping[str, Operation] = {
    "startSync": sync.start_sync,
    "getSyncJob": sync.get_sync_job,
    "exportTransactions": exports.export_transactions,
    "listTakenBackTransactions": transactions.list_taken_back_transactions,
    "listConnections": connections.list_connections,
    "getIntegrity": integrity.get_integrity,
    "createCorrection": corrections.create_correction,
    "listCorrections": corrections.list_corrections,
    "deleteCorrection": corrections.delete_correction,
    "createRule": rules.create_rule,
    "listRules": rules.list_rules,
    "deleteRule": rules.delete_rule,
    "listHiddenAccounts": account_changes.list_hidden_accounts,
    "changeAccount": account_changes.change_account,
    "listMergedAccounts": account_changes.list_merged_accounts,
    "mergeAccount": account_changes.merge_account,
    "separateAccount": account_changes.separate_account,
    "deleteAccount": account_changes.delete_account,
    "createImport": imports.create_import,
    "getImport": imports.get_import,
    "listImports": imports.list_imports,
    "undoImport": imports.undo_import,
    "getProfile": profile.get_profile,
    "changeProfile": profile.change_profile,
}
"""By operationId: takes the services, the request, and the parameters."""


SHOWS_BOOKINGS = frozenset(
    {
        "listTransactions",
        "sumTransactions",  # whoever may search and sum finds out what stands in a booking
        "exportTransactions",
        "listTakenBackTransactions",
        "getTransaction",
        "explainTransaction",
        "listCashflowTransactions",
        "listCategoryTransactions",
        "listSubscriptions",
        "listSubscriptionDetails",
        "getSubscription",
    }
)
"""By operationId: shows bookings or who was paid, which a grant of figures only does not cover."""


KNOWS_COVERAGE = frozenset(
    {
        *KEPT,
        "exportTransactions",
        "listTakenBackTransactions",
        "startSync",
        "getSyncJob",
        "listConnections",
        "getIntegrity",
        "getProfile",
    }
)
"""By operationId: answers under a grant of some accounts as if there were only those. Every other operation is about
rules, corrections, files or accounts as a whole, and is refused to such a grant, and to one of figures only."""


def operations(services: Services) -> Mapping[str, Operation]:
    """The tables bound to one open service."""
    kept = {
        name: CachedOperation(name=name, services=services, function=function, needs=needs, is_light=light)
        for name, (function, needs, light) in KEPT.items()
    }
    return {**kept, **{name: _for_its_caller(partial(function, services)) for name, function in OTHERS.items()}}


def _for_its_caller(operation: Operation) -> Operation:
    """The operation, which asks the store for the user whose token the request carries, whatever it asks."""
    asked: Any = operation

    def called(request: Request, **arguments: Any) -> Answer | Json:
        with acting_for(request.principal.user_id):
            answer: Answer | Json = asked(request, **arguments)
            return answer

    async def awaited(request: Request, **arguments: Any) -> Answer | Json:
        with acting_for(request.principal.user_id):
            answer: Answer | Json = await asked(request, **arguments)
            return answer

    return awaited if iscoroutinefunction(operation) else called
