"""One statement file through the import core, for the command and the page: read whole, then stored whole or tried."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from io import BufferedReader

from connectors.bank_csv.profile import Profile
from connectors.reference.bank_names import with_bank_names
from connectors.sources import uploads
from connectors.sources.folder import batch_id
from connectors.statements import read_records
from storage import connections, jobs
from storage.database import Database, Transaction
from storage.importing import runs
from storage.importing.account_batch import AccountReport
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.records import Batch, Record
from storage.users import User

CONNECTION_DEFAULT = "Statement files"


class ConnectionBusy(Exception):
    """These files are being synced. Try again in a moment."""


class _DryRun(Exception):
    """Everything was tried and nothing is kept."""


def read_file(
    stream: BufferedReader,
    *,
    name: str,
    profiles: Sequence[Profile],
    today: date,
    watched: Callable[[Iterator[Record]], Iterator[Record]] = iter,
) -> ReadBatch:
    """A file from its beginning to its end; raises SourceError and InvalidRecord. `watched` is handed the records while
    they are read, and hands them on."""
    identity = batch_id(stream, name)
    records = with_bank_names(watched(read_records(stream, profiles)))
    return read_batch(Batch(id=identity, name=name, records=records), today=today)


def store_file(
    session: Transaction,
    read: ReadBatch,
    *,
    user: User,
    connection: str,
    choice: str | None,
    now: datetime,
    job_id: str | None = None,
) -> Sequence[AccountReport]:
    """The file as one completed job of this connection, in the caller's transaction; `choice` is the account that it is
    about where it does not say. Raises ConnectionBusy and InvalidRecord."""
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
    job = jobs.start(session, user_id=user.id, connection_id=taken.id, cooldown=timedelta(0), now=now, job_id=job_id)
    if job is None:
        raise ConnectionBusy(ConnectionBusy.__doc__)
    result = runs.store_batch(session, job, taken, read, now=now, choice=choice)
    runs.complete(session, job, now=now)
    return result


def kept_or_tried(database: Database, work: Callable[[Transaction], None], *, is_dry_run: bool) -> None:
    """Do all of it in one transaction, which a dry run takes back."""

    def whole(session: Transaction) -> None:
        work(session)
        if is_dry_run:
            raise _DryRun

    with suppress(_DryRun):
        database.atomically(whole)
