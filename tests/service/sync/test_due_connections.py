"""What the scheduler looks at: connections that are due, in pieces, each by one process; idle ones cost nothing."""

import re
from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any

import pytest

from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.scheduler import AGAIN, NEVER, PLAN_EVERY, Scheduler
from storage import connections, jobs
from storage.database import Database
from storage.events import consent_notices
from storage.users import User
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.test_sync_machine import COOLDOWN, Hand, ScriptedBank

IDLE = 12_000
EVENING = datetime.fromisoformat("2026-11-20T19:00")  # after the moment of every connection
TOMORROW = datetime.fromisoformat("2026-11-21T12:00")


def add_many(
    database: OpenStore, user: User, count: int, *, connector: str = "scripted", due_at: datetime = connections.AT_ONCE
) -> None:
    """So many connections of one user, in one statement."""
    database.execute(
        "INSERT INTO connections (id, user_id, connector, bank_name, status, told_status, settings, failures_in_row,"
        " created_at, due_at) SELECT 'con_' || n, $1, $2, 'One', 'ACTIVE', 'ACTIVE', '{}', 0, $3, $4"
        " FROM generate_series(1, $5::INT) AS s(n)",
        user.id,
        connector,
        NOW,
        due_at,
        count,
    )


@pytest.fixture
def scheduler_of(database: OpenStore, bank: ScriptedBank, clock: Hand) -> Callable[[SyncEngine], Scheduler]:
    """A process's scheduler with a plan for the evening."""

    def made(engine: SyncEngine) -> Scheduler:
        return Scheduler(
            engine, database, {"scripted": bank}, clock, on_new_day=lambda _: None, plan=[time(18, 30)]
        )  # fmt: skip

    return made


