"""What the sync engine hands to a live source and takes from it: secrets, who is present, parts that are missing."""
# ruff: noqa: ARG002 - the protocol of connectors names the arguments

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from analytics.records import AccountRecord, Batch, Record, TransactionRecord
from auth.principal import Principal
from connectors.connector import (
    Connection,
    ConsentRevoked,
    Json,
    LeftOut,
    Person,
    ProviderUnavailable,
    RateLimited,
    Ready,
    SourceError,
    Waiting,
)
from handlers.commands.connections import list_connections as list_of_command
from handlers.commands.control_socket import CommandError
from handlers.commands.syncs import sync
from handlers.operations.connections import list_connections
from handlers.work.sync.engine import Started, SyncEngine
from handlers.work.sync.outcomes import NOT_SYNCABLE, ONLY_ATTENDED
from handlers.work.sync.plan import last_moment, leaves_room, next_moments
from handlers.work.sync.scheduler import PLAN_EVERY, Scheduler
from storage import connections, jobs, users
from storage.connections import StoredConnection
from storage.database import Session
from storage.jobs import Job, RefusedBatch
from tests.conftest import NOW
from tests.engines import OpenStore
from tests.service.test_sync_machine import Hand

COOLDOWN = timedelta(minutes=30)
PERSON = Person(address="192.0.2.7", user_agent="Firefox", accept="text/html", accept_language="de")
GIRO = (
    AccountRecord(stable_key="giro", currency="EUR", name="Giro"),
    TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=NOW.date(), counterpart_name="Café"),
)
Told = Callable[[Connection], Iterator[Batch | LeftOut]]


def giro(_: Connection) -> Iterator[Batch | LeftOut]:
    """One account with one booking."""
    records: list[Record] = list(GIRO)
    yield Batch(id="giro", name="Giro", records=iter(records))


@dataclass
class LiveBank:
    """A source on another machine that tells what it is given to tell, and remembers how it was asked."""

    name: str = "live"
    is_local: bool = False
    unattended_syncs_max: int | None = 4
    tell: Told = giro
    asked: list[Connection] = field(default_factory=list)

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        self.asked.append(connection)
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        return Ready()

    def fetch(
        self, connection: Connection, handle: Json, *, cursor: Json | None, today: date
    ) -> Iterator[Batch | LeftOut]:
        return self.tell(connection)

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None: ...


@dataclass
class Drawer:
    """Implements `Secrets`."""

    content: Json

    def read(self, connection: StoredConnection) -> Json:
        return self.content

    def can_read(self, connection: StoredConnection) -> bool:
        return True

    def keep(self, connection: StoredConnection, secrets: Json, *, instead_of: Json) -> bool:
        assert self.content == instead_of
        self.content = secrets
        return True


@dataclass
class Scene:
    """One connection to the live bank and what works on it."""

    database: OpenStore
    engine: SyncEngine
    bank: LiveBank
    clock: Hand
    drawer: Drawer
    connection: StoredConnection

    def start(self, attended: Person | None = None) -> Started:
        """What becomes of the wish to sync."""
        return self.engine.start(self.stored(), attended=attended)

    def sync(self, attended: Person | None = None) -> Job:
        """The job of a sync, after all that it does at once."""
        job = self.start(attended).job
        assert job is not None
        step = self.engine.advance(job)
        assert step is not None
        step.result(60)  # on a machine that is busy, for longer than a reader waits
        found = jobs.find(self.database, job.user_id, job.id)
        assert found is not None
        return found

    def stored(self) -> StoredConnection:
        """The connection as it is now."""
        connection = connections.find(self.database, self.connection.user_id, self.connection.id)
        assert connection is not None
        return connection

    def shown(self) -> dict[str, Any]:
        """The connection in GET /connections."""
        services = SimpleNamespace(clock=self.clock, of=self.database.of, sync_engine=self.engine)
        caller = Principal(
            user_id=self.connection.user_id, client_id="c1", scopes=frozenset(), grant_id=None, has_subscription=True
        )
        request = SimpleNamespace(principal=caller)
        listed = list_connections(services, request)["connections"]  # type: ignore[arg-type]  # what it reads of them
        (found,) = (each for each in listed if each["id"] == self.connection.id)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def scene(database: OpenStore) -> Iterator[Scene]:
    user = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    connection = connections.add(
        database, user_id=user.id, user_name="eva", connector="live", bank_name="One", settings={}, now=NOW
    )
    bank, clock, drawer = LiveBank(), Hand(ZoneInfo("Europe/Berlin")), Drawer({"token": "old"})
    engine = SyncEngine(database, {"live": bank}, clock, cooldown=COOLDOWN, after_import=lambda _: None, secrets=drawer)
    yield Scene(database, engine, bank, clock, drawer, connection)
    engine.close()


