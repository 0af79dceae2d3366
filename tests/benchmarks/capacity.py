"""Measures what `bankdata capacity` computes with: bytes of each kind of store, processor time of syncs, memory.

    python tests/benchmarks/capacity.py

The store is filled through the importing core. What a request costs is measured by `bankdata bench` and
`over_postgresql.py`, what a process holds by `tests.soak.memory_of_requests`.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

import polars as pl
import psutil

from analytics.records import AccountRecord, Batch, Record, StatementRecord
from connectors.reference.bank_names import with_bank_names
from connectors.statements import read_records
from handlers.commands.capacity import DAYS_OF_RECORD, OPERATIONS_A_DAY
from storage import connections, users
from storage.connections import StoredConnection
from storage.importing import ingest
from storage.importing.batches import read_batch
from storage.users import User
from tests.benchmarks.readers import camt
from tests.engines import ENGINE, OpenStore

NOW = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the store keeps UTC without zone

JOBS_OF_A_WEEK = 14  # those without news are forgotten then


def bytes_of_users(store: OpenStore, count: int) -> float:
    """What a user takes who has nothing but themselves, and a record of an app that they use every day."""

    def fill() -> None:
        days = [NOW - timedelta(days=day) for day in range(DAYS_OF_RECORD)]
        record = pl.DataFrame({"hour": days}).join(
            pl.DataFrame({"operation": ["listAccounts", "listTransactions", "getCashflow", "getSnapshot", "sync"]}),
            how="cross",
        )
        assert record.height == DAYS_OF_RECORD * OPERATIONS_A_DAY
        for number in range(count):
            user = _user(store, f"user{number}")
            given = {"user_id": user.id, "grant_id": f"grant-{number:032x}", "client_id": f"client-{number:024x}"}
            store.append(
                "access_record",
                record.with_columns(
                    **{name: pl.lit(text) for name, text in given.items()},
                    client_name=pl.lit("An app for money"),
                    calls=pl.lit(3),
                    refusals=pl.lit(0),
                    last_at=pl.col("hour"),
                ),
            )

    return _grown(store, fill) / count


def bytes_of_connections(store: OpenStore, count: int) -> float:
    """What a connection takes with its account, the two syncs without news that stay, and the jobs of a week."""
    user = _user(store, "connected")

    def fill() -> None:
        for number in range(count):
            connection = _connection(store, user)
            account = AccountRecord(stable_key=f"{number}", iban=None, currency="EUR", name=f"Account {number}")
            for _ in range(2):
                _brought(store, user, connection, [account, StatementRecord()])
            ids = [f"syn_{number:026x}{job:06x}" for job in range(JOBS_OF_A_WEEK)]
            store.append(
                "jobs",
                pl.DataFrame({"id": ids}).with_columns(
                    user_id=pl.lit(user.id),
                    connection_id=pl.lit(connection.id),
                    status=pl.lit("completed"),
                    new_transactions=pl.lit(0),
                    created_at=pl.lit(NOW),
                    updated_at=pl.lit(NOW),
                ),
            )

    return _grown(store, fill) / count


def bytes_of_bookings(store: OpenStore, count: int) -> float:
    """What a booking of a camt file takes, of 700 bytes there."""
    user = _user(store, "booked")
    connection = _connection(store, user)

    def fill() -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "statement.xml"
            with file.open("w", encoding="utf-8") as stream:
                stream.writelines(camt(count))
            _brought(store, user, connection, list(with_bank_names(read_records(file))), batch_id=f"file:{0:064x}")

    return _grown(store, fill) / count


def memory_of_connections(store: OpenStore) -> float:
    """MB that the largest backend of PostgreSQL holds for itself: its pages of the buffers that all share are not
    counted, though nobody else may have touched them."""
    pids = [row["pid"] for row in store.rows("SELECT pid FROM pg_stat_activity WHERE datname IS NOT NULL")]
    maps = [psutil.Process(pid).memory_maps() for pid in pids]
    own = [[each.private_dirty for each in found if not each.path.startswith("/dev/")] for found in maps]
    return max(map(sum, own)) / 2**20


def _user(store: OpenStore, name: str) -> User:
    return users.add(store, name=name, password_hash="x" * 97, has_subscription=True, home_currency="EUR", now=NOW)


def _connection(store: OpenStore, user: User) -> StoredConnection:
    return store.atomically(
        lambda session: connections.add(
            session,
            user_id=user.id,
            user_name=user.name,
            connector="fints",
            bank_name="Bank",
            settings={"url": "https://bank.example/fints"},
            now=NOW,
        )
    )


def _brought(
    store: OpenStore, user: User, connection: StoredConnection, records: list[Record], *, batch_id: str = "sync"
) -> None:
    store.atomically(
        lambda session: ingest.store(
            session,
            user=user,
            connection=connection,
            job_id=f"syn_{0:032x}",
            batch=read_batch(Batch(id=batch_id, records=iter(records)), today=date(2026, 11, 20)),
            now=NOW,
        )
    )


def _grown(store: OpenStore, fill: Callable[[], None]) -> int:
    before = _size(store)
    fill()
    return _size(store) - before


def _size(store: OpenStore) -> int:
    if not store.is_shared:
        store.execute("CHECKPOINT")
    return store.bytes


def main() -> None:
    """Print all of it, for both engines."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bookings", type=int, default=40_000)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--users", type=int, default=100)
    arguments = parser.parse_args()
    for name in ("duckdb", "postgresql"):
        ENGINE.name = name
        with tempfile.TemporaryDirectory() as folder:
            store = ENGINE.empty_store(Path(folder) / "bankdata.duckdb")
            print(name)
            print(f"  bytes of a user        {bytes_of_users(store, arguments.users):8.0f}")
            began, busy = time.perf_counter(), time.process_time()
            print(f"  bytes of a connection  {bytes_of_connections(store, arguments.connections):8.0f}")
            took, used = time.perf_counter() - began, time.process_time() - busy
            syncs = 2 * arguments.connections
            print(
                f"  a sync without news    {1000 * took / syncs:8.1f} ms, {1000 * used / syncs:.1f} ms of our processor"
            )
            print(f"  bytes of a booking     {bytes_of_bookings(store, arguments.bookings):8.0f}")
            if store.is_shared:
                [found] = store.rows("SELECT sum(pg_indexes_size(oid)) AS size FROM pg_class WHERE relkind = 'r'")
                print(f"  of all, indexes are    {int(found['size']) / store.bytes:8.2f}")
                print(f"  MB of a connection     {memory_of_connections(store):8.1f}")
            store.close()
    ENGINE.end()


if __name__ == "__main__":
    main()
