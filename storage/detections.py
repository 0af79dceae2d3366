"""Detected recurring payments, for lists and forecasts, kept with what they come from: accounts, data version, day."""

import hashlib
import json
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

import polars as pl

from analytics.frames import SUBSCRIPTIONS
from storage.database import Session, as_json


def stored(session: Session, user_id: str, account_ids: Iterable[str], *, day: date) -> tuple[int, pl.DataFrame | None]:
    """The user's present data version, and the streams of this selection if they were computed from it for `day`.

    Two look-ups by key: joined, DuckDB reads the results of every user for the one that is wanted, and so it does where
    it is told the user beside the key, which names the user itself. A cluster has to be told: by it, it finds the
    machine.
    """
    key = _key(user_id, account_ids)
    whose, values = (" AND user_id = $2", (key, user_id)) if session.dialect.is_shared else ("", (key,))
    kept = session.rows(f"SELECT data_version, day, found FROM detections WHERE id = $1{whose}", *values)
    version = present_version(session, user_id)
    is_present = bool(kept) and (kept[0]["data_version"], kept[0]["day"]) == (version, day)
    return version, _frame(kept[0]["found"]) if is_present else None


def present_version(session: Session, user_id: str) -> int:
    """Of the user's data."""
    return int(session.rows("SELECT data_version FROM users WHERE id = $1", user_id)[0]["data_version"])


def keep(
    session: Session, user_id: str, account_ids: Iterable[str], *, data_version: int, day: date, found: pl.DataFrame
) -> None:
    """Replace what is stored for this selection."""
    values = (user_id, _key(user_id, account_ids), data_version, day, _text(found))
    is_there = session.execute(
        "UPDATE detections SET data_version = $3, day = $4, found = $5 WHERE user_id = $1 AND id = $2", *values
    )
    if not is_there:  # two who compute it at once have found the same
        session.execute(
            "INSERT INTO detections (user_id, id, data_version, day, found) VALUES ($1, $2, $3, $4, $5)"
            " ON CONFLICT DO NOTHING",
            *values,
        )


def _key(user_id: str, account_ids: Iterable[str]) -> str:
    return f"{user_id}:{selection_key(account_ids)}"


def selection_key(account_ids: Iterable[str]) -> str:
    """One name for a set of accounts, in whatever order it is given."""
    return hashlib.sha256("\n".join(sorted(set(account_ids))).encode()).hexdigest()[:32]


def _text(found: pl.DataFrame) -> str:
    return as_json(
        [
            {name: str(value) if isinstance(value, Decimal | date) else value for name, value in row.items()}
            for row in found.iter_rows(named=True)
        ]
    )


def _frame(text: str) -> pl.DataFrame:
    parsers = {
        name: Decimal if dtype == pl.Decimal else date.fromisoformat if dtype == pl.Date else None
        for name, dtype in SUBSCRIPTIONS.items()
    }
    rows = [
        {
            name: parse(row[name]) if (parse := parsers[name]) and row[name] is not None else row[name]
            for name in SUBSCRIPTIONS
        }
        for row in json.loads(text)
    ]
    return pl.DataFrame(rows, schema=SUBSCRIPTIONS)
