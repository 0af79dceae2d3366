"""The calendar test: the lattices, and how well a group of charges fits each of them."""

import math
from functools import cache
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
        ("month", "monthly", "months", 1.0, 4.6, DAYS_PER_MONTH, DAYS_PER_MONTH, "1mo"),
        ("quarter", "quarterly", "months", 3.0, 8.0, DAYS_PER_MONTH, DAYS_PER_MONTH, "3mo"),
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


def with_axes(charges: Frame) -> Frame:
    """The charges with three coordinates of the booking date: `days`, `business` days, `months`."""
    return charges.with_columns(**_axes())


@cache
def _axes() -> dict[str, pl.Expr]:
    date = pl.col("booking_date")
    return {
        "days": date.to_physical().cast(pl.Float64),
        "business": pl.business_day_count(pl.date(1990, 1, 1), date).cast(pl.Float64),
        "months": date.dt.year() * 12.0 + date.dt.month() + (date.dt.day() - 1) / date.dt.days_in_month(),
    }


def likely(groups: pl.DataFrame) -> pl.DataFrame:
    """One row per group and lattice where the number of charges fits the group's time span. Two charges can only have
    the rhythm of a calendar month, quarter or year."""
    everything = groups.lazy().join(LATTICES.lazy(), how="cross").filter(_is_likely())
    return everything.select("group", "n", *LATTICES.columns).pipe(frame_of)


@cache
def _is_likely() -> pl.Expr:
    slots = (pl.col("last_day") - pl.col("first_day")) / pl.col("period_days") + 1
    is_dense = (pl.col("n") / slots).is_between(DENSITY_MIN, DENSITY_MAX)
    return is_dense & ((pl.col("n") > 2) | (pl.col("axis") == "months"))


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
    for step in _steps_to_lattice():
        points = points.with_columns(**step)
    return points.group_by("fit").agg(**_measures()).pipe(frame_of)


@cache
def _steps_to_lattice() -> list[dict[str, pl.Expr]]:
    """The steps to the `phase` of each fit, the `slot` of each charge on its lattice, and the number of days it is late
    (`late_days`, negative: early)."""
    turn, offset = pl.col("at") * math.tau, pl.col("offset")
    wrapped = offset - offset.round()
    near = wrapped.filter(wrapped.abs() <= WRAP)
    axis = pl.when(axis="days").then("days").when(axis="business").then("business").otherwise("months")
    return [
        {"at": axis / pl.col("period")},
        {"rough": pl.arctan2(turn.sin().sum(), turn.cos().sum()).over("fit") / math.tau},
        {"offset": pl.col("at") - pl.col("rough")},
        {"phase": pl.col("rough") + near.median().over("fit").fill_null(0.0)},
        {"offset": pl.col("at") - pl.col("phase")},
        {"slot": offset.round()},
        {"late_days": (offset - pl.col("slot")) * pl.col("period") * pl.col("unit_days")},
    ]


@cache
def _measures() -> dict[str, pl.Expr]:
    """The measures of each fit."""
    late, slot = pl.col("late_days"), pl.col("slot")
    near = late.abs() <= NEAR_DAYS
    typical = late.sort_by(late.abs(), late).head((pl.len() * TYPICAL_SHARE).ceil().cast(pl.UInt32))
    return {
        "phase": pl.col("phase").first(),
        "share": (late.abs() <= pl.col("tolerance_days")).mean(),
        "slots": slot.max() - slot.min() + 1,
        "filled": slot.n_unique(),
        "spread_days": typical.std().fill_null(0.0),
        "worst_days": late.abs().max(),
        "near_n": near.sum(),
        "near_filled": slot.filter(near).n_unique(),
    }
