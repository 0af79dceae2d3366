"""Which of the accepted groups are streams, and which charges belong to them."""

import polars as pl

KEPT_MIN = 0.9  # a group that lost more than 10 % of its charges to a coarser one is no stream of its own
ABSORBED_MAX = 0.25  # left-over charges of the same payee and amount, at most a quarter of the stream
TRUE_UP = 1.9  # a single amount this many times the median is a settlement, not the instalment


def chosen(members: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """(group, row): every charge goes to its coarsest, then best fitting group; groups that lost too much are dropped."""
    ranked = (
        candidates.lazy()
        .select("group", "rank", "score", "n")
        .sort("rank", "score", "n", "group", descending=[False, True, True, False])
        .with_row_index("priority")
        .select("group", "priority", "n")
    )
    claims = members.lazy().join(ranked, on="group").collect()
    for _ in range(2):
        won = claims.filter(pl.col("priority") == pl.col("priority").min().over("row"))
        kept = (
            won.group_by("group")
            .agg(won=pl.len(), n=pl.col("n").first())
            .filter(pl.col("won") >= KEPT_MIN * pl.col("n"))
        )
        claims = claims.join(kept.select("group"), on="group", how="semi")
    return claims.filter(pl.col("priority") == pl.col("priority").min().over("row")).select("group", "row")


def absorbed(charges: pl.DataFrame, streams: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """(group, row) with the left-over charges of the same payee and price, unless they are too many."""
    priced = streams.lazy().join(charges.lazy().select("row", "user_id", "currency", "payee", "price"), on="row")
    offers = (
        priced.group_by("user_id", "currency", "payee", "price", "group")
        .len()
        .sort("len", "group", descending=[True, False])
        .unique(["user_id", "currency", "payee", "price"], keep="first", maintain_order=True)
    )
    spans = (
        streams.lazy()
        .join(charges.lazy().select("row", "days"), on="row")
        .group_by("group")
        .agg(first=pl.col("days").min(), last=pl.col("days").max(), size=pl.len())
    )
    return (
        charges.lazy()
        .join(streams.lazy(), on="row", how="anti")
        .join(offers, on=["user_id", "currency", "payee", "price"])
        .join(spans, on="group")
        .join(candidates.lazy().select("group", "contract"), on="group")
        .filter(pl.col("days").is_between(pl.col("first") - 5, pl.col("last") + 40))
        .filter(pl.col("contract") | (pl.len().over("group") <= ABSORBED_MAX * pl.col("size")))
        .select("group", "row")
        .collect()
    )
