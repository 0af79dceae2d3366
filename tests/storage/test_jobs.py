"""Sync jobs at their boundaries: 29:59.999 and 30:00, one winner of every lease, final states written once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event
from time import sleep

import pytest
from msgspec.structs import replace

from storage import accounts, connections, jobs
from storage.bank_access import sync_time_limits
from storage.database import Conflict
from storage.importing import runs
from storage.jobs import Job, JobEnded, RefusedBatch
from storage.undo_and_merge import rebuild
from tests.storage.conftest import Bank, bookings

MILLISECOND = timedelta(milliseconds=1)
COOLDOWN = timedelta(minutes=30)


def started(bank: Bank, at: datetime, *, is_forced: bool = False) -> Job | None:
    return bank.database.atomically(
        lambda session: jobs.start(
            session,
            user_id=bank.user.id,
            connection_id=bank.connection.id,
            cooldown=COOLDOWN,
            now=at,
            is_forced=is_forced,
        )
    )


@pytest.mark.requirement("import.account-key")
def test_a_sync_under_way_ends_when_the_account_is_deleted_and_the_next_one_asks_for_everything(bank: Bank) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | Shop | x"))
    connections.keep_cursor(bank.database, bank.user.id, bank.connection.id, {"day": "2026-11-02"})
    job = started(bank, bank.now, is_forced=True)
    assert job is not None
    (account,) = accounts.of_user(bank.database, bank.user.id)
    user, now = bank.user, bank.now
    bank.database.atomically(lambda session: rebuild.delete(session, user=user, account_id=account.id, now=now))
    assert (found(bank, job).status, found(bank, job).error) == ("failed", rebuild.DELETED)
    connection = connections.find(bank.database, bank.user.id, bank.connection.id)
    assert connection is not None
    assert connection.cursor is None
    assert started(bank, bank.now, is_forced=True) is not None


def found(bank: Bank, job: Job) -> Job:
    again = jobs.find(bank.database, job.user_id, job.id)
    assert again is not None
    return again


@pytest.mark.requirement("decision 25")
def test_a_completed_sync_is_recent_until_30_minutes_after_its_acceptance(bank: Bank, job: Job) -> None:
    bank.database.atomically(lambda session: jobs.complete(session, job, now=bank.now + timedelta(minutes=9)))
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
    assert jobs.find_running(bank.database, bank.user.id, bank.connection.id) == job


@pytest.mark.requirement("decision 26")
def test_a_job_is_overdue_15_minutes_after_its_source_was_asked_or_last_made_progress(bank: Bank, job: Job) -> None:
    assert not found(bank, job).is_overdue(bank.now + timedelta(days=1)), "our own queue is not the source's fault"
    jobs.lease(bank.database, job, holder="a", now=bank.now)
    limit = bank.now + sync_time_limits.PROGRESS_MAX
    assert not found(bank, job).is_overdue(limit - MILLISECOND)
    assert found(bank, job).is_overdue(limit)
    later = bank.now + timedelta(minutes=10)
    jobs.progress(bank.database, job, status="syncing", handle={"polls": 1}, now=later)
    assert not found(bank, job).is_overdue(limit)
    assert found(bank, job).is_overdue(later + sync_time_limits.PROGRESS_MAX)
    jobs.add_stored(bank.database, job, new_transactions=3, now=later + timedelta(minutes=1))
    assert not found(bank, job).is_overdue(later + sync_time_limits.PROGRESS_MAX)
    jobs.complete(bank.database, job, now=later)
    assert not found(bank, job).is_overdue(later + timedelta(days=1))


@pytest.mark.requirement("decision 26")
def test_a_job_is_due_when_its_source_said_and_may_be_asked_before_it_said_anything(bank: Bank, job: Job) -> None:
    assert job.is_due(bank.now)
    until = bank.now + timedelta(seconds=20)
    jobs.put_off(bank.database, job, until=until)
    assert not found(bank, job).is_due(until - MILLISECOND)
    assert found(bank, job).is_due(until)


@pytest.mark.requirement("sync.source-pauses")
def test_a_time_that_the_source_named_keeps_the_connection_and_nothing_goes_past_it(bank: Bank, job: Job) -> None:
    retry_at = bank.now + timedelta(hours=3)
    bank.database.atomically(lambda session: jobs.fail(session, job, error="Later.", now=bank.now, retry_at=retry_at))
    ids = [bank.connection.id]
    assert jobs.next_sync_at(bank.database, bank.user.id, ids) == retry_at
    assert started(bank, retry_at - MILLISECOND) is None
    assert started(bank, retry_at - MILLISECOND, is_forced=True) is None
    assert started(bank, retry_at) is not None


@pytest.mark.requirement("sync.forced")
def test_a_forced_sync_goes_past_our_own_30_minutes_and_not_past_a_running_job(bank: Bank, job: Job) -> None:
    assert started(bank, bank.now, is_forced=True) is None
    bank.database.atomically(lambda session: jobs.complete(session, job, now=bank.now))
    assert started(bank, bank.now) is None
    assert started(bank, bank.now, is_forced=True) is not None


@pytest.mark.requirement("folder.refusals")
def test_a_job_keeps_the_name_and_reason_of_everything_it_left_out(bank: Bank, job: Job) -> None:
    refusals = [RefusedBatch(name="a.xml", reason="Damaged."), RefusedBatch(name="b.xml", reason="Too large.")]
    for refusal in refusals:
        jobs.refuse(bank.database, job, refusal)
    jobs.complete(bank.database, job, now=bank.now)
    assert list(found(bank, job).refusals) == refusals


@pytest.mark.requirement("decision 26")
def test_being_told_to_wait_again_is_no_progress(bank: Bank, job: Job) -> None:
    jobs.progress(bank.database, job, status="syncing", handle={"polls": 1}, now=bank.now)
    jobs.progress(bank.database, job, status="syncing", handle={"polls": 2}, now=bank.now + timedelta(minutes=14))
    again = found(bank, job)
    assert (again.handle, again.updated_at) == ({"polls": 2}, bank.now)


@pytest.mark.requirement("decision 26")
def test_of_many_at_once_one_gets_the_lease(bank: Bank, job: Job) -> None:
    def lease(_: int) -> bool:
        with suppress(Conflict):
            return (
                bank.database.atomically(lambda session: jobs.lease(session, job, holder="a", now=bank.now)) is not None
            )
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
        return jobs.lease(bank.database, job, holder="a", now=at) is not None

    assert lease(bank.now)
    assert not lease(bank.now + sync_time_limits.LEASE - MILLISECOND)
    assert lease(bank.now + sync_time_limits.LEASE)
    jobs.release(bank.database, job)
    assert lease(bank.now)
    jobs.release_all(bank.database)
    assert lease(bank.now)


@pytest.mark.requirement("decision 25")
def test_a_pause_that_no_setting_allows_was_begun_by_a_wrong_clock_and_is_forgotten(bank: Bank) -> None:
    for moment in (bank.now + timedelta(days=365), bank.now):
        begun = started(bank, moment)
        assert begun is not None
        assert jobs.complete(bank.database, begun, now=moment)
        assert started(bank, bank.now) is None
        bank.database.execute("UPDATE connections SET due_at = $1, planned_at = $1", moment)
        jobs.forget_impossible_pauses(bank.database, now=bank.now, cooldown=COOLDOWN)
        assert bank.database.rows("SELECT due_at, planned_at FROM connections") == [
            {"due_at": bank.now, "planned_at": bank.now}
        ]
    assert started(bank, bank.now + COOLDOWN - MILLISECOND) is None


@pytest.mark.requirement("decision 26")
def test_a_job_of_a_wrong_clock_goes_on_and_others_wait_as_their_source_wants(bank: Bank) -> None:
    begun = started(bank, bank.now + timedelta(days=365))
    assert begun is not None
    jobs.put_off(bank.database, begun, until=bank.now + timedelta(days=365, minutes=1))
    jobs.forget_impossible_pauses(bank.database, now=bank.now, cooldown=COOLDOWN)
    again = found(bank, begun)
    assert again.is_due(bank.now)
    assert (again.created_at, again.updated_at) == (bank.now, bank.now)
    jobs.put_off(bank.database, begun, until=bank.now + timedelta(minutes=1))
    jobs.forget_impossible_pauses(bank.database, now=bank.now, cooldown=COOLDOWN)
    assert not found(bank, begun).is_due(bank.now)


@pytest.mark.requirement("interface 3")
@pytest.mark.parametrize("first", ["completed", "failed"])
def test_a_final_state_is_written_once(bank: Bank, job: Job, first: str) -> None:
    jobs.add_stored(bank.database, job, new_transactions=2, now=bank.now)
    jobs.add_stored(bank.database, job, new_transactions=1, now=bank.now)
    if first == "completed":
        assert jobs.complete(bank.database, job, now=bank.now)
    else:
        assert jobs.fail(bank.database, job, error="first", now=bank.now)
    before = found(bank, job)
    assert before.is_final
    assert before.new_transactions == 3
    assert not jobs.complete(bank.database, job, now=bank.now)
    assert not jobs.fail(bank.database, job, error="second", now=bank.now)
    assert jobs.lease(bank.database, job, holder="a", now=bank.now + timedelta(days=1)) is None
    late: list[Callable[[], None]] = [
        lambda: jobs.progress(bank.database, job, status="syncing", handle={}, now=bank.now),
        lambda: jobs.put_off(bank.database, job, until=bank.now),
        lambda: jobs.refuse(bank.database, job, RefusedBatch(name="a", reason="b")),
        lambda: jobs.add_stored(bank.database, job, new_transactions=1, now=bank.now),
        lambda: jobs.check_running(bank.database, job),
    ]
    for change in late:
        with pytest.raises(JobEnded):
            change()
    assert found(bank, job) == before


@pytest.mark.requirement("interface 2.12 newTransactions")
def test_a_job_that_had_nothing_to_store_has_stored_nothing(bank: Bank, job: Job) -> None:
    assert found(bank, job).new_transactions is None
    jobs.complete(bank.database, job, now=bank.now)
    assert found(bank, job).new_transactions == 0


@pytest.mark.requirement("interface 2.12 newTransactions")
def test_what_the_service_wrote_itself_is_no_new_booking_of_an_account(bank: Bank, job: Job) -> None:
    bank.bring(bookings("2026-01-02 | -1.00\n2026-01-03 | -2.00"))
    row, _ = bank.rows("id, account_id, booking_date, amount")
    told = replace(job, id="job-1")
    assert jobs.new_transactions_of(bank.database, told, [row["account_id"]]) == 2
    bank.database.execute("UPDATE transactions SET is_adjusting_entry = TRUE WHERE id = $1", row["id"])
    assert jobs.new_transactions_of(bank.database, told, [row["account_id"]]) == 1


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
        assert chosen.wait(60)
        jobs_started = list(threads.map(lambda _: started(bank, bank.now), range(12)))
    first.result()
    assert sum(job is not None for job in jobs_started) == 1


@pytest.mark.requirement("sync.ended-once")
def test_the_end_of_an_import_whose_job_somebody_else_ended_changes_nothing(bank: Bank, job: Job) -> None:
    jobs.fail(bank.database, job, error="Too late.", now=bank.now)
    with pytest.raises(JobEnded):
        bank.database.atomically(lambda session: runs.complete(session, job, now=bank.now))
    ended = jobs.find(bank.database, bank.user.id, job.id)
    assert ended is not None
    assert (ended.status, ended.error) == ("failed", "Too late.")


@pytest.mark.requirement("imports.leases")
def test_a_lease_that_is_renewed_meanwhile_does_not_make_a_long_import_begin_anew(bank: Bank, job: Job) -> None:
    def renew() -> bool:
        return jobs.renew(bank.database, job, holder="one", now=bank.now)

    bank.database.atomically(lambda session: jobs.take(session, job, holder="one", now=bank.now))
    with bank.database.transaction() as session, ThreadPoolExecutor(1) as pool:
        session.hold(job.user_id)
        assert pool.submit(renew).result(60)
        assert jobs.complete(session, job, now=bank.now)
    assert renew()


@pytest.mark.requirement("decision 26")
def test_a_lease_that_its_holder_renews_lasts_another_minute_and_nobody_else_renews_it(bank: Bank, job: Job) -> None:
    def is_held(at: datetime) -> bool:
        return jobs.is_held_elsewhere(bank.database, job, holder="two", now=at)

    assert bank.database.atomically(lambda session: jobs.lease(session, job, holder="one", now=bank.now))
    jobs.renew(bank.database, job, holder="two", now=bank.now + timedelta(seconds=30))
    assert (is_held(bank.now + timedelta(seconds=59)), is_held(bank.now + timedelta(seconds=60))) == (True, False)
    jobs.renew(bank.database, job, holder="one", now=bank.now + timedelta(seconds=30))
    assert (is_held(bank.now + timedelta(seconds=89)), is_held(bank.now + timedelta(seconds=90))) == (True, False)
