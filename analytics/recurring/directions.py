"""Recurring payments in both directions: incoming ones are found like outgoing ones, with the sign turned."""

import polars as pl

from analytics.recurring.detection import detect

OUTGOING, INCOMING = "outgoing", "incoming"
MARK = "\x1f" + INCOMING  # follows the user id of incoming payments, which are examined apart; no id contains it


def detect_both(charges: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """The recurring payments in both directions, ended ones included, as SUBSCRIPTIONS; the `user_id` of incoming ones
    has a mark.

    Both are found in one call, which costs little more than one direction. Salary is excluded as a payment but included
    as income.
    """
    turned = charges.with_columns(
        pl.col("user_id") + MARK,
        -pl.col("amount"),
        type=pl.when(pl.col("type") != "salary").then("type"),
    )
    asked = pl.concat([users, users.with_columns(pl.col("user_id") + MARK)])
    return detect(pl.concat([charges, turned], how="diagonal"), asked, with_ended=True)


def of_user(streams: pl.DataFrame, user_id: str) -> pl.DataFrame:
    """The payments of one user, in both directions."""
    return streams.filter(pl.col("user_id").is_in([user_id, user_id + MARK]))


def with_direction(streams: pl.DataFrame) -> pl.DataFrame:
    """The payments with a column `direction` in place of the mark."""
    comes_in = pl.col("user_id").str.ends_with(MARK)
    return streams.with_columns(
        pl.col("user_id").str.strip_suffix(MARK),
        direction=pl.when(comes_in).then(pl.lit(INCOMING)).otherwise(pl.lit(OUTGOING)),
    )
