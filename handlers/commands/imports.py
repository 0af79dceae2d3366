"""Commands on imports: import statement files through the same core as every sync, list past imports, undo one."""

import json
import os
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache, partial
from itertools import chain, zip_longest
from pathlib import Path
from typing import BinaryIO

from analytics.records import InvalidRecord, Record
from connectors.bank_csv.layouts import check_layouts, guesses_in_words
from connectors.bank_csv.profile import Profile
from connectors.connector import SourceError, as_sentence
from handlers.commands.accounts import note_questions
from handlers.commands.connections import bank_name
from handlers.commands.control_socket import CommandError, Report
from handlers.commands.counts import quantity
from handlers.json_shapes import money_text
from handlers.work.services import Services
from handlers.work.sync.concurrency import Closed
from handlers.work.sync.detection import detect_after_import
from handlers.work.sync.statement_files import CONNECTION_DEFAULT, ConnectionBusy, FileImport, size_of
from storage import accounts, connections
from storage.database import Transaction, atomically
from storage.importing.account_identity import NEW_ACCOUNT, AccountUnclear
from storage.importing.batches import AccountStatement, ReadBatch
from storage.undo_and_merge import rebuild, undoable_imports
from storage.users import User

PROGRESS_EVERY = 2000  # bookings
READING_SHARE, WHOLE = 35, 100  # percent of an import's time; measured with camt, OFX and CSV of 200,000 bookings


def import_files(
    services: Services,
    report: Report,
    *,
    user: User,
    files: Sequence[str],
    names: Sequence[str | None] = (),
    connection: str | None = None,
    account: str | None = None,
    is_dry_run: bool = False,
    is_json: bool = False,
) -> None:
    """Import the files one after the other, each whole or not at all, and report on each; raises CommandError if a file
    was refused. `names` are what the person calls some of them. `account` is the id, IBAN or name of the account of
    files that do not name theirs; without it, the person is asked about those that the other files do not make clear.
    Afterwards recurring payments are detected again. A dry run stores nothing."""
    choice = accounts.resolve(services.everybody, user.id, account).id if account else None
    profiles = services.own_profiles.of_user(user.id)
    target = bank_name(connection) if connection else CONNECTION_DEFAULT
    refused, lane = 0, services.sync_engine.import_lane
    waiting: list[tuple[str, Path]] = []
    given = [(name or path, Path(path)) for name, path in zip_longest(names, files)]
    for name, path in chain(given, waiting):
        outcome = FileImport(user_id=user.id, name=name, is_dry_run=is_dry_run)
        try:
            keep = partial(_keep, services, report, user, target, outcome)
            read = cache(partial(_read, services, path, outcome, report, profiles))
            size = size_of(path)
            try:
                with lane.turn(user.id, size=size):
                    keep(choice, read())
            except AccountUnclear as unclear:
                if (name, path) not in waiting and len(files) > 1:
                    waiting.append((name, path))
                    continue
                # Outside the turn: no other import waits while a person thinks
                chosen = _ask_for_account(unclear, name, report)
                with lane.turn(user.id, size=size):
                    keep(chosen, read())
        except (SourceError, InvalidRecord) as error:
            outcome.error = as_sentence(error)
        except Closed:
            raise CommandError("The server is being stopped. Import the file again after its next start.") from None
        except OSError as error:
            outcome.error = f"The file cannot be read: {error.strerror or error}."
        refused += outcome.error is not None
        for line in [_as_json(outcome)] if is_json else _lines(outcome):
            report.line(line)
    if not is_dry_run:
        note_questions(services.everybody, report, user)
        detect_after_import(services.everybody, [user.id], today=services.clock.today())
    if refused:
        raise CommandError(f"{refused} of {quantity(len(files), 'file')} refused.")


def list_imports(services: Services, report: Report, *, user: User) -> None:
    """List the imports and syncs of a user that can be undone, oldest first, one a line."""
    names = {each.id: each.label for each in accounts.every(services.everybody, user.id)}
    for each in undoable_imports.of_user(services.everybody, user.id):
        source = connections.find(services.everybody, user.id, each.connection_id)
        cells = (
            each.job_id,
            f"{each.imported_at:%Y-%m-%d %H:%M}",
            ", ".join(each.labels) or (source.bank_name if source else ""),
            ", ".join(names[id_] for id_ in each.account_ids),
            f"{each.new or 0} new",
        )
        report.line("\t".join(cells))
    older = undoable_imports.older_imports(services.everybody, user.id)
    if older:
        report.note(
            f"{quantity(older, 'older file')} arrived before imports were recorded and cannot be undone."
            " `bankdata accounts delete` deletes a whole account."
        )


def undo_import(services: Services, report: Report, *, user: User, import_id: str) -> None:
    """Remove what an import brought, as if it had never been made, report how much that was, and note it in the user's
    access record; imports before and after it stay."""
    now = services.clock.now()
    rebuilt = services.change(user.id, lambda session: rebuild.undo(session, user=user, job_id=import_id, now=now))
    services.authorization.record.note(user.id, "undoImport")
    gone = len(rebuilt.accounts_gone)
    report.line(
        f"Taken back: {quantity(rebuilt.removed, 'booking')}"
        + (f" and {quantity(gone, 'account')}" if gone else "")
        + "."
    )
    if rebuilt.added:
        report.note(
            f"{quantity(rebuilt.added, 'booking')} of other imports had been hidden behind them and are shown again."
        )


