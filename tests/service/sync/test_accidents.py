"""What breaks while a job is worked on, and what its reader is told."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from analytics.records import Batch
from connectors.connector import Json
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.outcomes import INTERNAL
from storage import connections, jobs
from storage.database import StoreFull, StoreUnavailable, StoreUnreadable, store_full
from storage.jobs import Job
from storage.users import User
from tests.engines import OpenStore
from tests.service.sync.conftest import COFFEE, state
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank


def away(*_: object, **__: object) -> None:
    raise StoreUnavailable(StoreUnavailable.__doc__)


@pytest.mark.requirement("interface.7.internal")
def test_a_job_whose_turn_cannot_be_taken_waits_for_the_next_one(
    database: OpenStore, sync_engine: SyncEngine, user: User, job: Job,
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


@pytest.mark.requirement("store.full-disk")
def test_a_disk_too_full_even_for_that_is_told_to_a_command_at_once_and_the_job_goes_on_later(
    sync_engine: SyncEngine, user: User, job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise store_full()

    with monkeypatch.context() as patch:
        patch.setattr("storage.jobs.lease", full)
        with pytest.raises(StoreFull):
            sync_engine.read(user.id, job.id)
    assert caplog.messages == [StoreFull.__doc__]
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert read.status == "completed"


@pytest.mark.requirement("decision 152")
@pytest.mark.parametrize(
    ("cut_off", "in_its_place", "status"),
    [
        ("storage.importing.runs.store_batch", away, "importing"),
        ("handlers.work.sync.job_step.connections", SimpleNamespace(find=away), "pending"),  # just after the lease
        ("storage.jobs.lease", away, "pending"),  # by a database that is read and takes no writes
    ],
)
def test_a_job_whose_step_the_database_cut_off_goes_on_as_soon_as_it_answers(
    database: OpenStore, sync_engine: SyncEngine, job: Job, monkeypatch: pytest.MonkeyPatch,
    cut_off: str, in_its_place: object, status: str,
) -> None:  # fmt: skip
    def step() -> tuple[str, str | None]:
        taken = sync_engine.advance(job)
        assert taken is not None
        taken.result(60)
        return state(database, job)

    monkeypatch.setattr("handlers.work.sync.leases.END_EVERY", 0.01)
    with monkeypatch.context() as patch:
        patch.setattr(cut_off, in_its_place)
        patch.setattr("storage.jobs.give_back", away)
        assert step() == (status, None)
        assert step() == (status, None)
    [trying] = [each for each in threading.enumerate() if each.name == "end of lease"]
    trying.join(60)
    assert step() == ("completed", None)


@pytest.mark.requirement("decision 152")
def test_a_lease_that_this_process_has_taken_again_is_not_given_back(
    database: OpenStore, sync_engine: SyncEngine, job: Job, clock: Hand
) -> None:
    leases = sync_engine.leases
    assert jobs.take(database, job, holder=leases.holder, now=clock.now())
    with leases.keep(job):
        leases.give_back(job)
        assert jobs.is_held_elsewhere(database, job, holder="another", now=clock.now())
    leases.give_back(job)
    assert not jobs.is_held_elsewhere(database, job, holder="another", now=clock.now())


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


@pytest.mark.requirement("interface.7.internal")
def test_a_damaged_store_is_named_in_the_log_and_its_place_on_the_disk_not_to_the_user(
    sync_engine: SyncEngine, user: User, job: Job, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    damage = "The file cannot be read as a store: /srv/bankdata.duckdb, block 7"

    def damaged(*_: object, **__: object) -> None:
        raise StoreUnreadable(damage)

    monkeypatch.setattr("storage.importing.runs.store_batch", damaged)
    read = sync_engine.read(user.id, job.id)
    assert read is not None
    assert (read.status, read.error) == ("failed", INTERNAL)
    assert damage in caplog.text


class RefusedFirst(ScriptedBank):
    """A bank whose first batch cannot be read until it is mended, and whose second one can."""

    def fetch(self, *_: object, cursor: Json | None, today: date) -> Iterator[Batch]:  # noqa: ARG002
        self.cursors.append(cursor)
        for number in (1, 2):
            ends = self.answer["One"] if number == 1 else "whole"
            yield Batch(id=f"b{number}", records=self._records("One", number, ends=ends), cursor={"rows": number})


@pytest.mark.requirement("import.atomic")
def test_a_cursor_behind_a_refused_batch_is_not_kept_so_that_its_bookings_come_with_the_next_sync(
    database: OpenStore, clock: Hand, user: User, job: Job
) -> None:
    bank = RefusedFirst()
    bank.ledger["One"] = [COFFEE, replace(COFFEE, amount=Decimal("-3.10"))]
    bank.answer["One"] = "is unreadable"
    with closing(
        SyncEngine(database, {"scripted": bank}, clock, cooldown=COOLDOWN, after_import=lambda _: None)
    ) as engine:
        read = engine.read(user.id, job.id)
        assert read is not None
        assert [each.reason for each in read.refusals] == ["Line 3: not an amount."]
        bank.answer["One"] = "ready"
        connection = connections.find(database, user.id, job.connection_id)
        assert connection is not None
        again = engine.start(connection, is_forced=True).job
        assert again is not None
        engine.read(user.id, again.id)
    assert bank.cursors == [None, None]
