"""Maps each operation of openapi.json to the function that answers it; the contract itself names no Python."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from auth.scopes import READ_CASHFLOW
from handlers.cache.user_data import Need, UserData
from handlers.http.request import Answer, Operation
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
from handlers.operations.categories import finer, own, targets
from handlers.operations.changes import feeds
from handlers.operations.events import listening, webhooks
from handlers.operations.forecasts import forecast
from handlers.operations.recurring import added, confirmation, details
from handlers.operations.searching import search
from handlers.operations.words import annotations, proposed_rules, some
from handlers.services import Services

LIGHT_ROWS_MAX = 50_000  # filters by day, category and account bisect; the page itself is bounded
LIGHT_SEARCH_ROWS_MAX = 5_000  # a search that finds every row takes about 0.5 ms per 1,000

Function = Callable[..., Answer]


def _always(_data: UserData, _arguments: dict[str, Any]) -> bool:
    return True


def _never(_data: UserData, _arguments: dict[str, Any]) -> bool:
    return False


def _light_page(data: UserData, arguments: dict[str, Any]) -> bool:
    return len(data.entries) <= (LIGHT_SEARCH_ROWS_MAX if arguments["search"] else LIGHT_ROWS_MAX)


KEPT: Mapping[str, tuple[Function, Need, Light]] = {
    "listAccounts": (accounts.list_accounts, Need.STATUSES, _always),
    "listTransactions": (transactions.list_transactions, Need.LIST, _light_page),
    "searchTransactions": (search.search_transactions, Need.LIST | Need.PENDING, _never),
    "sumTransactions": (search.sum_transactions, Need.LIST | Need.PENDING, _never),
    "getTransaction": (transactions.get_transaction, Need.LIST | Need.DETAILS, _always),
    "explainTransaction": (explanations.explain_transaction, Need.LIST | Need.DETAILS | Need.RULES, _always),
    "getCashflow": (reports.get_cashflow, Need.FIGURES, _never),
    "getCashflowCategories": (reports.get_cashflow_categories, Need.FIGURES, _never),
    "getBalances": (reports.get_balances, Need.FIGURES, _never),
    "getSnapshot": (reports.get_snapshot, Need.FIGURES, _never),
    "getForecast": (forecast.get_forecast, Need.ACCOUNTS, _never),
    "listCashflowTransactions": (explanations.list_cashflow_transactions, Need.LIST | Need.PENDING, _never),
    "listCategoryTransactions": (explanations.list_category_transactions, Need.LIST | Need.PENDING, _never),
    "listSubscriptions": (reports.list_subscriptions, Need.ACCOUNTS, _never),
    "listSubscriptionDetails": (details.list_subscription_details, Need.ACCOUNTS, _never),
    "getSubscription": (details.get_subscription, Need.ACCOUNTS, _never),
}
"""By operationId: the function, what it reads of the user, and when its answer is quickly made. A function takes the
services, the request, the user's data in one state, and the contract's parameters in snake_case."""

FEEDS = {
    "listTransactionChanges": ("transactions", feeds.transaction_changes),
    "listAccountChanges": ("accounts", feeds.account_changes),
}
"""By operationId: the kind of a feed, and the function that makes a page of it."""

WEBHOOKS: Mapping[str, Operation] = {
    "listWebhooks": webhooks.list_webhooks,
    "createWebhook": webhooks.create_webhook,
    "getWebhook": webhooks.get_webhook,
    "deleteWebhook": webhooks.delete_webhook,
    "testWebhook": webhooks.test_webhook,
    "enableWebhook": webhooks.enable_webhook,
    "renewWebhookSecret": webhooks.renew_webhook_secret,
    "listWebhookDeliveries": webhooks.list_webhook_deliveries,
    "retryWebhookDelivery": webhooks.retry_webhook_delivery,
}

OTHERS: Mapping[str, Operation] = {
    "startSync": sync.start_sync,
    "getSyncJob": sync.get_sync_job,
    "exportTransactions": exports.export_transactions,
    "listCategories": finer.list_categories,
    "createOwnCategory": own.create_own_category,
    "renameOwnCategory": own.rename_own_category,
    "deleteOwnCategory": own.delete_own_category,
    "listTargets": targets.list_targets,
    "setTarget": targets.set_target,
    "listTakenBackTransactions": transactions.list_taken_back_transactions,
    "listenToEvents": listening.listen_to_events,
    **WEBHOOKS,
    "listConnections": connections.list_connections,
    "getIntegrity": integrity.get_integrity,
    "createCorrection": corrections.create_correction,
    "correctSome": some.correct_some,
    "listCorrections": corrections.list_corrections,
    "deleteCorrection": corrections.delete_correction,
    "addSubscription": added.add_subscription,
    "confirmSubscription": confirmation.confirm_subscription,
    "createRule": rules.create_rule,
    "listRules": rules.list_rules,
    "changeRule": rules.change_rule,
    "orderRules": rules.order_rules,
    "deleteRule": rules.delete_rule,
    "proposeRule": proposed_rules.propose_rule,
    "getAnnotation": annotations.get_annotation,
    "changeAnnotation": annotations.change_annotation,
    "listTags": annotations.list_tags,
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
    "listLayouts": imports.list_layouts,
    "deleteLayout": imports.delete_layout,
    "getProfile": profile.get_profile,
    "changeProfile": profile.change_profile,
}
"""By operationId: the function, which takes the services, the request, and the parameters."""


SHOWS_BOOKINGS = frozenset(
    {
        "listTransactions",
        "searchTransactions",
        "exportTransactions",
        "listTakenBackTransactions",
        "listTransactionChanges",
        "getTransaction",
        "explainTransaction",
        "getAnnotation",
        "changeAnnotation",
        "listTags",
        "correctSome",
        "listCashflowTransactions",
        "listCategoryTransactions",
        "listSubscriptions",
        "listSubscriptionDetails",
        "getSubscription",
    }
)
"""The operations that show bookings or payees, which a grant of figures only does not cover."""


GIVES_FIGURES = {"sumTransactions": READ_CASHFLOW}
"""By operationId: the scope that opens an operation to a grant of figures only, which has lost the scope that reads
bookings; the operation itself refuses what would show bookings."""


KNOWS_COVERAGE = frozenset(
    {
        *KEPT,
        *FEEDS,
        *WEBHOOKS,
        "exportTransactions",
        "listCategories",
        "listTargets",
        "listTakenBackTransactions",
        "listenToEvents",
        "startSync",
        "getSyncJob",
        "listConnections",
        "getIntegrity",
        "getProfile",
        "getAnnotation",
        "changeAnnotation",
        "listTags",
        "correctSome",
    }
)
"""The operations that answer a grant of some accounts as if there were only those. Every other operation is about
rules, corrections, files or accounts as a whole, and is refused to such a grant, and to one of figures only."""


def operations(services: Services) -> Mapping[str, Operation]:
    """The functions of all operations, bound to one open service, by operationId."""
    kept = {
        name: CachedOperation(name=name, services=services, function=function, needs=needs, is_light=light)
        for name, (function, needs, light) in KEPT.items()
    }
    fed = {name: feeds.Feed(services=services, kind=kind, changes=changes) for name, (kind, changes) in FEEDS.items()}
    return {**kept, **fed, **{name: partial(function, services) for name, function in OTHERS.items()}}