@pytest.fixture
def started(sync_engine: SyncEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The connections that are synced."""
    found: list[str] = []
    monkeypatch.setattr(sync_engine, "start", lambda connection, **_: found.append(connection.id))
    return found


def due_at(database: OpenStore) -> dict[str, datetime]:
    return {row["id"]: row["due_at"] for row in database.rows("SELECT id, due_at FROM connections")}


@pytest.mark.requirement("sync.plan")
def test_thousands_of_idle_connections_are_not_read(
    database: OpenStore, user: User, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    add_many(database, user, IDLE, due_at=TOMORROW)
    database.execute("UPDATE connections SET due_at = $2 WHERE user_id = $1 AND id = 'con_7'", user.id, NOW)
    scheduler = scheduler_of(sync_engine)
    asked: list[int] = []
    asking: Any = type(database.for_everybody())
    rows = asking.rows

    def counted(self: Database, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = rows(self, sql, *parameters)
        asked.append(len(found))
        return found

    monkeypatch.setattr(asking, "rows", counted)
    clock.moment = EVENING
    scheduler.round()
    assert started == ["con_7"]
    assert (len(asked) < 9, sum(asked) <= 2) == (True, True)
    clock.moment += AGAIN
    scheduler.round()  # it is looked at once more, as if the sync had failed
    clock.moment += AGAIN
    asked.clear()
    scheduler.round()
    assert (len(asked) < 9, sum(asked) <= 1) == (True, True)  # what keeps DuckDB's table sorted counts its rows


@pytest.mark.engine("one server")  # a cluster shows the plan of one shard, which may be an empty one
@pytest.mark.requirement("sync.plan")
def test_what_is_due_which_consents_have_run_out_and_what_monitors_ask_is_found_by_an_index(
    database: OpenStore, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_many(database, user, IDLE, due_at=TOMORROW)
    database.execute(
        "INSERT INTO jobs (id, user_id, connection_id, status, created_at, updated_at, is_told)"
        " SELECT 'job_' || n, $1, 'con_' || n, 'completed', $2, $2, TRUE FROM generate_series(1, $3::INT) AS s(n)",
        *(user.id, NOW - timedelta(days=1), IDLE),
    )
    database.execute(  # as whoever has been told that a consent ends in a week
        "UPDATE connections SET consent_expires_at = $1, noticed_end = $1, noticed_days = 7", NOW + timedelta(days=6)
    )
    database.execute("ANALYZE connections, jobs")
    everybody, plans = database.for_everybody(), list[str]()
    rows = type(everybody).rows

    def explained(self: Database, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        plans.append("\n".join(row["QUERY PLAN"] for row in rows(self, f"EXPLAIN {sql}", *parameters)))
        return []

    monkeypatch.setattr(type(everybody), "rows", explained)
    connections.due(everybody, now=NOW, after=None)
    connections.expire_consents(everybody, now=NOW)
    connections.of_connectors(everybody, ["folder"])
    jobs.by_status(everybody, since=NOW)
    consent_notices.record(everybody, now=NOW)
    for plan, indexes in zip(
        plans,
        (
            {"connections_due"},
            {"connections_by_consent"},
            {"connections_by_connector"},
            {"jobs_unfinished", "jobs_by_end"},
            {"connections_by_notice"},
        ),
        strict=True,
    ):
        assert indexes <= set(re.findall(r"\w+", plan))
        assert "Seq Scan" not in plan


@pytest.mark.requirement("sync.plan")
def test_many_that_are_due_are_looked_at_in_pieces_and_each_by_one_process(
    database: OpenStore, user: User, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(connections, "PIECE", 4)
    add_many(database, user, 10)
    one, other = scheduler_of(sync_engine), scheduler_of(sync_engine)
    clock.moment = EVENING
    for _ in range(2):
        one.round()
        other.round()
    assert sorted(started) == sorted(due_at(database))
    assert set(due_at(database).values()) == {EVENING + AGAIN}


@pytest.mark.requirement("sync.plan")
@pytest.mark.parametrize("has_failed", [False, True])
def test_two_processes_that_look_at_one_connection_start_it_once(
    database: OpenStore, user: User, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler], monkeypatch: pytest.MonkeyPatch, has_failed: bool,
) -> None:  # fmt: skip
    add_many(database, user, 1)
    if has_failed:
        (connection,) = connections.of_user(database, user.id)
        job = jobs.start(database, user_id=user.id, connection_id=connection.id, cooldown=COOLDOWN, now=NOW)
        assert job is not None
        jobs.fail(database, job, error="no", now=NOW)
        connections.record_failure(database, user.id, connection.id, status=None)
        database.execute("UPDATE connections SET planned_at = $2 WHERE user_id = $1", user.id, EVENING)
    seen = connections.due(database, now=EVENING, after=None)
    monkeypatch.setattr(connections, "due", lambda *_, **__: list(seen))  # as each of them has read it
    clock.moment = NOW
    one, other = scheduler_of(sync_engine), scheduler_of(sync_engine)
    clock.moment = EVENING
    one.round()
    other.round()
    assert started == ["con_1"]


@pytest.mark.requirement("sync.plan")
def test_what_has_no_plan_is_looked_at_once_and_what_only_others_know_is_left_to_them(
    database: OpenStore, user: User, bank: ScriptedBank, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler],
) -> None:  # fmt: skip
    bank.is_local = True
    add_many(database, user, 1)
    connections.add(
        database, user_id=user.id, user_name="eva", connector="newer", bank_name="Two", settings={}, now=NOW
    )  # fmt: skip
    scheduler = scheduler_of(sync_engine)
    clock.moment = EVENING
    scheduler.round()
    assert sorted(due_at(database).values()) == [connections.AT_ONCE, NEVER]
    assert started == []


@pytest.mark.requirement("sync.plan")
def test_a_connection_that_may_not_be_synced_yet_waits_until_it_may(
    database: OpenStore, user: User, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler],
) -> None:  # fmt: skip
    add_many(database, user, 1)
    scheduler = scheduler_of(sync_engine)
    clock.moment = EVENING
    database.execute("UPDATE connections SET next_sync_at = $2 WHERE user_id = $1", user.id, EVENING + COOLDOWN)
    scheduler.round()
    assert (started, due_at(database)) == ([], {"con_1": EVENING + COOLDOWN})
    clock.moment += COOLDOWN
    scheduler.round()
    assert started == ["con_1"]


@pytest.mark.requirement("sync.plan")
def test_a_failure_of_which_no_job_is_left_is_no_reason_to_try_again_before_the_next_moment(
    database: OpenStore, user: User, clock: Hand, sync_engine: SyncEngine, started: list[str],
    scheduler_of: Callable[[SyncEngine], Scheduler],
) -> None:  # fmt: skip
    add_many(database, user, 1, due_at=TOMORROW)
    connections.record_failure(database, user.id, "con_1", status=None)
    assert due_at(database) == {"con_1": connections.AT_ONCE}
    scheduler = scheduler_of(sync_engine)
    clock.moment += PLAN_EVERY
    scheduler.round()
    [moment] = due_at(database).values()
    assert started == []
    assert timedelta(hours=4) < moment - NOW < timedelta(hours=7)
