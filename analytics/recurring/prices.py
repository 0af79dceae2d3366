"""What a group of charges looks like apart from one lattice: amounts, gaps, contract, payee."""

import polars as pl

SAME_PRICE = 0.001  # two amounts are the same price when they differ by no more than 0.1 %
NARROW_VARIATION = 0.045  # exchange rates move a price by a few per cent
GAP_BANDS = {"weekly": (6, 8), "biweekly": (12, 16), "monthly": (25, 36), "quarterly": (82, 101)}


def described(charges: pl.DataFrame, members: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """One row per group: first and last day, how constant its amounts are, what share of gaps lies in each band,
    which mandate it has and how much of its payee and mandate it covers."""
    rows = charges.lazy().select(
        "row", "days", "price", "payee", "contract_key", "via", "type", "payee_n", "contract_n", "user_id", "currency"
    )
    step = pl.col("price") / pl.col("price").shift(1) - 1
    gap = pl.col("days").diff()
    return (
        members.lazy()
        .join(rows, on="row")
        .sort("row")
        .group_by("group")
        .agg(
            pl.col("user_id").first(),
            first_day=pl.col("days").first(),
            last_day=pl.col("days").last(),
            last_row=pl.col("row").last(),
            variation=(pl.col("price").std() / pl.col("price").mean()).fill_nan(0.0),
            prices=pl.col("price").n_unique(),
            same_steps=(step.abs() <= SAME_PRICE).mean(),
            last_step=step.last(),
            whole=(pl.col("price") % 1 == 0).mean(),
            price=pl.col("price").last(),
            contracts=pl.col("contract_key").drop_nulls().n_unique(),
            contracted=pl.col("contract_key").is_not_null().mean(),
            contract_n=pl.col("contract_n").max(),
            ordered=(pl.col("type") == "standing_order").fill_null(False).mean(),
            payee_n=pl.col("payee_n").max(),
            gap_wobble=(gap - gap.median()).abs().median(),
            **{f"gaps_{name}": gap.is_between(low, high).mean() for name, (low, high) in GAP_BANDS.items()},
        )
        .join(groups.lazy(), on="group")
        .with_columns(
            constant=(pl.col("prices") == 1) | (pl.col("same_steps") >= 0.5),
            narrow=pl.col("variation") <= NARROW_VARIATION,
            part=pl.col("n") / pl.col("payee_n"),
            contract=(
                (pl.col("contracts") == 1)
                & (pl.col("contracted") >= 0.8)
                & (pl.col("n") >= pl.when(pl.col("rank") == 1).then(0.3).otherwise(0.6) * pl.col("contract_n"))
            )
            | (pl.col("ordered") >= 0.5),
        )
        .collect()
    )
