"""Statement files that people send: each is tried or imported in a thread of its own, and reported on for an hour."""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from io import BufferedReader
from secrets import token_hex

from connectors.bank_csv.profile import Profile, ProfileError
from connectors.connector import SourceError, as_sentence
from connectors.statements import format_name
from handlers import integrity_sentences
from handlers.clock import Clock
from handlers.sync.concurrency import Closed, ImportLane
from handlers.sync.file_import import (
    CONNECTION_DEFAULT,
    ConnectionBusy,
    kept_or_tried,
    read_file,
    store_file,
)
from storage.accounts import StoredAccount
from storage.database import Conflict, Database, StoreFull, StoreUnavailable, Transaction, acting_for, as_json, run_for
from storage.importing import file_imports
from storage.importing.account_identity import AccountUnclear
from storage.importing.batches import AccountStatement, ReadBatch
from storage.importing.file_imports import SharedImport
from storage.importing.records import InvalidRecord, TransactionRecord
from storage.users import User

AT_ONCE_PER_USER = 4  # each keeps a file on the disk and a thread
AT_ONCE = 16
REPORTS_MAX = 200  # of all users, the oldest go first
REPORTED_FOR = timedelta(hours=1)
FIRST_ROWS = 5
DEAD_AFTER = timedelta(seconds=60)  # a process that takes a file says three times as often that it is there

INTERNAL = "The file could not be imported because of an internal error."
STOPPED = "The server is being stopped. Import the file again after its next start."
ENDED = "The server that read the file has ended. Import the file again."
CHANGED = "Something else changed the same accounts. Try again in a moment."

log = logging.getLogger("bankdata.imports")


class TooManyFiles(Exception):
    """Too many files are being imported. Try again when one of them is done."""

    def __init__(self) -> None:
        super().__init__(self.__class__.__doc__)


@dataclass(slots=True, kw_only=True)
class FileImport:
    """What becomes of one file: `error` where it was refused, else its statements with their first rows, and how many
    bookings were new and known. `candidates` are accounts that it may be about where it does not say;
    `is_for_later` says that nothing was wrong with it, but the store was away."""

    id: str
    user_id: str
    name: str
    is_dry_run: bool
    begun_at: datetime
    is_done: bool = False
    format: str | None = None
    error: str | None = None
    is_for_later: bool = False
    statements: Sequence[tuple[AccountStatement, Sequence[TransactionRecord]]] = ()
    warnings: Sequence[str] = ()
    account_ids: Sequence[str] = ()
    candidates: Sequence[StoredAccount] = ()
    overlap: tuple[StoredAccount, int] | None = None  # the account that holds so many of its bookings already
    new: int = 0
    known: int = 0
    ended: Future[None] = field(default_factory=Future)


