"""The choice of streams among the accepted groups, and of the charges that belong to them."""

from functools import cache

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.frequencies import PERIODS
from analytics.recurring.groups import WHOSE
from analytics.recurring.rhythm import on_lattice

TURNS_MAX = 12  # rounds of choosing; three or four are common
KEPT_MIN = 0.9  # a group that lost more than 10 % of its charges to a coarser one is no stream of its own
ABSORBED_MAX = 0.25  # second collections may be a quarter of a stream without contract at most
WHOLE = 0.99  # of the payee's charges: nothing else is bought there
STREAMS_AT_A_PAYEE_MAX = 10  # more are rows without a name; every charge left would be compared with every stream
STRANGER_DAYS = 1.0  # a charge this much beyond the tolerance was bought, not collected
NEXT_DAYS_MAX = 4.0  # a charge of another price belongs to a stream only when it comes on the day
NEXT_PRICE_MIN, NEXT_PRICE_MAX = 0.5, 2.1  # outside, the price is that of another product
PAUSE_MIN, PAUSE_MAX = 0.5, 2.2  # periods between the end of a stream and the beginning of its successor
CHANGES_MAX = 2
STEADY_MIN = 0.5  # share of charges with a repeated price, from which on a single other price is doubtful


def choose_groups(members: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The chosen groups and their charges (group, row): every charge goes to its coarsest, then best fitting group;
    groups that lost too many are dropped.

    Groups that come first for all of their charges win; then, among the remaining charges, the next ones do.
    """
    ranked = (
        candidates.select("group", "rank", "score", "n")
        .sort("rank", "score", "n", "group", descending=[False, True, True, False])
        .with_row_index("priority")
        .select("group", "priority", "n")
    )
    claims = members.join(ranked, on="group")
    won = [members.clear()]
    for _ in range(TURNS_MAX):
        claims = claims.with_columns(first=pl.col("priority") == pl.col("priority").min().over("row"))
        winners = claims.filter(pl.col("first").all().over("group")).select("group", "row")
        won.append(winners)
        claims = claims.join(winners, on="row", how="anti").filter(pl.len().over("group") >= KEPT_MIN * pl.col("n"))
        if claims.is_empty():
            break
    return pl.concat(won)


def complete_streams(charges: pl.DataFrame, streams: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """The streams' charges (group, row, odd): without strangers of the same price, and with what else belongs to them
    at the payee: second collections of the same price, and trial months and new prices in the slots before and after.

    Odd ones (`is_odd`) are no charges of the stream, and no beginning of another one.
    """
    lattice = candidates.lazy().select(
        "group", "axis", "period", "unit_days", "phase", "tolerance_days", "contract", "part", "score"
    )
    dated = charges.lazy().select("row", *WHOSE, "payee", "price", "days", "business", "months")
    whole = pl.col("contract") | (pl.col("part") >= WHOLE)
    late = pl.col("late_days").abs()
    kept = (
        on_lattice(streams.lazy().join(lattice, on="group").join(dated, on="row"))
        .filter(whole | ~is_off_its_day())
        .sort("row")
        .with_columns(odd=is_odd())
        .pipe(frame_of)
        .lazy()
    )
    spans = (
        kept.filter(~pl.col("odd"))
        .group_by("group")
        .agg(
            pl.col(*WHOSE, "payee").last(),
            first_slot=pl.col("slot").min(),
            last_slot=pl.col("slot").max(),
            first_price=pl.col("price").first(),
            last_price=pl.col("price").last(),
            stream_prices=pl.col("price").unique(),
            size=pl.len(),
        )
        .filter(pl.len().over(*WHOSE, "payee") <= STREAMS_AT_A_PAYEE_MAX)
    )
    left = on_lattice(
        dated.join(streams.lazy(), on="row", how="anti").join(spans, on=[*WHOSE, "payee"]).join(lattice, on="group")
    )
    left = left.pipe(frame_of).lazy()
    added = pl.concat([collected_again(left), charged_later(left), charged_earlier(left)])
    best = (
        added.select("group", "row", "score", late=late)
        .sort("late", "score", "group", descending=[False, True, False])
        .unique("row", keep="first", maintain_order=True)
    )
    streams_and_more = [kept.select("group", "row", "odd"), best.select("group", "row", odd=pl.lit(value=False))]
    return pl.concat(streams_and_more).pipe(frame_of)


@cache
def is_off_its_day() -> pl.Expr:
    """Whether a charge was bought, not collected, because it is well beyond the tolerance."""
    return pl.col("late_days").abs() > pl.col("tolerance_days") + STRANGER_DAYS


@cache
def is_odd() -> pl.Expr:
    """Whether a charge of a steady stream, oldest first, is something else at the same payee: 55.00 once to somebody
    who gets 1,000.00 each month.

    Its price comes only once, and it is off the day, fills a slot that the steady price also fills, or is the latest
    one and no likely new price. A price that is repeated is a new price.
    """
    lone = pl.len().over("group", "price") == 1
    steady = lone.not_().mean().over("group") >= STEADY_MIN
    beside = lone.not_().any().over("group", "slot")
    usual = pl.col("price").median().over("group")
    latest = pl.col("row") == pl.col("row").max().over("group")
    unlikely = latest & (pl.col("price") < NEXT_PRICE_MIN * usual)
    return steady & lone & (is_off_its_day() | beside | unlikely)


def collected_again(left: pl.LazyFrame) -> pl.LazyFrame:
    """Further charges of a stream's price within its time: second collections and double charges, unless there are too
    many."""
    return left.filter(
        pl.col("price").is_in("stream_prices"),
        pl.col("slot").is_between(pl.col("first_slot"), pl.col("last_slot")),
        pl.col("contract") | (pl.col("late_days").abs() <= pl.col("tolerance_days")),
    ).filter(pl.col("contract") | (pl.len().over("group") <= ABSORBED_MAX * pl.col("size")))


def charged_later(left: pl.LazyFrame) -> pl.LazyFrame:
    """Charges of a new price in the slots after a stream's last one: one per slot, with at most one slot missed."""
    ratio = pl.col("price") / pl.col("last_price")
    ahead = pl.col("slot") - pl.col("last_slot")
    return on_its_day(left.filter(ahead > 0, ratio.is_between(NEXT_PRICE_MIN, NEXT_PRICE_MAX))).filter(
        ahead <= ahead.rank("ordinal").over("group") + 1
    )


def charged_earlier(left: pl.LazyFrame) -> pl.LazyFrame:
    """Charges in the slots before a stream's first one: an old price, a trial month, a part of a month."""
    ratio = pl.col("price") / pl.col("first_price")
    before = pl.col("first_slot") - pl.col("slot")
    return on_its_day(left.filter(before > 0, ratio <= NEXT_PRICE_MAX)).filter(
        before <= before.rank("ordinal").over("group") + 1
    )


def on_its_day(left: pl.LazyFrame) -> pl.LazyFrame:
    """For each slot, the charge nearest to its day."""
    late = pl.col("late_days").abs()
    near = left.filter(late <= pl.min_horizontal("tolerance_days", pl.lit(NEXT_DAYS_MAX)))
    return near.sort(late, "row").unique(["group", "slot"], keep="first", maintain_order=True)


def join_successors(charges: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
    """The streams, with two of the same payee and frequency joined where one ends when the other begins: a new mandate,
    a new price, a moved billing day. (A chain of two such changes within the evidence is joined, too.)"""
    dated = charges.lazy().select("row", *WHOSE, "payee", "days", "price")
    for _ in range(CHANGES_MAX):
        spans = (
            streams.lazy()
            .join(dated, on="row")
            .sort("row")
            .group_by("group")
            .agg(
                pl.col(*WHOSE, "payee", "frequency").last(),
                first_day=pl.col("days").first(),
                last_day=pl.col("days").last(),
                first_price=pl.col("price").first(),
                last_price=pl.col("price").last(),
            )
            .filter(pl.len().over(*WHOSE, "payee").is_between(2, STREAMS_AT_A_PAYEE_MAX))
            .join(PERIODS.lazy(), on="frequency")
            .pipe(frame_of)
        )
        pause = (pl.col("first_day_after") - pl.col("last_day")) / pl.col("period_days")
        ratio = pl.col("first_price_after") / pl.col("last_price")
        heirs = (
            spans.lazy()
            .join(spans.lazy(), on=[*WHOSE, "payee", "frequency"], suffix="_after")
            .filter(pause.is_between(PAUSE_MIN, PAUSE_MAX), ratio.is_between(NEXT_PRICE_MIN, NEXT_PRICE_MAX))
            .sort(pause, "group", "group_after")
            .unique("group", keep="first", maintain_order=True)
            .unique("group_after", keep="first", maintain_order=True)
            .select("group", heir="group_after")
            .pipe(frame_of)
        )
        if heirs.is_empty():
            break
        joined = streams.lazy().join(heirs.lazy(), on="group", how="left")
        streams = joined.with_columns(group=pl.coalesce("heir", "group")).drop("heir").pipe(frame_of)
    return streams
