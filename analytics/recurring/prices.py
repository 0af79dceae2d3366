"""Properties of a group of charges apart from the calendar: its amounts, gaps, contract and payee."""

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


PRICE, GAP, MANDATE = pl.col("price"), pl.col("gap"), pl.col("contract_key")
FOLLOWS = pl.col("group") == pl.col("group").shift(1)
CHARGE_FACTS = {
    "gap": pl.when(FOLLOWS).then(pl.col("days").diff()),
    "changed": FOLLOWS & ((PRICE / PRICE.shift(1) - 1).abs() > SAME_PRICE),
    "whole": PRICE % 1 == 0,
    "ordered": (pl.col("type") == "standing_order").fill_null(False),
}
GAPS = {f"gaps_{name}": GAP.is_between(low, high) for name, (low, high) in GAP_DAYS.items()}
GROUP_FACTS = {
    "payee_id": pl.col("payee_id").last(),
    **{name: pl.col(name).max() for name in ("payee_n", "mandate_n")},
    "whole": pl.col("whole").all(),
    **{name: pl.col(name).mean() for name in ("ordered", *GAPS)},
    "variation": PRICE.std().fill_null(0.0) / PRICE.mean(),
    "prices": PRICE.n_unique(),
    "changes": pl.col("changed").sum(),
    "first_price": PRICE.first(),
    "last_price": PRICE.last(),
    "one_mandate": MANDATE.min() == MANDATE.max(),
    "contracted": MANDATE.count() / pl.len(),
    "gap_wobble": (GAP.quantile(0.75) - GAP.quantile(0.25)) / 2,
}
# One price, or one that mostly stays the same and does not keep returning after it changed
IS_CONSTANT = (pl.col("prices") == 1) | (pl.col("changes") <= (1 - SAME_STEPS_MIN) * (pl.col("n") - 1))
# A single mandate of the payee's own, with most of its charges here, or a standing order
IS_SPLIT = pl.col("level").is_in(["mandate_day", "mandate_price"])
ENOUGH = pl.when(IS_SPLIT).then(CONTRACT_PART_MIN).otherwise(CONTRACT_SHARE_MIN) * pl.col("mandate_n")
IS_MANDATED = (
    pl.col("one_mandate").fill_null(False) & (pl.col("contracted") >= CONTRACTED_MIN) & (pl.col("n") >= ENOUGH)
)
CONCLUSIONS = {
    "constant": IS_CONSTANT,
    "narrow": pl.col("variation") <= NARROW_VARIATION,
    "contract": IS_MANDATED | (pl.col("ordered") >= ORDERED_MIN),
    "part": pl.col("n") / pl.col("payee_n"),
}


def describe_groups(charges: pl.DataFrame, members: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The groups with properties of their amounts (`prices`, `constant`, `narrow`, `variation`), their gaps, whether
    they have a `contract`, and which `part` of the payee's charges they are."""
    facts = charges.lazy().select("row", "payee_id", "days", "price", "contract_key", "type", "payee_n", "mandate_n")
    return (
        members.lazy()
        .join(facts, on="row")
        .sort("group", "row")
        .with_columns(**CHARGE_FACTS)
        .with_columns(**GAPS)
        .group_by("group")
        .agg(**GROUP_FACTS)
        .join(groups.lazy(), on="group")
        .with_columns(**CONCLUSIONS)
        .pipe(frame_of)
    )
