"""Recurring payments in both directions: what goes out, and what comes in found in the same way, its sign turned."""

import polars as pl

from analytics.recurring.detection import detect

OUTGOING, INCOMING = "outgoing", "incoming"
MARK = "\x1f" + INCOMING  # behind the id of a user, in which it stands nowhere: what comes in is looked at apart


def detect_both(charges: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """What `detect` finds in both directions, ended or not, as SUBSCRIPTIONS; the `user_id` of what comes in bears a
    mark. Both are found in one call, which costs little more than one. A salary is no payment, but it comes in."""
    turned = charges.with_columns(
        pl.col("user_id") + MARK,
        -pl.col("amount"),
        type=pl.when(pl.col("type") != "salary").then("type"),
    )
    asked = pl.concat([users, users.with_columns(pl.col("user_id") + MARK)])
    return detect(pl.concat([charges, turned], how="diagonal"), asked, with_ended=True)


def of_user(found: pl.DataFrame, user_id: str) -> pl.DataFrame:
    """What was found of one user."""
    return found.filter(pl.col("user_id").is_in([user_id, user_id + MARK]))


def with_direction(found: pl.DataFrame) -> pl.DataFrame:
    """The payments with a column `direction` in place of the mark."""
    comes_in = pl.col("user_id").str.ends_with(MARK)
    return found.with_columns(
        pl.col("user_id").str.strip_suffix(MARK),
        direction=pl.when(comes_in).then(pl.lit(INCOMING)).otherwise(pl.lit(OUTGOING)),
    )
