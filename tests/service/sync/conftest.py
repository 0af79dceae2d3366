"""What the tests of the sync engine share: a bank by script, a clock that they move, and a job that is pending."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from analytics.records import TransactionRecord
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.scheduler import Scheduler
from storage import connections, jobs, users
from storage.jobs import Job
from storage.users import User
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank

COFFEE = TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=NOW.date(), counterpart_name="Café")


class Hang:
    """A source that has been asked and answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answers = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.asked.set()
        assert self.answers.wait(60)


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
def sync_engine(database: OpenStore, bank: ScriptedBank, clock: Hand, after: list[str]) -> Iterator[SyncEngine]:
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
    database: OpenStore, bank: ScriptedBank, clock: Hand, sync_engine: SyncEngine, new_days: list[date]
) -> Scheduler:
    return Scheduler(sync_engine, database, {"scripted": bank}, clock, on_new_day=new_days.append)


@pytest.fixture
def user(database: OpenStore) -> User:
    return users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)


@pytest.fixture
def job(database: OpenStore, sync_engine: SyncEngine, user: User) -> Job:
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

    database: OpenStore
    engine: SyncEngine
    scheduler: Scheduler
    bank: ScriptedBank
    clock: Hand
    user: User
    job: Job


@pytest.fixture
def scene(
    database: OpenStore, sync_engine: SyncEngine, scheduler: Scheduler, bank: ScriptedBank, clock: Hand,
    user: User, job: Job,
) -> Scene:  # fmt: skip
    return Scene(database, sync_engine, scheduler, bank, clock, user, job)


def state(database: OpenStore, job: Job) -> tuple[str, str | None]:
    found = jobs.find(database, job.user_id, job.id)
    assert found is not None
    return found.status, found.error
