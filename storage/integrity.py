"""What the ledger of accounts is proven by: statements, balances, windows of days, and bookings beside them."""

from collections.abc import Mapping, Sequence

import polars as pl

from analytics.frames import FLAGGED, MOVED, STATED, WAITING
from analytics.integrity import LedgerEvidence
from storage.database import Session


def evidence(session: Session, user_id: str, account_ids: Sequence[str]) -> LedgerEvidence:
    """Everything there is of these accounts of the user, hidden ones too."""

    def rows(schema: Mapping[str, pl.DataType], table: str, condition: str = "TRUE") -> pl.DataFrame:
        return session.frame(
            f"SELECT {', '.join(schema)} FROM {table} WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
            f" AND {condition}",
            user_id,
            list(account_ids),
            schema=schema,
        )

    return LedgerEvidence(
        stated=rows(STATED, "statements"),
        moved=rows(MOVED, "transactions", "NOT is_adjusting_entry"),
        flagged=rows(FLAGGED, "transactions", "(is_adjusting_entry OR is_potential_duplicate)"),
        waiting=rows(WAITING, "pending_transactions"),
    )
