"""The steps of an import that belong to its job, for syncs and commands: store the batches, then complete the job."""

from collections.abc import Collection, Sequence
from datetime import datetime

import polars as pl

from storage import accounts, connections, jobs, journal, users
from storage.connections import StoredConnection
from storage.database import Transaction
from storage.importing import ingest, same_accounts, transfer_pairs
from storage.importing.batches import AccountReport, ReadBatch
from storage.importing.lent_bookings import give_back, lend
from storage.importing.teller import Teller
from storage.jobs import Job, JobEnded
from storage.users import User


def store_batch(
    session: Transaction,
    job: Job,
    connection: StoredConnection,
    batch: ReadBatch,
    *,
    now: datetime,
    choice: str | None = None,
) -> Sequence[AccountReport]:
    """Store one batch and add it to the job's count, all in the caller's transaction, so that a crash leaves the batch
    whole or not at all; returns what that did to each account. `choice` as in `ingest.store`. Raises JobEnded or
    UserUnknown, before any work, if the job has ended or the user was removed while the file was read."""
    user = _held_user(session, job)
    report = ingest.store(session, user=user, connection=connection, job_id=job.id, batch=batch, now=now, choice=choice)
    jobs.add_stored(session, job, new_transactions=report.new_transactions, now=now)
    return report.accounts


def ask_about_missing(
    session: Transaction,
    job: Job,
    connection: StoredConnection,
    *,
    reported: Collection[str],
    missing: Collection[str],
    now: datetime,
) -> None:
    """Ask the user whether new accounts among those that a whole sync has reported are those that it misses (`missing`)
    under other ids; one that is asked about is not counted meanwhile, and leaves the pairs of own transfers. Raises
    JobEnded and UserUnknown, as `store_batch` does."""
    user = _held_user(session, job)
    teller = Teller(session, user, connection, now, connections.of_files(session, user.id))
    lent = give_back(session, user.id)
    asked = same_accounts.ask(teller, reported, missing=missing)
    moved = lend(session, user.id, lent, now=now)
    if asked:
        paired = journal.change_rows(transfer_pairs.pair_again(session, user.id), "modified")
        changes = pl.concat([moved, paired]).unique(maintain_order=True)
        journal.record(session, user_id=user.id, job_id=job.id, changes=changes, now=now)


def _held_user(session: Transaction, job: Job) -> User:
    """The user of a job, held, after a check that the job still runs. Raises JobEnded and UserUnknown."""
    session.hold(job.user_id)
    jobs.check_running(session, job)
    user = users.find(session, job.user_id)
    if user is None:
        raise users.UserUnknown("This user has been removed.")
    return user


def complete(session: Transaction, job: Job, *, now: datetime) -> None:
    """Complete a job whose batches are stored: its connection becomes active, its accounts are up to date as of `now`.
    Raises JobEnded where it had ended already."""
    session.hold(job.user_id)
    if not jobs.complete(session, job, now=now):
        raise JobEnded
    connections.record_success(session, job.user_id, job.connection_id)
    accounts.mark_synced(session, user_id=job.user_id, connection_id=job.connection_id, now=now)
