"""The flag isPotentialDuplicate, set at import on new rows that look like one that came from elsewhere."""

from collections.abc import Sequence
from datetime import date, timedelta

import polars as pl

from analytics.frames import LOOKALIKES
from analytics.potential_duplicates import DAYS_APART_MAX, flag
from storage.database import Transaction
from storage.importing.spool import CHUNK_ROWS, days_at_once

MARGIN = timedelta(days=DAYS_APART_MAX)
ARRIVED = "id IN (SELECT id FROM arrived)"
COLUMNS = ", ".join(LOOKALIKES)


def flag_new(session: Transaction, user_id: str, ids: pl.Series) -> None:
    """Flag those of the new rows that another batch or connection may have brought before."""
    if ids.is_empty():
        return
    with session.stage("arrived", ids.alias("id").to_frame()):
        days = session.frame(
            "SELECT booking_date, account_id, count(*) AS n FROM transactions"
            f" WHERE user_id = $1 AND {ARRIVED} GROUP BY booking_date, account_id",
            user_id,
            schema={"booking_date": pl.Date(), "account_id": pl.String(), "n": pl.Int64()},
        )
        accounts, dates = days["account_id"].unique().to_list(), days["booking_date"].unique().sort().to_list()
        if not dates or not _come_from_several(session, user_id, accounts, dates[0], dates[-1]):
            return  # equal rows of one batch are real
        flagged: list[str] = []
        for share in days_at_once(days.group_by("booking_date").agg(pl.sum("n")), CHUNK_ROWS):
            of_days = share["booking_date"]
            flagged += _look_alikes(session, user_id, accounts, of_days[0], of_days[-1])
    if flagged:
        session.execute(
            "UPDATE transactions SET is_potential_duplicate = TRUE WHERE user_id = $1 AND id = ANY($2::TEXT[])",
            *(user_id, flagged),
        )


def _come_from_several(session: Transaction, user_id: str, accounts: Sequence[str], first: date, last: date) -> bool:
    batches = session.rows(
        "SELECT DISTINCT batch_id, connection_id FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
        " AND booking_date BETWEEN $3 AND $4 AND NOT is_adjusting_entry LIMIT 2",
        *(user_id, accounts, first - MARGIN, last + MARGIN),
    )
    return len(batches) > 1


def _look_alikes(session: Transaction, user_id: str, accounts: Sequence[str], first: date, last: date) -> list[str]:
    """The ids of the potential duplicates among the new rows of these days; new rows of later days do not count as
    earlier ones."""
    new = session.frame(
        f"SELECT {COLUMNS} FROM transactions WHERE user_id = $1 AND {ARRIVED} AND booking_date BETWEEN $2 AND $3"
        " ORDER BY booking_date, id",
        *(user_id, first, last),
        schema=LOOKALIKES,
    )
    around = session.frame(
        f"SELECT {COLUMNS} FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
        f" AND booking_date BETWEEN $3 AND $4 AND NOT (booking_date > $5 AND {ARRIVED})",
        *(user_id, accounts, first - MARGIN, last + MARGIN, last),
        schema=LOOKALIKES,
    )
    return sorted(flag(new, around))