def _read(
    services: Services, path: Path, outcome: FileImport, report: Report, profiles: Sequence[Profile]
) -> ReadBatch:
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        read = outcome.read(
            stream,
            profiles=profiles,
            today=services.clock.today(),
            watched=lambda records: _with_progress(records, stream, size, Path(outcome.name).name, report),
        )
    check_layouts(outcome.layouts)
    return read


def _with_progress(
    records: Iterator[Record], stream: BinaryIO, size: int, label: str, report: Report
) -> Iterator[Record]:
    """Pass the records on, and report progress every PROGRESS_EVERY records; reading is READING_SHARE of the whole,
    storing the rest."""
    for number, record in enumerate(records):
        if number % PROGRESS_EVERY == 0:
            done = round(READING_SHARE * min(stream.tell() / max(1, size), 1.0))
            report.progress(f"{label}: reading, {number:,} rows", done, WHOLE)
        yield record


def _ask_for_account(unclear: AccountUnclear, file: str, report: Report) -> str:
    """The id of the account that a person says the file is about, or NEW_ACCOUNT; raises AccountUnclear where nobody
    can be asked."""
    names = [f"{each.label}, {each.bank_name} ({each.id})" for each in unclear.candidates]
    question = f"{file} does not say which account it is about."
    answer = report.choose(question, [*names, "an account that is not there yet"])
    if answer is None:
        raise unclear
    return unclear.candidates[answer].id if answer < len(names) else NEW_ACCOUNT


def _keep(
    services: Services,
    report: Report,
    user: User,
    connection: str,
    outcome: FileImport,
    choice: str | None,
    read: ReadBatch,
) -> None:
    """Import one file as one job, all in one transaction, which a dry run or an interrupt rolls back, and complete
    `outcome`. `choice` is the id of the account of a file that does not name its own; without it, AccountUnclear is
    raised where the account cannot be told. CommandError while the connection is being synced."""
    label = f"{Path(outcome.name).name}: storing, {sum(len(each.places) for each in read.statements):,} rows"

    def work(session: Transaction) -> None:
        report.progress(label, READING_SHARE, WHOLE)
        try:
            outcome.keep(session, read, user=user, connection=connection, choice=choice, clock=services.clock)
        except ConnectionBusy:
            raise CommandError(f"{connection} is being synced. Try again in a moment.") from None
        report.progress(label, WHOLE, WHOLE)

    atomically(services.everybody, work, is_dry_run=outcome.is_dry_run)


def _as_json(value: FileImport) -> str:
    """The report as one line of JSON; amounts are numbers with all digits the file has."""
    statements = ",".join(_statement_json(one) for one in value.statements)
    said = {"guesses": _guesses(value), "warnings": list(value.warnings)}
    head = json.dumps({"file": value.name, "format": value.format, "error": value.error, **said}, ensure_ascii=False)
    return f'{head[:-1]}, "statements": [{statements}], "new": {value.new}, "known": {value.known}}}'


def _lines(value: FileImport) -> Iterator[str]:
    """The report for a person: a line for the file and one per statement."""
    if value.error:
        yield f"{value.name}: refused: {value.error}"
        yield from (f"  {guess}" for guess in _guesses(value))
        return
    yield f"{value.name} ({value.format}): {value.new} new, {value.known} known"
    for one in value.statements:
        yield "  " + statement_line(one)
    for warning in (*_guesses(value), *value.warnings):
        yield f"  {warning}"


def _guesses(value: FileImport) -> Sequence[str]:
    """Sentences on what had to be guessed about a CSV file of an unknown layout."""
    return guesses_in_words(each for each in value.layouts if each.currency)


def _statement_json(statement: AccountStatement) -> str:
    said = statement.statement
    texts = json.dumps(
        {"account": statement.account.iban or statement.account.stable_key, "currency": statement.account.currency}
    )
    day = said.closing_date.isoformat() if said.closing_date else None
    return (
        f'{texts[:-1]}, "rows": {statement.entries}, "pending": {statement.pending_entries},'
        f' "opening": {_number(said.opening)}, "closing": {_number(said.closing)}, "closingDate": {json.dumps(day)},'
        f' "addsUp": {json.dumps(statement.adds_up)}}}'
    )


def _number(amount: Decimal | None) -> str:
    return "null" if amount is None else f"{amount:f}"


def statement_line(statement: AccountStatement) -> str:
    """A statement in one line for a person: account, rows, period, closing balance, and whether it adds up."""
    count, bookings = statement.entries, len(statement.places)
    said = statement.statement
    parts = [
        f"{statement.account.iban or statement.account.stable_key} {statement.account.currency}",
        quantity(count, "row")
        + (f" with {quantity(bookings, 'booking')}" if bookings != count else "")
        + (f" from {statement.first_day} to {statement.last_day}" if statement.first_day else ""),
    ]
    if said.closing is not None:
        closing = money_text(said.closing, statement.account.currency)
        parts.append(f"closing balance {closing}" + (f" on {said.closing_date}" if said.closing_date else ""))
    parts.append({True: "adds up", False: "does NOT add up", None: "states no balances to check"}[statement.adds_up])
    return ", ".join(parts)
