"""The append-only journal: what each import added, modified or removed, by the resulting state of the user's data."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import polars as pl

from analytics.frames import columns
from storage.changes import feed
from storage.database import Transaction

Change = Literal["added", "modified", "removed"]
CHANGES = columns("transaction_id, change")


def change_rows(ids: Sequence[str] | pl.Series, change: Change) -> pl.DataFrame:
    """One row per transaction with this change: the columns of CHANGES."""
    return pl.DataFrame({"transaction_id": ids, "change": [change] * len(ids)}, schema_overrides=CHANGES)


def record(
    session: Transaction,
    *,
    user_id: str,
    job_id: str,
    changes: pl.DataFrame,
    now: datetime,
    changes_charges: bool = True,
) -> int:
    """Append one row per change (CHANGES), note for clients which transactions are modified, raise the user's data
    version, and return it. Without changes, or if these change nothing that recurring payments are found by
    (`changes_charges`), the data version stays and only the state of the user's data rises.

    Runs inside the transaction that makes the changes. Added rows bear their state already.
    """
    session.changes(user_id)
    if changes.is_empty():
        return int(session.rows("SELECT data_version FROM users WHERE id = $1", user_id)[0]["data_version"])
    state = session.coming_state(user_id)
    session.append(
        "journal",
        changes.with_columns(
            sequence=pl.lit(state), user_id=pl.lit(user_id), job_id=pl.lit(job_id), recorded_at=pl.lit(now)
        ),
    )
    feed.mark_changed(session, user_id, changes.filter(change="modified")["transaction_id"].to_list())
    if changes_charges:
        session.execute("UPDATE users SET data_version = state WHERE id = $1", user_id)
    return state
