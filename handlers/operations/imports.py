"""POST, GET and DELETE /imports: statement files are previewed or stored, and stored imports are undone."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from io import BufferedReader
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool

from analytics.messages import Message, message, pack, unpack
from analytics.records import TransactionRecord
from auth.principal import Principal
from auth.scopes import WRITE_ACCOUNTS, WRITE_ANNOTATIONS, WRITE_RULES
from connectors.bank_csv.layouts import CsvLayout
from connectors.bank_csv.profile import ProfileError
from handlers.json_shapes import instant, members, money
from handlers.names import Json
from handlers.operations.selection import owner_of, sight_of
from handlers.web.errors import BadRequest, Conflicting, NotFound, TooManyRequests
from handlers.web.request import Answer, Request
from handlers.work.own_profiles import ChosenLayout
from handlers.work.services import Services
from handlers.work.sync.engine import ANSWER_WITHIN
from handlers.work.sync.statement_files import FileImport, TooManyFiles
from storage import accounts, connections, kept_layouts
from storage.annotations.word_lines import KINDS, OF_ACCOUNTS
from storage.boundary import undo_on_failure
from storage.database import StoreUnavailable, Transaction
from storage.importing import contributions
from storage.importing.account_identity import NEW_ACCOUNT
from storage.importing.batches import AccountStatement
from storage.importing.file_imports import StoredReport
from storage.kept_layouts import KeptLayout
from storage.undo_and_merge import rebuild, undoable_imports
from storage.undo_and_merge.rebuild import ImportRunning, ImportUnknown, Rebuilt
from storage.undo_and_merge.undoable_imports import StoredImport

UNKNOWN_ACCOUNT = "accountId: is not one of your accounts. GET /accounts lists their ids"
IMPORT_NOT_FOUND = "Import not found"
LAYOUT_NOT_FOUND = "Layout not found"
NOTHING_TO_KEEP = "keepLayout: says that a layout is kept, which is sent beside it"
STILL_RUNNING = "This import has not ended yet. Try again when it has."
OF_WORDS = frozenset({WRITE_ANNOTATIONS, WRITE_RULES})
"""The scopes without which an import brings no rules, corrections, words on bookings and the like; what was said of
accounts needs WRITE_ACCOUNTS, too."""
ASK_AGAIN_SECONDS = 1
LOOK_EVERY = 0.5  # seconds


async def create_import(
    services: Services,
    request: Request,
    *,
    filename: str,
    dry_run: bool,
    account_id: str | None,
    layout: str | None,
    keep_layout: bool,
    body: BufferedReader,
) -> Answer:
    """Import a file, or with `dry_run` only preview the outcome; an import that takes longer than eight seconds is
    answered with 202 and goes on by itself. A preview whose client goes away is forgotten. Raises BadRequest for an
    unknown account or layout, and TooManyRequests while too many files are imported."""
    user_id, caller = owner_of(request), request.principal

    def begin() -> FileImport:
        with undo_on_failure(body.close):
            session = services.of(user_id)
            owned = set(filter(sight_of(session, caller), (each.id for each in accounts.every(session, user_id))))
            if account_id is not None and account_id != NEW_ACCOUNT and account_id not in owned:
                raise BadRequest(UNKNOWN_ACCOUNT)
            return services.uploads.begin(
                services.user(user_id),
                body,
                name=filename,
                choice=account_id,
                layout=_chosen_layout(layout, is_kept=keep_layout),
                is_dry_run=dry_run,
                may_say=_may_say(caller),
                render=lambda report: _packed(file_import(report)),
            )

    try:
        report = await run_in_threadpool(begin)
    except TooManyFiles as error:
        raise TooManyRequests(str(error), retry_after=ASK_AGAIN_SECONDS) from error
    ended: asyncio.Future[Any] = asyncio.wrap_future(report.ended)
    gone: asyncio.Future[Any] = asyncio.ensure_future(request.is_gone())
    await asyncio.wait([ended, gone], timeout=ANSWER_WITHIN, return_when=asyncio.FIRST_COMPLETED)
    if gone.done() and dry_run:  # the client never got its id
        await run_in_threadpool(services.uploads.forget, user_id, report.id)
    gone.cancel()
    if report.is_for_later:
        raise StoreUnavailable
    status = 200 if report.is_done else 202
    headers = {"location": f"{request.path}/{report.id}", **_retry_header(report)}
    sees = await run_in_threadpool(sight_of, services.of(user_id), caller)
    return Answer(body=_as_seen(file_import(report), sees), status=status, headers=headers)


def _may_say(caller: Principal) -> frozenset[str]:
    """The kinds of what the user has said that the caller's imports bring."""
    if not caller.scopes >= OF_WORDS:
        return frozenset()
    return KINDS if WRITE_ACCOUNTS in caller.scopes else KINDS.difference(OF_ACCOUNTS)


