"""Measures an import end to end: seconds and memory of each phase for growing generated camt files, then each export
and reading it again.

    python tests/benchmarks/imports.py 200000

Each size runs in a process of its own, and so does each export, so that its memory is its own. CPU seconds are shown
too: a machine that others use makes a clock unfair.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from tests.engines import whole

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

from analytics.records import Batch, TransactionRecord
from connectors.reference.bank_names import with_bank_names
from connectors.statements import read_records
from handlers.commands.exports import export
from handlers.work.export_formats import FORMATS
from storage import connections, users
from storage.database import Transaction
from storage.engines.duckdb_file import DuckDBFile
from storage.importing import ingest
from storage.importing.batches import ReadBatch, read_batch
from storage.importing.ingest import ImportReport
from storage.migrations import runner
from tests.benchmarks.readers import camt

NOW = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the store keeps UTC without zone
Result = TypeVar("Result")


def timed(label: str, work: Callable[[], Result]) -> Result:
    """Do the work and print how long it took, and the most memory that the process has held so far."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, busy = time.perf_counter() - wall, time.process_time() - cpu
    status = Path("/proc/self/status").read_text(encoding="ascii")  # a child's ru_maxrss begins with its parent's
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(f"  {label:<28} {seconds:6.2f} s  {busy:6.2f} s CPU  {peak:5.0f} MB at most", flush=True)
    return result


def measure(rows: int, folder: Path) -> None:
    """All phases for one size."""
    path = folder / "statement.xml"
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(camt(rows))
    print(f"{rows} entries, {path.stat().st_size / 1e6:.0f} MB", flush=True)
    database = whole(DuckDBFile(folder / "bankdata.duckdb"))
    runner.migrate(database, now=NOW)
    user = users.add(database, name="eva", password_hash=None, has_subscription=True, home_currency="EUR", now=NOW)

    def read() -> ReadBatch:
        return read_batch(Batch(id="file", records=with_bank_names(read_records(path))), today=NOW.date())

    def store(batch: ReadBatch) -> ImportReport:
        def work(session: Transaction) -> ImportReport:
            source = connections.add(
                session,
                user_id=user.id,
                user_name=user.name,
                connector="files",
                bank_name="Bank",
                settings={},
                now=NOW,
            )
            return ingest.store(session, user=user, connection=source, job_id="job", batch=batch, now=NOW)

        return database.atomically(work)

    batch = timed("read", read)
    assert timed("import", partial(store, batch)).new_transactions == rows
    assert timed("import once more", partial(store, batch)).new_transactions == 0
    database.close()
    for name in FORMATS:
        subprocess.run([sys.executable, __file__, str(rows), "--export", name, str(folder)], check=True)


def measure_export(rows: int, name: str, folder: Path) -> None:
    """One format: out of the store, and read again booking by booking."""
    written = folder / "export"
    database = timed("open the store", lambda: whole(DuckDBFile(folder / "bankdata.duckdb")))
    user = users.get_by_name(database, "eva")
    assert timed(f"export {name}", partial(export, database, user.id, name, written, now=NOW, today=NOW.date())) == rows
    found = timed(
        f"read {name}", lambda: sum(isinstance(record, TransactionRecord) for record in read_records(written))
    )
    assert found == rows
    database.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int)
    parser.add_argument("--alone", action="store_true", help="this size only, in this process")
    parser.add_argument("--export", nargs=2, metavar=("FORMAT", "FOLDER"), help="this export only, in this process")
    arguments = parser.parse_args()
    if arguments.export:
        name, folder = arguments.export
        measure_export(arguments.rows, name, Path(folder))
        return
    if arguments.alone:
        with TemporaryDirectory() as folder:
            measure(arguments.rows, Path(folder))
        return
    for rows in (arguments.rows // 4, arguments.rows // 2, arguments.rows):
        subprocess.run([sys.executable, __file__, str(rows), "--alone"], check=True)


if __name__ == "__main__":
    main()
