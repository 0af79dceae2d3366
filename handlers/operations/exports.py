"""GET /transactions/export: the transactions that the list's filters let through, as a file."""

from datetime import date
from decimal import Decimal
from functools import partial
from typing import BinaryIO

from anyio import to_thread

from handlers.cache.user_data import Need
from handlers.export_formats import Export, write
from handlers.http.errors import Unavailable
from handlers.http.request import Answer, Request
from handlers.operations.categories.finer import filtered_by, is_included, shown
from handlers.operations.changes.feeds import cursor_after
from handlers.operations.selection import check_window, selected_accounts
from handlers.operations.words.said import asks_for_words, check_words, meant
from handlers.services import Services
from handlers.unread_exports import TooManyExports
from storage.database import state_in
from storage.transactions import Selection
from storage.words import annotations

ENDINGS = {"camt053": "xml"}
"""By format: the ending of the file's name, where it differs from the format's name."""
ASK_AGAIN_SECONDS = 30  # by then somebody may have finished reading an export


async def export_transactions(
    services: Services,
    request: Request,
    *,
    format: str,
    account_ids: str | None,
    category: str | None,
    date_from: date | None,
    date_to: date | None,
    search: str | None,
    type: str | None,
    amount_min: str | None,
    amount_max: str | None,
    detailed_category: str | None = None,
    tag: str | None = None,
    own_category: str | None = None,
    include: str | None = None,
) -> Answer:
    """The selected accounts' booked transactions as a file, from one state of the data. If nothing is filtered, the
    cursor of the feed of changes after that state goes into a header. Each user has one export made at a time, because
    it reads everything."""
    check_window(date_from, date_to)
    check_words(request.principal, include, tag, own_category)
    filters = Selection(
        category=category,
        detailed_category=filtered_by(detailed_category, request.principal),
        date_from=date_from,
        date_to=date_to,
        search=search,
        type=type,
        amount_min=_decimal(amount_min),
        amount_max=_decimal(amount_max),
    )
    has_words = asks_for_words(include) or (tag, own_category) != (None, None)
    headers: dict[str, str] = {}
    user_id, caller, turns = request.principal.user_id, request.principal, services.exports

    def write_file(file: BinaryIO) -> None:
        with services.of(user_id).transaction() as session:
            reading = services.reader.read(session, user_id, Need.WORDS if has_words else Need.ACCOUNTS)
            selected = selected_accounts(reading.accounts, account_ids, caller)
            places = filters.category, filters.detailed_category
            chosen = filters._replace(ids=meant(reading, caller, tag, own_category, *places))
            if places != (None, None):
                chosen = chosen.with_parts(annotations.awake(session, user_id))
            export = Export(
                user_id=user_id,
                accounts=selected.accounts,
                now=services.clock.now(),
                today=services.clock.today(),
                selection=None if chosen == Selection() else chosen,
                may_read=caller.covers,
                leaf=partial(shown, caller=caller) if is_included(include) else None,
                words=reading.words if asks_for_words(include) else None,
            )
            if export.selection is None:
                headers["next-cursor"] = cursor_after(services, caller, account_ids, state_in(session, user_id))
            write(session, export, format, file)

    async with turns.of(user_id):
        try:
            file = await to_thread.run_sync(services.unread_exports.written, user_id, write_file, limiter=turns.threads)
        except TooManyExports as error:
            raise Unavailable(str(error), retry_after=ASK_AGAIN_SECONDS) from error
    name = f"transactions-{services.clock.today()}.{ENDINGS.get(format, format)}"
    return Answer(
        body=file,
        headers={
            "content-type": "application/octet-stream",
            "content-disposition": f'attachment; filename="{name}"',
            **headers,
        },
    )


def _decimal(text: str | None) -> Decimal | None:
    return Decimal(text) if text is not None else None
