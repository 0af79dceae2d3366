"""Which of the accepted groups are streams, and which charges belong to them."""

import polars as pl

KEPT_MIN = 0.9  # a group that lost more than 10 % of its charges to a coarser one is no stream of its own
ABSORBED_MAX = 0.25  # left-over charges of the same payee and amount, at most a quarter of the stream
WHOLE = 0.99
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
    won = []
    while claims.height:
        claims = claims.with_columns(first=pl.col("priority") == pl.col("priority").min().over("row"))
        winners = claims.filter(pl.col("first").all().over("group")).select("group", "row")
        won.append(winners)
        claims = claims.join(winners, on="row", how="anti").filter(pl.len().over("group") >= KEPT_MIN * pl.col("n"))
    return pl.concat(won) if won else members.clear()


def completed(charges: pl.DataFrame, streams: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """(group, row) of the streams, without strangers of the same price, with what belongs to them at the payee:
    second collections of the same price, and charges of another price in the next or previous slots (trial months,
    price changes)."""
    fitted = candidates.lazy().select(
        "group", "axis", "period", "unit_days", "phase", "tolerance_days", "contract", "part", "score"
    )
    dated = charges.lazy().select(
        "row", "user_id", "currency", "payee", "contract_key", "price", "days", "business", "months"
    )
    own = on_lattice(streams.lazy().join(fitted, on="group").join(dated, on="row"))
    kept = own.filter(
        pl.col("contract") | (pl.col("part") >= WHOLE) | (pl.col("late_days").abs() <= pl.col("tolerance_days") + 1)
    )
    spans = kept.group_by("group").agg(
        pl.col("user_id", "currency", "payee").last(),
        first_slot=pl.col("slot").min(),
        last_slot=pl.col("slot").max(),
        first_price=pl.col("price").first(),
        last_price=pl.col("price").last(),
        prices=pl.col("price").unique(),
        size=pl.len(),
    )
    offers = on_lattice(
        dated.join(streams.lazy(), on="row", how="anti")
        .join(spans, on=["user_id", "currency", "payee"])
        .join(fitted, on="group")
    ).collect()
    again = (
        offers.lazy()
        .filter(
            pl.col("price").is_in("prices"),
            pl.col("slot").is_between(pl.col("first_slot"), pl.col("last_slot")),
            pl.col("contract") | (pl.col("late_days").abs() <= pl.col("tolerance_days")),
        )
        .filter(pl.col("contract") | (pl.len().over("group") <= ABSORBED_MAX * pl.col("size")))
    )
    near = (
        offers.lazy()
        .filter(pl.col("late_days").abs() <= pl.min_horizontal("tolerance_days", pl.lit(4.0)))
        .sort(pl.col("late_days").abs())
    )
    later = (
        near.filter(pl.col("slot") > pl.col("last_slot"), (pl.col("price") / pl.col("last_price")).is_between(0.5, 2.0))
        .unique(["group", "slot"], keep="first", maintain_order=True)
        .filter(pl.col("slot") - pl.col("last_slot") <= pl.col("slot").rank("ordinal").over("group") + 1)
    )
    earlier = (
        near.filter(pl.col("slot") < pl.col("first_slot"), pl.col("price") / pl.col("first_price") <= 2.0)
        .unique(["group", "slot"], keep="first", maintain_order=True)
        .filter(
            pl.col("first_slot") - pl.col("slot") <= pl.col("slot").rank("ordinal", descending=True).over("group") + 1
        )
    )
    added = pl.concat(
        [part.select("group", "row", "score", late=pl.col("late_days").abs()) for part in (again, later, earlier)]
    )
    best = added.sort("late", "score", "group", descending=[False, True, False]).unique(
        "row", keep="first", maintain_order=True
    )
    return pl.concat([kept.select("group", "row"), best.select("group", "row")]).collect()


def on_lattice(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Adds the slot of each row on its group's lattice and how many days it is late."""
    at = pl.when(axis="days").then("days").when(axis="business").then("business").otherwise("months") / pl.col("period")
    return (
        rows.with_columns(offset=at - pl.col("phase"))
        .with_columns(slot=pl.col("offset").round())
        .with_columns(late_days=(pl.col("offset") - pl.col("slot")) * pl.col("period") * pl.col("unit_days"))
    )
