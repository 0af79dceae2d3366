"""A file that has been imported before is not read again while that would change nothing: whatever happens in between,
the store is the one that reading it makes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from handlers.sync.file_import import CONNECTION_DEFAULT, again_or_read, store_file
from storage import accounts, connections, jobs, users
from storage.connections import StoredConnection
from storage.database import Database, Transaction
from storage.importing import known_files, runs
from storage.importing.account_identity import NEW_ACCOUNT, AccountUnclear
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.known_files import KnownFile
from storage.importing.records import AccountRecord, Batch, InvalidRecord, ReaderUsed, Record, StatementRecord
from storage.row_owners import OF_USERS
from storage.undo_and_merge import rebuild
from storage.undo_and_merge.rebuild import OtherCurrency, SameAccount
from storage.users import User
from tests.conftest import NOW, empty_store, examples
from tests.storage.conftest import GIRO, bookings

SAVINGS = AccountRecord(stable_key="DE02300209000106531065", iban="DE02300209000106531065", currency="EUR")
CARD = AccountRecord(stable_key="4711", currency="EUR", name="Card")
UNNAMED = AccountRecord(stable_key="unnamed", currency="EUR", is_anonymous=True)
TODAY = NOW.date()
JANUARY = "2026-01-05 | -10 | Shop | a\n2026-01-05 | -10 | Shop | a\n2026-01-20 | 500 | Work | pay"


def stated(opening: str, first: str, closing: str, last: str, sequence: str) -> StatementRecord:
    return StatementRecord(
        opening=Decimal(opening),
        opening_date=date.fromisoformat(first),
        closing=Decimal(closing),
        closing_date=date.fromisoformat(last),
        sequence=sequence,
        is_authoritative=True,
    )


def closing(amount: str, day: date | None) -> StatementRecord:
    return StatementRecord(closing=Decimal(amount), closing_date=day)


FILES: dict[str, list[Record]] = {
    "january": [GIRO, *bookings(JANUARY), stated("100", "2025-12-31", "580", "2026-01-31", "1")],
    "to february": [
        GIRO,
        *bookings(f"{JANUARY}\n2026-01-05 | -10 | Shop | a\n2026-02-03 | -7 | Bakery | rolls"),
        stated("100", "2025-12-31", "563", "2026-02-28", "2"),
    ],
    "in other words": [
        GIRO,
        *bookings("2026-01-05 | -10 | Shop | a\n2026-01-20 | 500 | WORK LTD | salary of january"),
        StatementRecord(are_days_complete=True),
    ],
    "after a gap": [
        GIRO,
        *bookings("2026-09-10 | -1 | Far | away"),
        stated("90", "2026-08-31", "89", "2026-09-30", "9"),
    ],
    "two accounts": [
        GIRO,
        *bookings("2026-03-03 | -300 | Me | to savings"),
        SAVINGS,
        *bookings("2026-03-03 | 300 | Me | to savings"),
        closing("300", date(2026, 3, 31)),
    ],
    "of a container": [
        replace(SAVINGS, part=1),
        *bookings("2026-04-01 | 1 | Bank | interest"),
        replace(SAVINGS, part=2),
        *bookings("2026-04-01 | 1 | Bank | interest\n2026-04-30 | 2 | Bank | more"),
    ],
    "card": [
        CARD,
        *bookings("2026-02-01 | -5 | Cafe | x | provider_id=1\n2026-02-02 | -6 | Kiosk | y | provider_id=2"),
    ],
    "card in other words": [CARD, *bookings("2026-02-01 | -5 | Cafe Berlin | xx | provider_id=1")],
    "card, mixed": [CARD, *bookings("2026-02-01 | -5 | Cafe | x | provider_id=1\n2026-02-09 | -9 | Kiosk | z")],
    "unnamed": [UNNAMED, *bookings("2026-05-01 | -1 | A | a\n2026-05-02 | -2 | B | b\n2026-05-03 | -3 | C | c")],
    "unnamed, longer": [
        UNNAMED,
        *bookings("2026-05-01 | -1 | A | a\n2026-05-02 | -2 | B | b\n2026-05-03 | -3 | C | c\n2026-05-04 | -4 | D | d"),
    ],
    "unnamed, another": [UNNAMED, *bookings("2026-05-01 | -71 | Q | q\n2026-05-09 | -72 | R | r")],
    "pending": [GIRO, *bookings("2026-02-03 | -7 | Bakery | announced", status="pending")],
    "nothing pending": [GIRO, StatementRecord(is_pending_complete=True)],
    "balance alone": [GIRO, closing("77", date(2026, 10, 1))],
    "other balance alone": [GIRO, closing("78", date(2026, 10, 1))],
    "balance of no day": [SAVINGS, *bookings("2026-11-01 | -1 | A | a"), closing("5", None)],
    "balance ahead": [GIRO, *bookings("2026-11-02 | -1 | A | a"), closing("6", TODAY + timedelta(days=70))],
    "booking ahead": [GIRO, *bookings(f"{TODAY + timedelta(days=40)} | -1 | A | a")],
    "empty": [SAVINGS],
}
LIVE: list[Record] = [
    GIRO,
    *bookings("2026-01-05 | -10 | Shop | a | provider_id=l1\n2026-02-03 | -7 | BAKERY | rolls | provider_id=l2"),
    closing("600", None),
]


@dataclass
class Store:
    """One user's store, in which files are read each time, or not."""

    database: Database
    user: User
    is_quick: bool
    now: datetime = NOW
    version: str = "1"
    jobs: list[str] = field(default_factory=list)
    unread: int = 0

    def bring(self, name: str, choice: str | None = None) -> tuple[int, int]:
        """Import a file; how many of its bookings are new, and known."""
        self.now += timedelta(seconds=1)
        job_id = f"{self.user.name}-{len(self.jobs)}"
        self.jobs.append(job_id)
        counts: list[tuple[int, int]] = []

        def store(read: ReadBatch | KnownFile) -> None:
            def work(session: Transaction) -> None:
                result = store_file(
                    session,
                    read,
                    user=self.user,
                    connection=CONNECTION_DEFAULT,
                    choice=choice,
                    now=self.now,
                    job_id=job_id,
                )
                counts.append((sum(each.new for each in result), sum(each.known for each in result)))

            self.database.atomically(work)
            self.unread += isinstance(read, KnownFile)

        again_or_read(self.known(name, choice), store, partial(self.read, name))
        return counts[-1]

    def read(self, name: str) -> ReadBatch:
        reading = ReaderUsed(self.version, "camt") if self.is_quick else None
        return read_batch(
            Batch(id=f"file:{name}", records=iter(FILES[name]), name=name, reading=reading), today=self.now.date()
        )

    def known(self, name: str, choice: str | None = None) -> KnownFile | None:
        return known_files.find(
            self.database,
            user_id=self.user.id,
            connection_id=connections.id_of(user_name=self.user.name, connector="files", bank_name=CONNECTION_DEFAULT),
            id_=f"file:{name}",
            name=name,
            version=self.version,
            choice=choice,
            today=self.now.date(),
        )

    def bring_live(self) -> None:
        """A sync of a bank."""
        self.now += timedelta(seconds=1)
        job_id = f"{self.user.name}-{len(self.jobs)}"
        self.jobs.append(job_id)

        def work(session: Transaction) -> None:
            source = self.live(session)
            job = jobs.start(
                session,
                user_id=self.user.id,
                connection_id=source.id,
                cooldown=timedelta(0),
                now=self.now,
                job_id=job_id,
                is_forced=True,
            )
            assert job is not None
            batch = read_batch(Batch(id=f"live:{job_id}", records=iter(LIVE)), today=self.now.date())
            runs.store_batch(session, job, source, batch, now=self.now)
            runs.complete(session, job, now=self.now)

        self.database.atomically(work)

    def live(self, session: Transaction) -> StoredConnection:
        return connections.add(
            session,
            user_id=self.user.id,
            user_name=self.user.name,
            connector="demo",
            bank_name="Testbank",
            settings={},
            now=self.now,
        )

    def undo(self, number: int) -> None:
        job_id = self.jobs[number % len(self.jobs)] if self.jobs else "none"
        self.now += timedelta(seconds=1)
        self.database.atomically(partial(rebuild.undo, user=self.user, job_id=job_id, now=self.now))

    def merge(self, source: int, target: int) -> None:
        ids = self.accounts()
        self.now += timedelta(seconds=1)
        if ids:
            source_id, target_id = ids[source % len(ids)], ids[target % len(ids)]
            work = partial(rebuild.merge, user=self.user, source_id=source_id, target_id=target_id, now=self.now)
            self.database.atomically(work)

    def delete(self, number: int) -> None:
        ids = self.accounts()
        self.now += timedelta(seconds=1)
        if ids:
            id_ = ids[number % len(ids)]
            self.database.atomically(partial(rebuild.delete, user=self.user, account_id=id_, now=self.now))

    def chosen(self, name: str, number: int) -> tuple[int, int]:
        """Import a file into an account, or as a new one."""
        choices = [*self.accounts(), NEW_ACCOUNT]
        return self.bring(name, choices[number % len(choices)])

    def accounts(self) -> list[str]:
        return [each.id for each in accounts.every(self.database, self.user.id)]

    def is_giro(self, account_id: str) -> bool:
        found = accounts.every(self.database, self.user.id)
        return any(each.id == account_id and each.iban == GIRO.iban for each in found)

    def wait(self, days: int) -> None:
        self.now += timedelta(days=days)

    def another_reader(self) -> None:
        self.version += "1"

    def content(self) -> dict[str, list[str]]:
        """Everything that is stored of the user but what is kept of known files."""
        found = {}
        for table, column in OF_USERS.items():
            if table not in ("known_files", "users"):
                rows = self.database.rows(f"SELECT * FROM {table} WHERE {column} = $1", self.user.id)
                found[table] = sorted(str({**row, "user_id": None}) for row in rows)
        told = self.database.rows("SELECT data_version, journal_sequence FROM users WHERE id = $1", self.user.id)
        return {**found, "users": list(map(str, told))}


