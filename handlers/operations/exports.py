"""GET /transactions/export: what the filters of the list let through, as a file."""

from datetime import date
from functools import partial
from io import BufferedReader
from typing import BinaryIO

from anyio import to_thread

from handlers.export_formats import Export, write
from handlers.http.errors import Unavailable
from handlers.http.request import Answer, Request
from handlers.operations.selection import check_window, selected_accounts
from handlers.services import Services
from handlers.unread_exports import TooManyExports
from storage import accounts
from storage.transactions import Selection

ENDINGS = {"camt053": "xml"}
"""By format: the ending of the file's name, where that is not the format's."""
ASK_AGAIN_SECONDS = 30  # after which somebody may have read an export to its end


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
) -> Answer:
    """The selected accounts' booked transactions, of one state of the data. Each user has one export made at a time:
    it reads all there is."""
    check_window(date_from, date_to)
    filters = Selection(category=category, date_from=date_from, date_to=date_to, search=search)
    make = partial(_written, services, request, format, account_ids, filters)
    turns = services.exports
    async with turns.of(request.principal.user_id):
        file = await to_thread.run_sync(make, limiter=turns.threads)
    name = f"transactions-{services.clock.today()}.{ENDINGS.get(format, format)}"
    return Answer(
        body=file,
        headers={
            "content-type": "application/octet-stream",
            "content-disposition": f'attachment; filename="{name}"',
        },
    )


def _written(
    services: Services, request: Request, format_: str, account_ids: str | None, filters: Selection
) -> BufferedReader:
    """The export in a file; whoever gets it closes it."""
    user_id, caller = request.principal.user_id, request.principal

    def written(file: BinaryIO) -> None:
        with services.database.transaction() as session:
            selected = selected_accounts(accounts.of_user(session, user_id), account_ids, caller)
            export = Export(
                user_id=user_id,
                accounts=selected.accounts,
                now=services.clock.now(),
                today=services.clock.today(),
                selection=None if filters == Selection() else filters,
                may_read=caller.covers,
            )
            write(session, export, format_, file)

    try:
        return services.unread_exports.written(user_id, written)
    except TooManyExports as error:
        raise Unavailable(str(error), retry_after=ASK_AGAIN_SECONDS) from error
