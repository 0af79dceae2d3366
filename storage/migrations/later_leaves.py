"""The finer categories of bookings stored before finer categories existed: assigned once, after the migration, with one
transaction per user. Nothing else of a booking changes."""

from functools import partial

import polars as pl

from storage import store_facts, users
from storage.database import Session, Store, Transaction
from storage.importing.derivation import LEAF, SAID, Derivation, write

GIVEN = "detailed categories were given to what was stored before"
TABLES = (
    "transactions",
    "pending_transactions",
    "taken_back_transactions",
    "earlier_transactions",
    "earlier_pending_transactions",
)
READ: dict[str, pl.DataType] = {
    **SAID,
    **{name: pl.String() for name in ("transfer_account_id", "category", "category_rule")},
}


def fill(store: Store) -> None:
    """Assign the finer categories unless that is done; an interrupted process continues at the next start."""
    everybody = store.for_everybody()
    if store_facts.recall(everybody, GIVEN) is not None:
        return
    for user in users.everyone(everybody):
        store.of(user.id).atomically(partial(_fill, user_id=user.id))
    store_facts.remember(everybody, GIVEN, "yes")


def _fill(session: Transaction, user_id: str) -> None:
    session.hold(user_id)
    before = _categories(session, user_id)
    derivation = Derivation.of_user(session, user_id)
    for table in TABLES:
        rows = session.frame(
            f"SELECT {', '.join(READ)} FROM {table}"
            " WHERE user_id = $1 AND detailed_category IS NULL AND NOT is_adjusting_entry",
            user_id,
            schema=READ,
        )
        given = derivation.with_leaves(rows).filter(pl.col("detailed_category").is_not_null()).select("id", *LEAF)
        if not given.is_empty():
            session.changes(user_id)
            write(session, user_id, given, table=table)
    assert _categories(session, user_id) == before, "a finer category has changed a category"


def _categories(session: Session, user_id: str) -> object:
    return session.rows(
        "SELECT category, count(*) AS bookings, sum(amount) AS amount FROM transactions WHERE user_id = $1"
        " GROUP BY category ORDER BY category",
        user_id,
    )
