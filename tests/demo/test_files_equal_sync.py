"""The same demo history by sync and by file gives the same bookings, through the real import core."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import BinaryIO

import pytest

from analytics.records import Batch, Record, TransactionRecord
from connectors.camt import reader as camt
from connectors.camt import writer as camt053
from connectors.classified_records import without_classes
from connectors.connector import Connection, Json
from connectors.mt940 import reader as mt940
from connectors.ofx import reader as ofx
from connectors.ofx import writer as ofx_statement
from connectors.own_formats import csv as csv_statement
from connectors.sources.demo.connector import DemoBank
from connectors.sources.demo.households import USERS
from storage import connections, users
from storage.database import Database
from storage.importing import ingest
from storage.importing.batches import read_batch
from tests.conftest import NOW, empty_store
from tests.engines import ENGINE, STORE, opened
from tests.statements import mt940_writer as mt940_statement

pytestmark = pytest.mark.no_cover  # whole histories, see tests/conftest.py

TODAY = date(2026, 11, 20)
MADE = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
Fetch = Callable[..., list[Record]]
Write = Callable[[Iterable[Record], BinaryIO], None]
Read = Callable[[BinaryIO], Iterable[Record]]
FORMATS: dict[str, tuple[Write, Read]] = {
    "camt053": (lambda records, stream: camt053.write(records, stream, created=MADE), camt.read),
    "mt940": (mt940_statement.write, mt940.read),
    "ofx": (lambda records, stream: ofx_statement.write(records, stream, created=MADE, today=MADE.date()), ofx.read),
    "csv": (lambda records, stream: csv_statement.write(without_classes(records), stream), csv_statement.read),
}
SAID = "booking_date, value_date, amount, currency, counterpart_name, counterpart_iban, counterpart_bic, purpose"


@dataclass
class Ledger:
    """One user's store; `bring` imports records as one job of the connection to a bank."""

    database: Database
    user: users.User
    now: datetime
    jobs: int = 0
    booked: int = 0  # new rows of the last import

    def bring(self, records: Iterable[Record], *, connector: str = "demo", bank: str = "Musterbank") -> int:
        self.jobs += 1
        batch = read_batch(Batch(id=f"batch-{self.jobs}", records=iter(list(records))), today=self.now.date())

        def work(session: object) -> int:
            connection = connections.add(
                session,  # type: ignore[arg-type]  # whatever `atomically` hands over
                user_id=self.user.id,
                user_name=self.user.name,
                connector=connector,
                bank_name=bank,
                settings={},
                now=self.now,
            )
            report = ingest.store(
                session,  # type: ignore[arg-type]  # as above
                user=self.user,
                connection=connection,
                job_id=f"job-{self.jobs}",
                batch=batch,
                now=self.now,
            )
            return report.new_transactions

        self.booked = self.database.atomically(work)
        return self.booked

    def rows(self, columns: str) -> list[tuple[object, ...]]:
        """Booked rows that a bank told, in the order of their content."""
        found = self.database.rows(
            f"SELECT {columns} FROM transactions WHERE user_id = $1 AND NOT is_adjusting_entry ORDER BY ALL",
            self.user.id,
        )
        return [tuple(row.values()) for row in found]

    def balances(self) -> list[tuple[object, ...]]:
        found = self.database.rows(
            "SELECT iban, currency, balance FROM accounts WHERE user_id = $1 ORDER BY ALL", self.user.id
        )
        return [tuple(row.values()) for row in found]


def new_ledger(database: Database, name: str, now: datetime) -> Ledger:
    """A new user without data."""
    user = users.add(database, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=now)
    return Ledger(database, user, now)


@pytest.fixture
def ledger(database: Database, now: datetime) -> Callable[[str], Ledger]:
    """A new user without data."""
    return lambda name: new_ledger(database, name, now)


Brought = Callable[..., Ledger]


@pytest.fixture(scope="module")
def brought(fetched: Fetch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brought]:
    """The ledger of a user whose history was synced, or came in a file of a format: made once for all tests, which
    only read it."""
    with ExitStack() as stores:

        @cache
        def bring(user: str, format_: str | None = None) -> Ledger:
            store = stores.enter_context(closing(empty_store(tmp_path_factory.mktemp("brought") / STORE)))
            made = new_ledger(store, user, NOW)
            if format_ is None:
                made.bring(fetched(user))
            else:
                made.bring(by_file(format_, fetched(user)), connector="files")
            return made

        yield bring


@pytest.fixture(scope="module")
def solo(fetched: Fetch, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, users.User]:
    """The closed store of a user with a synced history, which tests copy."""
    folder = tmp_path_factory.mktemp("solo")
    with closing(empty_store(folder / STORE)) as store:
        made = new_ledger(store, "solo", NOW)
        made.bring(fetched("solo"))
    return folder, made.user