@pytest.mark.requirement("sync.secrets")
def test_secrets_that_a_source_gives_anew_stay_though_the_sync_fails(scene: Scene) -> None:
    def renews(connection: Connection) -> Iterator[Batch | LeftOut]:
        yield from giro(connection)
        connection.keep_secrets({"token": "new"})
        raise ProviderUnavailable

    scene.bank.tell = renews
    assert scene.sync().status == "failed"
    assert scene.bank.asked[0].secrets == {"token": "old"}
    assert scene.drawer.content == {"token": "new"}
    assert "token" not in repr(scene.bank.asked[0])


@pytest.mark.requirement("sync.attended")
def test_a_source_is_told_of_the_person_who_asks_and_the_store_forgets_it_with_the_end_of_the_job(scene: Scene) -> None:
    job = scene.sync(attended=PERSON)
    assert (job.status, job.attended) == ("completed", None)
    scene.clock.moment += COOLDOWN
    scene.sync()
    assert [asked.attended for asked in scene.bank.asked] == [PERSON, None]


@pytest.mark.requirement("sync.left-out")
def test_one_account_that_the_source_refuses_is_a_warning_and_the_job_completes(scene: Scene) -> None:
    def half(connection: Connection) -> Iterator[Batch | LeftOut]:
        yield LeftOut(name="Depot", reason="The bank does not show this account.")
        yield from giro(connection)

    scene.bank.tell = half
    job = scene.sync()
    assert (job.status, job.error, job.new_transactions) == ("completed", None, 1)
    assert job.refusals == (RefusedBatch(name="Depot", reason="The bank does not show this account."),)


@pytest.mark.requirement("sync.left-out")
def test_a_source_that_pauses_in_the_middle_goes_on_and_warns_once(scene: Scene) -> None:
    pauses = iter([RateLimited(retry_after=60)])

    def half(connection: Connection) -> Iterator[Batch | LeftOut]:
        yield LeftOut(name="Depot", reason="The bank does not show this account.")
        yield from giro(connection)
        for pause in pauses:
            raise pause

    scene.bank.tell = half
    job = scene.sync()
    assert (job.status, job.next_attempt_at) == ("importing", scene.clock.moment + timedelta(seconds=60))
    assert scene.shown()["isSyncing"]
    scene.clock.moment += timedelta(seconds=60)
    found = scene.engine.read(job.user_id, job.id)
    assert found is not None
    assert (found.status, found.new_transactions, len(found.refusals)) == ("completed", 1, 1)
    assert scene.shown()["quota"]["used"] == 1


@pytest.mark.requirement("sync.left-out")
def test_a_sync_to_which_nothing_came_but_warnings_has_failed(scene: Scene) -> None:
    scene.bank.tell = lambda _: iter([LeftOut(name="Depot", reason="The bank does not show this account.")])
    job = scene.sync()
    assert (job.status, job.error) == ("failed", "The bank does not show this account.")


