"""The evidence for the ledger of accounts: statements, balances, covered periods and other bookings."""

from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from analytics.frames import FLAGGED, FORMER, MOVED, STATED, WAITING
from analytics.integrity import LedgerEvidence
from storage.database import Session
from storage.importing import lent_bookings


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

    held = lent_bookings.lent(session, user_id)["id"].to_list()  # no statement of who holds them tells them
    return LedgerEvidence(
        stated=rows(STATED, "statements"),
        moved=rows(MOVED, "transactions", "NOT is_adjusting_entry").filter(~pl.col("id").is_in(held)),
        former=rows(FORMER, "former_amounts"),
        flagged=rows(FLAGGED, "transactions", "(is_adjusting_entry OR is_potential_duplicate)"),
        waiting=rows(WAITING, "pending_transactions"),
    )
