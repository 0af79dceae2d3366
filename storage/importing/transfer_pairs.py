"""Pairs own transfers at import, over all rows of the user, and stores the result."""

import polars as pl

from analytics.frames import LEGS, OWN_ACCOUNTS, columns
from analytics.transfers import EXCHANGE_WORDS, SETTLEMENT, pair
from storage.accounts import own_ibans
from storage.database import Transaction
from storage.importing.derivation import derive_again, write

ACCOUNTS = (  # one in question is hidden, and may be a duplicate of another one
    "SELECT id, iban, former_ibans, kind, bank_name, currency, hidden_at IS NOT NULL AND perhaps_same_as IS NOT NULL"
    " AS is_in_question FROM accounts WHERE user_id = $1 ORDER BY position, id"
)
PAIRING = columns("transfer_account_id, transfer_id, transfer_fee, transfer_rule")
SAID = "CASE WHEN $4::BOOLEAN THEN lower(concat_ws(' ', bank_text, purpose)) END AS said"


def pair_again(session: Transaction, user_id: str) -> list[str]:
    """Pair anew the bookings that are two sides of a transfer between accounts of the user, store the pairs, derive the
    changed bookings anew, and return their ids. An account that may be a duplicate of another one takes no part,
    because the other one has its bookings."""
    owned = session.rows(ACCOUNTS, user_id)
    own: list[tuple[str | None, ...]] = [
        (row["id"], iban, row["kind"], row["bank_name"])
        for row in owned
        for iban in own_ibans(row["iban"], row["former_ibans"]) or ("",)
    ]
    ibans = {(each[1] or "").replace(" ", "").upper() for each in own}  # a leg names no stranger's
    read = LEGS.keys() - {"is_exchange"}
    stored = session.frame(
        f"SELECT {', '.join(read)}, {SAID}, {', '.join(f'{name} AS old_{name}' for name in PAIRING)}"
        " FROM transactions WHERE user_id = $1 AND (transfer_account_id IS NOT NULL"
        " OR upper(replace(coalesce(counterpart_iban, ''), ' ', '')) = ANY($2::TEXT[])"
        " OR detailed_category = $3)",
        *(user_id, *((["", *ibans], SETTLEMENT) if len(own) > 1 else ([], None))),
        len({row["currency"] for row in owned}) > 1,
        schema={
            **{name: LEGS[name] for name in read},
            "said": pl.String(),
            **{f"old_{name}": dtype for name, dtype in PAIRING.items()},
        },
    ).with_columns(is_exchange=pl.col("said").str.contains_any(EXCHANGE_WORDS).fill_null(value=False))
    if stored.is_empty():
        return []
    accounts = pl.DataFrame(own, schema=OWN_ACCOUNTS, orient="row")
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
