"""The calendar test: the lattices, and how well a group of charges fits each of them."""

import math
from typing import TypeVar

import polars as pl

from analytics.frames import frame_of

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

DAYS_PER_MONTH = 365.2425 / 12
DAYS_PER_BUSINESS_DAY = 7 / 5

# Months are measured as month number + (day - 1) / days of the month, so that the 31st, the 30th and the 28th coincide.
# Business days absorb the posting after a weekend. 28 and 30 days count as monthly. Tolerances: docs/recurring.md, "The
# calendar test".
LATTICES = pl.DataFrame(
    [
        ("week", "weekly", "days", 7.0, 2.1, 1.0, 1.0, "7d"),
        ("fortnight", "biweekly", "days", 14.0, 3.1, 1.0, 1.0, "14d"),
        ("days28", "monthly", "days", 28.0, 2.6, 1.0, 1.0, "28d"),
        ("days30", "monthly", "days", 30.0, 2.6, 1.0, 1.0, "30d"),
        ("business5", "weekly", "business", 5.0, 1.6, 1.0, DAYS_PER_BUSINESS_DAY, "7d"),
        ("business10", "biweekly", "business", 10.0, 2.2, 1.0, DAYS_PER_BUSINESS_DAY, "14d"),
        ("business20", "monthly", "business", 20.0, 2.2, 1.0, DAYS_PER_BUSINESS_DAY, "28d"),
        ("half_month", "twice_monthly", "months", 0.5, 2.6, DAYS_PER_MONTH, DAYS_PER_MONTH, "15d"),
        ("month", "monthly", "months", 1.0, 4.6, DAYS_PER_MONTH, DAYS_PER_MONTH, "1mo"),
        ("two_months", "two_monthly", "months", 2.0, 6.0, DAYS_PER_MONTH, DAYS_PER_MONTH, "2mo"),
        ("quarter", "quarterly", "months", 3.0, 8.0, DAYS_PER_MONTH, DAYS_PER_MONTH, "3mo"),
        ("half_year", "half_yearly", "months", 6.0, 12.0, DAYS_PER_MONTH, DAYS_PER_MONTH, "6mo"),
        ("year", "yearly", "months", 12.0, 18.0, DAYS_PER_MONTH, DAYS_PER_MONTH, "1y"),
    ],
    # lateness is measured in units of the axis (business days stay business days), periods in calendar days, and the
    # next charge comes `next_after` the last one
    schema=["lattice", "frequency", "axis", "period", "tolerance_days", "unit_days", "calendar_days", "next_after"],
    orient="row",
).with_columns(period_days=pl.col("period") * pl.col("calendar_days"))

DENSITY_MIN, DENSITY_MAX = 0.5, 2.2  # charges per slot; outside, no rule of evidence could be met
NEAR_DAYS = 2.6  # the core of a monthly rhythm: a posting after a long weekend still belongs to it
WRAP = 0.25  # the phase is refined by the charges within a quarter of the period
POINTS_AT_ONCE = 50_000  # charges placed on lattices at a time: limits memory, changes no result
TYPICAL_SHARE = 0.9  # the spread is that of the best nine tenths: one late collection is not a habit


DAY = pl.col("booking_date")
AXES = {
    "days": DAY.to_physical().cast(pl.Float64),
    "business": pl.business_day_count(pl.date(1990, 1, 1), DAY).cast(pl.Float64),
    "months": DAY.dt.year() * 12.0 + DAY.dt.month() + (DAY.dt.day() - 1) / DAY.dt.days_in_month(),
}
DENSITY = pl.col("n") / ((pl.col("last_day") - pl.col("first_day")) / pl.col("period_days") + 1)
IS_LIKELY = DENSITY.is_between(DENSITY_MIN, DENSITY_MAX) & ((pl.col("n") > 2) | (pl.col("axis") == "months"))

AXIS = pl.when(axis="days").then("days").when(axis="business").then("business").otherwise("months")
AT, OFFSET, SLOT, LATE = pl.col("at"), pl.col("offset"), pl.col("slot"), pl.col("late_days")
WRAPPED = OFFSET - OFFSET.round()
TO_LATTICE = [  # to the phase of each fit, the slot of each charge, and how many days it is late (negative: early)
    ("at", AXIS / pl.col("period")),
    ("rough", pl.arctan2((AT * math.tau).sin().sum(), (AT * math.tau).cos().sum()).over("fit") / math.tau),
    ("offset", AT - pl.col("rough")),
    ("phase", pl.col("rough") + WRAPPED.filter(WRAPPED.abs() <= WRAP).median().over("fit").fill_null(0.0)),
    ("offset", AT - pl.col("phase")),
    ("slot", OFFSET.round()),
    ("late_days", (OFFSET - SLOT) * pl.col("period") * pl.col("unit_days")),
]
NEAR = LATE.abs() <= NEAR_DAYS
TYPICAL = LATE.sort_by(LATE.abs(), LATE).head((pl.len() * TYPICAL_SHARE).ceil().cast(pl.UInt32))
MEASURES = {
    "phase": pl.col("phase").first(),
    "share": (LATE.abs() <= pl.col("tolerance_days")).mean(),
    "slots": SLOT.max() - SLOT.min() + 1,
    "filled": SLOT.n_unique(),
    "spread_days": TYPICAL.std().fill_null(0.0),
    "worst_days": LATE.abs().max(),
    "near_n": NEAR.sum(),
    "near_filled": SLOT.filter(NEAR).n_unique(),
}


def with_axes(charges: Frame) -> Frame:
    """The charges with three coordinates of the booking date, as numbers: `days`, `business` days, `months`."""
    return charges.with_columns(**AXES)


def likely(groups: pl.DataFrame, *conditions: pl.Expr) -> pl.DataFrame:
    """One row per group and lattice where the number of charges fits the group's time span, and the `conditions` hold.
    Two charges can only have the rhythm of a calendar month, quarter or year."""
    everything = groups.lazy().join(LATTICES.lazy(), how="cross").filter(IS_LIKELY, *conditions)
    return everything.select("group", "n", *LATTICES.columns).pipe(frame_of)


def fits(charges: pl.DataFrame, members: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """The likely pairs of group and lattice with their phase and measures of fit: share of charges within tolerance,
    slots, filled slots, coverage, repeats, spread and worst lateness in days, and the near core."""
    piece = (pairs["n"].cum_sum() // POINTS_AT_ONCE).alias("piece")
    pieces = pairs.hstack([piece]).partition_by("piece", include_key=False)
    measured = pl.concat([_measure_fits(charges, members, each) for each in pieces or [pairs]])
    return (
        pairs.lazy()
        .join(measured.lazy(), on="fit")
        .with_columns(coverage=pl.col("filled") / pl.col("slots"), repeats=pl.col("n") / pl.col("filled"))
        .drop("n")
        .pipe(frame_of)
    )


def _measure_fits(charges: pl.DataFrame, members: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    points = (
        pairs.lazy()
        .select("fit", "group", "axis", "period", "tolerance_days", "unit_days")
        .join(members.lazy(), on="group")
        .join(charges.lazy().select("row", "days", "business", "months"), on="row")
    )
    for name, step in TO_LATTICE:
        points = points.with_columns(step.alias(name))
    return points.group_by("fit").agg(**MEASURES).pipe(frame_of)