@pytest.mark.requirement("sync.left-out")
@pytest.mark.long
def test_after_an_unreadable_account_the_cursor_stays_and_the_next_sync_is_told_it_again(scene: Scene) -> None:
    def accounts(first: str) -> Told:
        def tell(_: Connection) -> Iterator[Batch | LeftOut]:
            for key, amount, cursor in (("a", "-1.00", 1), ("b", first, 2), ("c", "-3.00", 3)):
                booking = TransactionRecord(amount=Decimal(amount), currency="EUR", booking_date=NOW.date())
                records: list[Record] = [AccountRecord(stable_key=key, currency="EUR"), booking]
                yield Batch(id=f"{key}{amount}", name=key, records=iter(records), cursor={"read": cursor})

        return tell

    scene.bank.tell = accounts("-1e20")
    job = scene.sync()
    assert (job.status, job.new_transactions, [each.name for each in job.refusals]) == ("completed", 2, ["b"])
    assert scene.stored().cursor == {"read": 1}
    (warning,) = scene.shown()["warnings"]
    assert warning.startswith("b: ")
    scene.bank.tell = accounts("-2.00")
    scene.clock.moment += COOLDOWN
    assert scene.sync().new_transactions == 1
    assert scene.stored().cursor == {"read": 3}
    assert scene.shown()["warnings"] == []


def fails(error: SourceError) -> Told:
    """A source that answers with this."""

    def tell(_: Connection) -> Iterator[Batch | LeftOut]:
        raise error

    return tell


@pytest.mark.requirement("sync.quota")
@pytest.mark.long
def test_four_syncs_in_24_hours_are_asked_for_while_nobody_is_there_and_the_fifth_is_told_when(scene: Scene) -> None:
    for hours in (0, 1, 2, 3):
        scene.clock.moment = NOW + timedelta(hours=hours)
        assert scene.start().job is not None
        assert scene.shown()["quota"] == {
            "limit": 4, "used": hours + 1, "remaining": 3 - hours, "resetsAt": "2026-11-21T12:00:00.000Z"
        }  # fmt: skip
        scene.engine.read(scene.connection.user_id, scene.shown()["lastSync"]["syncId"])
    scene.clock.moment = NOW + timedelta(hours=23, minutes=59)
    assert scene.start() == Started(
        error="The bank allows 4 syncs in 24 hours while you are away, and they are used up. The next one is possible"
        " on 21 November 2026 at 13:00 (Europe/Berlin).",
        is_too_soon=True,
    )
    assert (scene.shown()["canSync"], scene.shown()["nextSyncAllowedAt"]) == (False, "2026-11-21T12:00:00.000Z")
    assert len(scene.bank.asked) == 4
    scene.clock.moment = NOW + timedelta(hours=24)
    assert scene.shown()["canSync"]
    assert scene.sync().status == "completed"


@pytest.mark.requirement("sync.quota")
@pytest.mark.parametrize(("limit", "used"), [(4, 0), (24, 1)])
@pytest.mark.sampled
def test_a_sync_with_its_user_is_not_one_of_the_four_of_a_bank_and_one_of_the_24_of_others(
    scene: Scene, limit: int, used: int
) -> None:
    scene.bank.unattended_syncs_max = limit
    scene.sync(attended=PERSON)
    assert scene.shown()["quota"]["used"] == used


@pytest.mark.requirement("sync.quota")
def test_what_only_its_user_can_open_is_asked_when_it_is_connected_and_never_by_itself(scene: Scene) -> None:
    connections.set_settings(scene.database, scene.connection.user_id, scene.connection.id, {"attended_only": True})
    assert scene.start() == Started(error=ONLY_ATTENDED)
    assert not scene.shown()["canSync"]
    scene.engine.sync_now(scene.stored(), is_first=True)
    for job in jobs.find_unfinished(scene.database):
        scene.engine.read(job.user_id, job.id)
    assert len(scene.bank.asked) == 1
    assert scene.start(attended=PERSON) == Started(error=ONLY_ATTENDED)


