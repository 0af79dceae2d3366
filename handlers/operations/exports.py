"""GET /transactions/export: the transactions that the list's filters let through, as a file."""

from datetime import date
from decimal import Decimal
from functools import partial
from io import BufferedReader
from typing import BinaryIO

from anyio import to_thread

from handlers.cache.from_store import FromStore
from handlers.export_formats import Export, write
from handlers.http.errors import Unavailable
from handlers.http.request import Answer, Request
from handlers.operations.categories.finer import filtered_by, is_included, shown
from handlers.operations.changes.feeds import cursor_after
from handlers.operations.selection import check_window, selected_accounts
from handlers.operations.words.said import asks_for_words, check_words, meant
from handlers.services import Services
from handlers.unread_exports import TooManyExports
from storage import accounts
from storage.database import state_in
from storage.transactions import Selection

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
    headers: dict[str, str] = {}
    make = partial(
        _write_export,
        services,
        request,
        format,
        account_ids,
        filters,
        headers,
        tag,
        own_category,
        is_detailed=is_included(include),
        has_words=asks_for_words(include),
    )
    turns = services.exports
    async with turns.of(request.principal.user_id):
        file = await to_thread.run_sync(make, limiter=turns.threads)
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


def _write_export(
    services: Services,
    request: Request,
    format_: str,
    account_ids: str | None,
    filters: Selection,
    headers: dict[str, str],
    tag: str | None,
    own_category: str | None,
    *,
    is_detailed: bool,
    has_words: bool,
) -> BufferedReader:
    """The export in a file, which the caller closes; the cursor goes into `headers`."""
    user_id, caller = request.principal.user_id, request.principal

    def write_file(file: BinaryIO) -> None:
        with services.of(user_id).transaction() as session:
            selected = selected_accounts(accounts.of_user(session, user_id), account_ids, caller)
            reading = FromStore(session, user_id, services.reader.render)
            places = filters.category, filters.detailed_category
            chosen = filters._replace(ids=meant(reading, caller, tag, own_category, *places))
            if places != (None, None):
                chosen = chosen.with_parts(reading.parts)
            export = Export(
                user_id=user_id,
                accounts=selected.accounts,
                now=services.clock.now(),
                today=services.clock.today(),
                selection=None if chosen == Selection() else chosen,
                may_read=caller.covers,
                leaf=partial(shown, caller=caller) if is_detailed else None,
                words=reading.words if has_words else None,
            )
            if export.selection is None:
                headers["next-cursor"] = cursor_after(services, caller, account_ids, state_in(session, user_id))
            write(session, export, format_, file)

    try:
        return services.unread_exports.written(user_id, write_file)
    except TooManyExports as error:
        raise Unavailable(str(error), retry_after=ASK_AGAIN_SECONDS) from error
