"""Bookings that a bank has taken back: they leave the ledger and every figure, and are kept where they can be seen."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import product

import polars as pl

from analytics.records import StatementRecord
from storage import journal
from storage.changes import feed
from storage.database import columns_of
from storage.importing.matching.windows import ToldWindow, is_whole
from storage.importing.teller import Teller


def prove(
    teller: Teller,
    account_id: str,
    *,
    gone: pl.DataFrame,
    arrived: pl.DataFrame,
    corrected: Decimal,
    told: Sequence[StatementRecord],
    given: Sequence[ToldWindow],
) -> pl.DataFrame:
    """Those of the rows that a source tells no more (`gone`, STORED) which the balance proves to be taken back: the
    balances of a statement that holds all bookings of their days, or what a live source says of the balance now and
    said the last time, if the difference is explained without them and not with them.

    `arrived` are the new bookings (`booking_date`, `amount`), `corrected` is by how much others have changed."""
    if gone.is_empty():
        return gone
    is_stated = is_whole([each for each in given if not each.is_live])
    stated, others = gone.filter(is_stated), gone.filter(~is_stated)
    unexplained = _unexplained_amounts(teller, account_id, arrived, corrected, told)
    return pl.concat([stated, _explain(others, unexplained)])


def put_aside(teller: Teller, account_id: str, ids: Sequence[str]) -> pl.DataFrame:
    """Move these bookings of an account out of the ledger; the journal's rows (journal.CHANGES)."""
    session, user_id = teller.session, teller.user.id
    if ids:
        columns = ", ".join(columns_of(session, "pending_transactions"))
        session.execute(
            f"INSERT INTO taken_back_transactions ({columns}, taken_back_at) SELECT {columns}, $3 FROM transactions"
            " WHERE user_id = $1 AND id = ANY($2::TEXT[])",
            *(user_id, ids, teller.now),
        )
        session.execute("DELETE FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[])", user_id, ids)
        feed.bury(session, user_id, pl.DataFrame({"id": ids}).with_columns(account_id=pl.lit(account_id)))
    return journal.changed(ids, "removed")


def _unexplained_amounts(
    teller: Teller, account_id: str, arrived: pl.DataFrame, corrected: Decimal, told: Sequence[StatementRecord]
) -> list[Decimal]:
    """By how much the balance has changed since a live source told it last, less what has been booked since then; once
    for each answer to the question whether late bookings, of days before that balance, were in it already: of every
    two the first is that those which are told now were not."""
    closing = next((each.closing for each in reversed(told) if each.closing is not None), None)
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
    """Those rows without which nothing is left to explain: all of them, or the only one of its amount. Late bookings of
    the very amount of all that is gone have taken its place, rather than that they were in the balance already."""
    total = gone["amount"].sum()
    for missing in unexplained if Decimal(0) not in unexplained[::2] else ():
        alone = gone.filter((pl.col("amount") == -missing) & (Decimal(0) not in unexplained))
        if total == -missing or alone.height == 1:
            return gone if total == -missing else alone
    return gone.clear()
