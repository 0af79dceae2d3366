"""What a group of charges looks like apart from the calendar: its amounts, its gaps, its contract, its payee."""

import polars as pl

from analytics.recurring.groups import WHOSE

SAME_PRICE = 0.001  # two amounts are one price when they differ by no more than 0.1 %
SAME_STEPS_MIN = 0.5  # of consecutive pairs are equal: a price that changes now and then
NARROW_VARIATION = 0.045  # exchange rates move a price by a few per cent
GAP_DAYS = {"weekly": (6, 8), "biweekly": (12, 16), "monthly": (25, 36), "quarterly": (82, 101)}
CONTRACTED_MIN = 0.8  # of the charges carry the mandate
CONTRACT_SHARE_MIN = 0.6  # of the mandate's charges are in the group
CONTRACT_PART_MIN = 0.3  # the same for one of several collections under one mandate
ORDERED_MIN = 0.5  # of the charges are standing orders (the other rows may have lost their type)


def described(charges: pl.DataFrame, members: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The groups with their amounts (`prices`, `constant`, `narrow`, `variation`), gaps, whether a `contract` stands
    behind them and which `part` of the payee's charges they are."""
    price, gap = pl.col("price"), pl.col("days").diff()
    step = price / price.shift(1) - 1
    facts = charges.lazy().select(
        "row", *WHOSE, "payee", "days", "price", "contract_key", "type", "payee_n", "mandate_n"
    )
    return (
        members.lazy()
        .join(facts, on="row")
        .sort("row")
        .group_by("group")
        .agg(
            pl.col(*WHOSE, "payee").last(),
            pl.col("payee_n", "mandate_n").max(),
            variation=(price.std() / price.mean()).fill_null(0.0),
            prices=price.n_unique(),
            changes=(step.abs() > SAME_PRICE).sum(),
            first_price=price.first(),
            last_price=price.last(),
            whole=(price % 1 == 0).all(),
            mandates=pl.col("contract_key").drop_nulls().n_unique(),
            contracted=pl.col("contract_key").is_not_null().mean(),
            ordered=(pl.col("type") == "standing_order").fill_null(False).mean(),
            gap_wobble=(gap - gap.median()).abs().median(),
            **{f"gaps_{name}": gap.is_between(low, high).mean() for name, (low, high) in GAP_DAYS.items()},
        )
        .join(groups.lazy(), on="group")
        .with_columns(
            constant=is_constant(),
            narrow=pl.col("variation") <= NARROW_VARIATION,
            contract=has_contract(),
            part=pl.col("n") / pl.col("payee_n"),
        )
        .collect()
    )


def is_constant() -> pl.Expr:
    """One price, or a price that mostly stays and, when it changes, does not keep coming back."""
    stays = pl.col("changes") <= (1 - SAME_STEPS_MIN) * (pl.col("n") - 1)
    return (pl.col("prices") == 1) | stays


def has_contract() -> pl.Expr:
    """One mandate of the payee's own, most of whose charges are here; or a standing order."""
    split = pl.col("level").is_in(["mandate_day", "mandate_price"])
    enough = pl.when(split).then(CONTRACT_PART_MIN).otherwise(CONTRACT_SHARE_MIN) * pl.col("mandate_n")
    mandated = (pl.col("mandates") == 1) & (pl.col("contracted") >= CONTRACTED_MIN) & (pl.col("n") >= enough)
    return mandated | (pl.col("ordered") >= ORDERED_MIN)
