"""Bookings that a bank has taken back: they leave the ledger and every figure, and are kept in a table of their own."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import polars as pl

from analytics.records import StatementRecord
from storage import journal
from storage.changes import feed
from storage.database import columns_of
from storage.importing.matching.windows import ReportedWindow, is_whole
from storage.importing.teller import Teller


def prove(
    teller: Teller,
    account_id: str,
    *,
    gone: pl.DataFrame,
    arrived: pl.DataFrame,
    corrected: Decimal,
    reported: Sequence[StatementRecord],
    given: Sequence[ReportedWindow],
    reissued: Sequence[str],
) -> pl.DataFrame:
    """Those of the rows that a source no longer reports (`gone`, STORED) of which balances prove that the bank has
    taken them back: either by a statement that contains all bookings of their days, or by the newer issue of one that
    told them (`reissued`, by id), or by the change of a live source's
    balance since the last time, if it adds up without these rows and not with them.

    `arrived` are the new bookings (`booking_date`, `amount`), and `corrected` is the change by corrections of others.
    """
    if gone.is_empty():
        return gone
    is_stated = is_whole([each for each in given if not each.is_live]) | pl.col("id").is_in(reissued)
    stated, others = gone.filter(is_stated), gone.filter(~is_stated)
    unexplained = _unexplained_amounts(teller, account_id, arrived, corrected, reported)
    return pl.concat([stated, _explain(others, unexplained)])


def put_aside(teller: Teller, account_id: str, ids: Sequence[str]) -> pl.DataFrame:
    """Move these bookings from the ledger into the table of those taken back (`remove`)."""
    session, user_id = teller.session, teller.user.id
    if ids:
        columns = ", ".join(columns_of(session, "pending_transactions"))
        session.execute(
            f"INSERT INTO taken_back_transactions ({columns}, taken_back_at) SELECT {columns}, $3 FROM transactions"
            " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
            *(user_id, ids, teller.now),
        )
    return remove(teller, account_id, ids)


def remove(teller: Teller, account_id: str, ids: Sequence[str]) -> pl.DataFrame:
    """Remove these bookings from the ledger, record that for clients that ask for changes, and return the rows for the
    journal (journal.CHANGES)."""
    session, user_id = teller.session, teller.user.id
    if ids:
        session.execute("DELETE FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, ids)
        feed.record_removed(session, user_id, pl.DataFrame({"id": ids}).with_columns(account_id=pl.lit(account_id)))
    return journal.change_rows(ids, "removed")


def _unexplained_amounts(
    teller: Teller, account_id: str, arrived: pl.DataFrame, corrected: Decimal, reported: Sequence[StatementRecord]
) -> list[Decimal]:
    """The change of a live source's balance since its last report, minus what was booked in between. There is one
    amount for each assumption on whether late bookings, of days before the last report, were in that balance already.
    Of each two, the first assumes that those of this answer were not."""
    closing = next((each.closing for each in reversed(reported) if each.closing is not None), None)
    before = teller.session.rows(
        "SELECT closing, closing_date, received_at FROM statements WHERE user_id = $1 AND account_id = $2"
        " AND closing IS NOT NULL AND opening IS NULL AND NOT connection_id = ANY($3::TEXT[])"
        " ORDER BY received_at DESC, position DESC LIMIT 1",
        *(teller.user.id, account_id, list(teller.file_connections)),
    )
    if closing is None or not before:
        return []
    since = teller.session.frame(
        "SELECT booking_date, amount FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND NOT is_adjusting_entry AND created_at > $3",
        *(teller.user.id, account_id, before[0]["received_at"]),
        schema={name: arrived.schema[name] for name in ("booking_date", "amount")},
    )
    change = closing - before[0]["closing"] - corrected
    is_since = pl.col("booking_date") > before[0]["closing_date"]
    booked = [
        [Decimal(some["amount"].sum() or 0) for some in (rows, rows.filter(is_since))] for rows in (since, arrived)
    ]
    return [change - sum(both) for both in product(*booked)]


def _explain(gone: pl.DataFrame, unexplained: Sequence[Decimal]) -> pl.DataFrame:
    """The rows whose removal explains one of these amounts: all of them, or the only one with that amount. Where late
    bookings add up to all that is gone, they have replaced it, although they may have been in the balance already."""
    if Decimal(0) in unexplained[::2]:
        return gone.clear()
    for missing in unexplained:
        alone = gone.filter(pl.col("amount") == -missing)
        if gone["amount"].sum() == -missing:
            return gone
        if alone.height == 1 and Decimal(0) not in unexplained:
            return alone
    return gone.clear()
