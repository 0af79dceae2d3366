"""Sync jobs at their boundaries: 29:59.999 and 30:00, one winner of every lease, final states written once."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event
from time import sleep

import pytest

from storage import jobs
from storage.database import Conflict
from storage.jobs import Job
from tests.storage.conftest import Bank

MILLISECOND = timedelta(milliseconds=1)
COOLDOWN = timedelta(minutes=30)


def started(bank: Bank, at: datetime) -> Job | None:
    return bank.database.atomically(
        lambda session: jobs.start(
            session, user_id=bank.user.id, connection_id=bank.connection.id, cooldown=COOLDOWN, now=at
        )
    )


def found(bank: Bank, job: Job) -> Job:
    again = jobs.find(bank.database, job.user_id, job.id)
    assert again is not None
    return again


@pytest.mark.requirement("decision 25")
def test_a_completed_sync_is_recent_until_30_minutes_after_its_acceptance(bank: Bank, job: Job) -> None:
    bank.database.atomically(
        lambda session: jobs.complete(session, job, new_transactions=1, now=bank.now + timedelta(minutes=9))
    )
    assert started(bank, bank.now + COOLDOWN - MILLISECOND) is None
    assert started(bank, bank.now + COOLDOWN) is not None


@pytest.mark.requirement("decision 25")
def test_a_failed_sync_may_be_tried_again_two_minutes_after_it_failed(bank: Bank, job: Job) -> None:
    failed_at = bank.now + timedelta(minutes=3)
    bank.database.atomically(lambda session: jobs.fail(session, job, error="no", now=failed_at))
    assert started(bank, failed_at + timedelta(minutes=2) - MILLISECOND) is None
    assert started(bank, failed_at + timedelta(minutes=2)) is not None


@pytest.mark.requirement("decision 25")
def test_a_sync_that_fails_late_does_not_keep_the_connection_longer_than_30_minutes(bank: Bank, job: Job) -> None:
    failed_at = bank.now + timedelta(minutes=29)
    bank.database.atomically(lambda session: jobs.fail(session, job, error="no", now=failed_at))
    assert started(bank, bank.now + COOLDOWN - MILLISECOND) is None
    assert started(bank, bank.now + COOLDOWN) is not None


@pytest.mark.requirement("decision 25")
def test_a_running_job_counts_as_recent_however_long_it_runs(bank: Bank, job: Job) -> None:
    assert started(bank, bank.now + timedelta(days=1)) is None
    assert jobs.running(bank.database, bank.connection.id) == job


@pytest.mark.requirement("decision 26")
def test_a_job_is_overdue_after_15_minutes_without_progress(bank: Bank, job: Job) -> None:
    ids = [bank.connection.id]
    limit = bank.now + jobs.PROGRESS_MAX
    assert jobs.overdue(bank.database, connection_ids=ids, now=limit - MILLISECOND) == []
    assert jobs.overdue(bank.database, connection_ids=ids, now=limit) == [job]
    later = bank.now + timedelta(minutes=10)
    jobs.progress(bank.database, job.id, status="syncing", handle={"polls": 1}, now=later)
    assert jobs.overdue(bank.database, connection_ids=ids, now=limit) == []
    assert len(jobs.overdue(bank.database, connection_ids=ids, now=later + jobs.PROGRESS_MAX)) == 1


@pytest.mark.requirement("decision 26")
def test_being_told_to_wait_again_is_no_progress(bank: Bank, job: Job) -> None:
    jobs.progress(bank.database, job.id, status="syncing", handle={"polls": 1}, now=bank.now)
    jobs.progress(bank.database, job.id, status="syncing", handle={"polls": 2}, now=bank.now + timedelta(minutes=14))
    again = found(bank, job)
    assert (again.handle, again.updated_at) == ({"polls": 2}, bank.now)


@pytest.mark.requirement("decision 26")
def test_of_many_at_once_one_gets_the_lease(bank: Bank, job: Job) -> None:
    def lease(_: int) -> bool:
        with suppress(Conflict):
            return bank.database.atomically(lambda session: jobs.lease(session, job.id, now=bank.now)) is not None
        return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(lease, range(50))) == 1


@pytest.mark.requirement("interface 4.8 rate")
def test_of_many_at_once_one_starts_a_job(bank: Bank) -> None:
    def begin(_: int) -> bool:
        with suppress(Conflict):
            return started(bank, bank.now) is not None
        return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(begin, range(50))) == 1
    assert len(bank.database.rows("SELECT id FROM jobs")) == 1


@pytest.mark.requirement("decision 26")
def test_a_lease_ends_by_itself_by_release_and_with_the_process(bank: Bank, job: Job) -> None:
    def lease(at: datetime) -> bool:
        return jobs.lease(bank.database, job.id, now=at) is not None

    assert lease(bank.now)
    assert not lease(bank.now + jobs.LEASE - MILLISECOND)
    assert lease(bank.now + jobs.LEASE)
    jobs.release(bank.database, job.id)
    assert lease(bank.now)
    jobs.release_all(bank.database)
    assert lease(bank.now)


@pytest.mark.requirement("interface 3")
@pytest.mark.parametrize("first", ["completed", "failed"])
def test_a_final_state_is_written_once(bank: Bank, job: Job, first: str) -> None:
    if first == "completed":
        assert jobs.complete(bank.database, job, new_transactions=3, now=bank.now)
    else:
        assert jobs.fail(bank.database, job, error="first", now=bank.now)
    before = found(bank, job)
    assert before.is_final
    assert not jobs.complete(bank.database, job, new_transactions=9, now=bank.now)
    assert not jobs.fail(bank.database, job, error="second", now=bank.now)
    jobs.progress(bank.database, job.id, status="syncing", handle={}, now=bank.now)
    assert jobs.lease(bank.database, job.id, now=bank.now + timedelta(days=1)) is None
    assert found(bank, job) == before


@pytest.mark.requirement("decision 28")
def test_a_job_is_found_by_its_user_only(bank: Bank, job: Job) -> None:
    assert jobs.find(bank.database, "somebody else", job.id) is None
    assert jobs.find(bank.database, bank.user.id, "syn_0") is None


@pytest.mark.requirement("decision 26")
def test_of_many_who_start_at_once_one_does_and_none_fails_though_the_winner_is_slow(bank: Bank) -> None:
    chosen = Event()

    def slowly() -> None:
        with bank.database.transaction() as session:
            session.execute("UPDATE connections SET status = status WHERE id = $1", bank.connection.id)
            chosen.set()
            sleep(0.15)

    with ThreadPoolExecutor(13) as threads:
        first = threads.submit(slowly)
        assert chosen.wait(5)
        jobs_started = list(threads.map(lambda _: started(bank, bank.now), range(12)))
    first.result()
    assert sum(job is not None for job in jobs_started) == 1
