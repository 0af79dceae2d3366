"""Recurring payments in both directions: incoming ones are found like outgoing ones, with the sign turned."""

import polars as pl

OUTGOING, INCOMING = "outgoing", "incoming"
MARK = "\x1f" + INCOMING  # follows the user id of incoming payments, which are examined apart; no id contains it


def of_user(streams: pl.DataFrame, user_id: str) -> pl.DataFrame:
    """The payments of one user, in both directions; MARK stays on the `user_id` of incoming ones."""
    return streams.filter(pl.col("user_id").is_in([user_id, user_id + MARK]))
