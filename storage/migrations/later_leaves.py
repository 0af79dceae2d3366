"""Assigns finer categories to stored bookings that have none, at the first start with new tables of finer categories;
each user in one transaction. Nothing else of a booking changes, and a finer category that it has stays."""

from functools import partial

import polars as pl

from analytics.classification.facts import edition
from analytics.frames import columns
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
READ = SAID | columns("transfer_account_id, category, category_rule")
HAS_NONE = "user_id = $1 AND detailed_category IS NULL AND detailed_rule IS NULL AND NOT is_adjusting_entry"
IS_ANY_WITHOUT = " UNION ALL ".join(f"(SELECT id FROM {table} WHERE {HAS_NONE} LIMIT 1)" for table in TABLES)


def fill(store: Store) -> None:
    """Assign the finer categories unless that is done with these tables; an interrupted process continues at the next
    start."""
    everybody, tables = store.for_everybody(), edition()
    if store_facts.recall(everybody, GIVEN) == tables:
        return
    for user in users.everyone(everybody):
        own = store.of(user.id)
        if own.rows(IS_ANY_WITHOUT, user.id):  # of a million users, most may have no bookings
            own.atomically(partial(_fill, user_id=user.id))
    store_facts.remember(everybody, GIVEN, tables)


def _fill(session: Transaction, user_id: str) -> None:
    session.hold(user_id)
    before = _categories(session, user_id)
    derivation = Derivation.of_user(session, user_id)
    for table in TABLES:
        rows = session.frame(f"SELECT {', '.join(READ)} FROM {table} WHERE {HAS_NONE}", user_id, schema=READ)
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
