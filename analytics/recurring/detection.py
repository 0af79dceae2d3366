"""The detection of recurring payments: which outgoing charges repeat in a rhythm, what they cost and when they were
last seen."""

import polars as pl

from analytics.frames import SUBSCRIPTIONS
from analytics.recurring.charges import eligible
from analytics.recurring.choice import choose_groups, complete_streams, join_successors
from analytics.recurring.evidence import accept_fits, worth_fitting
from analytics.recurring.groups import WHOSE, candidate_groups, with_group_keys
from analytics.recurring.payees import with_payee
from analytics.recurring.prices import describe_groups
from analytics.recurring.report import report_streams
from analytics.recurring.rhythm import fits, likely, with_axes

CHARGES_MIN = 2  # the fewest that show a rhythm
NONE = pl.DataFrame(schema=SUBSCRIPTIONS)
ROUNDS = 2  # charges explained in the first round are removed; the rest at the same payees is examined once more


def detect(
    charges: pl.DataFrame, users: pl.DataFrame, *, of_any_kind: bool = False, with_ended: bool = False
) -> pl.DataFrame:
    """The recurring payments of any number of users (interface 2.10, 4.7; docs/recurring.md).

    `charges` has the columns of `analytics.frames.CHARGES`, `users` has (user_id, today: Date); the result has those of
    `analytics.frames.SUBSCRIPTIONS`: per user by yearly cost descending, then name (decision 21). `of_any_kind` also
    finds savings, loans, settlements and own transfers, which change a balance as payments do; `with_ended` includes
    streams that are no longer listed.
    """
    payments = eligible(charges, users, of_any_kind=of_any_kind)
    del charges  # the frames below need the memory
    if payments.height < CHARGES_MIN:
        return NONE
    rows = with_group_keys(with_axes(with_payee(payments)))
    del payments
    left = rows
    rounds: list[pl.DataFrame] = []
    while len(rounds) < ROUNDS and (streams := streams_in(left)) is not None:
        rounds.append(streams)
        touched = left.join(streams, on="row", how="semi").select(*WHOSE, "payee").unique()
        left = left.join(streams, on="row", how="anti").join(touched, on=[*WHOSE, "payee"], how="semi")
    if not rounds:
        return NONE
    return report_streams(
        rows, join_successors(rows, pl.concat(rounds).filter(~pl.col("odd")).drop("odd")), with_ended=with_ended
    )


def streams_in(rows: pl.DataFrame) -> pl.DataFrame | None:
    """The streams in these charges (group, row, odd, frequency, lattice, score); None where no calendar is likely, as
    in most new accounts and in what the first round leaves."""
    if rows.height < CHARGES_MIN:
        return None
    counted = rows.with_columns(
        payee_n=pl.len().over(*WHOSE, "payee"),
        mandate_n=pl.when(pl.col("contract_key").is_not_null()).then(pl.len().over(*WHOSE, "contract_key")),
    )
    members, groups = candidate_groups(counted)
    pairs = likely(groups)
    if pairs.is_empty():
        return None
    members = members.join(pairs, on="group", how="semi")
    known = describe_groups(counted, members, groups)
    candidates = accept_fits(fits(counted, members, worth_fitting(pairs, known)), known)
    streams = complete_streams(counted, choose_groups(members, candidates), candidates)
    return streams.join(candidates.select("group", "frequency", "lattice", "score"), on="group")
