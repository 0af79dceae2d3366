"""Imports statement files, each whole or not at all: for the command, and in a thread of its own for one that was sent
over HTTP, whose report the store keeps."""

import dataclasses
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from io import BufferedReader
from pathlib import Path
from secrets import token_hex

from msgspec import Struct, field
from msgspec.structs import replace

from analytics.messages import Message, message
from analytics.records import AccountRecord, Batch, InvalidRecord, Record, StatementRecord, TransactionRecord
from connectors import archive
from connectors.bank_csv.layouts import CsvLayout, check_layouts, guesses_in_words
from connectors.bank_csv.profile import Profile, ProfileError
from connectors.connector import SourceError, as_sentence
from connectors.limits import HEAD_BYTES
from connectors.reference.bank_names import with_bank_names
from connectors.sources import uploads
from connectors.sources.folder import batch_id
from connectors.statements import format_name, read_records
from handlers import integrity_sentences
from handlers.work.clock import Clock
from handlers.work.own_profiles import ChosenLayout
from handlers.work.sync.concurrency import Closed, ImportLane
from handlers.work.sync.fair_order import COST_MOST
from handlers.work.sync.leases import Leases
from storage import accounts, connections, jobs
from storage.accounts import StoredAccount
from storage.annotations import account_words, exported
from storage.annotations.account_words import Taken
from storage.annotations.word_lines import KINDS, InvalidWords
from storage.boundary import begin_thread, contain, undo_on_failure
from storage.database import Conflict, Store, StoreFull, StoreUnavailable, Transaction, as_json, atomically
from storage.importing import file_imports, runs
from storage.importing.account_identity import AccountUnclear
from storage.importing.batches import AccountStatement, ReadBatch, read_batch
from storage.importing.contributions import key_of_said
from storage.importing.file_imports import StoredReport
from storage.importing.statements import BY_THE_PERSON
from storage.users import User, UserUnknown

CONNECTION_DEFAULT = "Statement files"
SAID_BY_YOU = "Said by you"
ASKED_WITHIN = 60.0  # seconds; a preview about which nobody asks for longer ends
AT_ONCE_PER_USER = 4  # imports, each of which takes up a file on the disk and a thread
AT_ONCE = 16  # imports of all users; beyond, a user may have one if none of theirs is running
FIRST_ROWS = 5

INTERNAL = "The file could not be imported because of an internal error."
STOPPED = "The server is being stopped. Import the file again after its next start."
ENDED = "The server that read the file has ended. Import the file again."
WITH_WORDS = Message("It also holds rules, corrections and the like. What you have not said here yet is taken over.")
LEFT_UNSAID = Message("It also holds rules, corrections and the like, which this app may not bring.")
LEFT_ABSENT = (
    "What you have said of accounts and recurring payments that are not here yet was left out ({count}). Import the"
    " file again when they are here."
)
GIVEN_UP = "Nobody asked about this preview any more. Send the file again."
CHANGED = "Something else changed the same accounts. Try again in a moment."

log = logging.getLogger("bankdata.imports")


class GivenUp(Exception):
    """Nobody waits for a preview any more; ends the thread that makes it."""


