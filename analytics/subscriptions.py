"""Recurring payments: which outgoing charges come back in a rhythm, what they cost and when they were last seen."""

import polars as pl

from analytics.recurring.charges import eligible
from analytics.recurring.choice import chosen, completed
from analytics.recurring.evidence import accepted
from analytics.recurring.groups import candidate_groups, with_group_keys
from analytics.recurring.payees import with_payee
from analytics.recurring.prices import described
from analytics.recurring.report import reported
from analytics.recurring.rhythm import fits, with_axes

ROUNDS = 2  # what the first round explains is taken away; the rest is looked at once more


def detect(charges: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """The recurring payments of any number of users.

    `charges` has the columns of `analytics.frames.CHARGES`, `users` has (user_id, today: Date); the result has those
    of `analytics.frames.SUBSCRIPTIONS`: per user by yearly cost descending, then name (decision 21). Interface 2.10, 4.7.
    """
    rows = with_axes(with_payee(eligible(charges, users)))
    streams: list[pl.DataFrame] = []
    left = rows
    for _ in range(ROUNDS):
        found = one_round(left)
        streams.append(found)
        touched = left.join(found, on="row", how="semi").select("user_id", "currency", "payee").unique()
        left = left.join(found, on="row", how="anti").join(touched, on=["user_id", "currency", "payee"], how="semi")
    return reported(rows, pl.concat(streams), users)


def one_round(rows: pl.DataFrame) -> pl.DataFrame:
    """(stream, row, frequency, ...) of the streams that can be seen in these charges."""
    counted = with_group_keys(
        rows.with_columns(
            payee_n=pl.len().over("user_id", "currency", "payee"),
            contract_n=pl.when(pl.col("contract_key").is_not_null()).then(
                pl.len().over("user_id", "currency", "contract_key")
            ),
        )
    )
    members, groups = candidate_groups(counted)
    groups = described(counted, members, groups)
    candidates = accepted(fits(counted, members, groups), groups)
    streams = chosen(members, candidates)
    streams = completed(counted, streams, candidates)
    return streams.join(candidates.select("group", "frequency", "score", "contract", "lattice"), on="group")
