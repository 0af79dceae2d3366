"""Bookings that only an account in question has: until its user has said whether it is another account of theirs, that
one holds them, so that they count, and once. What both have counts there anyway.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal

import polars as pl

from analytics.frames import columns
from storage import journal
from storage.changes import feed
from storage.database import Session, Transaction, set_values

DAYS_APART_MAX = timedelta(days=2)  # between the days that two sources give one booking
IN_QUESTION = "SELECT {} FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL AND perhaps_same_as IS NOT NULL"
LENT = columns("id, account_id")

DatesByAmount = Mapping[Decimal, Sequence[date]]
"""The booking dates of each amount, in their order."""


def give_back(session: Session, user_id: str) -> pl.DataFrame:
    """Give the accounts in question the bookings that others hold for them, and return these with the account that held
    them, as LENT. What changes single accounts begins with this and ends with `lend`."""
    if not session.rows(f"{IN_QUESTION.format('id')} LIMIT 1", user_id):
        return pl.DataFrame(schema=LENT)
    rows = session.frame(
        "SELECT DISTINCT t.id, t.account_id, c.account_id AS owner FROM transactions AS t JOIN contributions AS c"
        " ON c.user_id = t.user_id AND c.batch_id = t.batch_id WHERE t.user_id = $1 AND c.user_id = $1"
        f" AND c.account_id IN ({IN_QUESTION.format('id')}) AND NOT EXISTS (SELECT 1 FROM contributions AS own"
        " WHERE own.user_id = $1 AND own.batch_id = t.batch_id AND own.account_id = t.account_id)",
        user_id,
        schema=LENT | {"owner": pl.String()},
    )
    for (owner,), held in rows.group_by("owner"):
        _move(session, user_id, held["id"].to_list(), to=str(owner))
    return rows.select(*LENT)


def lend(session: Transaction, user_id: str, lent: pl.DataFrame) -> pl.DataFrame:
    """Where a hidden account may be the same as another one, show the bookings that only the hidden one has in that
    other account. `lent` are those that were shown there before (of `give_back`). Returns the rows for the journal
    (journal.CHANGES)."""
    held = [pl.DataFrame(schema=LENT)]
    for row in session.rows(
        f"{IN_QUESTION.format('id, perhaps_same_as')}"
        " AND perhaps_same_as IN (SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NULL)",
        user_id,
    ):
        ids = _only_in(session, user_id, row["id"], row["perhaps_same_as"])
        _move(session, user_id, ids, to=row["perhaps_same_as"])
        held.append(
            pl.DataFrame({"id": ids}, schema={"id": pl.String}).with_columns(account_id=pl.lit(row["perhaps_same_as"]))
        )
    now = pl.concat(held)
    if now.is_empty() and lent.is_empty():
        return journal.change_rows(now["id"], "modified")
    new, ended = now.join(lent, on=list(LENT), how="anti"), lent.join(now, on="id", how="anti")
    if not new.is_empty():
        state = session.coming_state(user_id)
        of_new = {"user_id": user_id, "id": new["id"].to_list()}
        set_values(session, "transactions", of_new, added_state=state, changed_state=state)
    hidden = session.rows("SELECT id FROM accounts WHERE user_id = $1 AND hidden_at IS NOT NULL", user_id)
    there = session.frame(
        "SELECT id FROM transactions WHERE user_id = $1 AND id = ANY($2::TEXT[]) AND account_id = ANY($3::TEXT[])",
        *(user_id, ended["id"].to_list(), [row["id"] for row in hidden]),
        schema={"id": pl.String()},
    )
    feed.record_removed(session, user_id, ended.join(there, on="id", how="semi"))
    return journal.change_rows(pl.concat([new, ended])["id"], "modified")


def unpaired(one: Sequence[date], other: Sequence[date]) -> list[int]:
    """The places of the dates in the first list without one in the second within DAYS_APART_MAX, each used once; both
    are in order."""
    left, place = [], 0
    for number, day in enumerate(one):
        while place < len(other) and other[place] < day - DAYS_APART_MAX:
            place += 1
        if place < len(other) and other[place] <= day + DAYS_APART_MAX:
            place += 1
        else:
            left.append(number)
    return left


def dates_by_amount(session: Session, user_id: str, account_id: str) -> DatesByAmount:
    return {amount: [day for _, day in rows] for amount, rows in _by_amount(session, user_id, account_id).items()}


def _only_in(session: Session, user_id: str, account_id: str, other: str) -> list[str]:
    """The ids of the account's bookings that the other one does not have, by amount and within DAYS_APART_MAX."""
    dates_of = dates_by_amount(session, user_id, other)
    return [
        rows[place][0]
        for amount, rows in _by_amount(session, user_id, account_id).items()
        for place in unpaired([day for _, day in rows], dates_of.get(amount, ()))
    ]


def _by_amount(session: Session, user_id: str, account_id: str) -> Mapping[Decimal, Sequence[tuple[str, date]]]:
    found: dict[Decimal, list[tuple[str, date]]] = {}
    for row in session.rows(
        "SELECT id, amount, booking_date FROM transactions WHERE user_id = $1 AND account_id = $2"
        " AND NOT is_adjusting_entry ORDER BY booking_date, id",
        *(user_id, account_id),
    ):
        found.setdefault(row["amount"], []).append((row["id"], row["booking_date"]))
    return found


def _move(session: Session, user_id: str, ids: Sequence[str], *, to: str) -> None:
    if ids:
        set_values(session, "transactions", {"user_id": user_id, "id": list(ids)}, account_id=to)
