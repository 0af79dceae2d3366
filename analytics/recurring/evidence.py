"""The evidence for a recurring payment: with a contract little is needed, without one a steady price.

Each rule is one expression, made once: to make them for each detection takes a twentieth of its time.
"""

from functools import cache

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.groups import RECENT_RANK, WHOSE
from analytics.recurring.rhythm import DAYS_PER_MONTH, NEAR_DAYS

# The rhythm (docs/recurring.md, "The calendar test")
FEW = 4  # with so few charges, all must be on the lattice
SHARE_MIN = 0.74
COVERAGE_MIN, COVERAGE_MIN_FAST, COVERAGE_MIN_FEW = 0.70, 0.66, 0.74
REPEATS_MAX = 1.25  # a slot filled twice more often shows a second contract than a double charge
GAP_SHARE_MIN, GAP_SHARE_MIN_LONG, LONG = 0.79, 0.74, 6
GAP_WOBBLE_DAYS_MAX = 1.25  # half the distance of the gaps' quartiles

# The evidence (docs/recurring.md, "How much evidence"): how much a contract may vary in amount, how many charges a
# payment without contract needs (second figure: when none was even a day off), how far its typical charges may spread
RULES = pl.DataFrame(
    [
        ("weekly", 0.15, 5, 4, 0.85),
        ("biweekly", 0.30, 4, 3, 1.4),
        ("monthly", 0.60, 3, 3, 2.5),
        ("quarterly", 0.45, 3, 3, 4.0),
        ("yearly", 0.50, 2, 2, 18.0),
    ],
    schema=["frequency", "contract_variation", "free_charges", "free_charges_exact", "free_spread_days"],
    orient="row",
)
EXACT_DAYS = 0.51  # two charges a day apart are each half a day from their middle
VARIED_SHARE_MIN, VARIED_REPEATS_MAX = 0.8, 1.2
PART_WHOLE, PART_NEARLY, PART_MOST, TOGETHER_MIN = 0.99, 0.95, 0.8, 0.85
EARLY_WORST_DAYS = 1.6  # two charges: the gap is about three days off at most
YEARLY_WORST_DAYS, YEARLY_STEP_MAX = 5.0, 0.11
ONCE_SLACK = 0.06  # a subscription is charged once a period; a habit is more often charged twice
BASKET_VARIATION, BASKET_PRICES = 0.2, 0.7  # a weekly box has extras, but few different prices
CLOCKWORK = 0.9  # share or coverage of a rhythm that hardly ever fails
STRICT_SPREAD_DAYS = 1.8  # a day of the month, posted after weekends, spreads no more
SECOND_TRY_CHARGES = 2  # further charges needed where one price of several, or one lattice of many, was picked out
FREE_AMOUNT_SPREAD_DAYS = ((9, 2.4), (6, 1.4), (4, 1.0))  # least charges, largest spread
CORE_FILLED_MIN, CORE_REPEATS_MAX, CHANCE_MAX = 0.85, 1.15, 0.001


