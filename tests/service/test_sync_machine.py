"""The sync engine as a state machine: any order of asking, reading, waiting, failing and booking keeps its promises."""
# ruff: noqa: ARG002 - the protocol of connectors names the arguments

import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connector import (
    Connection,
    ConsentExpired,
    Json,
    MalformedFile,
    ProviderUnavailable,
    RateLimited,
    Ready,
    UserActionRequired,
    Waiting,
)
from handlers.work.clock import Clock
from handlers.work.sync.engine import SyncEngine
from handlers.work.sync.outcomes import NOT_SYNCABLE, TOO_SLOW
from storage import connections, jobs, users
from storage.connections import StoredConnection
from storage.jobs import Job
from tests.conftest import NOW, empty_store, examples

COOLDOWN = timedelta(minutes=30)
AFTER_FAILURE = timedelta(minutes=2)
RESTS = {1: 5, 2: 10, 3: 20, 4: 40, 5: 80, 6: 160, 7: 320}  # minutes after so many failures in a row; then 6 hours
HICCUPS = ("fails", "breaks", "hangs up")
NO_PROGRESS = timedelta(minutes=15)
BANKS = ("One", "Two")
PAUSE = timedelta(seconds=60)  # the longest that leaves a job as it is
CLOSED = timedelta(hours=1)
STEPS = [0, 1, 59, 60, 119, 120, 899, 900, 1799, 1800, 3600]
ANSWERS = {
    "ready": "completed", "waits": "syncing", "pauses": "syncing", "waits too long": "failed", "closes": "failed",
    "fails": "failed", "expired": "failed", "breaks": "failed", "breaks badly": "failed", "hangs up": "failed",
    "is unreadable": "completed", "ends its consent": "completed", "needs_user": "completed",
}  # fmt: skip
STORE_HALF = ("breaks", "breaks badly", "hangs up", "is unreadable")


class Hand(Clock):
    """A clock that the machine moves."""

    moment = NOW

    def now_in_utc(self) -> datetime:
        return self.moment.replace(tzinfo=UTC)

    def steady(self) -> timedelta:
        return self.moment - datetime.min  # noqa: DTZ901 - as the moments of the store


