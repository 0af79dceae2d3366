"""The scheduler: what nobody reads is finished, what has news is synced, a new day begins once."""

import threading
from datetime import date, datetime, time, timedelta

import pytest

from connectors.connector import Connection
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.scheduler import AGAIN, NEWS_EVERY, READERS_FIRST, Scheduler
from storage import connections, jobs, users
from storage.database import Database, StoreUnavailable
from storage.jobs import Job
from tests.engines import OpenStore
from tests.service.sync.conftest import Scene, state
from tests.service.test_sync_machine import COOLDOWN, Hand

UNFINISHED = jobs.find_unfinished


@pytest.mark.requirement("decision 26")
@pytest.mark.long
def test_the_scheduler_finishes_what_nobody_reads_and_goes_on_after_an_error(
    scene: Scene, after: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [ZeroDivisionError]

    def unfinished(session: Database) -> list[Job]:
        if broken:
            raise broken.pop()
        return UNFINISHED(session)

    monkeypatch.setattr("handlers.work.sync.scheduler.ROUND_PAUSE", 0.01)
    monkeypatch.setattr("storage.jobs.find_unfinished", unfinished)
    scene.clock.moment += READERS_FIRST
    worker = threading.Thread(target=scene.scheduler.work)
    worker.start()
    while not after:
        worker.join(0.01)
    assert scene.engine.close()
    worker.join(60)
    assert not worker.is_alive()
    assert "ZeroDivisionError" in caplog.text
    assert state(scene.database, scene.job) == ("completed", None)


@pytest.mark.requirement("decision 26")
def test_a_job_or_a_folder_that_cannot_be_advanced_holds_up_no_other_and_is_logged_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = connections.add(
        scene.database, user_id=scene.user.id, user_name="eva", connector="scripted", bank_name="Two", settings={},
        now=scene.clock.moment,
    )  # fmt: skip
    second = scene.engine.start(other).job
    assert second is not None
    advance = scene.engine.advance

    def broken_first(job: Job) -> object:
        if job.id == scene.job.id:
            raise ZeroDivisionError
        return advance(job)

    def has_news(connection: Connection, *, now: datetime) -> bool:
        if connection.id == scene.job.connection_id:
            raise OverflowError
        return False

    scene.bank.is_local = True
    monkeypatch.setattr(scene.engine, "advance", broken_first)
    monkeypatch.setattr(scene.bank, "has_news", has_news)
    scene.clock.moment += NEWS_EVERY
    scene.scheduler.round()
    assert scene.engine.read(scene.user.id, second.id)
    assert state(scene.database, second) == ("completed", None)
    scene.scheduler.round()
    broken = (scene.job.id, scene.job.connection_id)
    assert [caplog.text.count(f"goes on without {id_}") for id_ in broken] == [1, 1]


@pytest.mark.requirement("decision 26")
def test_a_store_that_is_away_is_everybodys_trouble(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def advance(job: Job) -> None:
        raise StoreUnavailable(job.id)

    monkeypatch.setattr(scene.engine, "advance", advance)
    scene.clock.moment += READERS_FIRST
    with pytest.raises(StoreUnavailable):
        scene.scheduler.round()


@pytest.mark.requirement("decision 26")
def test_the_scheduler_leaves_a_job_to_its_readers_for_five_seconds(
    database: OpenStore, sync_engine: SyncEngine, scheduler: Scheduler, clock: Hand, job: Job
) -> None:
    clock.moment += READERS_FIRST - timedelta(milliseconds=1)
    scheduler.round()
    assert state(database, job) == ("pending", None)


@pytest.mark.requirement("folder.by-itself")
def test_a_source_that_is_looked_at_for_nothing_is_synced_when_it_has_news_and_not_within_30_minutes_of_a_failure(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.bank.is_local = True
    assert scene.engine.read(scene.user.id, scene.job.id)
    monkeypatch.setattr(scene.engine, "advance", lambda _job: None)  # what is started runs until it is failed here

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
    (running,) = jobs.find_unfinished(scene.database)
    jobs.fail(scene.database, running, error="no", now=scene.clock.moment)
    connections.record_failure(scene.database, scene.user.id, scene.job.connection_id, status=None)
    scene.database.execute("UPDATE connections SET next_sync_at = $1", scene.clock.moment + COOLDOWN)
    assert look() == 0


@pytest.mark.requirement("subscriptions.new-day")
def test_each_new_day_is_begun_once(scheduler: Scheduler, clock: Hand, new_days: list[date]) -> None:
    scheduler.round()
    assert new_days == []
    clock.moment += timedelta(days=1)
    scheduler.round()
    scheduler.round()
    assert new_days == [clock.today()]


@pytest.mark.requirement("postgresql.unavailable")
def test_while_the_database_is_away_that_is_said_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[Job] = []

    def is_away(job: Job) -> None:
        rounds.append(job)
        if len(rounds) == 3:
            scene.engine.stop()
        raise StoreUnavailable

    monkeypatch.setattr("handlers.work.sync.scheduler.ROUND_PAUSE", 0.001)
    monkeypatch.setattr(scene.engine, "advance", is_away)
    scene.clock.moment += READERS_FIRST
    scene.scheduler.work()
    assert (len(rounds), caplog.messages) == (3, ["the scheduler waits for the database"])


@pytest.mark.requirement("workers.clocks")
def test_a_clock_that_is_set_back_holds_up_nothing_and_one_that_is_off_begins_no_day(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    minutes: list[str] = []
    is_off, steady = False, timedelta()
    monkeypatch.setattr(scene.clock, "steady", lambda: steady)
    new_days: list[date] = []
    scheduler = Scheduler(
        scene.engine,
        scene.database,
        {"scripted": scene.bank},
        scene.clock,
        on_new_day=new_days.append,
        each_minute=lambda: minutes.append("looked"),
        is_clock_off=lambda: is_off,
    )
    scene.clock.moment -= timedelta(hours=2)
    steady += timedelta(minutes=1)
    scheduler.round()
    assert minutes == ["looked"]
    is_off = True
    scene.clock.moment += timedelta(days=400)
    steady += timedelta(minutes=1)
    scheduler.round()
    assert (len(minutes), new_days) == (2, [])
    is_off = False
    scheduler.round()
    assert new_days == [scene.clock.today()]


@pytest.mark.requirement("people.operator")
def test_no_bank_of_a_paused_person_is_asked_until_they_may_go_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def has_news(connection: Connection, *, now: datetime) -> bool:
        asked.append(connection.id)
        return False

    scene.bank.is_local = True
    monkeypatch.setattr(scene.bank, "has_news", has_news)
    monkeypatch.setattr(scene.engine, "advance", lambda job: asked.append(job.id))
    users.pause(scene.database, scene.user.id, since=scene.clock.moment)
    scene.clock.moment += max(NEWS_EVERY, READERS_FIRST)
    scene.scheduler.round()
    assert asked == []
    users.pause(scene.database, scene.user.id, since=None)
    scene.clock.moment += NEWS_EVERY
    scene.scheduler.round()
    assert asked == [scene.job.id, scene.job.connection_id]


@pytest.mark.requirement("people.operator")
def test_the_plan_of_a_paused_person_waits(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(scene.engine, "start", lambda connection, **_: started.append(connection.id))
    monkeypatch.setattr(scene.scheduler, "_plan", (time(6, 30),))
    jobs.end_running(scene.database, scene.user.id, scene.job.connection_id, error="", now=scene.clock.moment)
    users.pause(scene.database, scene.user.id, since=scene.clock.moment)
    scene.clock.moment += timedelta(days=2)
    scene.scheduler.round()
    assert started == []
    users.pause(scene.database, scene.user.id, since=None)
    scene.clock.moment += AGAIN + timedelta(minutes=1)
    scene.scheduler.round()
    assert started == [scene.job.connection_id]
