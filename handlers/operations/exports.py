"""GET /transactions/export: the transactions that the list's filters let through, as a file."""

from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

from anyio import to_thread
from msgspec.structs import replace

from auth.principal import Principal
from auth.scopes import READ_ANNOTATIONS, READ_CASHFLOW, WRITE_ACCOUNTS, WRITE_RULES
from handlers.operations.categories.finer import INCLUDED, leaf_as_seen
from handlers.operations.changes.feeds import cursor_after
from handlers.operations.corrections import is_seen
from handlers.operations.searching.filters import Filters
from handlers.operations.searching.search import found_ids
from handlers.operations.selection import listed_values, owner_of, selected_accounts, sight_of
from handlers.operations.words.row_words import DETAILED, asks_for_words
from handlers.web.errors import BadRequest, Forbidden, Unavailable
from handlers.web.request import Answer, Request
from handlers.work.cache.user_data import OF_BOOKINGS, Need
from handlers.work.export_formats import Export, write
from handlers.work.services import Services
from handlers.work.unread_exports import TooManyExports
from storage.accounts import SelectedAccounts
from storage.annotations import annotations, portable
from storage.annotations.word_lines import KINDS, OF_ACCOUNTS, OF_PAYMENTS, SeenWords
from storage.database import Session, state_in
from storage.transactions import Selection

ENDINGS = {"camt053": "xml"}
"""By format: the ending of the file's name, where it differs from the format's name."""
OCTETS = {"content-type": "application/octet-stream"}
SIGNED = "signed"
EVERYTHING = "everything"
"""The value of `include` that asks for all that the user has said, as lines of an export of words."""
OF_EVERYTHING = frozenset({READ_ANNOTATIONS, WRITE_RULES})
OF_SEARCH = (
    "direction",
    "categories",
    "types",
    "merchant",
    "counterpart_iban",
    "words",
    "flag",
    "counted",
    "search_in",
)
"""The filters that a search has and the list has not."""
ASK_AGAIN_SECONDS = 30  # by then somebody may have finished reading an export


async def export_transactions(
    services: Services,
    request: Request,
    *,
    format: str,
    include: str | None = None,
    amounts: str = SIGNED,
    **parameters: Any,
) -> Answer:
    """Write the selected accounts' booked transactions to a file, from one state of the data, and answer with it:
    those that the list's filters let through, or, as soon as one of the search's is given (OF_SEARCH), those that a
    search finds; `amounts` says whether limits of amounts are of signed ones or, as in a search, of their size. If
    nothing but accounts is selected, the header Next-Cursor has the cursor of the feed of changes after that state.
    Each user has one export made at a time, because it reads everything. Raises Unavailable while too many exports are
    being read."""
    caller, turns, filters = request.principal, services.exports, Filters(**parameters)
    user_id, included = caller.user_id, _included(request, include, format)
    filters.check(caller, include)
    wanted, searched = _listed_and_searched(filters, caller, amounts)
    is_searched = amounts != SIGNED or any(parameters.get(name) for name in OF_SEARCH)
    if is_searched:
        searched.query()  # is refused before a file is begun
    has_words = asks_for_words(include) or filters.needs_words
    headers: dict[str, str] = {}

    def write_file(file: BinaryIO) -> None:
        with services.of(user_id).transaction() as session:
            needs = (Need.WORDS if has_words else Need.ACCOUNTS) | (OF_BOOKINGS if is_searched else Need.ACCOUNTS)
            reading = services.reader.read(session, user_id, needs)
            selected = selected_accounts(reading.accounts, filters.account_ids, caller)
            if is_searched:
                ids = found_ids(services, reading, caller, searched, selected)
                chosen = Selection(ids=ids, amount_min=wanted.amount_min, amount_max=wanted.amount_max)
            else:
                chosen = wanted._replace(ids=filters.ids(reading, caller, wanted))
                if wanted.category or wanted.detailed_category:
                    chosen = chosen.with_parts(annotations.parts_of_user(session, user_id))
            export = Export(
                user_id=user_id,
                accounts=selected.accounts,
                now=services.clock.now(),
                today=services.clock.today(),
                selection=None if chosen == Selection() else chosen,
                may_read=caller.covers,
                leaf=partial(leaf_as_seen, caller=caller) if DETAILED in included else None,
                words=reading.words if asks_for_words(include) else None,
                said=_said(session, caller) if EVERYTHING in included else (),
            )
            if export.selection is None:
                headers["next-cursor"] = cursor_after(services, caller, filters.account_ids, state_in(session, user_id))
            write(session, export, format, file)

    async with turns.of(user_id):
        try:
            file = await to_thread.run_sync(services.unread_exports.write, user_id, write_file, limiter=turns.threads)
        except TooManyExports as error:
            raise Unavailable(str(error), retry_after=ASK_AGAIN_SECONDS) from error
    disposition = f'attachment; filename="transactions-{services.clock.today()}.{ENDINGS.get(format, format)}"'
    return Answer(body=file, headers={**OCTETS, "content-disposition": disposition, **headers})


def _included(request: Request, include: str | None, format_: str) -> tuple[str, ...]:
    """The values of `include`. Raises BadRequest for unknown ones and for a format that has no place for everything,
    Forbidden for a caller who may not read all that everything holds."""
    included = listed_values("include", include, (*INCLUDED, EVERYTHING))
    if EVERYTHING in included:
        owner_of(request)
        if format_ != "jsonl":
            raise BadRequest("include: everything is only for the format jsonl")
        if not request.principal.scopes >= OF_EVERYTHING:
            raise Forbidden("Insufficient scope. Required: {wanted}", wanted=" ".join(sorted(OF_EVERYTHING)))
    return included


def _said(session: Session, caller: Principal) -> Iterator[str]:
    """All that the user has said and that the caller may read elsewhere, too."""
    of_accounts, of_payments = WRITE_ACCOUNTS in caller.scopes, READ_CASHFLOW in caller.scopes
    kinds = KINDS.difference(() if of_accounts else OF_ACCOUNTS, () if of_payments else OF_PAYMENTS)
    sees = sight_of(session, caller)
    seen = SeenWords(kinds, sees, partial(is_seen, session, caller, sees))
    return portable.lines(session, caller.user_id, seen)


def _listed_and_searched(filters: Filters, caller: Principal, amounts: str) -> tuple[Selection, Filters]:
    """What the list's filters select, and what a search would be asked: limits of signed amounts are the list's."""
    wanted = filters.selection(SelectedAccounts([], is_everything=True), caller)
    if amounts != SIGNED:
        return wanted, filters
    smallest, largest = filters.amounts
    listed = wanted._replace(amount_min=smallest, amount_max=largest)
    return listed, replace(filters, amount_min=None, amount_max=None)