async def get_import(services: Services, request: Request, *, id: str) -> Answer:
    """The state or outcome of an import or preview; a running one is waited for up to eight seconds, as when it was
    created. Raises NotFound."""
    user_id = owner_of(request)
    report = await _wait_for_report(services, user_id, id)
    sees = await run_in_threadpool(sight_of, services.of(user_id), request.principal)
    if report is not None:
        answer = json.loads(report.answer, parse_float=orjson.Fragment)  # with the digits that amounts have
        answer |= {"error": _unpacked(answer["error"]), "warnings": list(map(_unpacked, answer["warnings"]))}
        return Answer(body=_as_seen(answer, sees), headers=_retry_header(report))
    for each in await run_in_threadpool(undoable_imports.of_user, services.of(user_id), user_id):
        if each.job_id == id and all(map(sees, each.account_ids)):
            return Answer(body=past_file_import(each))
    raise NotFound(IMPORT_NOT_FOUND)


def list_imports(services: Services, request: Request) -> Json:
    """List the imports and syncs that can be undone, the latest first in the order in which they were made; those whose
    accounts the caller may all read."""
    user_id = owner_of(request)
    names = connections.bank_names(services.of(user_id), user_id)
    undoable = undoable_imports.of_user(services.of(user_id), user_id)
    sees = sight_of(services.of(user_id), request.principal)
    seen = [each for each in reversed(undoable) if all(map(sees, each.account_ids))]
    return {"imports": [past_import(each, names[each.connection_id]) for each in seen]}


def undo_import(services: Services, request: Request, *, id: str) -> Json:
    """Remove what an import brought, as if it had never been made; imports before and after it stay. A preview or a
    refused file brought nothing and is only forgotten; a preview that is still running ends. Raises Conflicting for an
    import that is still running, and NotFound."""
    user_id = owner_of(request)
    user, now = services.user(user_id), services.clock.now()
    report = services.uploads.find(user_id, id)
    if report is not None and not report.is_done:
        if not report.is_dry_run:
            raise Conflicting(STILL_RUNNING)
        services.uploads.forget(user_id, id)
        return rebuilding(Rebuilt(added=0, removed=0, accounts_gone=()))

    def work(session: Transaction) -> Rebuilt:
        brought = {each.account_id for each in contributions.of_job(session, user_id, id)}
        if not all(map(sight_of(session, request.principal), brought)):
            raise NotFound(IMPORT_NOT_FOUND)
        return rebuild.undo(session, user=user, job_id=id, now=now)

    try:
        rebuilt = services.change(user_id, work)
    except ImportRunning as error:
        raise Conflicting(STILL_RUNNING) from error
    except ImportUnknown as error:
        if report is None:
            raise NotFound(IMPORT_NOT_FOUND) from error
        rebuilt = Rebuilt(added=0, removed=0, accounts_gone=())
    services.uploads.forget(user_id, id)
    return rebuilding(rebuilt)


def list_layouts(services: Services, request: Request) -> Json:
    """List the layouts of CSV files that the user keeps for later files like them, in the order in which they were
    kept."""
    user_id = owner_of(request)
    sees = sight_of(services.of(user_id), request.principal)
    kept = kept_layouts.of_user(services.of(user_id), user_id)
    return {"layouts": [kept_layout(each) for each in kept if each.account_id is None or sees(each.account_id)]}


def delete_layout(services: Services, request: Request, *, id: str) -> Json:
    """Delete a kept layout, and return those that remain; what was imported with it stays. Raises NotFound."""
    user_id = owner_of(request)
    known = {each["id"] for each in list_layouts(services, request)["layouts"]}
    if id not in known or not kept_layouts.remove(services.of(user_id), user_id, id):
        raise NotFound(LAYOUT_NOT_FOUND)
    return list_layouts(services, request)


def _chosen_layout(text: str | None, *, is_kept: bool) -> ChosenLayout | None:
    if text is None:
        if is_kept:
            raise BadRequest(NOTHING_TO_KEEP)
        return None
    layout = ChosenLayout(text, is_kept)
    try:
        layout.profiles  # noqa: B018 - reading it raises ProfileError
    except ProfileError as error:
        raise BadRequest("layout: {reason}", reason=message(str(error))) from error
    return layout


async def _wait_for_report(services: Services, user_id: str, import_id: str) -> StoredReport | None:
    """The report on an import, once the import has ended, or as it stands after eight seconds; None for an unknown
    import."""
    until = time.monotonic() + ANSWER_WITHIN
    while True:
        report = await run_in_threadpool(services.uploads.find, user_id, import_id)
        if report is None or report.is_done or time.monotonic() >= until:
            return report
        await asyncio.sleep(LOOK_EVERY)


