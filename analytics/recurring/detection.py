"""The detection of recurring payments: which outgoing charges repeat in a rhythm, what they cost and when they were
last seen."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import polars as pl

from analytics.frames import SUBSCRIPTIONS, among, frame_of
from analytics.recurring.charges import TOLD, eligible_payments
from analytics.recurring.choice import DatedCharge, Streams, choose_groups, complete_streams, join_successors
from analytics.recurring.evidence import accept_fits, worth_fitting
from analytics.recurring.groups import candidate_groups, with_group_keys
from analytics.recurring.payees import WHOSE, with_payee
from analytics.recurring.prices import describe_groups
from analytics.recurring.report import report_streams
from analytics.recurring.rhythm import fits

CHARGES_MIN = 2  # the fewest that show a rhythm
PLACED = {"group": pl.UInt64, "row": pl.UInt32, "frequency": pl.String, "lattice": pl.String, "score": pl.Float64}
NONE = pl.DataFrame(schema=SUBSCRIPTIONS)
ROUNDS = 2  # charges explained in the first round are removed; the rest at the same payees is examined once more


def detect_both(charges: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """The recurring payments in both directions, ended ones included, as SUBSCRIPTIONS; the `user_id` of incoming ones
    ends with `directions.MARK`. Salary is excluded as a payment but included as income."""
    return detect(charges, users, incoming=True, with_ended=True)


def detect(
    charges: pl.DataFrame,
    users: pl.DataFrame,
    *,
    of_any_kind: bool = False,
    incoming: bool = False,
    with_ended: bool = False,
) -> pl.DataFrame:
    """The recurring payments of any number of users (interface 2.10, 4.7; docs/recurring.md).

    `charges` has the columns of `analytics.frames.CHARGES`, `users` has (user_id, today: Date), and where a user is
    looked at on several days, what each is `called` in the result; that has the columns of
    `analytics.frames.SUBSCRIPTIONS`: per user by yearly cost descending, then name (decision 21). `of_any_kind` also
    finds savings, loans, settlements and own transfers, which change a balance as payments do; `incoming` also finds
    what recurs as income, with `directions.MARK` at the end of `user_id`; `with_ended` includes streams that are no
    longer listed.
    """
    payments = eligible_payments(charges, users, of_any_kind=of_any_kind, incoming=incoming)
    if payments.height < CHARGES_MIN:
        return NONE
    rows = with_group_keys(with_payee(payments))
    del payments
    left = rows
    streams: Streams = defaultdict(list)
    for _ in range(ROUNDS):
        found, others = streams_in(left)
        for group, stream in found.items():
            streams[group] = sorted([*streams[group], *stream])
        left = left.lazy().filter(pl.col("row").is_in(others)).pipe(frame_of)
    if not streams:
        return NONE
    placed = [
        (group, each.charge.row, each.candidate.fit.frequency, each.candidate.fit.lattice, each.candidate.score)
        for group, stream in join_successors(streams).items()
        for each in stream
    ]
    chosen = pl.DataFrame(placed, schema=PLACED, orient="row")
    rows = rows.lazy().filter(pl.col("row").is_in(among(chosen["row"]))).pipe(frame_of)
    return report_streams(rows.hstack(charges[rows["charge"]][[*TOLD]]), chosen, with_ended=with_ended)


def streams_in(rows: pl.DataFrame) -> tuple[Streams, Sequence[int]]:
    """The streams in these charges by group, and the row numbers of the charges at their payees that are in none of
    them, which are examined once more; odd charges (`choice.odd_ones`) are not among these."""
    if rows.height < CHARGES_MIN:
        return {}, ()
    mandate_n = pl.when(pl.col("contract_key").is_not_null()).then(pl.len().over(*WHOSE, "contract_key"))
    counted = rows.lazy().with_columns(payee_n=pl.len().over("payee_id"), mandate_n=mandate_n).pipe(frame_of)
    members, groups = candidate_groups(counted)
    if groups.is_empty():  # as in most new accounts
        return {}, ()
    members = members.lazy().join(groups.lazy(), on="group", how="semi").pipe(frame_of)
    known = describe_groups(counted, members, groups)
    candidates = accept_fits(fits(counted, members, worth_fitting(known)), known)
    claims: dict[int, list[int]] = {group: [] for group in candidates}
    for group, row in members.lazy().filter(pl.col("group").is_in(list(claims))).pipe(frame_of).iter_rows():
        claims[group].append(row)
    chosen = choose_groups(claims)
    at_payees = pl.col("row").is_in(list(chain.from_iterable(chosen.values()))).any().over("payee_id")
    near = rows.lazy().select(DatedCharge._fields).filter(at_payees).pipe(frame_of)
    charges = {row[0]: DatedCharge._make(row) for row in near.iter_rows()}
    streams, odd = complete_streams(charges, chosen, candidates)
    explained = odd.union(*({each.charge.row for each in stream} for stream in streams.values()))
    payees = {charges[row].payee_id for row in explained}
    return streams, [row for row, charge in charges.items() if row not in explained and charge.payee_id in payees]