class TooManyFiles(Exception):
    """Too many files are being imported. Try again when one of them is done."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


class ConnectionBusy(Exception):
    """These files are being synced. Try again in a moment."""


class FileImport(Struct, kw_only=True):
    """One file and what came of it: `error` if it was refused, else its statements and how many of its bookings were
    new and known. `layout` is how the person wants it to be read; `layouts` are those used, if they were guessed or
    chosen. `candidates` are the accounts that it may be about where it does not say; `overlap` is an account that
    already holds some of its bookings, and how many.

    `may_say` are the kinds of what the user has said (`word_lines.KINDS`) that are taken over from it, words on its
    bookings included ("annotation"). Of a file sent
    over HTTP also the `first_rows` of each statement. `is_for_later` means that nothing was wrong with it, but the
    store was away; `is_given_up` that nobody wants the report any more.
    """

    id: str = field(default_factory=lambda: f"syn_{token_hex(16)}")
    user_id: str
    name: str
    is_dry_run: bool = False
    may_say: Collection[str] = KINDS
    layout: ChosenLayout | None = None
    format: str | None = None
    error: str | None = None
    statements: Sequence[AccountStatement] = ()
    warnings: Sequence[str] = ()
    layouts: list[CsvLayout] = field(default_factory=list)
    account_ids: Sequence[str] = ()
    candidates: Sequence[StoredAccount] = ()
    overlap: tuple[StoredAccount, int] | None = None
    new: int = 0
    known: int = 0
    first_rows: Sequence[Sequence[TransactionRecord]] = ()
    is_done: bool = False
    is_for_later: bool = False
    is_given_up: bool = False
    asked_at: float = field(default_factory=time.monotonic)
    ended: Future[None] = field(default_factory=Future)

    def read(
        self,
        stream: BufferedReader,
        *,
        profiles: Sequence[Profile],
        today: date,
        watched: Callable[[Iterator[Record]], Iterator[Record]] = iter,
        check: Callable[[], None] = lambda: None,
    ) -> ReadBatch:
        """Read the whole file, without storing anything, and set `format` and `layouts`. Raises SourceError,
        InvalidRecord, and whatever `check`, called again and again, raises. `watched` gets the records as they are read
        and has to pass them on. Whether guessed layouts may be used is left to `check_layouts`."""
        self.format = format_name(stream, check)
        stream.seek(0)
        name = Path(self.name).name or self.name
        identity = batch_id(stream, name)
        words: list[str] = []
        unsaid: set[Message] = set()
        records = with_bank_names(watched(read_records(stream, profiles, self.layouts.append, check, words.append)))
        if "annotation" not in self.may_say:
            records = exported.without_words(records, on_words=lambda: unsaid.add(LEFT_UNSAID))
        read, may_all = read_batch(Batch(id=identity, name=name, records=records), today=today), self.may_say == KINDS
        said = [each for each in words if may_all or str(json.loads(each)["kind"]) in self.may_say]
        if len(said) < len(words):
            unsaid.add(LEFT_UNSAID)
        return replace(read, words=said, warnings=[*read.warnings, *([WITH_WORDS] if said else []), *unsaid])

    def keep(
        self,
        session: Transaction,
        read: ReadBatch,
        *,
        user: User,
        connection: str,
        choice: str | None,
        clock: Clock,
    ) -> None:
        """Store the read file as one completed job of the user's connection of this name, which is made where it is
        missing, in the caller's transaction, and set what came of it; `choice` is the account of files that do not name
        theirs. Raises ConnectionBusy, InvalidRecord, ProfileError and UserUnknown."""
        now, self.statements = clock.now(), read.statements
        source = connections.add(
            session,
            user_id=user.id,
            user_name=user.name,
            connector=uploads.NAME,
            bank_name=connection,
            settings={},
            now=now,
        )
        taken = connections.take_import(session, source)
        free = timedelta(0)
        job = jobs.start(session, user_id=user.id, connection_id=taken.id, cooldown=free, now=now, job_id=self.id)
        if job is None:
            raise ConnectionBusy(ConnectionBusy.__doc__)
        result = runs.store_batch(session, job, taken, read, now=now, choice=choice)
        self.account_ids = list(dict.fromkeys(each.account_id for each in result))
        absent = self._keep_words(session, read.words, user, clock)
        if self.layout is not None and self.layout.is_kept:
            self.layout.keep(session, user.id, file_name=read.name or "", account_ids=self.account_ids, now=now)
        runs.complete(session, job, now=now)
        wrong = integrity_sentences.warnings_of(session, user.id, self.account_ids, today=clock.today())
        self.warnings = [*read.warnings, *absent, *wrong]
        same = next((each.same_as for each in result if each.same_as), None)
        self.overlap = (same.account, same.in_both) if same is not None else None
        self.new, self.known = sum(each.new for each in result), sum(each.known for each in result)

    def _keep_words(self, session: Transaction, words: Sequence[str], user: User, clock: Clock) -> list[str]:
        """Take over what the user said of accounts and recurring payments, and return a warning where some of it is
        about what is not there. Raises InvalidRecord."""
        if not words:
            return []
        try:
            absent = keep_account_words(session, "\n".join(words), user=user, clock=clock).absent
        except InvalidWords as error:
            raise InvalidRecord("What you have said cannot be read: {reason}", reason=message(str(error))) from error
        return [Message(LEFT_ABSENT, count=absent)] if absent else []


def say_balances(
    session: Transaction, said: Mapping[date, Decimal], *, user: User, account_id: str, currency: str, clock: Clock
) -> FileImport:
    """Store what the user says that an account held at the end of days, as an import of its own, which can be undone
    like any other. Raises ConnectionBusy."""
    (day, *others) = said
    report = FileImport(user_id=user.id, name="balances" if others else f"balance-{day}")
    named = AccountRecord(stable_key=key_of_said(account_id), currency=currency, is_anonymous=True)
    records: list[Record] = []
    for day, amount in said.items():
        records += [named, StatementRecord(closing=amount, closing_date=day, sequence=BY_THE_PERSON)]
    read = read_batch(Batch(id=report.id, name=report.name, records=iter(records)), today=clock.today())
    report.keep(session, read, user=user, connection=SAID_BY_YOU, choice=account_id, clock=clock)
    return report


def keep_account_words(session: Transaction, text: str, *, user: User, clock: Clock) -> Taken:
    """Take over from the lines of an export what the user has not said here of accounts and recurring payments,
    balances included; returns what that came to. Raises InvalidWords and ConnectionBusy."""
    taken = account_words.read(session, user.id, text, now=clock.now())
    currencies = {each.id: each.currency for each in accounts.every(session, user.id)}
    for id_, said in taken.balances.items():
        say_balances(session, said, user=user, account_id=id_, currency=currencies[id_], clock=clock)
        taken.count += len(said)
    return taken


def size_of(file: Path | BufferedReader) -> int:
    """The length of the file in bytes, by which it gets its turn; COST_MOST at least for a ZIP container, whose length
    says little. A stream stands at its beginning afterwards."""
    with file.open("rb") if isinstance(file, Path) else nullcontext(file) as stream:
        is_container = archive.detect(stream.read(HEAD_BYTES))
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
    return max(size, COST_MOST) if is_container else size


@dataclasses.dataclass(eq=False)
class UploadedFiles:
    """Begins imports of uploaded files, each in a thread of its own, and finds and deletes their reports.

    `profiles` gives the CSV profiles for a user id; `after_import` is called with the user's id once a file is stored.
    """

    _store: Store
    _clock: Clock
    _lane: ImportLane
    _leases: Leases
    profiles: Callable[[str], Sequence[Profile]]
    after_import: Callable[[str], None]
    _lock: threading.Lock = dataclasses.field(default_factory=threading.Lock, init=False)
    _at_work: dict[str, FileImport] = dataclasses.field(default_factory=dict, init=False)

    def begin(
        self,
        user: User,
        file: BufferedReader,
        *,
        name: str,
        choice: str | None,
        layout: ChosenLayout | None,
        is_dry_run: bool,
        may_say: Collection[str],
        render: Callable[[FileImport], bytes],
    ) -> FileImport:
        """Begin to import the file in a thread, or only to try it (`is_dry_run`), and return its report, which grows;
        the file is closed in the end, by the caller where this fails. `choice` is the id of the account of a file that
        does not name its own, `layout` how the person wants it to be read. `render` makes the JSON of the report, which
        the store keeps. Raises TooManyFiles."""
        report = FileImport(user_id=user.id, name=name, is_dry_run=is_dry_run, may_say=may_say, layout=layout)
        with self._lock:
            users = [each.user_id for each in self._at_work.values()]
            if users.count(user.id) >= (AT_ONCE_PER_USER if len(users) < AT_ONCE else 1):
                raise TooManyFiles
            self._at_work[report.id] = report
        # An import that has not begun must not count against others
        with undo_on_failure(partial(self._leave, report)):
            answer, holder, now = render(report).decode(), self._leases.holder, self._clock.now()
            self._store.of(user.id).atomically(
                lambda session: file_imports.begin(session, report, holder=holder, answer=answer, now=now)
            )
            begin_thread("file import", partial(self._run, report, user, file, choice, render))
        return report

    @property
    def at_work(self) -> Collection[Future[None]]:
        """Of each import that has not ended a future, which is done when it has."""
        with self._lock:
            return [each.ended for each in self._at_work.values()]

    def find(self, user_id: str, import_id: str) -> StoredReport | None:
        """The stored report on the user's import with this id; None where it was deleted or never there. Where the
        process that read the file has died, the report says so. If only this process serves the store, a preview ends
        once this is not called for a minute."""
        report = self._at_work.get(import_id)
        stored = file_imports.find(self._store.of(user_id), user_id, import_id, now=self._clock.now())
        if stored is not None and report is not None:
            report.asked_at = time.monotonic()
        elif stored is not None and not (stored.is_done or stored.is_held):
            answer = as_json({**json.loads(stored.answer), "status": "done", "error": ENDED})
            return replace(stored, answer=answer, is_done=True)
        return stored

    def forget(self, user_id: str, import_id: str) -> None:
        """Delete the report of an import. A preview that is still running ends, whichever process reads its file; an
        import goes on."""
        report = self._at_work.get(import_id)
        if report is not None and report.user_id == user_id:
            report.is_given_up = True
        self._store.of(user_id).atomically(lambda session: file_imports.remove(session, user_id, import_id))

    def _check_wanted(self, report: FileImport) -> None:
        """Raise GivenUp for a preview whose report was deleted or, if only this process serves the store, about which
        nobody has asked for a minute. In a shared store other processes may be asked instead, so only the lease, which
        goes with the report, tells."""
        is_asked = self._store.is_shared or time.monotonic() - report.asked_at < ASKED_WITHIN
        if report.is_dry_run and (report.is_given_up or not is_asked or not self._leases.has(report.id)):
            raise GivenUp

    def _run(
        self,
        report: FileImport,
        user: User,
        file: BufferedReader,
        choice: str | None,
        render: Callable[[FileImport], bytes],
    ) -> None:
        error: str | None = INTERNAL
        is_ending = self._lane.is_closed  # what is not done by then finds the store closed
        with contain(log, "import %s failed", report.id, is_expected=is_ending):
            error = self._outcome(report, user, file, choice)
        report.error, report.is_done = error, True
        # Who sent the file gets the answer, even where a fault keeps it from being stored
        with contain(log, "the end of import %s could not be kept", report.id, is_expected=is_ending):
            answer, database = render(report).decode(), self._store.of(report.user_id)
            end = partial(database.atomically, lambda session: file_imports.end(session, report, answer=answer))
            try:
                end()
            except StoreUnavailable:
                report.ended.set_result(None)
                self._leases.end_at_last(end)  # at work until then, or `find` would tell that this process has died
        self._leave(report)
        if not report.ended.done():
            report.ended.set_result(None)

    def _leave(self, report: FileImport) -> None:
        with self._lock:
            del self._at_work[report.id]

    def _outcome(self, report: FileImport, user: User, file: BufferedReader, choice: str | None) -> str | None:
        """Import the file, and return why it was not imported, as a sentence; None where it was. Closes the file."""
        try:
            check, turn = partial(self._check_wanted, report), self._lane.turn
            with file, self._leases.keep(report), turn(user.id, size=size_of(file), check=check):
                self._import(report, user, file, choice, check)
        except GivenUp:
            return GIVEN_UP
        except (AccountUnclear, SourceError, InvalidRecord, ConnectionBusy) as error:
            report.candidates = getattr(error, "candidates", ())
            return as_sentence(error)
        except (ProfileError, UserUnknown) as error:
            return str(error)  # unchanged: it is a sentence, or begins with a file's name
        except (StoreFull, StoreUnavailable) as error:
            log.warning("import %s failed: %s", report.id, error)
            report.is_for_later = isinstance(error, StoreUnavailable)
            return str(error)
        except Conflict:
            return CHANGED
        except Closed:
            return STOPPED
        return None

    def _import(
        self, report: FileImport, user: User, file: BufferedReader, choice: str | None, check: Callable[[], None]
    ) -> None:
        self._read_and_keep(report, user, file, choice, check)  # lets go of the file's bookings, which are many
        report.warnings = [*guesses_in_words(report.layouts), *report.warnings]
        if not report.is_dry_run:
            self.after_import(user.id)

    def _read_and_keep(
        self, report: FileImport, user: User, file: BufferedReader, choice: str | None, check: Callable[[], None]
    ) -> None:
        chosen, today = report.layout, self._clock.today()
        profiles = [*(chosen.profiles if chosen is not None else ()), *self.profiles(user.id)]
        read = report.read(file, profiles=profiles, today=today, check=check)
        report.first_rows = [read.spool.records(each.places[:FIRST_ROWS]) for each in read.statements]
        report.statements = read.statements
        check_layouts(report.layouts, is_chosen=chosen is not None)
        check()

        def keep(session: Transaction) -> None:
            report.keep(session, read, user=user, connection=CONNECTION_DEFAULT, choice=choice, clock=self._clock)

        atomically(self._store.of(user.id), keep, is_dry_run=report.is_dry_run)