@pytest.mark.requirement("sync.source-pauses")
@pytest.mark.long
def test_a_source_that_names_no_time_rests_for_five_minutes_and_twice_as_long_each_time(scene: Scene) -> None:
    scene.bank.unattended_syncs_max = None
    scene.bank.tell = fails(ProviderUnavailable())
    rests = []
    for _ in range(9):
        assert scene.sync().status == "failed"
        until = datetime.fromisoformat(scene.shown()["nextSyncAllowedAt"]).replace(tzinfo=None)
        rests.append((until - scene.clock.moment).total_seconds() / 60)
        scene.clock.moment = until - timedelta(seconds=1)
        assert scene.start() == Started()
        scene.clock.moment = until
    assert rests == [5, 10, 20, 40, 80, 160, 320, 360, 360]
    assert scene.stored().status == "ERROR"
    scene.bank.tell = giro
    assert scene.sync().status == "completed"
    assert (scene.stored().status, scene.stored().failures_in_row) == ("ACTIVE", 0)


@pytest.mark.requirement("sync.source-pauses")
def test_a_renewal_forgets_how_long_the_source_wanted_quiet(scene: Scene) -> None:
    scene.bank.tell = fails(RateLimited(retry_after=7200))
    scene.sync()
    assert scene.shown()["nextSyncAllowedAt"] == "2026-11-20T14:00:00.000Z"
    connections.renew(scene.database, scene.stored(), settings={})
    scene.clock.moment += timedelta(minutes=2)
    scene.bank.tell = giro
    assert scene.sync().status == "completed"


@pytest.mark.requirement("sync.consent")
def test_after_a_consent_was_withdrawn_nothing_is_asked_until_it_is_renewed(scene: Scene) -> None:
    scene.bank.tell = fails(ConsentRevoked())
    scene.sync()
    scene.clock.moment += timedelta(days=1)
    assert scene.start() == Started(error=NOT_SYNCABLE["REVOKED"])
    assert len(scene.bank.asked) == 1


@pytest.mark.requirement("sync.consent")
@pytest.mark.parametrize(("days", "said"), [(14, None), (13, 14), (7, 14), (6, 7), (2, 7), (1, 2), (0, 2)])
def test_the_end_of_a_consent_is_announced_14_7_and_2_days_before(scene: Scene, days: int, said: int | None) -> None:
    ends = NOW + timedelta(days=days, hours=1)
    connections.keep_consent(scene.database, scene.connection.user_id, scene.connection.id, expires_at=ends)
    wanted = [f"The consent for One ends in less than {said} days. Renew the connection before."] if said else []
    assert scene.shown()["warnings"] == wanted
    paper = Paper()
    list_of_command(services_of(scene), paper, user=users.get_by_name(services_of(scene).everybody, "eva"))
    assert paper.notes == wanted


@pytest.mark.requirement("sync.plan")
def test_every_connection_has_moments_of_its_own_within_45_minutes_of_the_times_of_the_plan() -> None:
    zone, noon = (
        ZoneInfo("Europe/Berlin"),
        datetime.fromisoformat("2026-11-20T12:00"),
    )  # in UTC; Berlin is an hour ahead
    moments = {last_moment(f"con_{n}", (time(6, 30), time(18, 30)), zone=zone, now=noon) for n in range(100)}
    assert len(moments) == 100
    first, last = datetime.fromisoformat("2026-11-20T04:45"), datetime.fromisoformat("2026-11-20T06:15")
    assert all(moment is not None and first <= moment <= last for moment in moments)
    assert last_moment("con_1", (), zone=zone, now=noon) is None


@pytest.mark.requirement("sync.plan")
def test_a_connection_is_synced_once_for_each_moment_of_the_plan_though_the_server_was_down_then(scene: Scene) -> None:
    plan = (time(6, 30), time(18, 30))
    scheduler = Scheduler(
        scene.engine, scene.database, {"live": scene.bank}, scene.clock, on_new_day=lambda _: None, plan=plan
    )

    def jobs_after(moment: datetime) -> int:
        for _ in range(2):
            scene.clock.moment = moment
            moment += PLAN_EVERY
            scheduler.round()
        for job in scene.database.rows("SELECT id FROM jobs"):
            scene.engine.read(scene.connection.user_id, job["id"])
        return len(scene.database.rows("SELECT id FROM jobs"))

    assert jobs_after(NOW + timedelta(hours=1)) == 0  # connected after this morning's moment
    assert jobs_after(datetime.fromisoformat("2026-11-20T19:00")) == 1
    assert jobs_after(datetime.fromisoformat("2026-11-20T21:00")) == 1
    assert jobs_after(datetime.fromisoformat("2026-11-23T12:00")) == 2
    connections.set_settings(scene.database, scene.connection.user_id, scene.connection.id, {"attended_only": True})
    assert jobs_after(datetime.fromisoformat("2026-11-24T12:00")) == 2  # nobody is there for it


