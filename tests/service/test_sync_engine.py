"""Corners of the sync engine that no client can reach by asking: what vanishes or breaks while it works."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from handlers.sync.engine import Started, SyncEngine
from handlers.sync.outcomes import INTERNAL, NOT_SYNCABLE, TIMED_OUT, Outcomes
from handlers.sync.scheduler import NEWS_EVERY, READERS_FIRST, Scheduler
from storage import connections, jobs, sync_time_limits, users
from storage.database import Database, StoreFull, Transaction
from storage.importing import runs
from storage.importing.records import TransactionRecord
from storage.jobs import Job
from storage.users import User
from tests.conftest import NOW
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank

UNFINISHED, STORE_BATCH = jobs.unfinished, runs.store_batch
COFFEE = TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=NOW.date(), counterpart_name="Café")


class Hang:
    """A source that has been asked and answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.asked.set()
        assert self.answers.wait(30)


@pytest.fixture
def bank() -> ScriptedBank:
    return ScriptedBank()


@pytest.fixture
def after() -> list[str]:
    """Users whose imports are done."""
    return []


@pytest.fixture
def clock() -> Hand:
    return Hand(ZoneInfo("Europe/Berlin"))


@pytest.fixture
def sync_engine(database: Database, bank: ScriptedBank, clock: Hand, after: list[str]) -> Iterator[SyncEngine]:
    made = SyncEngine(
        database,
        {"scripted": bank},
        clock,
        cooldown=COOLDOWN,
        after_import=after.append,
    )
    yield made
    made.close()


@pytest.fixture
def new_days() -> list[date]:
    return []


@pytest.fixture
def scheduler(
    database: Database, bank: ScriptedBank, clock: Hand, sync_engine: SyncEngine, new_days: list[date]
) -> Scheduler:
    return Scheduler(sync_engine, database, {"scripted": bank}, clock, on_new_day=new_days.append)


@pytest.fixture
def user(database: Database) -> User:
    return users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)


@pytest.fixture
def job(database: Database, sync_engine: SyncEngine, user: User) -> Job:
    """A pending job of the bank One."""
    connection = connections.add(
        database, user_id=user.id, user_name="eva", connector="scripted", bank_name="One", settings={}, now=NOW
    )
    started = sync_engine.start(connection).job
    assert started is not None
    return started


@dataclass(frozen=True)
class Scene:
    """The pending job, and everything that works on it."""

    database: Database
    engine: SyncEngine
    scheduler: Scheduler
    bank: ScriptedBank
    clock: Hand
    user: User
    job: Job


@pytest.fixture
def scene(
    database: Database, sync_engine: SyncEngine, scheduler: Scheduler, bank: ScriptedBank, clock: Hand,
    user: User, job: Job,
) -> Scene:  # fmt: skip
    return Scene(database, sync_engine, scheduler, bank, clock, user, job)


def state(database: Database, job: Job) -> tuple[str, str | None]:
    found = jobs.find(database, job.user_id, job.id)
    assert found is not None
    return found.status, found.error


@pytest.mark.requirement("users.remove")
def test_a_user_removed_during_a_sync_ends_it_without_a_trace(
    database: Database, sync_engine: SyncEngine, user: User, job: Job
) -> None:
    database.atomically(lambda session: users.remove(session, user.id))
    assert sync_engine.advance(job) is None
    assert sync_engine.read(user.id, job.id) is None
    assert asyncio.run(sync_engine.awaited(user.id, job.id)) is None
    assert database.rows("SELECT * FROM jobs") == []


