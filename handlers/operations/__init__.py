"""Lists the functions that answer the operations of openapi.json, by the grants they are open to; the contract itself
names no Python."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from auth.scopes import READ_CASHFLOW
from handlers.names import contract_name
from handlers.operations import (
    accounts,
    connections,
    corrections,
    explanations,
    exports,
    imports,
    integrity,
    overview,
    profile,
    recurring,
    reports,
    rules,
    shares,
    sync,
    transactions,
)
from handlers.operations.cached_answers import CachedOperation, First, Light, needs_more
from handlers.operations.categories import finer, own, targets
from handlers.operations.changes import feeds
from handlers.operations.events import listening, webhooks
from handlers.operations.forecasts import forecast
from handlers.operations.notices import listing, notice_settings
from handlers.operations.notices import targets as notice_targets
from handlers.operations.searching import search
from handlers.operations.words import annotations, correction_batches, proposed_rules
from handlers.web.request import Answer, Operation
from handlers.work.cache.user_data import Need, UserData
from handlers.work.services import Services
from storage.changes.first_answers import NEWEST_MAX

OF_ANY_PAGE = ("page", "per_page", "account_ids", "include")
LIGHT_ROWS_MAX = 50_000  # filters by day, category and account bisect; the page itself is bounded
LIGHT_SEARCH_ROWS_MAX = 5_000  # a search that finds every row takes about 0.1 ms per 1,000


def _always(_data: UserData, _arguments: dict[str, Any]) -> bool:
    return True


def _never(_data: UserData, _arguments: dict[str, Any]) -> bool:
    return False


def _first_page(arguments: dict[str, Any]) -> bool:
    chosen = any(value for name, value in arguments.items() if name not in OF_ANY_PAGE)
    return not chosen and arguments["page"] * arguments["per_page"] <= NEWEST_MAX


def _light_page(data: UserData, arguments: dict[str, Any]) -> bool:
    return Need.LIST not in data.loaded or len(data.entries) <= (
        LIGHT_SEARCH_ROWS_MAX if arguments["search"] else LIGHT_ROWS_MAX
    )


class Read(Struct, frozen=True):
    """An operation that reads one state of a user's data: its function, the parts of the data that it needs, whether an
    answer is so quickly made that it needs no thread (`is_light`), and whether with these parameters a user's first
    answers are most likely enough (`is_first`). The function takes the services, the request, the user's data, and the
    contract's parameters in snake_case."""

    function: Callable[..., Answer]
    needs: Need
    is_light: Light = _never
    is_first: First = needs_more


class Polled(Struct, frozen=True):
    """A feed of changes: the function that returns the next page of it, and the kind of its rows ("accounts" or
    "transactions")."""

    function: Callable[..., Any]
    kind: str


class Composed(Struct, frozen=True):
    """An operation that puts together what others answer: its function, which takes the services, all operations by
    operationId, the request, and the parameters."""

    function: Callable[..., Answer]


Entry = Read | Polled | Composed | Callable[..., Any]
"""A plain function takes the services, the request, and the parameters."""


def _by_id(*entries: Entry) -> dict[str, Entry]:
    """The entries by operationId, which is the function's name in camelCase."""
    entries_by_id = {}
    for entry in entries:
        function = entry.function if isinstance(entry, Read | Polled | Composed) else entry
        entries_by_id[contract_name(function.__name__)] = entry
    return entries_by_id


FIGURES = _by_id(
    Read(accounts.list_accounts, Need.STATUSES, _always),
    Read(search.sum_transactions, Need.LIST | Need.PENDING),
    Read(reports.get_cashflow, Need.ACCOUNTS),
    Read(reports.get_cashflow_categories, Need.ACCOUNTS),
    Read(reports.get_balances, Need.FIGURES),
    Read(reports.get_snapshot, Need.ACCOUNTS),
    Read(forecast.get_forecast, Need.ACCOUNTS),
    Polled(feeds.list_account_changes, "accounts"),
    sync.start_sync,
    sync.get_sync_job,
    finer.list_categories,
    targets.list_targets,
    listening.listen_to_events,
    listing.list_notices,
    webhooks.list_webhooks,
    webhooks.create_webhook,
    webhooks.get_webhook,
    webhooks.delete_webhook,
    webhooks.test_webhook,
    webhooks.enable_webhook,
    webhooks.renew_webhook_secret,
    webhooks.list_webhook_deliveries,
    webhooks.retry_webhook_delivery,
    connections.list_connections,
    Read(integrity.get_integrity, Need.ACCOUNTS),
    profile.get_profile,
)
"""The operations that every grant may open, by operationId. They answer a grant of some accounts as if there were only
those."""