class UploadedFiles:
    """Begins imports and remembers their reports."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        lane: ImportLane,
        *,
        profiles: Callable[[], Sequence[Profile]],
        after_import: Callable[[str], None],
    ) -> None:
        """`profiles` are the user's own for CSV; `after_import` is called with the user's id once one is stored."""
        self._database = database
        self._clock = clock
        self._lane = lane
        self._profiles = profiles
        self._after_import = after_import
        self._lock = threading.Lock()
        self._reports: dict[str, FileImport] = {}

    def begin(
        self,
        user: User,
        file: BufferedReader,
        *,
        name: str,
        choice: str | None,
        is_dry_run: bool,
        render: Callable[[FileImport], bytes],
    ) -> FileImport:
        """Import the file, or only try to; it is closed in the end. `render` makes JSON of the report, for the other
        processes of a shared store. Raises TooManyFiles."""
        report = FileImport(
            id=f"syn_{token_hex(16)}", user_id=user.id, name=name, is_dry_run=is_dry_run, begun_at=self._clock.now()
        )
        with self._lock:
            self._forget_old()
            running = [each.user_id for each in self._reports.values() if not each.is_done]
            if len(running) >= AT_ONCE or running.count(user.id) >= AT_ONCE_PER_USER:
                file.close()
                raise TooManyFiles
            self._reports[report.id] = report
        try:
            if self._database.dialect.is_shared:
                answer, now = render(report).decode(), self._clock.now()
                file_imports.begin(self._database, user_id=user.id, id_=report.id, answer=answer, now=now)
            work = partial(self._run, report, user, file, choice, render)
            threading.Thread(target=run_for, args=(user.id, work), name="file import", daemon=True).start()
        except BaseException:  # what has not begun takes nobody's place
            file.close()
            with self._lock:
                del self._reports[report.id]
            raise
        return report

    def find(self, user_id: str, import_id: str) -> FileImport | None:
        """The user's import of this id, if it was begun lately."""
        with self._lock:
            report = self._reports.get(import_id)
        return report if report is not None and report.user_id == user_id else None

    def elsewhere(self, user_id: str, import_id: str) -> SharedImport | None:
        """The user's import of this id, if another process of the store has taken it lately."""
        if not self._database.dialect.is_shared:
            return None
        shared = file_imports.find(self._database, user_id, import_id)
        if shared is None or shared.is_done or self._clock.now() - shared.alive_at < DEAD_AFTER:
            return shared
        answer = as_json({**json.loads(shared.answer), "status": "done", "error": ENDED})
        return replace(shared, answer=answer, is_done=True)

    def forget(self, user_id: str, import_id: str) -> None:
        """Tell nothing more of an import that has ended, here or in another process."""
        if self.find(user_id, import_id) is not None:
            with self._lock:
                self._reports.pop(import_id, None)
        if self._database.dialect.is_shared:
            file_imports.remove(self._database, user_id, import_id)

    def renew(self) -> None:
        """Say to the other processes of the store that this one is at work on what it took."""
        with self._lock:
            running = [each for each in self._reports.values() if not each.is_done]
        for each in running:
            with (
                acting_for(each.user_id),
                suppress(StoreUnavailable),
            ):  # of many machines one is away: what lies on the others is renewed
                file_imports.renew(self._database, user_id=each.user_id, id_=each.id, now=self._clock.now())

    def _forget_old(self) -> None:
        oldest = self._clock.now() - REPORTED_FOR
        done = [each for each in self._reports.values() if each.is_done]
        too_many = len(self._reports) + 1 - REPORTS_MAX
        for place, each in enumerate(done):
            if place < too_many or each.begun_at < oldest:
                del self._reports[each.id]

    def _run(
        self,
        report: FileImport,
        user: User,
        file: BufferedReader,
        choice: str | None,
        render: Callable[[FileImport], bytes],
    ) -> None:
        try:
            with file, self._lane.turn():
                self._import(report, user, file, choice)
        except AccountUnclear as unclear:
            report.error, report.candidates = as_sentence(unclear), unclear.candidates
        except (SourceError, InvalidRecord, ConnectionBusy) as error:
            report.error = as_sentence(error)
        except ProfileError as error:
            report.error = str(error)  # begins with the name of a file
        except (StoreFull, StoreUnavailable) as error:
            log.warning("import %s failed: %s", report.id, type(error).__name__)
            report.error, report.is_for_later = str(error), isinstance(error, StoreUnavailable)
        except Conflict:
            report.error = CHANGED
        except Closed:
            report.error = STOPPED
        except Exception:
            log.exception("import %s failed", report.id)
            report.error = INTERNAL
        finally:
            report.is_done = True
            self._tell_others(report, render)
            report.ended.set_result(None)

    def _tell_others(self, report: FileImport, render: Callable[[FileImport], bytes]) -> None:
        if self._database.dialect.is_shared:
            try:
                answer = render(report).decode()
                file_imports.end(self._database, user_id=report.user_id, id_=report.id, answer=answer)
            # Otherwise they say after a while that this process has ended; here it is answered
            except StoreUnavailable:
                log.warning("the end of import %s could not be told to other processes", report.id)
            except Exception:
                log.exception("the end of import %s could not be told to other processes", report.id)

    def _import(self, report: FileImport, user: User, file: BufferedReader, choice: str | None) -> None:
        profiles, today = self._profiles(), self._clock.today()
        report.format = format_name(file)
        file.seek(0)
        read = read_file(file, name=report.name, profiles=profiles, today=today)
        work = partial(self._store, report=report, user=user, read=read, choice=choice)
        kept_or_tried(self._database, work, is_dry_run=report.is_dry_run)
        if not report.is_dry_run:
            self._after_import(user.id)

    def _store(
        self,
        session: Transaction,
        *,
        report: FileImport,
        user: User,
        read: ReadBatch,
        choice: str | None,
    ) -> None:
        report.statements = [(each, read.spool.records(each.places[:FIRST_ROWS])) for each in read.statements]
        result = store_file(
            session,
            read,
            user=user,
            connection=CONNECTION_DEFAULT,
            choice=choice,
            now=self._clock.now(),
            job_id=report.id,
        )
        touched = [each.account_id for each in result]
        wrong = integrity_sentences.warnings_of(session, user.id, touched, today=self._clock.today())
        report.warnings = [*read.warnings, *wrong]
        same = next((each.same_as for each in result if each.same_as), None)
        report.overlap = (same.account, same.in_both) if same is not None else None
        report.account_ids = list(dict.fromkeys(each.account_id for each in result))
        report.new, report.known = sum(each.new for each in result), sum(each.known for each in result)
