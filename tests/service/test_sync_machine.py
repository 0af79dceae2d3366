"""The sync engine as a state machine: any order of asking, reading, waiting, failing and booking keeps its promises."""
# ruff: noqa: ARG002 - the protocol of connectors names the arguments

import tempfile
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from connectors.connector import (
    Connection,
    ConsentExpired,
    Json,
    ProviderUnavailable,
    Ready,
    UserActionRequired,
    Waiting,
)
from handlers.clock import Clock
from handlers.sync.engine import NOT_SYNCABLE, SyncEngine
from storage import connections, jobs, schema, users
from storage.connections import StoredConnection
from storage.database import Database
from storage.importing.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from storage.jobs import Job
from tests.conftest import NOW

COOLDOWN = timedelta(minutes=30)
AFTER_FAILURE = timedelta(minutes=2)
NO_PROGRESS = timedelta(minutes=15)
BANKS = ("One", "Two")
STEPS = [0, 1, 119, 120, 899, 900, 1799, 1800]


class Hand(Clock):
    """A clock that the machine moves."""

    moment = NOW

    def now(self) -> datetime:
        return self.moment


class ScriptedBank:
    """A bank that answers as it is told to; its ledgers only grow."""

    name = "scripted"

    def __init__(self) -> None:
        self.answer = dict.fromkeys(BANKS, "ready")
        self.ledger: dict[str, list[TransactionRecord]] = {name: [] for name in BANKS}

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        if self.answer[connection.bank_name] == "needs_user":
            raise UserActionRequired
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        match self.answer[connection.bank_name]:
            case "waits":
                return Waiting(handle={"asked": now.isoformat()})
            case "expired":
                raise ConsentExpired
            case "fails":
                raise ProviderUnavailable
        return Ready()

    def fetch(self, connection: Connection, handle: Json, *, cursor: Json | None, today: date) -> Iterator[Batch]:
        yield Batch(id="b", records=self._records(connection.bank_name))

    def _records(self, bank: str) -> Iterator[Record]:
        yield AccountRecord(stable_key=bank, currency="EUR")
        yield from self.ledger[bank]
        if self.answer[bank] == "breaks":
            raise ProviderUnavailable(detail="in the middle")
        if self.answer[bank] == "breaks badly":
            raise ZeroDivisionError
        yield StatementRecord()

    def next_cursor(self, connection: Connection, handle: Json, *, today: date) -> Json:
        return {"rows": len(self.ledger[connection.bank_name])}

    def finish(self, connection: Connection, handle: Json, *, outcomes: Mapping[str, str | None]) -> None: ...


class Syncs(RuleBasedStateMachine):
    """One user, two banks."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.database = Database(Path(self.folder.name) / "store.duckdb")
        schema.migrate(self.database, now=NOW)
        self.clock = Hand(ZoneInfo("Europe/Berlin"))
        self.bank = ScriptedBank()
        self.sync_engine = SyncEngine(
            self.database, {"scripted": self.bank}, self.clock, cooldown=COOLDOWN, after_import=lambda _: None
        )
        self.final: dict[str, Job] = {}
        self.known: dict[str, list[str]] = {name: [] for name in BANKS}  # job ids, oldest first
        self.stored = dict.fromkeys(BANKS, 0)
        self.allowed_at = dict.fromkeys(BANKS, NOW)

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

    @rule(bank=st.sampled_from(BANKS))
    def ask_for_a_sync(self, bank: str) -> None:
        before = self.jobs_of(bank)
        running = [job for job in before if not job.is_final]
        is_overdue = bool(running) and self.clock.moment - running[0].updated_at >= NO_PROGRESS
        connection = self.connection(bank)
        started = self.sync_engine.start(connection)
        if connection.status in NOT_SYNCABLE:
            assert started.error == NOT_SYNCABLE[connection.status]
            assert started.job is None
            return
        if is_overdue:
            ended = jobs.find(self.database, self.user_id, running[0].id)
            assert ended is not None
            assert (ended.status, ended.error) == ("failed", "The sync timed out")
            self.allowed_at[bank] = min(self.clock.moment + AFTER_FAILURE, self.allowed_at[bank])
        may = (not running or is_overdue) and self.clock.moment >= self.allowed_at[bank]
        assert (started.job is not None) is may
        if started.job is not None:
            assert started.job.status == "pending"
            self.known[bank].append(started.job.id)
            self.allowed_at[bank] = self.clock.moment + COOLDOWN

    @precondition(lambda self: any(self.known.values()))
    @rule(bank=st.sampled_from(BANKS), back=st.integers(0, 2))
    def read_a_job(self, bank: str, back: int) -> None:
        if len(self.known[bank]) <= back:
            return
        before = jobs.find(self.database, self.user_id, self.known[bank][-1 - back])
        assert before is not None
        after = self.sync_engine.read(self.user_id, before.id)
        assert after is not None
        if before.is_final:
            assert after == before
            return
        if self.clock.moment - before.updated_at >= NO_PROGRESS:
            assert (after.status, after.error) == ("failed", "The sync timed out")
        else:
            expected = {
                "ready": "completed", "waits": "syncing", "fails": "failed", "expired": "failed",
                "breaks": "failed", "breaks badly": "failed",
                "needs_user": "failed" if before.status == "pending" else "completed",
            }  # fmt: skip
            assert after.status == expected[self.bank.answer[bank]]
        if after.status == "failed":
            self.allowed_at[bank] = min(self.clock.moment + AFTER_FAILURE, self.allowed_at[bank])
        if after.status == "completed":
            assert after.new_transactions == len(self.bank.ledger[bank]) - self.stored[bank]
            self.stored[bank] = len(self.bank.ledger[bank])
            assert self.connection(bank).status == "ACTIVE"

    @rule(seconds=st.sampled_from(STEPS))
    def time_passes(self, seconds: int) -> None:
        self.clock.moment += timedelta(seconds=seconds)

    @rule(
        bank=st.sampled_from(BANKS),
        answer=st.sampled_from(["ready", "waits", "fails", "needs_user", "expired", "breaks", "breaks badly"]),
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
        if connection.status in NOT_SYNCABLE:
            self.allowed_at[bank] = NOW

    @invariant()
    def final_states_never_change_and_say_what_they_should(self) -> None:
        for bank in BANKS:
            for job in self.jobs_of(bank):
                assert (job.new_transactions is not None) is (job.status == "completed")
                assert (job.error is not None) is (job.status == "failed")
                if job.is_final:
                    assert self.final.setdefault(job.id, job) == job

    @invariant()
    def a_connection_has_one_running_job_at_most(self) -> None:
        for bank in BANKS:
            assert sum(not job.is_final for job in self.jobs_of(bank)) <= 1

    @invariant()
    def what_was_imported_is_what_is_stored(self) -> None:
        imported = sum(job.new_transactions or 0 for bank in BANKS for job in self.jobs_of(bank))
        assert imported == sum(self.stored.values())
        assert self.database.rows("SELECT count(*) AS n FROM transactions")[0]["n"] == imported

    def teardown(self) -> None:
        self.sync_engine.close()
        self.database.close()
        self.folder.cleanup()


Syncs.TestCase.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
TestSyncs = pytest.mark.requirement("sync.machine")(Syncs.TestCase)