Step = Callable[[Store], object]
names = st.sampled_from(sorted(FILES))
numbers = st.integers(0, 30)
steps: st.SearchStrategy[Step] = st.one_of(
    names.map(lambda name: lambda store: store.bring(name)),
    names.map(lambda name: lambda store: (store.bring(name), store.bring(name))),
    st.tuples(names, numbers).map(lambda given: lambda store: store.chosen(*given)),
    numbers.map(lambda number: lambda store: store.undo(number)),
    st.tuples(numbers, numbers).map(lambda given: lambda store: store.merge(*given)),
    numbers.map(lambda number: lambda store: store.delete(number)),
    st.sampled_from([1, 30]).map(lambda days: lambda store: store.wait(days)),
    st.just(lambda store: store.bring_live()),
    st.just(lambda store: store.another_reader()),
)
REFUSALS = (AccountUnclear, InvalidRecord, rebuild.ImportUnknown, SameAccount, OtherCurrency)


def outcome(step: Step, store: Store) -> object:
    try:
        return step(store)
    except REFUSALS as error:
        return str(error)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Callable[[], tuple[Store, Store]]]:
    """New users in two stores: in one files are not read again, in the other they are."""
    databases = [empty_store(tmp_path / f"{name}.duckdb") for name in ("quick", "slow")]
    numbers = count()

    def made() -> tuple[Store, Store]:
        name = f"user{next(numbers)}"
        added = [
            users.add(each, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
            for each in databases
        ]
        return Store(databases[0], added[0], is_quick=True), Store(databases[1], added[1], is_quick=False)

    yield made
    for each in databases:
        each.close()


@pytest.mark.requirement("import.idempotent")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(8))
@given(st.lists(steps, min_size=2, max_size=6))
def test_a_file_that_is_not_read_leaves_the_store_that_reading_it_makes(
    pair: Callable[[], tuple[Store, Store]], walk: Sequence[Step]
) -> None:
    quick, slow = pair()
    last: list[Step] = [partial(Store.bring, name=name) for name in ("january", "unnamed", "card")]
    for step in [*walk, *last]:
        assert outcome(step, quick) == outcome(step, slow)
    assert quick.content() == slow.content()


