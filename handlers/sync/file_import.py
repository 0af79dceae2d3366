"""Imports one statement file, for the command and for uploads: read whole, then stored whole or only tried."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from io import BufferedReader
from pathlib import Path

from analytics.records import Batch, Record
from connectors import archive
from connectors.bank_csv.layouts import CsvLayout
from connectors.bank_csv.profile import Profile
from connectors.limits import HEAD_BYTES
from connectors.reference.bank_names import with_bank_names
from connectors.sources import uploads
from connectors.sources.folder import batch_id
from connectors.statements import format_name, read_records
from handlers import integrity_sentences
from handlers.own_profiles import ChosenLayout
from handlers.sync.fair_order import COST_MOST
from storage import connections, jobs
from storage.accounts import StoredAccount
from storage.database import Transaction
from storage.importing import runs
from storage.importing.batches import AccountStatement, ReadBatch, read_batch
from storage.users import User

CONNECTION_DEFAULT = "Statement files"


class ConnectionBusy(Exception):
    """These files are being synced. Try again in a moment."""


@dataclass(slots=True, kw_only=True)
class FileReport:
    """The outcome of one file: `error` if it was refused, else its statements and how many of its bookings were new and
    known. `layout` is how the person wants it to be read; `layouts` are those used, if they were guessed or chosen.
    `overlap` is an account that already holds some of its bookings, and how many."""

    name: str
    layout: ChosenLayout | None = None
    format: str | None = None
    error: str | None = None
    statements: Sequence[AccountStatement] = ()
    warnings: Sequence[str] = ()
    layouts: list[CsvLayout] = field(default_factory=list)
    account_ids: Sequence[str] = ()
    overlap: tuple[StoredAccount, int] | None = None
    new: int = 0
    known: int = 0

    def read(
        self,
        stream: BufferedReader,
        *,
        profiles: Sequence[Profile],
        today: date,
        watched: Callable[[Iterator[Record]], Iterator[Record]] = iter,
        check: Callable[[], None] = lambda: None,
    ) -> ReadBatch:
        """Read the whole file. Raises SourceError, InvalidRecord, and whatever `check` raises. `watched` gets the
        records as they are read and has to pass them on. Whether guessed layouts may be used is left to
        `check_layouts`."""
        self.format = format_name(stream, check)
        stream.seek(0)
        name = Path(self.name).name or self.name
        identity = batch_id(stream, name)
        records = with_bank_names(watched(read_records(stream, profiles, self.layouts.append, check)))
        return read_batch(Batch(id=identity, name=name, records=records), today=today)

    def keep(
        self,
        session: Transaction,
        read: ReadBatch,
        *,
        user: User,
        connection: str,
        choice: str | None,
        now: datetime,
        today: date,
        job_id: str | None = None,
    ) -> None:
        """Store the read file as one completed job of this connection, in the caller's transaction; `choice` is the
        account of files that do not name theirs. Raises ConnectionBusy, InvalidRecord and ProfileError."""
        self.statements = read.statements
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
        job = jobs.start(session, user_id=user.id, connection_id=taken.id, cooldown=free, now=now, job_id=job_id)
        if job is None:
            raise ConnectionBusy(ConnectionBusy.__doc__)
        result = runs.store_batch(session, job, taken, read, now=now, choice=choice)
        self.account_ids = list(dict.fromkeys(each.account_id for each in result))
        if self.layout is not None and self.layout.is_kept:
            self.layout.keep(session, user.id, file_name=read.name or "", account_ids=self.account_ids, now=now)
        runs.complete(session, job, now=now)
        wrong = integrity_sentences.warnings_of(session, user.id, self.account_ids, today=today)
        self.warnings = [*read.warnings, *wrong]
        same = next((each.same_as for each in result if each.same_as), None)
        self.overlap = (same.account, same.in_both) if same is not None else None
        self.new, self.known = sum(each.new for each in result), sum(each.known for each in result)


def size_of(file: Path | BufferedReader) -> int:
    """The length of the file in bytes, by which it gets its turn; COST_MOST at least for a ZIP container, whose length
    says little."""
    with file.open("rb") if isinstance(file, Path) else nullcontext(file) as stream:
        is_container = archive.detect(stream.read(HEAD_BYTES))
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
    return max(size, COST_MOST) if is_container else size
