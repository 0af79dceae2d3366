"""Corners of the sync engine that no client can reach by asking: what vanishes or breaks while it works."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from handlers.sync.engine import INTERNAL, SyncEngine
from storage import connections, jobs, users
from storage.database import Database, StoreFull
from storage.jobs import Job
from storage.users import User
from tests.conftest import NOW
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank


@pytest.fixture
def bank() -> ScriptedBank:
    return ScriptedBank()


@pytest.fixture
def after() -> list[str]:
    """Users whose imports are done."""
    return []


@pytest.fixture
def sync_engine(database: Database, bank: ScriptedBank, after: list[str]) -> Iterator[SyncEngine]:
    made = SyncEngine(
        database,
        {"scripted": bank},
        Hand(ZoneInfo("Europe/Berlin")),
        cooldown=COOLDOWN,
        after_import=after.append,
    )
    yield made
    made.close()


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


@pytest.mark.requirement("users.remove")
def test_a_user_removed_during_a_sync_ends_it_without_a_trace(
    database: Database, sync_engine: SyncEngine, user: User, job: Job
) -> None:
    database.atomically(lambda session: users.remove(session, user.id))
    sync_engine.advance(job)
    assert sync_engine.read(user.id, job.id) is None
    assert database.rows("SELECT * FROM jobs") == []


@pytest.mark.requirement("decision 26")
def test_a_worker_finishes_what_nobody_reads(
    database: Database, sync_engine: SyncEngine, user: User, job: Job, after: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handlers.sync.engine.WORKER_PAUSE", 0.01)
    monkeypatch.setattr("handlers.sync.engine.ABANDONED", timedelta(0))
    worker = threading.Thread(target=sync_engine.work)
    worker.start()
    while not after:
        worker.join(0.01)
    sync_engine.close()
    worker.join(10)
    assert not worker.is_alive()
    done = jobs.find(database, user.id, job.id)
    assert done is not None
    assert done.status == "completed"


@pytest.mark.requirement("store.full-disk")
def test_a_full_disk_fails_the_job_with_that_reason(
    sync_engine: SyncEngine, user: User, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreFull(StoreFull.__doc__)

    monkeypatch.setattr("storage.importing.ingest.store", full)
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

    monkeypatch.setattr(ScriptedBank, "finish", breaks)
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
