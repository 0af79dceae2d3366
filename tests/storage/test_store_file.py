"""The store as a file: who may open it, what it refuses, and what looking after it keeps."""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars as pl
import pytest

from analytics.frames import SUBSCRIPTIONS
from storage import accounts, backup, compaction, detections, jobs, rules, users
from storage.database import (
    Conflict,
    ConstraintViolated,
    Database,
    Session,
    StoreFull,
    StoreInUse,
    StoreUnreadable,
    state_in,
)
from storage.engines.duckdb_file import DuckDBFile
from storage.importing.records import StatementRecord
from storage.migrations import runner
from storage.migrations.runner import StoreNewer
from tests.conftest import NOW
from tests.engines import tables_of
from tests.storage.conftest import Bank, bookings, make_bank

NewBank = Callable[..., Bank]
NOBODY = 65534


def dump(database: Database) -> dict[str, list[str]]:
    """Everything that is stored."""
    tables = tables_of(database)
    return {table: sorted(map(str, database.rows(f"SELECT * FROM {table}"))) for table in tables}


def elsewhere(path: Path | None, lines: str) -> str:
    """What another process prints that works on the same file."""
    names = "from storage.database import *\nfrom storage.engines.duckdb_file import DuckDBFile\n"
    program = f"from pathlib import Path\n{names}path = Path({str(path)!r})\n{lines}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.requirement("store.newer")
def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(database: Database, now: datetime) -> None:
    database.execute("INSERT INTO schema_version VALUES (999, '999_future.sql', $1)", now)
    before = dump(database)
    with pytest.raises(StoreNewer, match=r"schema version 999.*Update the program or restore a backup"):
        runner.migrate(database, now=now)
    assert dump(database) == before


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.migrations")
def test_migrations_run_once_in_order_and_from_every_older_version(tmp_path: Path, now: datetime) -> None:
    known = runner.migrations()
    assert [each.number for each in known] == list(range(1, len(known) + 1))
    whole = DuckDBFile(tmp_path / "whole.duckdb")
    assert runner.migrate(whole, now=now) == [each.name for each in known]
    assert runner.migrate(whole, now=now) == []
    columns = "SELECT table_name, column_name, data_type FROM duckdb_columns() ORDER BY table_name, column_name"
    expected = whole.rows(columns)
    for done in range(len(known)):
        older = DuckDBFile(tmp_path / f"older{done}.duckdb")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(runner, "migrations", lambda done=done: known[: done or 1])
            runner.migrate(older, now=now)
        runner.migrate(older, now=now)
        assert older.rows(columns) == expected
        older.close()
    whole.close()


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("content", [b"not a store" * 1000, b"\x00" * 8192, b"DUCK"])
def test_a_file_that_is_no_store_is_named_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bankdata.duckdb"
    path.write_bytes(content)
    with pytest.raises(StoreUnreadable, match=r"bankdata\.duckdb cannot be read as a store") as caught:
        DuckDBFile(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.unreadable")
def test_a_store_that_was_overwritten_behind_its_head_is_named_and_left_as_it_is(database: Database) -> None:
    database.close()
    assert database.path is not None
    whole = database.path.read_bytes()
    damaged = whole[:12288] + bytes(len(whole) - 12288)  # three headers of 4 KiB, then blocks with checksums
    database.path.write_bytes(damaged)
    with pytest.raises(StoreUnreadable, match=r"bankdata\.duckdb cannot be read as a store: Corrupt database file"):
        DuckDBFile(database.path)
    assert database.path.read_bytes() == damaged


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.unreadable")
def test_a_folder_in_its_place_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "bankdata.duckdb").mkdir()
    with pytest.raises(StoreUnreadable):
        DuckDBFile(tmp_path / "bankdata.duckdb")


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("is_folder", [False, True])
def test_a_store_that_may_not_be_written_is_said_so_at_once(*, is_folder: bool) -> None:
    """As somebody who is not its owner; whoever runs the tests as root is nobody for a moment."""
    with TemporaryDirectory(dir="/tmp") as name:
        folder, path = Path(name), Path(name) / "bankdata.duckdb"
        DuckDBFile(path).close()
        path.chmod(0o644 if is_folder else 0o444)
        folder.chmod(0o555)
        own = os.geteuid()
        try:
            if own == 0:
                os.seteuid(NOBODY)
            with pytest.raises(
                StoreUnreadable, match=r"bankdata\.duckdb cannot be opened for writing: Permission denied"
            ):
                DuckDBFile(path)
        finally:
            os.seteuid(own)
            folder.chmod(0o755)


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.one-process")
def test_a_second_process_is_refused_and_the_first_goes_on(database: Database) -> None:
    said = elsewhere(
        database.path, "try:\n    DuckDBFile(path)\nexcept StoreInUse as error:\n    print('refused', error)"
    )
    assert said == f"refused {database.path} is open in another process\n"
    assert database.rows("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.one-process")