def worth_fitting(pairs: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The pairs of group and lattice whose amounts some rule below could accept if they keep to the calendar."""
    steady = pl.col("constant") | pl.col("narrow")
    basket = (pl.col("variation") <= BASKET_VARIATION) & pl.col("frequency").is_in(["weekly", "biweekly"])
    alone = (pl.col("part") >= PART_WHOLE) & pl.col("lattice").is_in(["month", "year"])
    amounts = groups.lazy().select("group", "contract", "constant", "narrow", "variation", "part")
    promising = pairs.lazy().join(amounts, on="group").filter(pl.col("contract") | steady | basket | alone)
    return promising.select(pairs.columns).with_row_index("fit").pipe(frame_of)


def accept_fits(fits: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """The fits with enough evidence, the best one per group, with the group's facts and a `score`."""
    facts = fits.lazy().join(groups.lazy(), on="group").join(RULES.lazy(), on="frequency")
    return (
        with_claims(facts)
        .with_columns(together=explained_together())
        .filter(
            (pl.col("regular") & (has_contract_evidence() | has_free_evidence() | is_yearly() | is_free_amount()))
            | (pl.col("regular") & is_early_pair())
            | stands_out()
        )
        .with_columns(
            score=pl.col("share") * pl.col("coverage") / pl.col("repeats")
            - pl.col("spread_days") / pl.col("period_days")
        )
        .sort("score", "fit", descending=[True, False])
        .unique("group", keep="first", maintain_order=True)
        .pipe(frame_of)
    )


def with_claims(facts: pl.LazyFrame) -> pl.LazyFrame:
    """The facts with the claims that the rules use: fast, exact, once, equal, steady_gaps, regular."""
    fast = pl.col("frequency").is_in(["weekly", "biweekly"])
    extra = pl.col("n") - pl.col("filled")
    return (
        facts.with_columns(
            fast=fast,
            exact=pl.col("worst_days") <= EXACT_DAYS,
            once=extra <= 1 + ONCE_SLACK * pl.col("n"),
            steady_gaps=has_steady_gaps(),
        )
        .with_columns(regular=is_on_lattice() | pl.col("steady_gaps"), equal=is_equal())
        .filter(pl.col("regular") | (pl.col("prices") == 1))
    )


@cache
def is_on_lattice() -> pl.Expr:
    """Whether enough charges are within tolerance, few slots are missed, and hardly any is filled twice (one double
    charge is allowed)."""
    few = pl.col("slots") <= FEW
    coverage_min = pl.when(few).then(COVERAGE_MIN_FEW).when("fast").then(COVERAGE_MIN_FAST).otherwise(COVERAGE_MIN)
    share_min = pl.when(pl.col("n") <= FEW).then(1.0).otherwise(SHARE_MIN)
    doubled_once = (pl.col("prices") == 1) & (pl.col("n") == pl.col("filled") + 1) & (pl.col("filled") >= 2)
    return (
        (pl.col("share") >= share_min)
        & (pl.col("coverage") >= coverage_min)
        & ((pl.col("repeats") <= REPEATS_MAX) | doubled_once)
    )


@cache
def has_steady_gaps() -> pl.Expr:
    """Whether the gaps of a steady price are right, although a moved billing day or a pause breaks the lattice."""
    gaps = pl.coalesce(
        pl.when(pl.col("frequency") == name).then(f"gaps_{name}")
        for name in ("weekly", "biweekly", "monthly", "quarterly")
    )
    enough = pl.when(pl.col("n") >= LONG).then(GAP_SHARE_MIN_LONG).otherwise(GAP_SHARE_MIN)
    steady = (gaps >= enough) & (pl.col("gap_wobble") <= GAP_WOBBLE_DAYS_MAX)
    return (
        (pl.col("constant") | pl.col("narrow")) & (pl.col("n") >= FEW) & steady & (pl.col("rank") < RECENT_RANK)
    ).fill_null(False)


@cache
def is_equal() -> pl.Expr:
    """Whether the amounts pass: constant, narrow, or those of a box with extras that comes on its day."""
    basket = (
        pl.col("fast")
        & (pl.col("variation") <= BASKET_VARIATION)
        & (pl.col("prices") <= BASKET_PRICES * pl.col("n"))
        & (pl.col("share") >= CLOCKWORK)
        & (pl.col("n") >= LONG)
        & (pl.col("part") >= PART_NEARLY)
    )
    swinging = pl.col("fast") & (pl.col("variation") > BASKET_VARIATION) & (pl.col("changes") > pl.col("prices"))
    return (pl.col("constant") & ~swinging) | pl.col("narrow") | basket


@cache
def has_contract_evidence() -> pl.Expr:
    """Whether a contract has enough charges: three, or two if they are slow or equal or begin with a part period. Its
    amounts may vary."""
    slow = pl.col("frequency").is_in(["quarterly", "yearly"])
    charges_min = pl.when(slow | (pl.col("prices") == 1)).then(2).when(pl.col("rank") == 0).then(3).otherwise(4)
    varied = (
        (pl.col("variation") <= pl.col("contract_variation"))
        & (pl.col("share") >= VARIED_SHARE_MIN)
        & (pl.col("repeats") <= VARIED_REPEATS_MAX)
    )
    steady = pl.col("constant") | pl.col("narrow") | varied
    begun = (
        (pl.col("n") == 2)
        & (pl.col("mandate_n") == 2)
        & (pl.col("first_price") < pl.col("last_price"))
        & (pl.col("worst_days") <= EARLY_WORST_DAYS)
        & pl.col("lattice").is_in(["month", "quarter", "year"])
    ).fill_null(False)
    return pl.col("contract") & (((pl.col("n") >= charges_min) & steady) | begun)


@cache
def has_free_evidence() -> pl.Expr:
    """Whether a payment without a contract has enough evidence: a steady price, once a period, on its day, and the more
    charges the less clear these are."""
    alone = (pl.col("part") >= PART_MOST) | (pl.col("together") >= TOGETHER_MIN)
    one_price = pl.col("prices") == 1
    short = pl.col("lattice").is_in(["days28", "days30"]) & ~pl.col("exact")
    needed = (
        pl.when("exact").then("free_charges_exact").otherwise("free_charges")
        + (~alone).cast(pl.Int8)
        + SECOND_TRY_CHARGES * (~alone & ~pl.col("constant")).cast(pl.Int8)
        + (pl.col("whole") & (pl.col("spread_days") > STRICT_SPREAD_DAYS)).cast(pl.Int8)
        + (~one_price & pl.col("constant") & ~pl.col("narrow")).cast(pl.Int8)
        + short.cast(pl.Int8)
        + SECOND_TRY_CHARGES * (pl.col("lattice") == "business20").cast(pl.Int8)
    )
    recent = pl.col("rank") >= RECENT_RANK
    spread_max = pl.when(recent & ~pl.col("fast")).then(STRICT_SPREAD_DAYS).otherwise("free_spread_days")
    on_its_day = pl.col("spread_days") <= spread_max
    clocked = pl.col("once") & ((pl.col("share") >= CLOCKWORK) | (pl.col("coverage") >= CLOCKWORK))
    any_payee = (pl.col("level") == "recent_price") & (pl.col("whole") | (pl.col("frequency") == "quarterly"))
    return (
        (pl.col("frequency") != "yearly")
        & ~any_payee
        & pl.col("equal")
        & (one_price | pl.col("once"))
        & (pl.col("n") >= needed)
        & pl.when("fast")
        .then(on_its_day & clocked)
        .otherwise(on_its_day | (pl.col("steady_gaps") & (pl.col("n") >= LONG)))
    )


@cache
def explained_together() -> pl.Expr:
    """The share of the payee's charges that belong to single prices with a rhythm of their own."""
    rhythmic = (
        (pl.col("level") == "price")
        & pl.col("regular")
        & pl.col("once")
        & (pl.col("n") >= 3)
        & (pl.col("spread_days") <= pl.col("free_spread_days"))
    )
    first = rhythmic & (rhythmic.cum_sum().over("group") == 1)
    return pl.when(first).then("n").sum().over(*WHOSE, "payee") / pl.col("payee_n")


@cache
def is_yearly() -> pl.Expr:
    """Whether there are two charges a year apart, of about the same amount, and nothing else at the payee."""
    step = pl.col("last_price") / pl.col("first_price") - 1
    return (
        (pl.col("frequency") == "yearly")
        & (pl.col("part") >= PART_WHOLE)
        & (step.abs() <= YEARLY_STEP_MAX)
        & (pl.col("worst_days") <= YEARLY_WORST_DAYS)
    )


@cache
def is_free_amount() -> pl.Expr:
    """Whether amounts vary without a contract, but strictly on the day, every month, and with nothing else at the
    payee."""
    spread_max = pl.coalesce(pl.when(pl.col("n") >= n).then(days) for n, days in FREE_AMOUNT_SPREAD_DAYS)
    return (
        (pl.col("lattice") == "month")
        & (pl.col("share") >= CLOCKWORK)
        & (pl.col("coverage") >= CORE_FILLED_MIN)
        & (pl.col("spread_days") <= spread_max).fill_null(False)
        & (pl.col("part") >= PART_WHOLE)
    )


@cache
def is_early_pair() -> pl.Expr:
    """Whether there are two equal charges, not of a whole amount, a month or a quarter apart, and nothing else at the
    payee."""
    return (
        (pl.col("n") == 2)
        & (pl.col("payee_n") == 2)
        & (pl.col("prices") == 1)
        & ~pl.col("whole")
        & pl.col("lattice").is_in(["month", "quarter"])
        & (pl.col("worst_days") <= EARLY_WORST_DAYS)
    )


@cache
def stands_out() -> pl.Expr:
    """Whether one price at a payee has a monthly core so complete that purchases by chance would not fill it."""
    near = 2 * NEAR_DAYS / DAYS_PER_MONTH
    a_slot = 1 - (1 - near) ** (pl.col("n") / pl.col("slots"))
    by_chance = a_slot ** pl.col("near_filled") * DAYS_PER_MONTH
    return (
        (pl.col("lattice") == "month")
        & (pl.col("prices") == 1)
        & (pl.col("near_filled") >= LONG)
        & (pl.col("near_filled") >= CORE_FILLED_MIN * pl.col("slots"))
        & (pl.col("near_n") <= CORE_REPEATS_MAX * pl.col("near_filled"))
        & (pl.col("gaps_biweekly") < 0.5)
        & (by_chance <= CHANCE_MAX)
    )
