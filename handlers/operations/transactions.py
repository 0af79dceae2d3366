"""GET /transactions and GET /transactions/{id} (interface 4.3, 4.4)."""

import re
from datetime import date
from functools import partial
from urllib.parse import parse_qsl, urlencode

from handlers import json_shapes
from handlers.cache.user_data import UserData
from handlers.http import call
from handlers.http.errors import NotFound
from handlers.http.request import Answer, Json, Request
from handlers.operations.categories.finer import filtered_by, is_included, shown
from handlers.operations.selection import check_window, selected_accounts, selected_or_all
from handlers.operations.words.said import asks_for_words, check_words, meant, with_words
from handlers.services import Services
from storage import accounts, transactions

# Only characters that need no percent sign
_AS_ENCODED = re.compile(r"[\w.~-]+=[\w.~+-]*(?:&[\w.~-]+=[\w.~+-]*)*", re.ASCII)


def list_transactions(
    _services: Services,
    request: Request,
    reading: UserData,
    *,
    account_ids: str | None,
    category: str | None,
    date_from: date | None,
    date_to: date | None,
    search: str | None,
    page: int,
    per_page: int,
    detailed_category: str | None = None,
    own_category: str | None = None,
    tag: str | None = None,
    include: str | None = None,
) -> Answer:
    """List one page of the selected accounts' booked transactions, the newest first (decisions 1, 2, 5, 9)."""
    caller = request.principal
    check_window(date_from, date_to)
    check_words(caller, None, tag, own_category)
    selection = transactions.Selection(
        account_ids=selected_accounts(reading.accounts, account_ids, caller).filter,
        category=category,
        detailed_category=filtered_by(detailed_category, caller),
        date_from=date_from,
        date_to=date_to,
        search=search,
        ids=meant(reading, caller, tag, own_category, category, detailed_category),
    )
    leaf, is_detailed = partial(shown, caller=caller), is_included(include)
    offset = (page - 1) * per_page
    total, rows = reading.page(selection, limit=per_page, offset=offset, leaf=leaf if is_detailed else None)
    if asks_for_words(include):
        rows = with_words(rows, reading, caller, None if is_detailed else leaf)
    pagination = json_shapes.pagination(page=page, per_page=per_page, total=total)
    return Answer(
        body=b'{"transactions":[%b],"pagination":%b}' % (b",".join(rows), call.encoded(pagination)),
        headers={"link": links(request, page=page, last=max(1, pagination["pageCount"]))},
    )


def get_transaction(_services: Services, request: Request, reading: UserData, *, id: str) -> Answer:
    """One booked transaction with all its details."""
    row = reading.entries.find(id)
    if row is None or not request.principal.covers(row["account_id"]):
        raise NotFound("Transaction not found")
    return Answer(body=json_shapes.transaction_detail(row, reading.by_id))


def list_taken_back_transactions(services: Services, request: Request, *, account_ids: str | None) -> Json:
    """List the bookings of the selected accounts that banks have taken back, the latest booking date first, from one
    state of the store; no figure counts them."""
    caller = request.principal
    with services.of(caller.user_id).transaction() as session:
        owned = accounts.of_user(session, caller.user_id)
        selected = selected_or_all(owned, account_ids, caller)
        rows = transactions.taken_back(session, caller.user_id, selected.ids)
    by_id = {account.id: account for account in selected.accounts}
    return {
        "transactions": [
            json_shapes.transaction(row, by_id) | {"takenBackAt": json_shapes.instant(row["taken_back_at"])}
            for row in rows
        ]
    }


def links(request: Request, *, page: int, last: int) -> str:
    """The Link header (RFC 8288) to first, previous, next and last page, relative to this host (decision 8)."""
    before = f"<{request.path}?{'&'.join([*_other_parameters(request.query), 'page='])}"
    previous = f'{before}{min(page - 1, last)}>; rel="prev", ' if page > 1 else ""
    following = f'{before}{page + 1}>; rel="next", ' if page < last else ""
    return f'{before}1>; rel="first", {previous}{following}{before}{last}>; rel="last"'


def _other_parameters(query: str) -> list[str]:
    """The query's parameters except the page, spelled as `urlencode` does. Most queries are spelled like that already,
    and decoding and encoding them would cost a third of a page from memory."""
    if _AS_ENCODED.fullmatch(query):
        return [pair for pair in query.split("&") if not pair.startswith("page=")]
    others = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "page"]
    return [urlencode([pair]) for pair in others]
