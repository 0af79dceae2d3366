"""The access record on /account: what each app read and what was done to the account; and all of it as a download."""

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain

import orjson
from msgspec import Struct
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from auth import lifetimes
from auth.apps.clients import PAGE
from auth.people.sessions import Browser
from auth.record import DEEDS
from connectors.own_formats.csv import guard_cell
from handlers.json_shapes import instant, record_entry
from handlers.oauth.rendering import page_headers
from handlers.oauth.site import Site, Visit
from handlers.operations import OPERATIONS
from storage.oauth.access_record import Entry
from storage.oauth.moments import aware
from storage.users import User

SHOWN_FOR = timedelta(days=30)
COLUMNS = ("hour", "app", "app_id", "grant", "operation", "calls", "refusals", "last_at")

KINDS: Mapping[str, tuple[str, ...]] = {
    "read_accounts": (
        "listAccounts",
        "getSnapshot",
        "getBalances",
        "getIntegrity",
        "listNotices",
        "list_notices",
        "changeNotice",
        "listHiddenAccounts",
        "listMergedAccounts",
        "listAccountChanges",
        "getOverview",
        "get_overview",
        "get_balances",
    ),
    "read_transactions": (
        "listTransactions",
        "searchTransactions",
        "sumTransactions",
        "exportTransactions",
        "listTakenBackTransactions",
        "listTransactionChanges",
        "getTransaction",
        "explainTransaction",
        "search_transactions",
        "summarize_transactions",
        "get_transaction",
        "getSimpleFinAccounts",
    ),
    "read_figures": (
        "getCashflow",
        "getCashflowCategories",
        "listCashflowTransactions",
        "listCategoryTransactions",
        "getForecast",
        "listTargets",
        "get_cashflow",
        "get_forecast",
        "explain_figure",
    ),
    "read_recurring": ("listSubscriptions", "listSubscriptionDetails", "getSubscription", "list_recurring_payments"),
    "read_words": ("getAnnotation", "changeAnnotation", "listTags", "correctSome", "annotate_transaction"),
    "read_profile": ("getProfile", "changeProfile"),
    "kept_categories": (
        *("listCategories", "createOwnCategory", "renameOwnCategory", "deleteOwnCategory", "setTarget"),
        *("createCorrection", "listCorrections", "deleteCorrection"),
        *("listRules", "createRule", "changeRule", "deleteRule", "orderRules", "proposeRule"),
    ),
    "kept_recurring": ("addSubscription", "confirmSubscription"),
    "kept_imports": ("createImport", "listImports", "getImport", "undoImport", "listLayouts", "deleteLayout"),
    "kept_accounts": ("changeAccount", "deleteAccount", "mergeAccount", "separateAccount", "sayBalance"),
    "kept_notices": (
        *(name for name in OPERATIONS if "NoticeTarget" in name or "NoticeSettings" in name),
        "listNoticeDeliveries",
        "getPushKey",
    ),
    "kept_shares": tuple(name for name in OPERATIONS if "Share" in name),
    "read_refresh": ("startSync", "getSyncJob", "listConnections", "listenToEvents", "refresh_bank_data"),
    "set_up_webhooks": tuple(name for name in OPERATIONS if "Webhook" in name),
    "sent_webhooks": ("sendWebhook",),
}
"""By the name of a page's text: the operations and tools that it stands for; others are shown by their own names."""

KIND_OF = {operation: kind for kind, operations in KINDS.items() for operation in operations}


class EndedApp(Struct, frozen=True):
    """An app that did something through grants no longer listed: its name, and the lines of what these did."""

    name: str
    is_page: bool
    lines: list["RecordLine"]


class RecordLine(Struct):
    """One line of the access record on the page: how often something was done and refused, and when last. `kind` is the
    name of a text of the page, or of an operation or tool without one."""

    kind: str
    calls: int
    refusals: int
    last_at: datetime


def record_routes(site: Site) -> list[BaseRoute]:
    """The routes that download the whole access record of a user, as CSV and as JSON."""
    pages = {"/account/record.csv": {"GET": download_csv}, "/account/record.json": {"GET": download_json}}
    return [*site.user_routes(pages)]