@pytest.mark.requirement("sync.plan")
def test_a_planned_sync_that_cannot_begin_holds_up_no_other_and_is_logged_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    other = connections.add(
        scene.database, user_id=scene.connection.user_id, user_name="eva", connector="live", bank_name="Two",
        settings={}, now=NOW + timedelta(seconds=1),
    )  # fmt: skip
    takes, broken = connections.keep_plan, [scene.connection.id]

    def keep_plan(session: Session, connection: StoredConnection, **moments: datetime) -> bool:
        if connection.id in broken:
            raise ZeroDivisionError
        return takes(session, connection, **moments)

    def synced() -> set[str]:
        scene.clock.moment += PLAN_EVERY
        scheduler.round()
        return {row["connection_id"] for row in scene.database.rows("SELECT connection_id FROM jobs")}

    monkeypatch.setattr(connections, "keep_plan", keep_plan)
    scheduler = Scheduler(
        scene.engine, scene.database, {"live": scene.bank}, scene.clock, on_new_day=lambda _: None, plan=[time(18, 30)]
    )
    scene.clock.moment = datetime.fromisoformat("2026-11-20T19:00")
    assert [synced(), synced()] == [{other.id}, {other.id}]
    assert caplog.text.count(f"goes on without {scene.connection.id}") == 1
    broken.clear()
    assert synced() == {scene.connection.id, other.id}


@pytest.mark.requirement("sync.plan")
@pytest.mark.long
def test_a_planned_sync_that_failed_is_tried_again_with_growing_pauses_until_it_goes_well(scene: Scene) -> None:
    scheduler = Scheduler(
        scene.engine, scene.database, {"live": scene.bank}, scene.clock, on_new_day=lambda _: None, plan=[time(18, 30)]
    )
    scene.bank.tell = fails(ProviderUnavailable())
    first = scene.clock.moment = datetime.fromisoformat("2026-11-20T19:00")

    def minutes_of_jobs(until: int) -> list[int]:
        """How long after the first one each job began, looked at each minute."""
        while scene.clock.moment < first + timedelta(minutes=until):
            scheduler.round()
            for job in scene.database.rows("SELECT id FROM jobs"):
                scene.engine.read(scene.connection.user_id, job["id"])
            scene.clock.moment += PLAN_EVERY
        rows = scene.database.rows("SELECT created_at FROM jobs ORDER BY created_at")
        return [round((row["created_at"] - first).total_seconds() / 60) for row in rows]

    assert minutes_of_jobs(20) == [0, 5, 15]
    scene.bank.tell = giro
    assert minutes_of_jobs(90) == [0, 5, 15, 35]


@pytest.mark.requirement("sync.plan")
def test_a_planned_sync_for_which_nothing_was_left_is_tried_again_when_something_is(scene: Scene) -> None:
    scheduler = Scheduler(
        scene.engine, scene.database, {"live": scene.bank}, scene.clock, on_new_day=lambda _: None, plan=[time(18, 30)]
    )
    scene.bank.unattended_syncs_max = 2
    scene.bank.tell = fails(ProviderUnavailable())
    noon = scene.clock.moment

    def jobs_after(moment: datetime) -> int:
        for _ in range(2):
            scene.clock.moment = moment
            moment += PLAN_EVERY
            scheduler.round()
        return len(scene.database.rows("SELECT id FROM jobs"))

    scene.sync()
    scene.clock.moment += COOLDOWN
    scene.sync()
    assert jobs_after(noon + timedelta(hours=8)) == 2  # both are used up when its moment comes
    assert jobs_after(noon + timedelta(hours=23)) == 2
    assert jobs_after(noon + timedelta(hours=24, minutes=1)) == 3


