"""The flag isPotentialDuplicate, set at import on new rows that look like one the store has from elsewhere."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import polars as pl

from analytics.frames import LOOKALIKES
from analytics.potential_duplicates import DAYS_APART_MAX, flag
from storage.database import Row, Transaction
from storage.importing.spool import CHUNK_ROWS

MARGIN = timedelta(days=DAYS_APART_MAX)
ARRIVED = "id IN (SELECT id FROM arrived)"
COLUMNS = ", ".join(LOOKALIKES)


def flag_new(session: Transaction, user_id: str, ids: pl.Series) -> int:
    """Flag those of the rows just added that another batch or connection may have brought before; how many."""
    if ids.is_empty():
        return 0
    with session.staged("arrived", ids.alias("id").to_frame()):
        days = session.rows(
            "SELECT booking_date AS day, account_id, count(*) AS n FROM transactions"
            f" WHERE user_id = $1 AND {ARRIVED} GROUP BY booking_date, account_id ORDER BY booking_date",
            user_id,
        )
        accounts = list({row["account_id"] for row in days})
        if not days or not _come_from_several(session, user_id, accounts, days[0]["day"], days[-1]["day"]):
            return 0  # equal rows of one batch are real
        flagged = [id_ for first, last in _windows(days) for id_ in _flagged(session, user_id, accounts, first, last)]
    return session.execute(
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


def _windows(days: Sequence[Row]) -> Iterator[tuple[date, date]]:
    """First and last day of neighbouring days with about CHUNK_ROWS rows together: bounds memory."""
    first, rows = days[0]["day"], 0
    for row, following in zip(days, [*days[1:], None], strict=True):
        rows += row["n"]
        if following is None or (rows >= CHUNK_ROWS and following["day"] > row["day"]):
            yield first, row["day"]
            first, rows = following and following["day"], 0


def _flagged(session: Transaction, user_id: str, accounts: Sequence[str], first: date, last: date) -> list[str]:
    """Ids of the look-alikes among the new rows of these days; those that arrived with them for later days come after
    them."""
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
