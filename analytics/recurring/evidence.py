"""How much evidence makes a rhythm a recurring payment: with a contract little, without one a constant price."""

import polars as pl

from analytics.recurring.rhythm import DAYS_PER_MONTH, NEAR_DAYS

SHARE_MIN = 0.74  # of the charges lie on the lattice; all of them when there are four or fewer
COVERAGE_MIN, COVERAGE_MIN_FAST, COVERAGE_MIN_FEW = 0.70, 0.66, 0.74
REPEATS_MAX = 1.35  # charges per filled slot
FEW = 4
CHANCE_MAX = 0.001

# what a contract (one mandate, or a standing order) may vary in amount; what a free payment needs in charges
RULES = pl.DataFrame(
    [
        ("weekly", 0.15, 5, 4, 0.85),
        ("biweekly", 0.30, 4, 3, 1.4),
        ("monthly", 0.60, 3, 3, 2.5),
        ("quarterly", 0.45, 3, 3, 8.0),
        ("yearly", 0.50, 2, 2, 18.0),
    ],
    schema=["frequency", "contract_variation", "free_charges", "free_charges_exact", "free_spread_days"],
    orient="row",
)


def accepted(fits: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The fits whose rhythm, amounts and number of charges are evidence enough, one (the best) per group."""
    fast = pl.col("frequency").is_in(["weekly", "biweekly"])
    return (
        fits.lazy()
        .join(groups.lazy(), on="group")
        .join(RULES.lazy(), on="frequency")
        .filter(
            (
                (is_regular(fast) | has_steady_gaps())
                & (has_contract_evidence() | has_free_evidence(fast) | is_early_pair())
            )
            | stands_out()
        )
        .with_columns(
            score=pl.col("share") * pl.col("coverage") / pl.col("repeats")
            - pl.col("spread_days") / (pl.col("period") * pl.when(axis="business").then(1.4).otherwise("unit_days"))
        )
        .sort("score", "fit", descending=[True, False])
        .unique("group", keep="first", maintain_order=True)
        .collect()
    )


def is_regular(fast: pl.Expr) -> pl.Expr:
    coverage_min = (
        pl.when(pl.col("slots") <= FEW)
        .then(COVERAGE_MIN_FEW)
        .when(fast)
        .then(COVERAGE_MIN_FAST)
        .otherwise(COVERAGE_MIN)
    )
    share_min = pl.when(pl.col("n") <= FEW).then(1.0).otherwise(SHARE_MIN)
    return (pl.col("share") >= share_min) & (pl.col("coverage") >= coverage_min) & (pl.col("repeats") <= REPEATS_MAX)


def has_steady_gaps() -> pl.Expr:
    """A constant price whose gaps are right although a moved billing day or a pause breaks the lattice."""
    gaps = (
        pl.when(pl.col("frequency") == "weekly")
        .then("gaps_weekly")
        .when(pl.col("frequency") == "biweekly")
        .then("gaps_biweekly")
        .when(pl.col("frequency") == "monthly")
        .then("gaps_monthly")
        .when(pl.col("frequency") == "quarterly")
        .then("gaps_quarterly")
    )
    enough = pl.when(pl.col("n") >= 6).then(0.74).otherwise(0.79)
    return (pl.col("constant") | pl.col("narrow")) & (pl.col("n") >= 4) & (gaps >= enough) & (pl.col("gap_wobble") <= 1.5)


def has_contract_evidence() -> pl.Expr:
    equal = pl.col("constant") | pl.col("narrow")
    slow = pl.col("frequency").is_in(["quarterly", "yearly"])
    charges_min = pl.when(slow | (pl.col("prices") == 1)).then(2).otherwise(3)
    varied = (
        (pl.col("variation") <= pl.col("contract_variation")) & (pl.col("share") >= 0.8) & (pl.col("repeats") <= 1.2)
    )
    return pl.col("contract") & (pl.col("n") >= charges_min) & (equal | varied)


def has_free_evidence(fast: pl.Expr) -> pl.Expr:
    equal = (
        pl.col("constant")
        | pl.col("narrow")
        | (
            fast
            & (pl.col("variation") <= 0.2)
        & (pl.col("prices") <= 0.7 * pl.col("n"))
            & (pl.col("share") >= 0.9)
            & (pl.col("n") >= 6)
            & (pl.col("part") >= 0.95)
        )
    )
    exact = pl.col("worst_days") <= 0.51
    part = pl.col("part") < 0.8
    needed = (
        pl.when(exact).then("free_charges_exact").otherwise("free_charges")
        + part.cast(pl.Int8)
        + 2 * (part & ~pl.col("constant")).cast(pl.Int8)
        + ((pl.col("whole") == 1) & (pl.col("spread_days") > 1.5)).cast(pl.Int8)
        + 2 * (pl.col("lattice") == "business20").cast(pl.Int8)
        + (pl.col("lattice").is_in(["days28", "days30"]) & ~exact).cast(pl.Int8)
    )
    once = pl.col("n") - pl.col("filled") <= 1 + 0.06 * pl.col("n")
    one_price = pl.col("prices") == 1
    habit = fast & ~(once & (pl.col("spread_days") <= pl.col("free_spread_days")) & (pl.col("share") >= 0.8))
    yearly = (
        (pl.col("frequency") == "yearly")
        & (pl.col("part") >= 0.99)
        & (pl.col("last_step").abs() <= 0.11)
        & (pl.col("worst_days") <= 5)
    )
    steady = (
        (pl.col("frequency") != "yearly")
        & equal
        & (one_price | once)
        & (pl.col("n") >= needed)
        & ((pl.col("spread_days") <= pl.col("free_spread_days")) | (has_steady_gaps() & (pl.col("n") >= 6) & ~fast))
        & ~habit
    )
    free = (
        (pl.col("n") >= 6)
        & (pl.col("share") >= 0.9)
        & (pl.col("coverage") >= 0.9)
        & (pl.col("spread_days") <= pl.when(pl.col("n") < 9).then(1.4).otherwise(2.4))
        & (pl.col("part") >= 0.99)
        & (pl.col("frequency") == "monthly")
    )
    return yearly | steady | free


def is_early_pair() -> pl.Expr:
    """Two equal charges, not a whole amount, a month or a quarter apart, and nothing else at the payee."""
    return (
        (pl.col("n") == 2)
        & (pl.col("payee_n") == 2)
        & (pl.col("prices") == 1)
        & (pl.col("whole") == 0)
        & pl.col("lattice").is_in(["month", "quarter"])
        & (pl.col("worst_days") <= 1.6)
    )


def stands_out() -> pl.Expr:
    """One price at a payee with a monthly core so complete that bookings by chance would not fill it."""
    near = 2 * NEAR_DAYS / DAYS_PER_MONTH
    by_chance = (1 - (1 - near) ** (pl.col("n") / pl.col("near_slots"))) ** pl.col("near_filled")
    return (
        (pl.col("lattice") == "month")
        & (pl.col("prices") == 1)
        & (pl.col("near_filled") >= 6)
        & (pl.col("near_filled") >= 0.85 * pl.col("near_slots"))
        & (pl.col("near_n") <= 1.15 * pl.col("near_filled"))
        & (by_chance * DAYS_PER_MONTH <= CHANCE_MAX)
    )
