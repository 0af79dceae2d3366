"""The evidence for the ledger of accounts: statements, balances, covered periods and other bookings."""

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from analytics.frames import FLAGGED, FORMER, MOVED, STATED, WAITING
from analytics.integrity import LedgerEvidence
from storage.database import Session

NOT_HELD = (  # for an account in question: no statement of the account that holds it tells it
    "(account_id, batch_id) NOT IN (SELECT perhaps_same_as, batch_id FROM contributions JOIN accounts"
    " ON accounts.user_id = contributions.user_id AND accounts.id = contributions.account_id"
    " WHERE contributions.user_id = $1 AND hidden_at IS NOT NULL AND perhaps_same_as IS NOT NULL)"
)


def is_any_booked(session: Session, user_id: str, account_ids: Sequence[str], *, first: date, last: date) -> bool:
    """Whether these accounts of the user have a booking from `first` to `last`, both included; adjusting entries do not
    count."""
    return bool(
        session.rows(
            "SELECT id FROM transactions WHERE user_id = $1 AND account_id = ANY($2::TEXT[])"
            " AND booking_date >= $3 AND booking_date <= $4 AND NOT is_adjusting_entry LIMIT 1",
            *(user_id, list(account_ids), first, last),
        )
    )


def evidence(session: Session, user_id: str, account_ids: Sequence[str]) -> LedgerEvidence:
    """The evidence stored for these accounts of the user. Where the store is a file, that for all their accounts: to
    choose some would cost DuckDB a join in each statement, which takes longer than the rest of it."""
    these, values = (" AND account_id = ANY($2::TEXT[])", (list(account_ids),)) if session.is_shared else ("", ())

    def rows(schema: Mapping[str, pl.DataType], table: str, condition: str = "TRUE") -> pl.DataFrame:
        asked = f"SELECT {', '.join(schema)} FROM {table} WHERE user_id = $1{these} AND {condition}"
        return session.frame(asked, user_id, *values, schema=schema)

    return LedgerEvidence(
        stated=rows(STATED, "statements"),
        moved=rows(MOVED, "transactions", f"NOT is_adjusting_entry AND {NOT_HELD}"),
        former=rows(FORMER, "former_amounts"),
        flagged=rows(FLAGGED, "transactions", "(is_adjusting_entry OR is_potential_duplicate)"),
        waiting=rows(WAITING, "pending_transactions"),
    )
