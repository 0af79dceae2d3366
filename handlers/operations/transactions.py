"""GET /transactions and GET /transactions/{id} (interface 4.3, 4.4)."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import parse_qsl, urlencode

from handlers import json_shapes
from handlers.names import Json
from handlers.operations.categories.finer import is_included, leaf_as_seen
from handlers.operations.searching.filters import Filters
from handlers.operations.selection import readable_booking, selected_accounts, selected_or_all
from handlers.operations.words.row_words import asks_for_words, with_words
from handlers.web import call
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import UserData
from handlers.work.services import Services
from storage import accounts, transactions

LINK_LENGTH_MAX = 500  # above it, a page names its neighbours only
# Only characters that need no percent sign
_AS_ENCODED = re.compile(r"[\w.~-]+=[\w.~+-]*(?:&[\w.~-]+=[\w.~+-]*)*", re.ASCII)


def list_transactions(
    _services: Services,
    request: Request,
    reading: UserData,
    *,
    page: int,
    per_page: int,
    include: str | None = None,
    **parameters: Any,
) -> Answer:
    """List one page of the selected accounts' booked transactions, the latest booking date first (decisions 1, 2, 5,
    9)."""
    caller, filters = request.principal, Filters(**parameters)
    filters.check(caller)
    selection = filters.selection(selected_accounts(reading.accounts, filters.account_ids, caller), caller)
    if filters.needs_words:
        selection = selection._replace(ids=filters.ids(reading, caller, selection))
    leaf, is_detailed = partial(leaf_as_seen, caller=caller), is_included(include)
    offset = (page - 1) * per_page
    total, rows = reading.page(selection, limit=per_page, offset=offset, leaf=leaf if is_detailed else None)
    if asks_for_words(include):
        rows = with_words(rows, reading, caller, None if is_detailed else leaf)
    pagination = json_shapes.pagination(page=page, per_page=per_page, total=total)
    return Answer(
        body=transactions_json(rows, pagination),
        headers={"link": links(request, page=page, last=max(1, pagination["pageCount"]))},
    )


def transactions_json(rows: Sequence[bytes], pagination: Json) -> bytes:
    """A page of transactions as JSON; each row is that already."""
    return b'{"transactions":[%b],"pagination":%b}' % (b",".join(rows), call.json_bytes(pagination))


def get_transaction(_services: Services, request: Request, reading: UserData, *, id: str) -> Answer:
    """One booked transaction with all its details; raises NotFound."""
    row = readable_booking(reading.find(id), request.principal)
    return Answer(body=json_shapes.transaction_detail(row, reading.by_id))


def list_taken_back_transactions(services: Services, request: Request, *, account_ids: str | None) -> Json:
    """List the bookings of the selected accounts that banks have taken back, the latest booking date first, from one
    state of the store; no figure counts them."""
    caller = request.principal
    with services.of(caller.user_id).transaction() as session:
        owned = accounts.of_user(session, caller.user_id)
        selected = selected_or_all(owned, account_ids, caller)
        rows = transactions.list_taken_back(session, caller.user_id, selected.ids)
    by_id = {account.id: account for account in selected.accounts}
    return {
        "transactions": [
            json_shapes.transaction(row, by_id) | {"takenBackAt": json_shapes.instant(row["taken_back_at"])}
            for row in rows
        ]
    }


def links(request: Request, *, page: int, last: int) -> str:
    """The Link header (RFC 8288) to the first, previous, next and last page, relative to this host (decision 8). There
    is no previous page before the first one, and no next one after `last`. What is repeated of a long query is repeated
    for these two alone: proxies take a few kilobytes of headers at most."""
    before = f"<{request.path}?{'&'.join([*_other_parameters(request.query), 'page='])}"
    previous = f'{before}{min(page - 1, last)}>; rel="prev", ' if page > 1 else ""
    following = f'{before}{page + 1}>; rel="next", ' if page < last else ""
    if len(before) > LINK_LENGTH_MAX:
        return (previous + following).removesuffix(", ") or f'{before}1>; rel="first"'
    return f'{before}1>; rel="first", {previous}{following}{before}{last}>; rel="last"'


def _other_parameters(query: str) -> list[str]:
    """The query's parameters except the page, in their order, spelled as `urlencode` does. Most queries are spelled
    like that already, and decoding and encoding them would cost a third of a page from memory."""
    if _AS_ENCODED.fullmatch(query):
        return [pair for pair in query.split("&") if not pair.startswith("page=")]
    others = [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != "page"]
    return [urlencode([pair]) for pair in others]
