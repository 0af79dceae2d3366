"""When a bank is asked: when it said so, and while its consent lasts."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from handlers.work.sync.engine import Started, SyncEngine
from handlers.work.sync.outcomes import NOT_SYNCABLE, TOO_SLOW
from storage import connections, jobs
from storage.database import Database
from storage.jobs import Job
from storage.users import User
from tests.service.sync.conftest import Scene, state
from tests.service.test_sync_machine import Hand, ScriptedBank


@pytest.mark.requirement("sync.source-pauses")
def test_a_reader_waits_for_a_job_that_is_due_within_a_second_and_for_no_other(
    sync_engine: SyncEngine, bank: ScriptedBank, clock: Hand, user: User, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.moment += timedelta(seconds=seconds)

    def read() -> Job:
        found = asyncio.run(sync_engine.wait_for(user.id, job.id))
        assert found is not None
        return found

    # The engine's own: a server in a thread of this process sleeps too
    ours = SimpleNamespace(sleep=sleep, wait=asyncio.wait, wrap_future=asyncio.wrap_future)
    monkeypatch.setattr("handlers.work.sync.engine.asyncio", ours)
    bank.answer["One"] = "pauses"
    waiting = read()
    assert (waiting.status, sync_engine.seconds_until_due(waiting)) == ("syncing", 60)
    bank.answer["One"] = "waits"
    assert read() == waiting
    assert slept == []
    clock.moment += timedelta(seconds=60)
    assert sync_engine.seconds_until_due(read()) == 1
    bank.answer["One"] = "ready"
    assert read().status == "completed"
    assert slept == [1]
    assert read().status == "completed"


@pytest.mark.requirement("sync.consent")
def test_a_consent_that_has_run_out_ends_by_itself_and_the_bank_is_not_asked(scene: Scene) -> None:
    scene.bank.before_poll = lambda: pytest.fail("the bank was asked")
    connections.keep_consent(scene.database, scene.user.id, scene.job.connection_id, expires_at=scene.clock.moment)
    scene.scheduler.round()
    assert connections.statuses(scene.database, scene.user.id)[scene.job.connection_id] == "EXPIRED"
    scene.engine.read(scene.user.id, scene.job.id)
    assert state(scene.database, scene.job) == ("failed", NOT_SYNCABLE["EXPIRED"])


@pytest.mark.requirement("sync.consent")
def test_no_sync_begins_after_the_consent_has_run_out(
    database: Database, sync_engine: SyncEngine, clock: Hand, user: User, job: Job
) -> None:
    connections.keep_consent(database, job.user_id, job.connection_id, expires_at=clock.moment)
    connection = connections.find(database, user.id, job.connection_id)
    assert connection is not None
    assert connection.status == "ACTIVE"
    assert sync_engine.start(connection) == Started(error=NOT_SYNCABLE["EXPIRED"])
    assert connections.statuses(database, user.id)[job.connection_id] == "EXPIRED"


@pytest.mark.requirement("sync.source-pauses")
def test_a_page_begins_no_second_sync_beside_one_that_runs(scene: Scene) -> None:
    connection = connections.find(scene.database, scene.user.id, scene.job.connection_id)
    assert connection is not None
    assert scene.engine.sync_now(connection) == Started()
    scene.engine.sync_now(connection, is_first=True)
    assert [job.id for job in jobs.find_unfinished(scene.database)] == [scene.job.id]


@pytest.mark.requirement("sync.source-pauses")
def test_a_source_that_is_ready_too_late_has_failed_at_once(
    scene: Scene, sync_engine: SyncEngine, bank: ScriptedBank
) -> None:
    bank.answer["One"] = "waits too long"
    read = sync_engine.read(scene.user.id, scene.job.id)
    assert read is not None
    assert (read.status, read.error) == ("failed", TOO_SLOW)
