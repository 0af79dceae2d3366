"""POST, GET and DELETE /imports: statement files in, previewed or stored, and taken back."""

import asyncio
from io import BufferedReader

from starlette.concurrency import run_in_threadpool

from handlers.http.call import encoded
from handlers.http.errors import BadRequest, Conflicting, NotFound, TooManyRequests
from handlers.http.request import Answer, Json, Request
from handlers.operations import import_shapes
from handlers.operations.selection import owner_of
from handlers.services import Services
from handlers.sync.detection import detect_after_import
from handlers.sync.engine import ANSWER_WITHIN
from handlers.sync.uploaded_files import FileImport, TooManyFiles
from storage import accounts, connections, users
from storage.database import StoreUnavailable
from storage.importing.account_identity import NEW_ACCOUNT
from storage.importing.file_imports import SharedImport
from storage.undo_and_merge import rebuild, undoable_imports
from storage.undo_and_merge.rebuild import ImportRunning, ImportUnknown, Rebuilt

UNKNOWN_ACCOUNT = "accountId: is not one of your accounts. GET /accounts lists their ids"
IMPORT_NOT_FOUND = "Import not found"
STILL_RUNNING = "This import has not ended yet. Try again when it has."
ASK_AGAIN_SECONDS = 1
LOOK_EVERY = 0.5  # seconds, at what another process works on
OF_JSON = {"content-type": "application/json"}


async def create_import(
    services: Services, request: Request, *, filename: str, dry_run: bool, account_id: str | None, body: BufferedReader
) -> Answer:
    """Import a file, or only say what would come of it; what takes longer than eight seconds goes on by itself."""
    user_id = owner_of(request)
    report = await run_in_threadpool(_begun, services, user_id, body, filename, account_id, is_dry_run=dry_run)
    await asyncio.wait([asyncio.wrap_future(report.ended)], timeout=ANSWER_WITHIN)
    if report.is_for_later:
        raise StoreUnavailable
    status = 200 if report.is_done else 202
    return Answer(body=import_shapes.file_import(report), status=status, headers=_headers(request, report))


async def get_import(services: Services, request: Request, *, id: str) -> Answer:
    """How an import goes, or what came of it; a running one is waited for as long as at its beginning."""
    user_id = owner_of(request)
    report = services.uploads.find(user_id, id)
    if report is not None:
        await asyncio.wait([asyncio.wrap_future(report.ended)], timeout=ANSWER_WITHIN)
        return Answer(body=import_shapes.file_import(report), headers=_waiting(report))
    elsewhere = await _told_elsewhere(services, user_id, id)
    if elsewhere is not None:
        return Answer(body=elsewhere.answer.encode(), headers={**OF_JSON, **_waiting(elsewhere)})
    for each in await run_in_threadpool(undoable_imports.of_user, services.database, user_id):
        if each.job_id == id:
            return Answer(body=import_shapes.past_file_import(each))
    raise NotFound(IMPORT_NOT_FOUND)


def list_imports(services: Services, request: Request) -> Json:
    """The imports and syncs that can be taken back, the newest first."""
    user_id = owner_of(request)
    names = connections.bank_names(services.database, user_id)
    found = undoable_imports.of_user(services.database, user_id)
    return {"imports": [import_shapes.past_import(each, names[each.connection_id]) for each in reversed(found)]}


def undo_import(services: Services, request: Request, *, id: str) -> Json:
    """Take back what an import brought, as if it had never been made; those before and after it stay. A preview and a
    refused file brought nothing, and are forgotten."""
    user_id = owner_of(request)
    user, now = users.find(services.database, user_id), services.clock.now()
    assert user is not None, "a request outlived its user"
    report = services.uploads.find(user_id, id) or services.uploads.elsewhere(user_id, id)
    if report is not None and not report.is_done:
        raise Conflicting(STILL_RUNNING)
    try:
        rebuilt = services.database.atomically(lambda session: rebuild.undo(session, user=user, job_id=id, now=now))
    except ImportRunning as error:
        raise Conflicting(STILL_RUNNING) from error
    except ImportUnknown as error:
        if report is None:
            raise NotFound(IMPORT_NOT_FOUND) from error
        rebuilt = Rebuilt(added=0, removed=0, accounts_gone=())
    services.uploads.forget(user_id, id)
    detect_after_import(services.database, [user_id], today=services.clock.today())
    return import_shapes.rebuilt(rebuilt)


def _begun(
    services: Services, user_id: str, body: BufferedReader, name: str, account_id: str | None, *, is_dry_run: bool
) -> FileImport:
    user = users.find(services.database, user_id)
    assert user is not None, "a request outlived its user"
    owned = {each.id for each in accounts.every(services.database, user_id)}
    if account_id is not None and account_id != NEW_ACCOUNT and account_id not in owned:
        body.close()
        raise BadRequest(UNKNOWN_ACCOUNT)
    try:
        return services.uploads.begin(user, body, name=name, choice=account_id, is_dry_run=is_dry_run, render=_encoded)
    except TooManyFiles as error:
        raise TooManyRequests(str(error), retry_after=ASK_AGAIN_SECONDS) from error


async def _told_elsewhere(services: Services, user_id: str, import_id: str) -> SharedImport | None:
    """What another process says of an import that it took; a running one is waited for as long as here."""
    for _ in range(int(ANSWER_WITHIN / LOOK_EVERY)):
        told = await run_in_threadpool(services.uploads.elsewhere, user_id, import_id)
        if told is None or told.is_done:
            break
        await asyncio.sleep(LOOK_EVERY)
    return told


def _encoded(report: FileImport) -> bytes:
    return encoded(import_shapes.file_import(report))


def _headers(request: Request, report: FileImport) -> dict[str, str]:
    return {"location": f"{request.path}/{report.id}", **_waiting(report)}


def _waiting(report: FileImport | SharedImport) -> dict[str, str]:
    return {} if report.is_done else {"retry-after": str(ASK_AGAIN_SECONDS)}