@pytest.mark.requirement("import.idempotent")
@pytest.mark.parametrize("name", sorted(FILES))
def test_which_files_are_read_again(pair: Callable[[], tuple[Store, Store]], name: str) -> None:
    quick, slow = pair()
    told = [[store.bring(name) for _ in range(3)] for store in (quick, slow)]
    assert told[0] == told[1]
    assert quick.content() == slow.content()
    is_read = name in ("pending", "nothing pending", "balance of no day", "balance ahead")
    assert quick.unread == (0 if is_read else 2)


STEPS: dict[str, tuple[Step, bool]] = {
    "nothing": (lambda _: None, True),
    "another month": (lambda store: store.bring("after a gap"), True),
    "another account": (lambda store: store.bring("card"), False),
    "bookings of the same days": (lambda store: store.bring("to february"), False),
    "the same in other words": (lambda store: store.bring("in other words"), True),
    "a sync": (lambda store: store.bring_live(), False),
    "undone": (lambda store: store.undo(0), False),
    "deleted": (lambda store: store.delete(0), False),
    "another reader": (lambda store: store.another_reader(), False),
    "an earlier day": (lambda store: store.wait(-1), False),
    "a later day": (lambda store: store.wait(30), True),
}


@pytest.mark.requirement("import.idempotent")
@pytest.mark.parametrize("between", STEPS)
def test_after_what_a_file_is_read_again(pair: Callable[[], tuple[Store, Store]], between: str) -> None:
    quick, slow = pair()
    step, is_unread = STEPS[between]
    for store in (quick, slow):
        store.bring("january")
        step(store)
        store.unread = 0
        store.bring("january")
    assert quick.content() == slow.content()
    assert quick.unread == is_unread


@pytest.mark.requirement("import.idempotent")
@pytest.mark.parametrize("how", [Store.delete, Store.undo])
def test_what_a_file_said_is_kept_no_longer_than_what_it_brought(
    pair: Callable[[], tuple[Store, Store]], how: Callable[[Store, int], None]
) -> None:
    store, _ = pair()
    store.bring("january")
    store.bring("card")
    (january,) = (number for number, each in enumerate(store.accounts()) if store.is_giro(each))
    how(store, january if how is Store.delete else 0)
    (left,) = store.database.rows("SELECT outcome FROM known_files WHERE user_id = $1", store.user.id)
    assert CARD.stable_key in left["outcome"]


def test_a_file_in_a_new_account_each_time_is_read_each_time(pair: Callable[[], tuple[Store, Store]]) -> None:
    quick, _ = pair()
    assert [quick.bring("card", NEW_ACCOUNT) for _ in range(3)] == [(2, 0)] * 3
    assert quick.unread == 0