def test_a_store_that_another_process_has_is_refused_here(tmp_path: Path) -> None:
    path = tmp_path / "bankdata.duckdb"
    program = f"import sys\nfrom pathlib import Path\nfrom storage.engines.duckdb_file import DuckDBFile\nd = DuckDBFile(Path({str(path)!r}))\nprint('open', flush=True)\nsys.stdin.read()"  # noqa: E501
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(StoreInUse):
            DuckDBFile(path)
        assert other.stdin is not None
        other.stdin.close()
    DuckDBFile(path).close()


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("decision 40")
def test_the_file_has_the_format_that_all_newer_engines_read(database: Database) -> None:
    (tags,) = [row["tags"] for row in database.rows("SELECT tags FROM duckdb_databases() WHERE path IS NOT NULL")]
    assert tags["storage_version"] == "v1.2.0+"


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.private")
def test_the_file_is_its_owners_alone(database: Database) -> None:
    assert database.path is not None
    assert database.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.hardened")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '/tmp/bankdata-test-escape.csv'",
        "ATTACH '/tmp/bankdata-test-escape.duckdb' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
    ],
)
def test_sql_reaches_nothing_outside_the_store(database: Database, statement: str) -> None:
    with pytest.raises(Exception, match=r"disabled|locked|not allowed|Cannot"):
        database.execute(statement)


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("backup")
def test_a_backup_made_while_imports_run_is_whole_and_can_be_opened(bank: Bank, tmp_path: Path, now: datetime) -> None:
    stop = threading.Event()
    acknowledged: list[int] = [0]

    def imports() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            rows = bookings(f"2026-11-02 | -{number}.01 | A | {number}\n2026-11-02 | -{number}.02 | B | {number}")
            bank.bring(rows, statement=StatementRecord(closing=None))
            acknowledged[0] = 2 * number

    writer = threading.Thread(target=imports)
    writer.start()
    copies = []
    try:
        for number in range(4):
            least = acknowledged[0]
            folder = tmp_path / "backups" / str(number)
            copies.append((least, backup.backup(bank.database, folder)))
    finally:
        stop.set()
        writer.join()
    for least, folder in copies:
        copy = DuckDBFile(folder / backup.STORE_NAME)
        assert runner.migrate(copy, now=now) == []
        rows = copy.rows("SELECT count(*) AS n FROM transactions")[0]["n"]
        assert rows >= least
        assert rows % 2 == 0, "half an import"
        assert copy.rows("SELECT count(*) AS n FROM journal")[0]["n"] == rows
        assert copy.rows("SELECT journal_sequence AS n FROM users")[0]["n"] == rows
        copy.close()


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("backup")
def test_a_backup_holds_everything_and_an_older_one_is_never_overwritten(bank: Bank, tmp_path: Path) -> None:
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
    key = tmp_path / "key.json"
    key.write_text("secret")
    folder = backup.backup(bank.database, tmp_path / "backups" / "one", also=[key])
    assert (folder / "key.json").read_text() == "secret"
    assert folder.stat().st_mode & 0o777 == 0o700
    copy = DuckDBFile(folder / backup.STORE_NAME)
    assert dump(copy) == dump(bank.database)
    copy.close()
    assert backup.backup(bank.database, folder) == folder.with_name("one-2")
    assert (folder / "key.json").read_text() == "secret"


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("compact")
def test_compacting_sorts_the_rows_and_loses_none_that_arrive_meanwhile(bank: Bank) -> None:
    done = threading.Event()

    def imports() -> None:
        for number in range(30):
            bank.bring(bookings(f"2026-{number % 11 + 1:02d}-02 | -{number}.01 | A | {number}"))
        done.set()

    writer = threading.Thread(target=imports)
    writer.start()
    while not done.is_set():
        compaction.compact(bank.database)
    writer.join()
    assert compaction.compact(bank.database) == 30
    days = [row["booking_date"] for row in bank.database.rows("SELECT booking_date FROM transactions")]
    assert days == sorted(days, reverse=True)
    assert len(bank.ids()) == 30


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("compact")
@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
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
    order = [(row["user_id"], -row["booking_date"].toordinal(), row["id"]) for row in rows]
    assert order == sorted(order)
    assert sorted(row["id"] for row in rows) == before


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("compact")
def test_compacting_an_empty_store_sorts_nothing(database: Database) -> None:
    assert compaction.compact(database) == 0


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("store.full-disk")
def test_a_full_disk_is_one_sentence_and_loses_nothing_that_was_stored(tmp_path: Path, now: datetime) -> None:
    """A limit on the size of files stands for the full disk: writing fails in the same place in the same way."""
    database = DuckDBFile(tmp_path / "bankdata.duckdb")
    runner.migrate(database, now=now)
    bank = make_bank(database, now)
    bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    large = bookings("\n".join(f"2026-11-03 | -{n}.00 | {os.urandom(200).hex()} | {n}" for n in range(1, 1200)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 50_000, limit[1]))
    try:
        with pytest.raises(StoreFull, match=r"The disk of the store is full; nothing of this change was stored\."):
            bank.bring(large)
        assert len(bank.ids()) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert bank.bring(large).new_transactions == 1199
    database.close()
    again = DuckDBFile(tmp_path / "bankdata.duckdb")
    assert again.rows("SELECT count(*) AS n FROM transactions") == [{"n": 1200}]
    again.close()


