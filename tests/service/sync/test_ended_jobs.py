"""Jobs that end while they are worked on: by time, by a removal, by another process."""

import asyncio
from typing import Any

import pytest

from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.outcomes import TIMED_OUT, Outcomes
from storage import connections, jobs, users
from storage.bank_access import sync_time_limits
from storage.database import Database, StoreUnavailable, Transaction
from storage.importing import runs
from storage.jobs import Job
from storage.users import User
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.sync.conftest import COFFEE, Hang, Scene, state
from tests.service.test_sync_machine import Hand, ScriptedBank

STORE_BATCH = runs.store_batch


@pytest.mark.requirement("users.remove")
def test_a_user_removed_during_a_sync_ends_it_without_a_trace(
    database: OpenStore, sync_engine: SyncEngine, user: User, job: Job
) -> None:
    database.atomically(lambda session: users.remove(session, user.id))
    assert sync_engine.advance(job) is None
    assert sync_engine.read(user.id, job.id) is None
    assert asyncio.run(sync_engine.wait_for(user.id, job.id)) is None
    assert database.rows("SELECT * FROM jobs") == []


@pytest.mark.requirement("sync.own-time")
def test_a_source_that_hangs_is_ended_after_15_minutes_and_stores_nothing_when_it_answers_at_last(scene: Scene) -> None:
    scene.bank.before_poll = hang = Hang()
    scene.bank.ledger["One"].append(COFFEE)
    step = scene.engine.advance(scene.job)
    assert step is not None
    assert scene.engine.advance(scene.job) is step, "a step is done once, whoever asks for it"
    assert hang.asked.wait(60)
    scene.clock.moment += sync_time_limits.PROGRESS_MAX
    assert not step.done()
    scene.scheduler.round()
    assert state(scene.database, scene.job) == ("failed", TIMED_OUT)
    hang.answers.set()
    step.result(60)
    assert state(scene.database, scene.job) == ("failed", TIMED_OUT)
    assert scene.database.rows("SELECT id FROM transactions") == []


@pytest.mark.requirement("sync.own-time")
def test_an_import_that_takes_longer_than_15_minutes_is_no_failure(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(session: Transaction, *given: Any, **named: Any) -> Any:
        scene.clock.moment += 2 * sync_time_limits.PROGRESS_MAX
        scene.scheduler.round()
        return STORE_BATCH(session, *given, **named)

    monkeypatch.setattr("storage.importing.runs.store_batch", slow)
    read = scene.engine.read(scene.user.id, scene.job.id)
    assert read is not None
    assert (read.status, read.error) == ("completed", None)


@pytest.mark.requirement("sync.ended-once")
def test_an_import_whose_job_somebody_else_ends_is_tried_once(
    database: OpenStore, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    tried: list[str] = []

    def ended(session: Transaction, job: Job, *given: Any, **named: Any) -> Any:
        tried.append(job.id)
        jobs.fail(database, job, error="ended", now=NOW)
        return STORE_BATCH(session, job, *given, **named)

    bank.ledger["One"].append(COFFEE)
    monkeypatch.setattr("storage.importing.runs.store_batch", ended)
    sync_engine.read(user.id, job.id)
    assert state(database, job) == ("failed", "ended")
    assert database.rows("SELECT id FROM transactions") == []
    assert len(tried) <= 2, "the second time sees that the first one was in vain"


@pytest.mark.requirement("sync.ended-once")
def test_a_connection_removed_during_its_sync_ends_the_job_and_nothing_more_is_stored(
    database: OpenStore, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job
) -> None:
    def remove() -> None:
        database.atomically(lambda session: connections.remove(session, user.id, job.connection_id, now=NOW))

    bank.ledger["One"] += [COFFEE, COFFEE]
    bank.before_second_batch = remove
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert (read.status, read.error) == ("failed", connections.REMOVED)
    assert database.rows("SELECT count(*) AS n FROM transactions") == [{"n": 1}]
    assert connections.statuses(database, user.id)[job.connection_id] == "DISCONNECTED"
    (found,) = database.rows("SELECT running_job_id FROM connections")
    assert found["running_job_id"] is None


@pytest.mark.requirement("sync.ended-once")
def test_a_step_that_another_process_has_taken_is_left_to_it(
    database: OpenStore, sync_engine: SyncEngine, bank: ScriptedBank, clock: Hand, job: Job
) -> None:
    bank.before_poll = lambda: pytest.fail("the bank was asked")
    assert database.atomically(lambda session: jobs.lease(session, job, holder="another", now=clock.now())) is not None
    step = sync_engine.advance(job)
    assert step is not None
    step.result(60)
    assert state(database, job) == ("pending", None)


@pytest.mark.requirement("sync.ended-once")
def test_a_job_that_has_failed_fails_once_and_so_does_its_connection(
    database: OpenStore, clock: Hand, user: User, job: Job
) -> None:
    outcomes = Outcomes(database, clock)
    outcomes.fail(job, "The bank is closed")
    outcomes.fail(job, "The bank is still closed")
    assert state(database, job) == ("failed", "The bank is closed")
    assert database.rows("SELECT failures_in_row FROM connections") == [{"failures_in_row": 1}]


@pytest.mark.requirement("sync.own-time")
def test_an_overdue_job_that_another_process_works_on_is_left_to_it(scene: Scene) -> None:
    scene.bank.answer["One"] = "waits"
    scene.engine.read(scene.user.id, scene.job.id)
    scene.clock.moment += sync_time_limits.PROGRESS_MAX
    asked = jobs.find(scene.database, scene.user.id, scene.job.id)
    assert asked is not None
    leased = scene.database.atomically(
        lambda session: jobs.lease(session, asked, holder="another", now=scene.clock.now())
    )
    assert leased is not None
    scene.scheduler.round()
    assert state(scene.database, scene.job) == ("syncing", None)


@pytest.mark.requirement("sync.ended-once")
@pytest.mark.parametrize(
    ("failure", "tracebacks"),
    [(StoreUnavailable, [False, False]), (ZeroDivisionError, [True])],  # the second comes of a store that closes
)
def test_leases_are_renewed_until_the_engine_stops_and_one_that_cannot_be_is_told(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failure: type[Exception],
    tracebacks: list[bool],
) -> None:
    renewed: list[str] = []

    def renew(_session: Database, job: Job, **_: object) -> None:
        renewed.append(job.id)
        if len(renewed) == 2:
            scene.engine.stop()
        raise failure

    monkeypatch.setattr("handlers.work.sync.leases.RENEW_EVERY", 0)
    monkeypatch.setattr("storage.jobs.renew", renew)
    scene.bank.before_poll = hang = Hang()
    step = scene.engine.advance(scene.job)
    assert step is not None
    assert hang.asked.wait(60)
    scene.engine.leases.keep_renewing()
    hang.answers.set()
    assert renewed == [scene.job.id] * 2
    told = f"the lease of job {scene.job.id} could not be renewed"
    assert [bool(each.exc_info) for each in caplog.records if each.message == told] == tracebacks
