"""A server that stops in the middle of a sync: it waits for nobody, and the next one goes on."""

import asyncio

import pytest

from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.scheduler import READERS_FIRST, Scheduler
from storage import jobs
from storage.jobs import Job
from storage.users import User
from tests.engines import OpenStore
from tests.service.sync.conftest import COFFEE, Hang, Scene, state
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank


@pytest.mark.requirement("decision 26")
@pytest.mark.long
def test_a_sync_cut_off_between_two_batches_goes_on_with_the_second_and_counts_all(scene: Scene) -> None:
    scene.bank.ledger["One"] += [COFFEE, COFFEE]
    scene.bank.before_second_batch = scene.engine.stop
    step = scene.engine.advance(scene.job)
    assert step is not None
    step.result(60)
    assert scene.engine.close()
    assert scene.engine.advance(scene.job) is None
    assert state(scene.database, scene.job) == ("importing", None)
    assert scene.database.rows("SELECT count(*) AS n FROM transactions") == [{"n": 1}]
    jobs.release_all(scene.database)  # what the next process does at its start
    scene.bank.before_second_batch = lambda: None
    again = SyncEngine(
        scene.database, {"scripted": scene.bank}, scene.clock, cooldown=COOLDOWN, after_import=lambda _: None
    )
    read = again.read(scene.user.id, scene.job.id)
    assert again.close()
    assert read is not None
    assert (read.status, read.new_transactions) == ("completed", 2)
    assert scene.bank.cursors[-1] == {"rows": 1}


@pytest.mark.requirement("sync.stops")
def test_stopping_waits_neither_for_a_source_nor_for_those_who_wait_for_it(
    database: OpenStore, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    bank.before_poll = hang = Hang()
    monkeypatch.setattr("handlers.work.sync.engine.STOP_WITHIN", 0.01)

    async def read_and_stop() -> Job | None:
        reader = asyncio.create_task(sync_engine.wait_for(user.id, job.id))
        await asyncio.to_thread(hang.asked.wait, 10)
        sync_engine.stop()
        return await reader

    read = asyncio.run(read_and_stop())
    assert read is not None
    assert read.status == "syncing"
    assert not sync_engine.close(), "a thread still waits for the source"
    database.close()
    hang.answers.set()
    while not sync_engine.close():
        pass
    assert "Traceback" not in caplog.text


@pytest.mark.requirement("sync.stops")
@pytest.mark.parametrize("asked_for", ["storage.jobs.find_unfinished", "storage.jobs.lease", "storage.jobs.progress"])
def test_what_breaks_because_the_store_was_closed_is_no_failure(
    database: OpenStore, sync_engine: SyncEngine, scheduler: Scheduler, clock: Hand, job: Job, asked_for: str,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def closed_meanwhile(*_: object, **__: object) -> None:
        assert not sync_engine.stopped.is_set()
        sync_engine.stop()
        sync_engine.stop()  # the server stops its requests first and all the rest afterwards
        raise ZeroDivisionError

    monkeypatch.setattr("handlers.work.sync.scheduler.ROUND_PAUSE", 0.01)
    monkeypatch.setattr(asked_for, closed_meanwhile)
    clock.moment += READERS_FIRST
    scheduler.work()
    assert sync_engine.close()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert state(database, job) == ("pending", None)