class ScriptedBank:
    """A bank that answers as it is told to; its ledgers only grow."""

    name = "scripted"
    is_local = False
    unattended_syncs_max = None

    def __init__(self) -> None:
        self.answer = dict.fromkeys(BANKS, "ready")
        self.ledger: dict[str, list[TransactionRecord]] = {name: [] for name in BANKS}
        self.cursors: list[Json | None] = []
        self.before_poll: Callable[[], object] = lambda: None
        self.before_second_batch: Callable[[], object] = lambda: None

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        if self.answer[connection.bank_name] == "needs_user":
            raise UserActionRequired
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        self.before_poll()
        match self.answer[connection.bank_name]:
            case "waits":
                return Waiting(handle={"asked": now.isoformat()})
            case "waits too long":
                return Waiting(seconds=NO_PROGRESS.total_seconds())
            case "pauses":
                raise RateLimited(retry_after=PAUSE.total_seconds())
            case "closes":
                raise RateLimited(retry_after=CLOSED.total_seconds())
            case "expired":
                raise ConsentExpired
            case "fails":
                raise ProviderUnavailable
            case "ends its consent":
                return Ready(consent_expires_at=now)
        return Ready()

    def fetch(self, connection: Connection, handle: Json, *, cursor: Json | None, today: date) -> Iterator[Batch]:
        """The ledger in two batches, the second from where the first ends; what is told again is known."""
        bank = connection.bank_name
        rows = len(self.ledger[bank])
        self.cursors.append(cursor)
        yield Batch(id="b1", records=self._records(bank, rows // 2, ends="whole"), cursor={"rows": rows // 2})
        self.before_second_batch()
        if self.answer[bank] == "hangs up":
            raise ProviderUnavailable(detail="between two answers")
        yield Batch(
            id="b2", name="two", records=self._records(bank, rows, ends=self.answer[bank]), cursor={"rows": rows}
        )

    def _records(self, bank: str, rows: int, *, ends: str) -> Iterator[Record]:
        yield AccountRecord(stable_key=bank, currency="EUR")
        yield from self.ledger[bank][:rows]
        match ends:
            case "breaks":
                raise ProviderUnavailable(detail="in the middle")
            case "breaks badly":
                raise ZeroDivisionError
            case "is unreadable":
                raise MalformedFile("line 3: not an amount")
        yield StatementRecord()

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None: ...

    def has_news(self, connection: Connection, *, now: datetime) -> bool:
        return self.is_local and self.answer[connection.bank_name] == "has news"


class Syncs(RuleBasedStateMachine):
    """One user, two banks."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = empty_store(Path(self.folder.name) / "store.duckdb")
        self.clock = Hand(ZoneInfo("Europe/Berlin"))
        self.bank = ScriptedBank()
        self.sync_engine = SyncEngine(
            self.database, {"scripted": self.bank}, self.clock, cooldown=COOLDOWN, after_import=lambda _: None
        )
        self.final: dict[str, Job] = {}
        self.known: dict[str, list[str]] = {name: [] for name in BANKS}  # job ids, oldest first
        self.stored = dict.fromkeys(BANKS, 0)
        self.allowed_at = dict.fromkeys(BANKS, NOW)  # by our own rule
        self.open_at = dict.fromkeys(BANKS, NOW)  # by what the source said of itself
        self.ends_at: dict[str, datetime | None] = dict.fromkeys(BANKS)  # the consent

    @initialize()
    def a_user_with_two_banks(self) -> None:
        user = users.add(
            self.database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW
        )
        self.user_id = user.id
        for name in BANKS:
            connections.add(
                self.database, user_id=user.id, user_name="eva", connector="scripted", bank_name=name, settings={},
                now=NOW,
            )  # fmt: skip

    def connection(self, bank: str) -> StoredConnection:
        return next(each for each in connections.of_user(self.database, self.user_id) if each.bank_name == bank)

    def jobs_of(self, bank: str) -> list[Job]:
        found = [jobs.find(self.database, self.user_id, id_) for id_ in self.known[bank]]
        return [job for job in found if job is not None]

    @rule(bank=st.sampled_from(BANKS), is_forced=st.booleans())
    def ask_for_a_sync(self, bank: str, is_forced: bool) -> None:
        now = self.clock.moment
        running = [job for job in self.jobs_of(bank) if not job.is_final]
        is_overdue = bool(running) and running[0].is_overdue(now)
        connection = self.connection(bank)
        started = self.sync_engine.start(connection, is_forced=is_forced)
        if connection.status in NOT_SYNCABLE or self.is_past_consent(bank):
            status = connection.status if connection.status in NOT_SYNCABLE else "EXPIRED"
            assert started.error == NOT_SYNCABLE[status]
            assert started.job is None
            assert self.connection(bank).status == status
            return
        if is_overdue:
            ended = jobs.find(self.database, self.user_id, running[0].id)
            assert ended is not None
            assert (ended.status, ended.error) == ("failed", "The sync timed out")
            self.allowed_at[bank] = min(now + AFTER_FAILURE, self.allowed_at[bank])
        is_allowed = (is_forced or now >= self.allowed_at[bank]) and now >= self.open_at[bank]
        assert (started.job is not None) is ((not running or is_overdue) and is_allowed)
        if started.job is not None:
            assert started.job.status == "pending"
            self.known[bank].append(started.job.id)
            self.allowed_at[bank] = now + COOLDOWN

    def is_past_consent(self, bank: str) -> bool:
        ends_at = self.ends_at[bank]
        return ends_at is not None and ends_at <= self.clock.moment

    @precondition(lambda self: any(self.known.values()))
    @rule(bank=st.sampled_from(BANKS), back=st.integers(0, 2))
    def read_a_job(self, bank: str, back: int) -> None:
        if len(self.known[bank]) <= back:
            return
        now, answer = self.clock.moment, self.bank.answer[bank]
        before = jobs.find(self.database, self.user_id, self.known[bank][-1 - back])
        assert before is not None
        after = self.sync_engine.read(self.user_id, before.id)
        assert after is not None
        if before.is_final:
            assert after == before
            return
        if before.is_overdue(now):
            assert (after.status, after.error) == ("failed", "The sync timed out")
        elif not before.is_due(now):
            assert after == before, "its source wants to be left alone"
        elif self.is_past_consent(bank):
            assert (after.status, after.error) == ("failed", NOT_SYNCABLE["EXPIRED"])
        elif answer == "needs_user" and before.handle is None:
            assert after.status == "failed"
        else:
            assert after.status == ANSWERS[answer]
            self.follow(bank, answer, before, after)
        if after.status == "failed":
            self.allowed_at[bank] = min(now + AFTER_FAILURE, self.allowed_at[bank])

    def follow(self, bank: str, answer: str, before: Job, after: Job) -> None:
        """What a step that asked the source must have left behind."""
        now = self.clock.moment
        match answer:
            case "waits":
                assert after.next_attempt_at == now + timedelta(seconds=1)
            case "pauses":
                assert after.next_attempt_at == now + PAUSE
            case "waits too long":
                assert after.error == TOO_SLOW
                self.open_at[bank] = now + NO_PROGRESS
            case "closes":
                self.open_at[bank] = now + CLOSED
            case _ if answer in HICCUPS:
                failures = self.connection(bank).failures_in_row
                self.open_at[bank] = now + timedelta(minutes=RESTS.get(failures, 360))
            case "ends its consent":
                self.ends_at[bank] = now
        if after.status == "completed" or answer in STORE_HALF:
            rows = len(self.bank.ledger[bank])
            there = max(self.stored[bank], rows // 2 if answer in STORE_HALF else rows)
            assert after.new_transactions == there - self.stored[bank]
            self.stored[bank] = there
        assert [refusal.name for refusal in after.refusals] == (["two"] if answer == "is unreadable" else [])
        if after.status == "completed":
            assert self.connection(bank).status == "ACTIVE"

    @rule(seconds=st.sampled_from(STEPS))
    def time_passes(self, seconds: int) -> None:
        self.clock.moment += timedelta(seconds=seconds)

    @rule(
        bank=st.sampled_from(BANKS),
        answer=st.sampled_from(sorted(ANSWERS)),
    )
    def the_bank_behaves(self, bank: str, answer: str) -> None:
        self.bank.answer[bank] = answer

    @rule(bank=st.sampled_from(BANKS), count=st.integers(1, 3))
    def the_bank_books(self, bank: str, count: int) -> None:
        ledger = self.bank.ledger[bank]
        for _ in range(count):  # equal rows on purpose: they are counted, not merged
            ledger.append(
                TransactionRecord(
                    amount=Decimal("-2.80"), currency="EUR", booking_date=NOW.date(), counterpart_name="Café"
                )
            )

    @rule(bank=st.sampled_from(BANKS))
    def the_user_connects_again(self, bank: str) -> None:
        connection = self.connection(bank)
        connections.renew(self.database, connection, settings={})
        self.open_at[bank], self.ends_at[bank] = NOW, None
        if connection.status in NOT_SYNCABLE:
            self.allowed_at[bank] = NOW

    @invariant()
    def final_states_never_change_and_say_what_they_should(self) -> None:
        for bank in BANKS:
            for job in self.jobs_of(bank):
                assert job.new_transactions is not None or job.status != "completed"
                assert (job.error is not None) is (job.status == "failed")
                if job.is_final:
                    assert self.final.setdefault(job.id, job) == job

    @invariant()
    def a_connection_has_one_running_job_at_most(self) -> None:
        for bank in BANKS:
            assert sum(not job.is_final for job in self.jobs_of(bank)) <= 1

    @invariant()
    def what_was_imported_is_what_is_stored(self) -> None:
        """Also where a job failed after its first batch: the rows of that one stay, and are counted."""
        imported = sum(job.new_transactions or 0 for bank in BANKS for job in self.jobs_of(bank))
        assert imported == sum(self.stored.values())
        assert self.database.rows("SELECT count(*) AS n FROM transactions")[0]["n"] == imported

    def teardown(self) -> None:
        self.sync_engine.close()
        self.database.close()
        self.folder.cleanup()


Syncs.TestCase.settings = settings(max_examples=examples(12), stateful_step_count=30)
TestSyncs = pytest.mark.requirement("sync.machine")(Syncs.TestCase)
