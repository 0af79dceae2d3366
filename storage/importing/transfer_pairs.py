"""Pairs own transfers at import, over all rows of the user, and stores the result."""

import polars as pl

from analytics.frames import LEGS, OWN_ACCOUNTS
from analytics.transfers import SETTLEMENT, pair
from storage.database import Transaction
from storage.importing.derivation import derive_again, write

ACCOUNTS = (  # one in question is hidden, and may be a duplicate of another one
    "SELECT id, iban, kind, hidden_at IS NOT NULL AND perhaps_same_as IS NOT NULL AS is_in_question FROM accounts"
    " WHERE user_id = $1 ORDER BY position, id"
)
PAIRING = ("transfer_account_id", "transfer_id", "transfer_rule")


def pair_again(session: Transaction, user_id: str) -> list[str]:
    """Pair anew the bookings that are two sides of a transfer between accounts of the user, store the pairs, derive the
    changed bookings anew, and return their ids. An account that may be a duplicate of another one takes no part,
    because the other one has its bookings."""
    owned = session.rows(ACCOUNTS, user_id)
    ibans = {(row["iban"] or "").replace(" ", "").upper() for row in owned}  # a leg names no stranger's
    stored = session.frame(
        f"SELECT {', '.join(LEGS)}, {', '.join(f'{name} AS old_{name}' for name in PAIRING)}"
        " FROM transactions WHERE user_id = $1 AND (transfer_account_id IS NOT NULL"
        " OR upper(replace(coalesce(counterpart_iban, ''), ' ', '')) = ANY($2::TEXT[])"
        " OR detailed_category = $3)",
        *(user_id, *((["", *ibans], SETTLEMENT) if len(owned) > 1 else ([], None))),
        schema={**LEGS, **{f"old_{name}": pl.String() for name in PAIRING}},
    )
    if stored.is_empty():
        return []
    accounts = pl.DataFrame([(row["id"], row["iban"], row["kind"]) for row in owned], schema=OWN_ACCOUNTS, orient="row")
    in_question = [row["id"] for row in owned if row["is_in_question"]]
    legs = stored.filter(~pl.col("account_id").is_in(in_question)).select(list(LEGS))
    paired = stored.join(pair(legs, accounts), on="id", how="left")
    is_changed = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"old_{name}")) for name in PAIRING)
    changed = paired.filter(is_changed).select("id", *PAIRING)
    ids: list[str] = changed["id"].to_list()
    if ids:
        write(session, user_id, changed)
        derive_again(session, user_id, ids)
    return ids
