"""Properties of a group of charges apart from the calendar: its amounts, gaps, contract and payee."""

from functools import cache

import polars as pl

from analytics.frames import frame_of

SAME_PRICE = 0.001  # two amounts are one price when they differ by no more than 0.1 %
SAME_STEPS_MIN = 0.5  # share of consecutive pairs with equal prices, for a price that rarely changes
NARROW_VARIATION = 0.045  # exchange rates change a price by a few per cent
GAP_DAYS = {"weekly": (6, 8), "biweekly": (12, 16), "monthly": (25, 36), "quarterly": (82, 101)}
CONTRACTED_MIN = 0.8  # share of the charges with the mandate
CONTRACT_SHARE_MIN = 0.6  # share of the mandate's charges that are in the group
CONTRACT_PART_MIN = 0.3  # the same, for one of several collections under one mandate
ORDERED_MIN = 0.5  # share of standing orders among the charges (other rows may have lost their type)


def describe_groups(charges: pl.DataFrame, members: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The groups with properties of their amounts (`prices`, `constant`, `narrow`, `variation`), their gaps, whether
    they have a `contract`, and which `part` of the payee's charges they are."""
    facts = charges.lazy().select("row", "payee_id", "days", "price", "contract_key", "type", "payee_n", "mandate_n")
    each_charge, gaps, each_group, conclusions = _facts()
    return (
        members.lazy()
        .join(facts, on="row")
        .sort("group", "row")
        .with_columns(**each_charge)
        .with_columns(**gaps)
        .group_by("group")
        .agg(**each_group)
        .join(groups.lazy(), on="group")
        .with_columns(**conclusions)
        .pipe(frame_of)
    )


@cache
def _facts() -> tuple[dict[str, pl.Expr], ...]:
    """The facts about each charge of a group, about its gap to the one before, about each group, and what follows."""
    price, gap, mandate = pl.col("price"), pl.col("gap"), pl.col("contract_key")
    follows = pl.col("group") == pl.col("group").shift(1)
    gaps = {f"gaps_{name}": gap.is_between(low, high) for name, (low, high) in GAP_DAYS.items()}
    return (
        {
            "gap": pl.when(follows).then(pl.col("days").diff()),
            "changed": follows & ((price / price.shift(1) - 1).abs() > SAME_PRICE),
            "whole": price % 1 == 0,
            "ordered": (pl.col("type") == "standing_order").fill_null(False),
        },
        gaps,
        {
            "payee_id": pl.col("payee_id").last(),
            "payee_n": pl.col("payee_n").max(),
            "mandate_n": pl.col("mandate_n").max(),
            "whole": pl.col("whole").all(),
            "ordered": pl.col("ordered").mean(),
            **{name: pl.col(name).mean() for name in gaps},
            "variation": price.std().fill_null(0.0) / price.mean(),
            "prices": price.n_unique(),
            "changes": pl.col("changed").sum(),
            "first_price": price.first(),
            "last_price": price.last(),
            "one_mandate": mandate.min() == mandate.max(),
            "contracted": mandate.count() / pl.len(),
            "gap_wobble": (gap.quantile(0.75) - gap.quantile(0.25)) / 2,
        },
        {
            "constant": is_constant(),
            "narrow": pl.col("variation") <= NARROW_VARIATION,
            "contract": has_contract(),
            "part": pl.col("n") / pl.col("payee_n"),
        },
    )


def is_constant() -> pl.Expr:
    """Whether there is one price, or one that mostly stays the same and does not keep returning after it changed."""
    stays = pl.col("changes") <= (1 - SAME_STEPS_MIN) * (pl.col("n") - 1)
    return (pl.col("prices") == 1) | stays


def has_contract() -> pl.Expr:
    """Whether there is a single mandate of the payee's own, with most of its charges here, or a standing order."""
    split = pl.col("level").is_in(["mandate_day", "mandate_price"])
    enough = pl.when(split).then(CONTRACT_PART_MIN).otherwise(CONTRACT_SHARE_MIN) * pl.col("mandate_n")
    mandated = (
        pl.col("one_mandate").fill_null(False) & (pl.col("contracted") >= CONTRACTED_MIN) & (pl.col("n") >= enough)
    )
    return mandated | (pl.col("ordered") >= ORDERED_MIN)
