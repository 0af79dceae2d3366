"""The imports of a user that can be undone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from storage.database import Session


class StoredImport(Struct, frozen=True, kw_only=True):
    """An import that can be undone: `labels` are the names of its files, `new` is the number of bookings that it
    added."""

    job_id: str
    connection_id: str
    imported_at: datetime
    labels: Sequence[str]
    account_ids: Sequence[str]
    new: int | None


def of_user(session: Session, user_id: str) -> list[StoredImport]:
    """The imports of the user that can be undone, oldest first; one that still runs can be once it has ended."""
    rows = session.rows(
        "SELECT c.job_id, c.connection_id, c.imported_at, c.label, c.account_id, j.new_transactions AS new"
        " FROM contributions AS c JOIN jobs AS j ON j.user_id = c.user_id AND j.id = c.job_id"
        " WHERE c.user_id = $1 ORDER BY c.sequence",
        user_id,
    )
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["job_id"], []).append(row)
    return [
        StoredImport(
            job_id=job_id,
            connection_id=reported[0]["connection_id"],
            imported_at=reported[0]["imported_at"],
            labels=list(dict.fromkeys(row["label"] for row in reported if row["label"])),
            account_ids=list(dict.fromkeys(row["account_id"] for row in reported)),
            new=reported[0]["new"],
        )
        for job_id, reported in found.items()
    ]


def older_imports(session: Session, user_id: str) -> int:
    """The number of imports from before imports were remembered; they cannot be undone."""
    rows = session.rows(
        "SELECT count(DISTINCT batch_id) AS n FROM (SELECT batch_id FROM earlier_transactions WHERE user_id = $1"
        " UNION SELECT batch_id FROM earlier_statements WHERE user_id = $1) AS batches",
        user_id,
    )
    return int(rows[0]["n"])