@pytest.mark.requirement("decision 26")
def test_the_scheduler_finishes_what_nobody_reads_and_goes_on_after_an_error(
    scene: Scene, after: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [ZeroDivisionError]

    def unfinished(session: Database) -> list[Job]:
        if broken:
            raise broken.pop()
        return UNFINISHED(session)

    monkeypatch.setattr("handlers.sync.scheduler.ROUND_PAUSE", 0.01)
    monkeypatch.setattr("storage.jobs.unfinished", unfinished)
    scene.clock.moment += READERS_FIRST
    worker = threading.Thread(target=scene.scheduler.work)
    worker.start()
    while not after:
        worker.join(0.01)
    assert scene.engine.close()
    worker.join(10)
    assert not worker.is_alive()
    assert "ZeroDivisionError" in caplog.text
    assert state(scene.database, scene.job) == ("completed", None)


@pytest.mark.requirement("decision 26")
def test_the_scheduler_leaves_a_job_to_its_readers_for_five_seconds(
    database: Database, sync_engine: SyncEngine, scheduler: Scheduler, clock: Hand, job: Job
) -> None:
    clock.moment += READERS_FIRST - timedelta(milliseconds=1)
    scheduler.round()
    assert state(database, job) == ("pending", None)


@pytest.mark.requirement("sync.own-time")
def test_a_source_that_hangs_is_ended_after_15_minutes_and_stores_nothing_when_it_answers_at_last(scene: Scene) -> None:
    scene.bank.before_poll = hang = Hang()
    scene.bank.ledger["One"].append(COFFEE)
    step = scene.engine.advance(scene.job)
    assert step is not None
    assert scene.engine.advance(scene.job) is step, "a step is done once, whoever asks for it"
    assert hang.asked.wait(10)
    scene.clock.moment += sync_time_limits.PROGRESS_MAX
    assert not step.done()
    scene.scheduler.round()
    assert state(scene.database, scene.job) == ("failed", TIMED_OUT)
    hang.answers.set()
    step.result(10)
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
    database: Database, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job,
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
    database: Database, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job
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


@pytest.mark.requirement("decision 26")
def test_a_sync_cut_off_between_two_batches_goes_on_with_the_second_and_counts_all(scene: Scene) -> None:
    scene.bank.ledger["One"] += [COFFEE, COFFEE]
    scene.bank.before_second_batch = scene.engine.stop
    step = scene.engine.advance(scene.job)
    assert step is not None
    step.result(10)
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
    database: Database, sync_engine: SyncEngine, bank: ScriptedBank, user: User, job: Job,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    bank.before_poll = hang = Hang()
    monkeypatch.setattr("handlers.sync.engine.STOP_WITHIN", 0.01)

    async def read_and_stop() -> Job | None:
        reader = asyncio.create_task(sync_engine.awaited(user.id, job.id))
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
@pytest.mark.parametrize("asked_for", ["storage.jobs.unfinished", "storage.jobs.lease", "storage.jobs.progress"])
def test_what_breaks_because_the_store_was_closed_is_no_failure(
    database: Database, sync_engine: SyncEngine, scheduler: Scheduler, clock: Hand, job: Job, asked_for: str,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def closed_meanwhile(*_: object, **__: object) -> None:
        assert sync_engine.is_stopping is False
        sync_engine.stop()
        sync_engine.stop()  # the server stops its requests first and all the rest afterwards
        raise ZeroDivisionError

    monkeypatch.setattr("handlers.sync.scheduler.ROUND_PAUSE", 0.01)
    monkeypatch.setattr(asked_for, closed_meanwhile)
    clock.moment += READERS_FIRST
    scheduler.work()
    assert sync_engine.close()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []
    assert state(database, job) == ("pending", None)


@pytest.mark.requirement("interface.7.internal")
def test_a_job_whose_turn_cannot_be_taken_waits_for_the_next_one(
    database: Database, sync_engine: SyncEngine, user: User, job: Job,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("storage.jobs.lease", broken)
        read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert read.status == "pending"
    assert caplog.messages == [f"job {job.id} could not be advanced"]
    again = sync_engine.read(user.id, job.id)
    assert again is not None
    assert again.status == "completed"


@pytest.mark.requirement("sync.source-pauses")
def test_a_reader_waits_for_a_job_that_is_due_within_a_second_and_for_no_other(
    sync_engine: SyncEngine, bank: ScriptedBank, clock: Hand, user: User, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.moment += timedelta(seconds=seconds)

    def read() -> Job:
        found = asyncio.run(sync_engine.awaited(user.id, job.id))
        assert found is not None
        return found

    # The engine's own: a server in a thread of this process sleeps too
    ours = SimpleNamespace(sleep=sleep, wait=asyncio.wait, wrap_future=asyncio.wrap_future)
    monkeypatch.setattr("handlers.sync.engine.asyncio", ours)
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


@pytest.mark.requirement("sync.ended-once")
def test_a_step_that_another_process_has_taken_is_left_to_it(
    database: Database, sync_engine: SyncEngine, bank: ScriptedBank, clock: Hand, job: Job
) -> None:
    bank.before_poll = lambda: pytest.fail("the bank was asked")
    assert database.atomically(lambda session: jobs.lease(session, job, holder="another", now=clock.now())) is not None
    step = sync_engine.advance(job)
    assert step is not None
    step.result(10)
    assert state(database, job) == ("pending", None)


@pytest.mark.requirement("sync.ended-once")
def test_a_job_that_has_failed_fails_once_and_so_does_its_connection(
    database: Database, clock: Hand, user: User, job: Job
) -> None:
    outcomes = Outcomes(database, clock)
    outcomes.fail(job, "The bank is closed")
    outcomes.fail(job, "The bank is still closed")
    assert state(database, job) == ("failed", "The bank is closed")
    assert database.rows("SELECT failures_in_row FROM connections") == [{"failures_in_row": 1}]


@pytest.mark.requirement("folder.by-itself")
def test_a_source_that_is_looked_at_for_nothing_is_synced_when_it_has_news_and_not_within_30_minutes_of_a_failure(
    scene: Scene,
) -> None:
    scene.bank.is_local = True
    assert scene.engine.read(scene.user.id, scene.job.id)

    def look() -> int:
        before = len(scene.database.rows("SELECT id FROM jobs"))
        scene.clock.moment += NEWS_EVERY
        scene.scheduler.round()
        return len(scene.database.rows("SELECT id FROM jobs")) - before

    assert look() == 0
    scene.bank.answer["One"] = "has news"
    scene.scheduler.round()
    assert look() == 1
    assert look() == 0, "it runs"
    (running,) = jobs.unfinished(scene.database)
    jobs.fail(scene.database, running, error="no", now=scene.clock.moment)
    connections.record_failure(scene.database, scene.user.id, scene.job.connection_id, status=None)
    scene.database.execute("UPDATE connections SET next_sync_at = $1", scene.clock.moment + COOLDOWN)
    assert look() == 0


@pytest.mark.requirement("store.full-disk")
def test_a_full_disk_fails_the_job_with_that_reason(
    sync_engine: SyncEngine, user: User, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFull(StoreFull.__doc__)

    monkeypatch.setattr("storage.importing.runs.store_batch", full)
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert (read.status, read.error) == (
        "failed",
        "The disk of the store is full; nothing of this change was stored.",
    )


@pytest.mark.requirement("interface 3")
def test_what_goes_wrong_after_the_import_does_not_undo_it(
    sync_engine: SyncEngine, user: User, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise OSError("cannot move the file")

    monkeypatch.setattr(ScriptedBank, "settle", breaks)
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert (read.status, read.error) == ("completed", None)


@pytest.mark.requirement("interface.7.internal")
def test_an_accident_is_named_as_one_and_its_reason_stays_in_the_log(
    sync_engine: SyncEngine, user: User, job: Job, bank: ScriptedBank, caplog: pytest.LogCaptureFixture
) -> None:
    bank.answer["One"] = "breaks badly"
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert (read.status, read.error) == ("failed", INTERNAL)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.requirement("subscriptions.new-day")
def test_each_new_day_is_begun_once(scheduler: Scheduler, clock: Hand, new_days: list[date]) -> None:
    scheduler.round()
    assert new_days == []
    clock.moment += timedelta(days=1)
    scheduler.round()
    scheduler.round()
    assert new_days == [clock.today()]