def _retry_header(report: FileImport | StoredReport) -> dict[str, str]:
    return {} if report.is_done else {"retry-after": str(ASK_AGAIN_SECONDS)}


def file_import(value: FileImport) -> Json:
    """The import or preview as JSON (FileImport of the contract)."""
    return {
        "importId": value.id,
        "status": "done" if value.is_done else "running",
        "isDryRun": value.is_dry_run,
        "fileName": value.name,
        "format": value.format,
        "error": message(value.error) if value.error is not None else None,
        **members(value, "new", "known", "accountIds"),
        "statements": [statement(each, rows) for each, rows in zip(value.statements, value.first_rows, strict=True)],
        "warnings": list(map(message, value.warnings)),
        "layouts": [layout(each) for each in value.layouts],
        "candidates": [
            {"accountId": each.id, "accountName": each.name, "bankName": each.bank_name} for each in value.candidates
        ],
        "overlap": {"accountId": value.overlap[0].id, "bookings": value.overlap[1]} if value.overlap else None,
    }


def _packed(report: Json) -> bytes:
    """The report for the store, with what its messages are made of."""
    return orjson.dumps(report, default=pack, option=orjson.OPT_PASSTHROUGH_SUBCLASS)


def _unpacked(text: str | None) -> Message | None:
    return unpack(text) if text is not None else None


def _as_seen(report: Json, sees: Callable[[str], bool]) -> Json:
    """The report as a caller may read it who `sees` these accounts: of others it says no more than the file does, as if
    they were new."""
    overlap = report["overlap"]
    others = [each["accountId"] for each in (*report["candidates"], *([overlap] if overlap else []))]
    if all(map(sees, [*report["accountIds"], *others])):
        return report
    return {
        **report,
        "new": report["new"] + report["known"],
        "known": 0,
        "accountIds": list(filter(sees, report["accountIds"])),
        "candidates": [each for each in report["candidates"] if sees(each["accountId"])],
        "overlap": overlap if overlap and sees(overlap["accountId"]) else None,
        "warnings": [],
    }


def layout(value: CsvLayout) -> Json:
    """The layout of a CSV file as JSON (CsvLayout of the contract)."""
    return {
        "origin": "guessed" if value.is_guessed else "chosen",
        "hasHeader": value.has_header,
        "columns": [members(each, "name", "field", "example") for each in value.columns],
        **members(value, "sign", "currency", "currencySource"),
        "decimalMark": value.decimal,
        "dateFormats": list(value.dates),
        "profile": value.profile,
    }


def kept_layout(value: KeptLayout) -> Json:
    """The layout as JSON (KeptLayout of the contract)."""
    return members(value, "id", "fileName", "keptAt", "profile", "accountId")


def statement(value: AccountStatement, first_rows: Iterable[TransactionRecord]) -> Json:
    """One account's statement in a file as JSON (ImportedStatement of the contract)."""
    said, currency = value.statement, value.account.currency
    return {
        "iban": value.account.iban,
        "accountName": value.account.name or value.account.stable_key,
        "currency": currency,
        "rows": value.entries,
        "bookings": len(value.places),
        "pending": value.pending_entries,
        **members(value, "firstDay", "lastDay"),
        "opening": money(said.opening, currency) if said.opening is not None else None,
        "closing": money(said.closing, currency) if said.closing is not None else None,
        **members(said, "closingDate"),
        "addsUp": value.adds_up,
        "firstRows": [
            {
                **members(row, "bookingDate"),
                "amount": money(row.amount, row.currency),
                **members(row, "currency", "counterpartName", "purpose"),
            }
            for row in first_rows
        ],
    }


def past_file_import(value: StoredImport) -> Json:
    """The JSON of a past import whose details are no longer known (FileImport of the contract): name, accounts and
    number of new bookings. What it brought can still be undone."""
    return file_import(
        FileImport(
            id=value.job_id,
            user_id="",
            name=", ".join(value.labels),
            is_dry_run=False,
            is_done=True,
            new=value.new or 0,
            account_ids=value.account_ids,
        )
    )


def past_import(value: StoredImport, bank_name: str) -> Json:
    """The import as JSON (PastImport of the contract)."""
    return {
        "importId": value.job_id,
        "importedAt": instant(value.imported_at),
        "source": bank_name,
        "fileNames": list(value.labels),
        "accountIds": list(value.account_ids),
        "new": value.new or 0,
    }


def rebuilding(value: Rebuilt) -> Json:
    """The outcome of rebuilding accounts as JSON: how many bookings were removed and added, and which accounts are
    gone."""
    return members(value, "removed", "added", "accountsGone")
