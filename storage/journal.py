"""The append-only journal: what each import added, modified or removed, in the order it happened per user."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import polars as pl

from storage.database import Transaction

Change = Literal["added", "modified", "removed"]


def record(
    session: Transaction, *, user_id: str, job_id: str, changes: Sequence[tuple[str, Change]], now: datetime
) -> int:
    """Append one row per (transaction id, change), raise the user's data version, and return the new version.

    Runs inside the transaction that makes the changes; two imports of one user conflict here and one tries again.
    """
    rows = session.rows(
        "UPDATE users SET data_version = data_version + 1, journal_sequence = journal_sequence + $2"
        " WHERE id = $1 RETURNING data_version, journal_sequence",
        user_id,
        len(changes),
    )
    first = int(rows[0]["journal_sequence"]) - len(changes) + 1
    session.append(
        "journal",
        pl.DataFrame(
            {
                "user_id": [user_id] * len(changes),
                "sequence": range(first, first + len(changes)),
                "transaction_id": [transaction_id for transaction_id, _ in changes],
                "change": [change for _, change in changes],
                "job_id": [job_id] * len(changes),
                "recorded_at": [now] * len(changes),
            },
            schema_overrides={"sequence": pl.Int64},
        ),
    )
    session.changes(user_id)
    return int(rows[0]["data_version"])
