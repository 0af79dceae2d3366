"""Sync jobs as a grant of some accounts sees them: jobs of other banks do not exist, and counts are of its accounts."""

from collections.abc import Mapping

from msgspec.structs import replace

from auth.principal import Principal
from handlers.web.errors import NotFound
from handlers.work.services import Services
from storage import connections, jobs
from storage.database import Session
from storage.jobs import Job

BANK_FAILED = "The bank could not be read. Your list of accounts says how it stands with the connection"


def check_covered(services: Services, caller: Principal, sync_id: str) -> None:
    """Raise NotFound for an unknown job, and for a job of a bank none of whose accounts the caller may read; to be
    called first, since reading a job advances it."""
    database = services.of(caller.user_id)
    job = jobs.find(database, caller.user_id, sync_id)
    seen = _accounts_of(database, caller, job).values() if job is not None else ()
    if job is None or not (any(seen) or (caller.is_whole and not seen)):
        raise NotFound("Sync job not found")


def hide_uncovered(session: Session, caller: Principal, job: Job) -> Job:
    """The job as a caller sees it: under a grant of some accounts, with the count of their new bookings, one general
    sentence for any error, and no refusals. The bank's own sentences may be about other accounts, those that are gone
    by now too."""
    if caller.coverage is None:
        return job
    seen = _accounts_of(session, caller, job)
    if caller.is_whole and all(seen.values()):
        return job
    covered = [id_ for id_, covers in seen.items() if covers]
    added = job.new_transactions
    if added is not None:
        added = jobs.new_transactions_of(session, job, covered)
    failed = BANK_FAILED if job.error is not None else None
    return replace(job, new_transactions=added, error=failed, refusals=())


def _accounts_of(session: Session, caller: Principal, job: Job) -> Mapping[str, bool]:
    """The accounts that the job's connection brings, by id, each with whether the caller may read it."""
    brought = connections.account_ids(session, caller.user_id, job.connection_id)
    return {id_: caller.covers(id_) for id_ in brought}