@pytest.mark.requirement("users.remove")
def test_removing_a_user_leaves_no_row_of_the_user_anywhere(new_bank: NewBank, now: datetime) -> None:
    gone, stays = new_bank("gone"), new_bank("stays")
    for each in (gone, stays):
        each.bring(bookings("2026-11-02 | -5.00 | A | a"))
        rules.keep(each.database, each.user.id, [])
        rules.correct(each.database, each.user.id, "merchant:a", "DINING")
        found = pl.DataFrame(schema=SUBSCRIPTIONS)
        detections.keep(each.database, each.user.id, ["a"], data_version=1, day=now.date(), found=found)
        jobs.start(
            each.database, user_id=each.user.id, connection_id=each.connection.id, cooldown=timedelta(0), now=now
        )
    before = dump(stays.database)
    gone.database.atomically(lambda session: users.remove(session, gone.user.id))
    for table, rows in dump(gone.database).items():
        assert not [row for row in rows if gone.user.id in row], table
        assert [row for row in rows if stays.user.id in row] == [row for row in before[table] if stays.user.id in row]
    assert len(accounts.of_user(stays.database, stays.user.id)) == 1


@pytest.mark.requirement("users.names")
def test_of_many_at_once_one_gets_a_name(database: Database, now: datetime) -> None:
    made: list[str] = []

    def add(name: str) -> None:
        try:
            users.add(database, name=name, password_hash=None, has_subscription=True, home_currency="EUR", now=now)
            made.append(name)
        except users.UserExists:
            pass

    threads = [threading.Thread(target=add, args=(name,)) for name in ("eva", "Eva", "EVA") * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == len(users.everyone(database)) == 1


@pytest.mark.requirement("store.constraints")
def test_a_violated_constraint_is_tried_again_once_and_then_told(database: Database) -> None:
    database.execute("CREATE TABLE named (name TEXT PRIMARY KEY)")
    database.execute("INSERT INTO named VALUES ('eva')")
    attempts: list[str] = []

    def always(session: Session) -> None:
        attempts.append("insert")
        session.execute("INSERT INTO named VALUES ('eva')")

    with pytest.raises(ConstraintViolated):
        database.atomically(always)
    assert len(attempts) == 2


@pytest.mark.requirement("store.constraints")
def test_a_row_that_another_transaction_brought_meanwhile_is_seen_at_the_second_attempt(database: Database) -> None:
    database.execute("CREATE TABLE named (name TEXT PRIMARY KEY)")
    found: list[int] = []

    def once(session: Session) -> None:
        found.append(len(session.rows("SELECT name FROM named")))
        if not found[0] and len(found) == 1:
            database.execute("INSERT INTO named VALUES ('eva')")
        if not found[-1]:
            session.execute("INSERT INTO named VALUES ('eva')")

    database.atomically(once)
    assert found == [0, 1]


@pytest.mark.engine("duckdb")
@pytest.mark.requirement("sync.stops")
@pytest.mark.parametrize("is_ever_free", [True, False])
def test_closing_waits_a_moment_for_a_call_of_another_thread_and_then_leaves_it_to_the_end_of_the_process(
    database: Database, monkeypatch: pytest.MonkeyPatch, is_ever_free: bool
) -> None:
    class Busy:
        """DuckDB's connection while another thread is in it: it refuses to be closed."""

        refused = 0

        def execute(self, sql: str) -> None: ...

        def close(self) -> None:
            if not is_ever_free or self.refused < 2:
                self.refused += 1
                raise duckdb.Error("connection is busy with another call")

    busy = Busy()
    monkeypatch.setattr("storage.engines.duckdb_file.CONFLICT_PAUSES", (0.0, 0.0, 0.0))
    with monkeypatch.context() as patched:
        patched.setattr(database, "_root", busy)
        database.close()
    assert busy.refused == (2 if is_ever_free else 3)


@pytest.mark.requirement("store.constraints")
def test_a_conflict_is_tried_again_after_every_pause_and_then_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.database.CONFLICT_PAUSES", (0.0, 0.0))
    for conflicts in (2, 3):
        attempts: list[int] = []

        def work(_session: Session, most: int = conflicts, attempts: list[int] = attempts) -> str:
            attempts.append(1)
            if len(attempts) <= most:
                raise Conflict
            return "done"

        if conflicts == 2:
            assert database.atomically(work) == "done"
        else:
            with pytest.raises(Conflict):
                database.atomically(work)
        assert len(attempts) == 3


@pytest.mark.requirement("cache.state")
def test_a_transaction_raises_the_state_of_a_user_once_however_often_it_changes_something(database: Database) -> None:
    eva = users.add(database, name="Eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)
    before = database.state(eva.id)
    with database.transaction() as session:
        session.changes(eva.id)
        raised = state_in(session, eva.id)
        session.changes(eva.id)
    assert database.state(eva.id) == raised != before
