"""Fills SQLite or PostgreSQL with the rows of `bankdata bench`, with the indexes that its questions want.

    python tests/benchmarks/peers/fill.py sqlite|postgresql FOLDER ROWS ROWS_PER_USER TODAY

Prints after each piece how many users are filled. What is recurring is computed here and stored, as our own store has
it, so that nobody measures the search for it.
"""

import sqlite3
import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from analytics.frames import CHARGES
from analytics.recurring.detection import detect
from analytics.recurring.payment import payments_in
from handlers import json_shapes
from tests.benchmarks.bench import data
from tests.benchmarks.bench.data import Size
from tests.benchmarks.peers import postgresql

COLUMNS = (
    "id", "user_id", "account_id", "booking_date", "value_date", "amount", "currency", "merchant_name",
    "counterpart_name", "counterpart_iban", "mandate_reference", "type", "category", "purpose", "search_text",
    "created_at",
)  # fmt: skip
TABLES = """
CREATE TABLE accounts (id TEXT PRIMARY KEY, user_id TEXT NOT NULL, name TEXT, iban TEXT, kind TEXT, bank_name TEXT,
 currency TEXT NOT NULL, balance {money}, last_synced_at TEXT, status TEXT NOT NULL);
CREATE TABLE subscriptions (user_id TEXT PRIMARY KEY, found TEXT NOT NULL);
CREATE TABLE transactions (id TEXT NOT NULL, user_id TEXT NOT NULL, account_id TEXT NOT NULL,
 booking_date {day} NOT NULL, value_date {day}, amount {money} NOT NULL, currency TEXT NOT NULL, merchant_name TEXT,
 counterpart_name TEXT, counterpart_iban TEXT, mandate_reference TEXT, type TEXT, category TEXT, purpose TEXT,
 search_text TEXT NOT NULL, created_at TEXT NOT NULL);
"""
INDEXES = """
CREATE INDEX accounts_of_user ON accounts (user_id);
CREATE UNIQUE INDEX transactions_by_id ON transactions (id);
CREATE INDEX transactions_by_day ON transactions (user_id, booking_date DESC, id DESC);
CREATE INDEX transactions_by_category ON transactions (user_id, category, booking_date DESC, id DESC);
"""
SQLITE_FILE = "peers.db"


def main() -> None:
    store, folder, rows, rows_each, today = sys.argv[1:]
    size = Size(rows=int(rows), rows_each=int(rows_each))
    {"sqlite": fill_sqlite, "postgresql": fill_postgresql}[store](Path(folder), size, date.fromisoformat(today))


def fill_sqlite(folder: Path, size: Size, today: date) -> None:
    with sqlite3.connect(folder / SQLITE_FILE) as connection:
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")
        connection.executescript(TABLES.format(money="REAL", day="TEXT"))
        for numbers in data.user_numbers(size):
            for table, frame in pieces(numbers, size, today, as_text=True):
                names = ", ".join(frame.columns)
                marks = ", ".join("?" * frame.width)
                connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", frame.iter_rows())
            connection.commit()
            print(numbers.stop, flush=True)
        connection.executescript(INDEXES + "ANALYZE;")


def fill_postgresql(folder: Path, size: Size, today: date) -> None:
    import psycopg

    postgresql.make(folder)
    with postgresql.running(folder) as address, psycopg.connect(address) as connection:
        connection.execute(TABLES.format(money="NUMERIC(20,5)", day="DATE"))
        for numbers in data.user_numbers(size):
            for table, frame in pieces(numbers, size, today, as_text=False):
                with connection.cursor().copy(
                    f"COPY {table} ({', '.join(frame.columns)}) FROM STDIN (FORMAT csv)"
                ) as copy:
                    copy.write(frame.write_csv(include_header=False))
            connection.commit()
            print(numbers.stop, flush=True)
        connection.execute(INDEXES)
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")


def pieces(numbers: range, size: Size, today: date, *, as_text: bool) -> list[tuple[str, pl.DataFrame]]:
    """The rows of these users by table; SQLite has no types for days and decimals (`as_text`)."""
    now = datetime.combine(today, datetime.min.time())
    accounts = data.accounts(numbers, today=today, now=now).select(
        "id", "user_id", "name", "iban", "kind", "bank_name", "currency", "balance",
        pl.col("last_synced_at").dt.to_string("%Y-%m-%dT%H:%M:%S.000Z"), status=pl.lit("ACTIVE"),
    )  # fmt: skip
    bookings = data.bookings(numbers, size.rows_each, today=today, now=now)
    rows = bookings.select(COLUMNS).with_columns(pl.col("created_at").dt.to_string("%Y-%m-%dT%H:%M:%S.000Z"))
    if as_text:
        accounts = accounts.with_columns(pl.col("balance").cast(pl.Float64))
        rows = rows.with_columns(
            pl.col("booking_date", "value_date").cast(pl.String), pl.col("amount").cast(pl.Float64)
        )
    return [("accounts", accounts), ("transactions", rows), ("subscriptions", recurring(bookings, today))]


def recurring(bookings: pl.DataFrame, today: date) -> pl.DataFrame:
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in CHARGES.items() if name not in bookings.columns]
    charges = bookings.with_columns(missing).select(pl.col(name).cast(dtype) for name, dtype in CHARGES.items())
    users = charges.select("user_id").unique(maintain_order=True).with_columns(today=pl.lit(today))
    found: dict[str, list[dict[str, Any]]] = {user: [] for user in users["user_id"]}
    streams = detect(charges, users)
    for user, payment in zip(streams["user_id"], payments_in(streams), strict=True):
        found[user].append(json_shapes.subscription(payment, today))
    return pl.DataFrame(
        [(user, orjson.dumps(each).decode()) for user, each in found.items()],
        schema=["user_id", "found"],
        orient="row",
    )


if __name__ == "__main__":
    main()