SHOWS_BOOKINGS = _by_id(
    Read(transactions.list_transactions, Need.LIST, _light_page, _first_page),
    Read(search.search_transactions, Need.LIST | Need.PENDING),
    Read(transactions.get_transaction, Need.LIST | Need.DETAILS, _always),
    Read(explanations.explain_transaction, Need.LIST | Need.DETAILS | Need.RULES, _always),
    Read(explanations.list_cashflow_transactions, Need.LIST | Need.PENDING),
    Read(explanations.list_category_transactions, Need.LIST | Need.PENDING),
    Read(reports.list_subscriptions, Need.ACCOUNTS),
    Read(recurring.list_subscription_details, Need.ACCOUNTS),
    Read(recurring.get_subscription, Need.ACCOUNTS),
    Polled(feeds.list_transaction_changes, "transactions"),
    exports.export_transactions,
    transactions.list_taken_back_transactions,
    annotations.get_annotation,
    annotations.change_annotation,
    annotations.list_tags,
    correction_batches.correct_some,
    Composed(overview.get_overview),
)
"""The operations that show bookings or payees, which a grant of figures only does not cover; a grant of some accounts
does."""

FOR_WHOLE_GRANTS = _by_id(
    own.create_own_category,
    own.rename_own_category,
    own.delete_own_category,
    targets.set_target,
    corrections.create_correction,
    corrections.list_corrections,
    corrections.delete_correction,
    recurring.add_subscription,
    recurring.confirm_subscription,
    rules.create_rule,
    rules.list_rules,
    rules.change_rule,
    rules.order_rules,
    rules.delete_rule,
    proposed_rules.propose_rule,
    accounts.list_hidden_accounts,
    accounts.change_account,
    accounts.say_balance,
    accounts.list_merged_accounts,
    accounts.merge_account,
    accounts.separate_account,
    accounts.delete_account,
    imports.create_import,
    imports.get_import,
    imports.list_imports,
    imports.undo_import,
    imports.list_layouts,
    imports.delete_layout,
    listing.change_notice,
    notice_settings.get_notice_settings,
    notice_settings.set_notice_settings,
    notice_targets.list_notice_targets,
    notice_targets.create_notice_target,
    notice_targets.delete_notice_target,
    notice_targets.confirm_notice_target,
    notice_targets.test_notice_target,
    notice_targets.list_notice_deliveries,
    notice_targets.get_push_key,
    shares.list_shares,
    shares.offer_share,
    shares.change_share,
    shares.end_share,
    shares.accept_share,
    profile.change_profile,
)
"""The operations on rules, corrections, files or accounts as a whole, which are refused to a grant of some accounts and
to one of figures only."""

OPERATIONS = {**FIGURES, **SHOWS_BOOKINGS, **FOR_WHOLE_GRANTS}

KNOWS_COVERAGE = FIGURES.keys() | SHOWS_BOOKINGS.keys()

GIVES_FIGURES = {"sumTransactions": READ_CASHFLOW}
"""By operationId: the scope that opens an operation to a grant of figures only, which has lost the scope that reads
bookings; the operation itself refuses what would show bookings."""


def operations(services: Services) -> Mapping[str, Operation]:
    """The functions of all operations by operationId, bound to these services."""
    bound: dict[str, Operation] = {}
    bound |= {name: _bound(name, entry, services, bound) for name, entry in OPERATIONS.items()}
    return bound


def _bound(name: str, entry: Entry, services: Services, others: Mapping[str, Operation]) -> Operation:
    match entry:
        case Composed(function):
            return partial(function, services, others)
        case Read(function, needs, is_light, is_first):
            return CachedOperation(
                name=name, services=services, function=function, needs=needs, is_light=is_light, is_first=is_first
            )
        case Polled(function, kind):
            return feeds.Feed(services=services, kind=kind, changes=function)
    return partial(entry, services)