@pytest.fixture
def synced(solo: tuple[Path, users.User], tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with the synced history of one user, for one test."""
    folder, user = solo
    with closing(opened(ENGINE.url(ENGINE.copy(folder, tmp_path / "copy") / STORE))) as store:
        yield Ledger(store, user, NOW, jobs=1)


def by_file(format_: str, records: Sequence[Record]) -> list[Record]:
    """The records as they come back out of a file of the format."""
    write, read = FORMATS[format_]
    stream = io.BytesIO()
    write(records, stream)
    stream.seek(0)
    return list(read(stream))


@pytest.mark.requirement("import.files-equal-sync")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("user", ["demo", "solo", "lapsed", "globe"])
@pytest.mark.sampled
def test_a_file_of_the_history_gives_the_bookings_of_the_sync(format_: str, user: str, brought: Brought) -> None:
    synced, filed = brought(user), brought(user, format_)
    assert filed.booked == synced.booked
    assert filed.rows(SAID) == synced.rows(SAID)
    assert filed.balances() == synced.balances()


@pytest.mark.requirement("import.files-equal-sync")
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.sampled
def test_types_are_those_of_the_sync_whatever_the_format(format_: str, brought: Brought) -> None:
    same = f"{SAID}, type, merchant_name"
    assert brought("solo", format_).rows(same) == brought("solo").rows(same)


@pytest.mark.requirement("import.files-equal-sync")
@pytest.mark.parametrize("format_", ["camt053", "mt940", "csv"])
@pytest.mark.sampled
def test_a_file_of_what_was_synced_brings_no_new_row(format_: str, fetched: Fetch, synced: Ledger) -> None:
    before = synced.rows("id, created_at")
    assert synced.bring(by_file(format_, fetched("solo")), connector="files") == 0
    assert synced.rows("id, created_at") == before


@pytest.mark.requirement("export.again")
@pytest.mark.parametrize("format_", ["camt053", "ofx", "csv"])
@pytest.mark.sampled
def test_an_export_under_our_own_ids_comes_back_without_a_new_row(format_: str, fetched: Fetch, synced: Ledger) -> None:
    account, *_, statement = fetched("solo")
    own = synced.database.rows("SELECT * FROM transactions WHERE user_id = $1", synced.user.id)
    exported = [
        TransactionRecord(
            amount=row["amount"],
            currency=row["currency"],
            booking_date=row["booking_date"],
            provider_id=row["id"],
            purpose="another text",
        )
        for row in own
    ]
    assert synced.bring(by_file(format_, [account, *exported, statement]), connector="files") == 0
    assert len(synced.rows("id")) == len(own)


@pytest.mark.requirement("demo.grows")
@pytest.mark.long
def test_syncing_day_by_day_ends_where_one_sync_ends(ledger: Callable[[str], Ledger]) -> None:
    setting = next(user for user in USERS if user.name == "solo").connections[0]
    found = Connection(id="con_1", user_id="usr_1", bank_name="Musterbank", settings=setting)
    daily, at_once = ledger("daily"), ledger("at_once")
    bank = DemoBank()
    cursor: Json | None = None
    start = TODAY - timedelta(days=6)
    for days in range(7):
        today = start + timedelta(days=days)
        for batch in bank.fetch(found, {}, cursor=cursor, today=today):
            daily.bring(batch.records)
            cursor = batch.cursor
    for batch in bank.fetch(found, {}, cursor=None, today=TODAY):
        at_once.bring(batch.records)
    assert daily.rows(f"{SAID}, type, category") == at_once.rows(f"{SAID}, type, category")
    assert daily.balances() == at_once.balances()


@pytest.mark.requirement("demo.pending")
@pytest.mark.parametrize("today", [date(2026, 11, 20), date(2026, 12, 23)])
@pytest.mark.long
def test_every_announced_row_that_books_keeps_its_id(today: date, ledger: Callable[[str], Ledger]) -> None:
    setting = next(user for user in USERS if user.name == "demo").connections[1]
    found = Connection(id="con_1", user_id="usr_1", bank_name="Musterbank", settings=setting)
    demo, bank = ledger("demo"), DemoBank()
    waiting: dict[object, object] = {}
    cursor: Json = {"day": (today - timedelta(days=20)).isoformat()}
    for days in range(0, 20, 3):
        day = today + timedelta(days=days)
        (batch,) = bank.fetch(found, {}, cursor=cursor, today=day)
        demo.bring(batch.records)
        assert batch.cursor is not None
        cursor = batch.cursor
        if days < 12:
            announced = demo.database.rows("SELECT id, amount FROM pending_transactions")
            waiting |= {row["id"]: row["amount"] for row in announced}
    booked = {row["id"]: row["amount"] for row in demo.database.rows("SELECT id, amount FROM transactions")}
    assert waiting
    assert waiting.items() <= booked.items()


@pytest.mark.requirement("demo.content")
@pytest.mark.long
def test_all_types_and_all_categories_and_none_of_them_occur_for_demo(brought: Brought) -> None:
    demo = brought("demo")
    assert {row[0] for row in demo.rows("DISTINCT type")} == {
        None,
        "direct_debit", "transfer", "standing_order", "cash_withdrawal", "cash_deposit", "card_payment", "interest",
        "fee", "salary", "other",
    }  # fmt: skip
    assert {row[0] for row in demo.rows("DISTINCT category")} == {
        None,
        "GROCERIES", "RENT", "SALARY", "TRANSPORT", "SUBSCRIPTION", "ENTERTAINMENT", "TRANSFER", "INSURANCE", "HEALTH",
        "DINING", "SHOPPING", "SAVINGS", "OTHER",
    }  # fmt: skip
