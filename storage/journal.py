"""The append-only journal: what each import added, modified or removed, in the order it happened per user."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import polars as pl

from storage.database import Transaction

Change = Literal["added", "modified", "removed"]
CHANGES: dict[str, pl.DataType] = {"transaction_id": pl.String(), "change": pl.String()}


def changed(ids: Sequence[str] | pl.Series, change: Change) -> pl.DataFrame:
    """The same change of all these transactions, as CHANGES."""
    return pl.DataFrame({"transaction_id": ids}, schema_overrides=CHANGES).with_columns(change=pl.lit(change))


def record(session: Transaction, *, user_id: str, job_id: str, changes: pl.DataFrame, now: datetime) -> int:
    """Append one row per change (CHANGES), raise the user's data version where there is one, and return the version.

    Runs inside the transaction that makes the changes; two imports of one user conflict here and one tries again.
    """
    rows = session.rows(
        "UPDATE users SET data_version = data_version + $3, journal_sequence = journal_sequence + $2"
        " WHERE id = $1 RETURNING data_version, journal_sequence",
        user_id,
        changes.height,
        int(not changes.is_empty()),
    )
    first = int(rows[0]["journal_sequence"]) - changes.height + 1
    session.append(
        "journal",
        changes.with_columns(
            pl.int_range(first, first + pl.len()).alias("sequence"),
            user_id=pl.lit(user_id),
            job_id=pl.lit(job_id),
            recorded_at=pl.lit(now),
        ),
    )
    session.changes(user_id)
    return int(rows[0]["data_version"])
