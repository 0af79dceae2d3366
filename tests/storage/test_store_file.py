"""The store as a file: who may open it, what it refuses, and what a full disk loses."""

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars as pl
import pytest

from storage import store_facts
from storage.database import DiskFailed, StoreFull, StoreInUse, StoreUnreadable
from storage.engines.duckdb_file import ROW_GROUP_ROWS, DuckDBFile, check_free
from storage.migrations import runner
from tests.engines import OpenStore, whole
from tests.storage.conftest import bookings, dump, make_bank

NOBODY = 65534
HEADER_BYTES, BLOCK_BYTES = 3 * 4096, 256 * 1024  # of a DuckDB file

pytestmark = pytest.mark.engine("duckdb")


def elsewhere(path: Path | None, lines: str) -> str:
    """What another process prints that works on the same file."""
    names = "from storage.database import *\nfrom storage.engines.duckdb_file import DuckDBFile\n"
    program = f"from pathlib import Path\n{names}path = Path({str(path)!r})\n{lines}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


@pytest.mark.requirement("cli.interrupted")
def test_ctrl_c_during_a_statement_is_an_interrupt(database: OpenStore) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            database.rows("SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert database.rows("SELECT 1 AS n") == [{"n": 1}]


@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("is_cut_off", [True, False])
@pytest.mark.long
def test_whichever_block_of_a_store_is_damaged_it_is_told_as_that(
    tmp_path: Path, now: datetime, is_cut_off: bool
) -> None:
    path = tmp_path / "bankdata.duckdb"
    database = whole(DuckDBFile(path))
    runner.migrate(database, now=now)
    make_bank(database, now).bring(bookings("2026-11-02 | -5.00 | A | a"))
    database.close()
    content, told = path.read_bytes(), []
    for first in range(HEADER_BYTES, len(content), BLOCK_BYTES):
        path.write_bytes(content[: first + 9] + (b"" if is_cut_off else b"\xff" * 9 + content[first + 18 :]))
        with suppress(StoreUnreadable):
            damaged = whole(DuckDBFile(path))
            try:
                dump(damaged)
            except StoreUnreadable as error:
                told.append(str(error))
            finally:
                damaged.close()
    assert told
    assert all(each.startswith("The file cannot be read as a store: ") for each in told)


@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("content", [b"not a store" * 1000, b"\x00" * 8192, b"DUCK"])
def test_a_file_that_is_no_store_is_named_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bankdata.duckdb"
    path.write_bytes(content)
    with pytest.raises(StoreUnreadable, match=r"bankdata\.duckdb cannot be read as a store") as caught:
        DuckDBFile(path)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.requirement("store.unreadable")
def test_a_store_that_was_overwritten_behind_its_head_is_named_and_left_as_it_is(database: OpenStore) -> None:
    database.close()
    assert database.path is not None
    whole = database.path.read_bytes()
    damaged = whole[:12288] + bytes(len(whole) - 12288)  # three headers of 4 KiB, then blocks with checksums
    database.path.write_bytes(damaged)
    with pytest.raises(StoreUnreadable, match=r"bankdata\.duckdb cannot be read as a store: Corrupt database file"):
        DuckDBFile(database.path)
    assert database.path.read_bytes() == damaged


@pytest.mark.requirement("store.unreadable")
@pytest.mark.parametrize("name", ["a?b", "a\\b", "a\udcff"])
def test_a_path_that_duckdb_reads_otherwise_holds_no_store(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for opened in (DuckDBFile, check_free):
        with pytest.raises(StoreUnreadable, match="cannot be the path of a store"):
            opened(folder / "bankdata.duckdb")
    assert list(folder.iterdir()) == []


@pytest.mark.requirement("store.unreadable")
def test_a_folder_in_its_place_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "bankdata.duckdb").mkdir()
    with pytest.raises(StoreUnreadable):
        DuckDBFile(tmp_path / "bankdata.duckdb")


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


@pytest.mark.requirement("store.one-process")
@pytest.mark.long
def test_a_second_process_is_refused_and_the_first_goes_on(database: OpenStore) -> None:
    said = elsewhere(
        database.path, "try:\n    DuckDBFile(path)\nexcept StoreInUse as error:\n    print('refused', error)"
    )
    assert said == f"refused {database.path} is open in another process. Stop it first.\n"
    assert database.rows("SELECT 1 AS one") == [{"one": 1}]


@pytest.mark.requirement("store.one-process")
@pytest.mark.long
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


@pytest.mark.requirement("decision 40")
def test_a_frame_has_the_types_that_were_asked_for(database: OpenStore) -> None:
    found = database.frame("SELECT 1::INTEGER AS n, 'x' AS word", schema={"n": pl.Int64(), "word": pl.String()})
    assert found.equals(pl.DataFrame({"n": [1], "word": ["x"]}))
    assert found.schema["n"] == pl.Int64


def test_the_file_has_the_format_that_all_newer_engines_read(database: OpenStore) -> None:
    (tags,) = [row["tags"] for row in database.rows("SELECT tags FROM duckdb_databases() WHERE path IS NOT NULL")]
    assert tags["storage_version"] == "v1.2.0+"


@pytest.mark.requirement("store.private")
def test_the_file_is_its_owners_alone(database: OpenStore) -> None:
    assert database.path is not None
    assert database.path.stat().st_mode & 0o777 == 0o600


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
def test_sql_reaches_nothing_outside_the_store(database: OpenStore, statement: str) -> None:
    with pytest.raises(Exception, match=r"disabled|locked|not allowed|Cannot"):
        database.execute(statement)


@pytest.mark.requirement("store.full-disk")
def test_a_full_disk_is_one_sentence_and_loses_nothing_that_was_stored(
    tmp_path: Path, now: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    """A limit on the size of files stands for the full disk: writing fails in the same place in the same way."""
    database = whole(DuckDBFile(tmp_path / "bankdata.duckdb"))
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
        assert StoreFull.__doc__ in caplog.messages
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert bank.bring(large).new_transactions == 1199
    database.close()
    again = whole(DuckDBFile(tmp_path / "bankdata.duckdb"))
    assert again.rows("SELECT count(*) AS n FROM transactions") == [{"n": 1200}]
    again.close()


@contextmanager
def failing(how: int) -> Iterator[None]:
    """The log of the store is /dev/null meanwhile: opened for reading it cannot be written, else not be flushed."""
    name = "bankdata.duckdb.wal"
    own = [int(each.name) for each in Path("/proc/self/fd").iterdir() if each.resolve().name == name]
    other, kept = os.open("/dev/null", how), [(fd, os.dup(fd)) for fd in own]
    for fd in own:
        os.dup2(other, fd)
    try:
        yield
    finally:
        for fd, former in kept:
            os.dup2(former, fd)
            os.close(former)
        os.close(other)


@pytest.mark.requirement("store.full-disk")
def test_a_disk_that_fails_for_a_moment_is_no_lost_race_and_spends_nothing(tmp_path: Path, now: datetime) -> None:
    with closing(whole(DuckDBFile(tmp_path / "bankdata.duckdb"))) as database:
        runner.migrate(database, now=now)
        store_facts.remember(database, "token", "unused")
        with failing(os.O_RDONLY), pytest.raises(DiskFailed):
            database.atomically(lambda session: store_facts.remember(session, "token", "used"))
        assert store_facts.recall(database, "token") == "unused"
        store_facts.remember(database, "token", "used")
        assert store_facts.recall(database, "token") == "used"


@pytest.mark.requirement("store.full-disk")
def test_a_store_whose_disk_failed_beyond_repair_is_opened_again(
    tmp_path: Path, now: datetime, request: pytest.FixtureRequest
) -> None:
    if "eatmydata" in os.environ.get(
        "LD_PRELOAD", ""
    ):  # as in the gate, where nothing waits for a disk and so none fails
        waiting = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        this = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", request.node.nodeid]
        assert subprocess.run(this, env=waiting, cwd=request.config.rootpath, capture_output=True).returncode == 0
        return
    with closing(whole(DuckDBFile(tmp_path / "bankdata.duckdb"))) as database:
        runner.migrate(database, now=now)
        bank = make_bank(database, now)
        with failing(os.O_WRONLY), pytest.raises(DiskFailed):
            database.changes(bank.user.id)
        bank.bring(bookings("2026-11-02 | -5.00 | A | a"))
        assert len(bank.ids()) == 1


@pytest.mark.requirement("sync.stops")
@pytest.mark.parametrize("is_ever_free", [True, False])
def test_closing_waits_a_moment_for_a_call_of_another_thread_and_then_leaves_it_to_the_end_of_the_process(
    database: OpenStore, monkeypatch: pytest.MonkeyPatch, is_ever_free: bool
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


@pytest.mark.requirement("store.one-process")
def test_a_store_is_free_when_no_process_has_it_and_it_is_one(tmp_path: Path, database: OpenStore) -> None:
    said = elsewhere(
        database.path,
        "from storage.engines.duckdb_file import check_free\n"
        "try:\n    check_free(path)\nexcept StoreInUse as error:\n    print('refused', error)",
    )
    assert said == f"refused {database.path} is open in another process. Stop it first.\n"
    database.close()
    assert database.path is not None
    check_free(database.path)
    (tmp_path / "other.duckdb").write_bytes(b"not a store" * 1000)
    with pytest.raises(StoreUnreadable, match=r"other\.duckdb cannot be read as a store"):
        check_free(tmp_path / "other.duckdb")


@pytest.mark.requirement("store.large-texts")
@pytest.mark.long
def test_long_texts_by_the_hundred_thousand_go_into_one_transaction(tmp_path: Path, now: datetime) -> None:
    """DuckDB keeps a copy of each different text of a row group until it has compressed them; 122,880 rows together, as
    it has them by itself, would need more than the store may use."""
    database = whole(DuckDBFile(tmp_path / "bankdata.duckdb"))
    runner.migrate(database, now=now)
    rest = "long " * 300
    with database.transaction() as session:
        for first in range(0, 125_000, 5_000):
            numbers = pl.DataFrame({"number": range(first, first + 5_000)})
            session.append(
                "booking_wordings",
                numbers.with_columns(
                    user_id=pl.lit("usr_eva"),
                    digest=pl.col("number").cast(pl.String),
                    wording=pl.col("number").cast(pl.String) + pl.lit(rest),
                ),
            )
    database.close()
    again = whole(DuckDBFile(tmp_path / "bankdata.duckdb"))
    said = again.rows(
        "SELECT count(*) AS all, count(CASE WHEN wording = number || $1 THEN 1 END) AS kept FROM booking_wordings", rest
    )
    again.close()
    assert said == [{"all": 125_000, "kept": 125_000}]


@pytest.mark.requirement("store.large-texts")
def test_a_file_with_larger_row_groups_grows_by_smaller_ones(tmp_path: Path) -> None:
    path = tmp_path / "bankdata.duckdb"
    with duckdb.connect(str(path), config={"storage_compatibility_version": "v1.2.0"}) as older:
        older.execute("CREATE TABLE numbers AS SELECT range AS number FROM range(130000)")
    database = whole(DuckDBFile(path))
    database.execute("INSERT INTO numbers SELECT range FROM range(130000, 180000)")
    database.execute("DELETE FROM numbers WHERE number % 3 = 0")
    database.close()
    with duckdb.connect(str(path)) as read:  # what DuckDB makes of it by itself
        rows = read.execute("SELECT count(*), sum(number) FROM numbers").fetchall()
        groups = read.execute(
            "SELECT max(start + count) FROM pragma_storage_info('numbers') WHERE segment_type = 'BIGINT'"
            " GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
    kept = [number for number in range(180_000) if number % 3]
    assert rows == [(len(kept), sum(kept))]
    assert groups[0][0] > ROW_GROUP_ROWS >= max(size for (size,) in groups[2:])


def test_one_long_text_is_read_without_unpacking_its_neighbours(tmp_path: Path) -> None:
    with closing(whole(DuckDBFile(tmp_path / "store.duckdb"))) as database:
        database.execute("CREATE TABLE texts (id BIGINT PRIMARY KEY, text TEXT)")
        database.execute("INSERT INTO texts SELECT n, repeat(md5(n::TEXT), 300) FROM range(500) AS numbers(n)")
        database.execute("CHECKPOINT")
        written = database.rows("SELECT compression FROM pragma_storage_info('texts') WHERE segment_type = 'VARCHAR'")
        assert written
        assert "ZSTD" not in {row["compression"] for row in written}
