"""The flag isPotentialDuplicate, set at import on new rows that look like one the store has from elsewhere."""

from collections.abc import Sequence
from datetime import timedelta

from analytics.frames import LOOKALIKES
from analytics.potential_duplicates import DAYS_APART_MAX, flag
from storage.database import Session


def flag_new(session: Session, user_id: str, transaction_ids: Sequence[str]) -> int:
    """Flag those of the rows just added that another batch or connection may have brought before; how many."""
    columns = ", ".join(LOOKALIKES)
    new = session.frame(
        f"SELECT {columns} FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[]) ORDER BY booking_date, id",
        user_id,
        list(transaction_ids),
        schema=LOOKALIKES,
    )
    if new.is_empty():
        return 0
    days, margin = new["booking_date"], timedelta(days=DAYS_APART_MAX)
    around = session.frame(
        f"SELECT {columns} FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
        " AND booking_date BETWEEN $3 AND $4",
        user_id,
        new["account_id"].unique().to_list(),
        days.min() - margin,  # type: ignore[operator]  # a column of dates that is not empty
        days.max() + margin,  # type: ignore[operator]  # see above
        schema=LOOKALIKES,
    )
    if around.n_unique(["batch_id", "connection_id"]) < 2:
        return 0  # equal rows of one batch are real
    flagged = sorted(flag(new, around))
    return session.execute(
        "UPDATE transactions SET is_potential_duplicate = TRUE WHERE user_id = $1 AND id = ANY($2::TEXT[])",
        user_id,
        flagged,
    )