@pytest.mark.requirement("sync.plan")
@pytest.mark.requirement("sync.quota")
def test_apps_leave_the_planned_syncs_what_they_need_of_the_quota(scene: Scene) -> None:
    engine = SyncEngine(
        scene.database, {"live": scene.bank}, scene.clock, cooldown=COOLDOWN, after_import=lambda _: None,
        secrets=scene.drawer, plan=(time(6, 30), time(18, 30)),
    )  # fmt: skip

    def app_syncs() -> str | None:
        started = engine.start(scene.stored(), keeps_plan=True)
        if started.job is not None:
            step = engine.advance(started.job)
            assert step is not None
            step.result(60)
        scene.clock.moment += COOLDOWN
        return started.error

    assert [app_syncs(), app_syncs()] == [None, None]
    refusal = app_syncs()
    assert refusal is not None
    assert "4 syncs in 24 hours while you are away, and the rest is kept for the planned ones. The next one" in refusal
    assert engine.start(scene.stored()).job is not None  # the planned one itself
    engine.close()


@pytest.mark.requirement("sync.plan")
def test_room_is_left_for_each_planned_sync_of_the_next_24_hours() -> None:
    noon, zone = datetime.fromisoformat("2026-11-20T12:00"), ZoneInfo("UTC")
    planned = next_moments("con_1", (time(6, 30), time(18, 30)), zone=zone, now=noon)
    evening, morning = planned
    assert noon < evening < datetime.fromisoformat("2026-11-20T19:16")
    assert datetime.fromisoformat("2026-11-21T05:44") < morning < noon + timedelta(days=1)

    def has_room(*hours_ago: int) -> bool:
        return leaves_room([noon - timedelta(hours=each) for each in hours_ago], planned, limit=4)

    assert has_room()
    assert has_room(6)  # and two planned ones to come
    assert has_room(20, 21, 6)  # those of yesterday count no more when tomorrow's comes
    assert not has_room(3, 2)  # tomorrow morning they, this call and the evening's are four
    assert leaves_room([], [], limit=1)
    assert not leaves_room([], planned, limit=2)


def services_of(scene: Scene) -> Any:
    """What commands use of the services."""
    return SimpleNamespace(
        everybody=scene.database,
        of=scene.database.of,
        sync_engine=scene.engine,
        clock=scene.clock,
        connecting=SimpleNamespace(sources={"live": scene.bank}),
    )


class Paper:
    """What a command prints."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.notes: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> int | None: ...


def said(scene: Scene, *, is_forced: bool = False) -> str:
    """What `bankdata sync` says of the connection."""
    services, paper = services_of(scene), Paper()
    with suppress(CommandError):
        sync(services, paper, user=users.get_by_name(services.everybody, "eva"), is_forced=is_forced)
    return paper.lines[-1].removeprefix("eva\tOne\t")


@pytest.mark.requirement("sync.forced")
@pytest.mark.long
def test_the_operator_may_sync_within_the_30_minutes_and_never_more_often_than_the_bank_allows(scene: Scene) -> None:
    assert said(scene) == "1 new transaction"
    assert said(scene) == "skipped: synced recently"
    assert [said(scene, is_forced=True) for _ in range(3)] == ["0 new transactions"] * 3
    assert said(scene, is_forced=True).startswith("failed: The bank allows 4 syncs in 24 hours")


@pytest.mark.requirement("sync.forced")
def test_a_sync_that_was_cut_off_goes_on_with_the_next_command(scene: Scene) -> None:
    assert services_of(scene).sync_engine.start(scene.stored()).job is not None
    assert said(scene) == "1 new transaction"
    assert said(scene) == "skipped: synced recently"
