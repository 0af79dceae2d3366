"""The table is sorted again beside readers and imports, when there is need, and a kill in the middle loses nothing."""

import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from handlers.work.sync import sorting
from handlers.work.sync.concurrency import ImportLane
from handlers.work.sync.sorting import LOOK_EVERY, Sorting
from storage import compaction
from storage.engines.duckdb_file import DuckDBFile
from tests.conftest import NOW, empty_store
from tests.engines import OpenStore, whole
from tests.storage.conftest import Bank, bookings, make_bank

KILLED = """
import os, signal, sys
from pathlib import Path
from storage import compaction
from storage.engines import duckdb_file, duckdb_session

original = duckdb_session.OpenTransaction.execute
moves = 0

def execute(self, sql, *parameters):
    global moves
    changed = original(self, sql, *parameters)
    moves += sql.startswith("INSERT INTO transactions")
    if moves == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return changed

duckdb_session.OpenTransaction.execute = execute
compaction.compact(duckdb_file.DuckDBFile(Path(sys.argv[1])).for_everybody(), rows_at_once=2)
"""


def order(database: OpenStore) -> list[tuple[str, int, str]]:
    rows = database.rows("SELECT user_id, booking_date, id FROM transactions")
    return [(row["user_id"], -row["booking_date"].toordinal(), row["id"]) for row in rows]


def unsorted(bank: Bank) -> None:
    for day in (3, 1, 5, 2, 4):
        bank.bring(bookings(f"2026-11-0{day} | -{day}.01 | A | {day}\n2026-10-0{day} | -{day}.02 | B | {day}"))


pytestmark = pytest.mark.engine("duckdb")


@pytest.fixture
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LATE_ROWS_MAX", 3)
    monkeypatch.setattr(sorting, "ROWS_AT_ONCE", 2)


@pytest.mark.requirement("compact.by-itself")
@pytest.mark.usefixtures("low_bounds")
def test_what_came_since_the_last_time_decides_whether_it_is_due(bank: Bank) -> None:
    assert not compaction.is_due(bank.database)
    unsorted(bank)
    assert compaction.is_due(bank.database)
    compaction.compact(bank.database)
    assert not compaction.is_due(bank.database)
    bank.now += timedelta(hours=1)
    for more, is_due in ((3, False), (1, True)):
        for _ in range(more):
            bank.bring(bookings(f"2026-11-09 | -7.0{bank.count % 10} | C | {bank.count}"))
        assert compaction.is_due(bank.database) is is_due


@pytest.mark.requirement("compact.by-itself")
@pytest.mark.usefixtures("low_bounds")
def test_it_is_sorted_a_slice_at_a_time_and_an_import_in_between_is_not_lost(bank: Bank) -> None:
    unsorted(bank)
    lane = ImportLane()
    keeper = Sorting(bank.database, lane, steady=timedelta())
    before = order(bank.database)
    keeper.advance(LOOK_EVERY - timedelta(seconds=1))
    assert order(bank.database) == before
    with lane.turn("u"):
        keeper.advance(LOOK_EVERY)
    assert order(bank.database) == before
    keeper.advance(LOOK_EVERY)
    assert order(bank.database) != before
    assert sorted(order(bank.database)) == sorted(before)
    bank.bring(bookings("2026-11-30 | -9.99 | Z | z"))
    for _ in range(20):
        keeper.advance(LOOK_EVERY)
    assert len(order(bank.database)) == len(before) + 1
    assert not compaction.is_due(bank.database)
    later = order(bank.database)
    keeper.advance(3 * LOOK_EVERY)
    assert order(bank.database) == later


@pytest.mark.requirement("compact.crash")
def test_a_kill_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bankdata.duckdb"
    database = empty_store(path)
    unsorted(make_bank(database, NOW))
    before = sorted(order(database))
    database.close()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL
    database = whole(DuckDBFile(path))
    assert sorted(order(database)) == before
    assert compaction.compact(database) == len(before)
    assert order(database) == sorted(before)
    database.close()


@pytest.mark.no_cover  # many rounds, see tests/conftest.py
@pytest.mark.requirement("compact")
@pytest.mark.long
def test_compacting_sorts_the_rows_and_loses_none_that_arrive_meanwhile(bank: Bank) -> None:
    done = threading.Event()

    def imports() -> None:
        for number in range(30):
            bank.bring(bookings(f"2026-{number % 11 + 1:02d}-02 | -{number}.01 | A | {number}"))
        done.set()

    writer = threading.Thread(target=imports)
    writer.start()
    while not done.wait(0.01):  # without a pause imports wait for the interpreter
        compaction.compact(bank.database)
    writer.join()
    assert compaction.compact(bank.database) == 30
    days = [row["booking_date"] for row in bank.database.rows("SELECT booking_date FROM transactions")]
    assert days == sorted(days, reverse=True)
    assert len(bank.ids()) == 30


@pytest.mark.requirement("compact")
@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
@pytest.mark.sampled
def test_compacting_a_slice_at_a_time_sorts_users_and_the_days_of_one_with_many_rows(
    bank: Bank, rows_at_once: int
) -> None:
    others = [make_bank(bank.database, bank.now, name) for name in ("adam", "zoe")]
    for number in (3, 1, 2, 2, 5):
        for each in (bank, *others[: number % 2 + 1]):
            each.bring(bookings(f"2026-0{number}-02 | -{each.count}.01 | A | {each.count}"))
    before = sorted(row["id"] for row in bank.database.rows("SELECT id FROM transactions"))
    assert compaction.compact(bank.database, rows_at_once=rows_at_once) == len(before)
    rows = bank.database.rows("SELECT user_id, booking_date, id FROM transactions")
    newest_first = sorted(rows, key=lambda row: (row["booking_date"], row["id"]), reverse=True)
    assert rows == sorted(newest_first, key=lambda row: row["user_id"])
    assert sorted(row["id"] for row in rows) == before


@pytest.mark.requirement("compact")
def test_compacting_an_empty_store_sorts_nothing(database: OpenStore) -> None:
    assert compaction.compact(database) == 0
