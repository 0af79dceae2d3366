"""Pairs own transfers at import, over all rows of the user, and stores the result."""

import polars as pl

from analytics.frames import LEGS, OWN_ACCOUNTS, columns
from analytics.transfers import EXCHANGE_WORDS, SETTLEMENT, pair
from storage.accounts import every
from storage.database import Transaction
from storage.importing.derivation import derive_again, write

PAIRING = columns("transfer_account_id, transfer_id, transfer_fee, transfer_rule")
SAID = "CASE WHEN $4::BOOLEAN THEN lower(concat_ws(' ', bank_text, purpose)) END AS said"


def pair_again(session: Transaction, user_id: str) -> list[str]:
    """Pair anew the bookings that are two sides of a transfer between accounts of the user, store the pairs, derive the
    changed bookings anew, and return their ids. An account that may be a duplicate of another one takes no part,
    because the other one has its bookings."""
    owned = every(session, user_id)
    own = [(each.id, iban, each.kind, each.bank_name) for each in owned for iban in each.named_ibans or ("",)]
    ibans = {iban.replace(" ", "").upper() for _, iban, *_ in own}  # a leg names no stranger's
    read = [name for name in LEGS if name != "is_exchange"]
    stored = session.frame(
        f"SELECT {', '.join(read)}, {SAID}, {', '.join(f'{name} AS old_{name}' for name in PAIRING)}"
        " FROM transactions WHERE user_id = $1 AND (transfer_account_id IS NOT NULL"
        " OR upper(replace(coalesce(counterpart_iban, ''), ' ', '')) = ANY($2::TEXT[])"
        " OR detailed_category = $3)",
        *(user_id, *((["", *ibans], SETTLEMENT) if len(own) > 1 else ([], None))),
        len({each.currency for each in owned}) > 1,
        schema=columns(", ".join([*read, "said"])) | {f"old_{name}": dtype for name, dtype in PAIRING.items()},
    ).with_columns(is_exchange=pl.col("said").str.contains_any(EXCHANGE_WORDS).fill_null(value=False))
    if stored.is_empty():
        return []
    accounts = pl.DataFrame(own, schema=OWN_ACCOUNTS, orient="row")
    in_question = [each.id for each in owned if each.same_as]
    legs = stored.filter(~pl.col("account_id").is_in(in_question)).select(list(LEGS))
    paired = stored.join(pair(legs, accounts), on="id", how="left")
    is_changed = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"old_{name}")) for name in PAIRING)
    changed = paired.filter(is_changed).select("id", *PAIRING)
    ids: list[str] = changed["id"].to_list()
    if ids:
        write(session, user_id, changed)
        derive_again(session, user_id, ids)
    return ids
