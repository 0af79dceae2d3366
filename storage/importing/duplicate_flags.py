"""The flag isPotentialDuplicate, set at import on new rows that look like one that came from elsewhere."""

from collections.abc import Collection
from datetime import timedelta

import polars as pl

from analytics.frames import LOOKALIKES
from analytics.potential_duplicates import DAYS_APART_MAX, KEYS, potential_duplicate_ids
from storage.database import Transaction
from storage.importing.spool import CHUNK_ROWS, days_at_once

MARGIN = timedelta(days=DAYS_APART_MAX)
WRITTEN = {name: LOOKALIKES[name] for name in ("id", "account_id", "booking_date")}
NEAR = "user_id = $1 AND account_id = ANY($2::TEXT[]) AND booking_date BETWEEN $3 AND $4 AND NOT is_adjusting_entry"
FROM_SEVERAL = (  # equal rows of one batch are real
    f"SELECT {', '.join(KEYS)} FROM transactions WHERE {NEAR} GROUP BY {', '.join(KEYS)}"
    " HAVING min(batch_id) <> max(batch_id) OR min(connection_id) <> max(connection_id)"
)
CANDIDATES = (
    f"SELECT {', '.join(LOOKALIKES)} FROM transactions WHERE {NEAR} AND ({', '.join(KEYS)}) IN ({FROM_SEVERAL})"
)


def flag_new(session: Transaction, user_id: str, written: pl.DataFrame) -> None:
    """Set `is_potential_duplicate` on those of the rows just written (WRITTEN) that look like a row which another batch
    or connection has brought."""
    accounts = written["account_id"].unique().to_list()
    flagged: list[str] = []
    for share in days_at_once(written, CHUNK_ROWS):
        first, last = share["booking_date"][0], share["booking_date"][-1]
        about = user_id, accounts, first - MARGIN, last + MARGIN
        if not session.rows(f"{FROM_SEVERAL} LIMIT 1", *about):
            continue
        near = session.frame(CANDIDATES, *about, schema=LOOKALIKES)
        is_new, is_later = pl.col("id").is_in(written["id"].implode()), pl.col("booking_date") > last
        new = near.filter(is_new, pl.col("booking_date").is_between(first, last)).sort("booking_date", "id")
        earlier = near.filter(~(is_new & is_later))  # a new row of a later day is not there yet
        flagged += sorted(potential_duplicate_ids(new, earlier)) if not new.is_empty() else []
    if flagged:
        session.execute(
            "UPDATE transactions SET is_potential_duplicate = TRUE WHERE user_id = $1 AND id = ANY($2::TEXT[])",
            *(user_id, flagged),
        )


def take_from_proven(session: Transaction, user_id: str, account_ids: Collection[str]) -> list[str]:
    """Take the flag from the rows of these accounts that statements prove together with every row that they look like:
    one statement told both, or each of two that follow each other. Returns the ids of these rows."""
    about = user_id, sorted(account_ids)
    rows = session.rows(
        f"SELECT id, booking_date, {', '.join(KEYS)} FROM transactions WHERE user_id = $1"
        " AND account_id = ANY($2::TEXT[]) AND is_potential_duplicate",
        *about,
    )
    if not rows:
        return []
    flagged = pl.DataFrame(rows, schema={name: LOOKALIKES[name] for name in ("id", "booking_date", *KEYS)})
    first, last = flagged.select(pl.min("booking_date"), last=pl.max("booking_date")).row(0)
    of_row = session.frame(
        f"SELECT id, booking_date, {', '.join(KEYS)} FROM transactions WHERE {NEAR} AND ({', '.join(KEYS)})"
        f" IN (SELECT {', '.join(KEYS)} FROM transactions WHERE {NEAR} AND is_potential_duplicate)",
        *(*about, first - MARGIN, last + MARGIN),
        schema=flagged.schema,
    )
    stated = [
        (frozenset(row["told"].split()), row["opening"], row["closing"])
        for row in session.rows(
            "SELECT told, opening, closing FROM statements WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
            " AND is_authoritative AND told IS NOT NULL",
            *about,
        )
    ]

    def are_proven(one: str, other: str) -> bool:
        return any(
            one in told and (other in told or any(other in next_ and opens == closing for next_, opens, _ in stated))
            for told, _, closing in stated
        )

    pairs = flagged.join(of_row, on=KEYS, suffix="_of_other").filter(
        (pl.col("booking_date") - pl.col("booking_date_of_other")).abs() <= MARGIN
    )
    open_ = {
        id_
        for id_, other in pairs.select("id", "id_of_other").iter_rows()
        if not (are_proven(id_, other) or are_proven(other, id_))
    }
    proven = [id_ for id_ in flagged["id"] if id_ not in open_]
    session.execute(
        "UPDATE transactions SET is_potential_duplicate = FALSE WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        *(user_id, proven),
    )
    return proven