def overview(site: Site, user_id: str) -> tuple[Mapping[str, list[RecordLine]], list[RecordLine]]:
    """The lines of what each grant did in the last 30 days, by `record_id`, and the lines of what was done to the
    account; in each list what was done last comes first."""
    apps: dict[str, dict[str, RecordLine]] = {}
    deeds: dict[str, RecordLine] = {}
    for entry in site.server.record.overview(user_id, within=SHOWN_FOR):
        is_deed = entry.operation in DEEDS
        lines = deeds if is_deed else apps.setdefault(record_id(entry.grant_id, entry.client_id), {})
        _add(lines, entry, f"did_{entry.operation}" if is_deed else _kind(entry))
    by_app = {id_: list(lines.values()) for id_, lines in apps.items()}
    return by_app, list(deeds.values())


def ended_apps(site: Site, user_id: str, *, but: Collection[str]) -> list[EndedApp]:
    """What apps did, in all the time for which the record is kept, through grants other than those whose `record_id` is
    in `but`, which the page lists already. The app that did something last comes first."""
    names: dict[str, str] = {}
    apps: dict[str, dict[str, RecordLine]] = {}
    for entry in site.server.record.overview(user_id, within=lifetimes.ACCESS_RECORD):
        if entry.operation not in DEEDS and record_id(entry.grant_id, entry.client_id) not in but:
            names.setdefault(entry.client_id, entry.client_name)
            _add(apps.setdefault(entry.client_id, {}), entry, _kind(entry))
    return [EndedApp(names[id_], id_ == PAGE, list(lines.values())) for id_, lines in apps.items()]


def _kind(entry: Entry) -> str:
    return KIND_OF.get(entry.operation, entry.operation)


def _add(lines: dict[str, RecordLine], entry: Entry, kind: str) -> None:
    line = lines.setdefault(kind, RecordLine(kind, 0, 0, aware(entry.last_at)))  # the latest comes first
    line.calls += entry.calls
    line.refusals += entry.refusals


def record_id(grant_id: str, client_id: str) -> str:
    """The id of a grant's lines on the page: the grant's own, but one common id for this server's own page, which has a
    grant for each browser."""
    return PAGE if client_id == PAGE else grant_id


def download_csv(site: Site, _visit: Visit, _browser: Browser, user: User) -> Response:
    """Download the user's whole access record as CSV, a row by hour, grant and operation, the latest hour first."""
    return _file(site, user, _as_csv, "text/csv; charset=utf-8", "record.csv")


def download_json(site: Site, _visit: Visit, _browser: Browser, user: User) -> Response:
    """Download the user's whole access record as a JSON list of objects, in the rows and order of the CSV."""
    return _file(site, user, _as_json, "application/json", "record.json")


def _as_csv(pieces: Iterator[list[Entry]]) -> Iterator[bytes]:
    head = [COLUMNS]
    for piece in pieces:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerows(chain(head, map(_cells, piece)))
        yield text.getvalue().encode()
        head = []


def _cells(entry: Entry) -> tuple[str | int | None, ...]:
    name = guard_cell(entry.client_name)  # an app may be named by anybody: no cell may begin a formula
    cells = (instant(entry.hour), name, entry.client_id, entry.grant_id, entry.operation)
    return (*cells, entry.calls, entry.refusals, instant(entry.last_at))


def _as_json(pieces: Iterator[list[Entry]]) -> Iterator[bytes]:
    before = b"["
    for piece in pieces:
        if piece:
            yield before + b",".join(orjson.dumps(record_entry(entry)) for entry in piece)
            before = b","
    yield b"[]" if before == b"[" else b"]"


def _file(
    site: Site, user: User, form: Callable[[Iterator[list[Entry]]], Iterator[bytes]], media_type: str, name: str
) -> Response:
    content = form(site.server.record.hours(user.id))
    # Read before the answer begins, so that a failing store gets the same error page as elsewhere
    first = next(content)
    headers = {**page_headers(""), "content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(chain((first,), content), media_type=media_type, headers=headers)
