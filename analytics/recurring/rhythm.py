"""Do the charges of a group keep to a calendar: the lattices and how well a group fits each of them."""

import math

import polars as pl

DAYS_PER_MONTH = 365.2425 / 12

# name, frequency, axis, period on that axis, tolerance in days, days per unit of the axis. Month lattices measure
# in months, so that the 31st, the 30th and the 28th coincide; business days absorb the posting after a weekend.
LATTICES = pl.DataFrame(
    [
        ("week", "weekly", "days", 7.0, 2.1, 1.0),
        ("fortnight", "biweekly", "days", 14.0, 3.1, 1.0),
        ("days28", "monthly", "days", 28.0, 2.6, 1.0),
        ("days30", "monthly", "days", 30.0, 2.6, 1.0),
        ("business5", "weekly", "business", 5.0, 1.6, 1.0),
        ("business10", "biweekly", "business", 10.0, 2.2, 1.0),
        ("business20", "monthly", "business", 20.0, 2.2, 1.0),
        ("month", "monthly", "months", 1.0, 4.6, DAYS_PER_MONTH),
        ("quarter", "quarterly", "months", 3.0, 8.0, DAYS_PER_MONTH),
        ("year", "yearly", "months", 12.0, 18.0, DAYS_PER_MONTH),
    ],
    schema=["lattice", "frequency", "axis", "period", "tolerance_days", "unit_days"],
    orient="row",
)
PERIOD_DAYS = {
    "weekly": 7.0,
    "biweekly": 14.0,
    "monthly": DAYS_PER_MONTH,
    "quarterly": 3 * DAYS_PER_MONTH,
    "yearly": 365.2425,
}

NEAR_DAYS = 2.6
DENSITY_MIN, DENSITY_MAX = 0.5, 2.2  # charges per slot; outside, neither coverage nor repeats could pass


def with_axes(charges: pl.DataFrame) -> pl.DataFrame:
    """Adds the three coordinates of a booking date: days, business days, months."""
    date = pl.col("booking_date")
    return charges.with_columns(
        days=date.to_physical().cast(pl.Float64),
        business=pl.business_day_count(pl.date(1990, 1, 1), date).cast(pl.Float64),
        months=date.dt.year() * 12.0 + date.dt.month() + (date.dt.day() - 1) / date.dt.days_in_month(),
    )


def fits(charges: pl.DataFrame, members: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """One row per group and lattice it could follow: share, coverage, repeats, spread (days), worst (days), slots."""
    lattices = LATTICES.lazy().with_columns(
        period_days=pl.col("period") * pl.when(axis="business").then(1.4).otherwise("unit_days")
    )
    slots = (pl.col("last_day") - pl.col("first_day")) / pl.col("period_days") + 1
    likely = (
        groups.lazy()
        .select("group", "n", "first_day", "last_day")
        .join(lattices, how="cross")
        .filter((pl.col("n") / slots).is_between(DENSITY_MIN, DENSITY_MAX))
        .with_row_index("fit")
        .collect()
    )
    points = charges.select("row", "days", "business", "months")
    measured = (
        likely.lazy()
        .select("fit", "group", "axis", "period", "tolerance_days", "unit_days")
        .join(members.lazy(), on="group")
        .join(points.lazy(), on="row")
        .sort("row")
        .with_columns(
            at=pl.when(axis="days").then("days").when(axis="business").then("business").otherwise("months")
            / pl.col("period")
        )
        .with_columns(turn=pl.col("at") * math.tau)
        .with_columns(
            phase=pl.arctan2(pl.col("turn").sin().sum().over("fit"), pl.col("turn").cos().sum().over("fit")) / math.tau
        )
        .with_columns(offset=pl.col("at") - pl.col("phase"))
        .with_columns(wrapped=pl.col("offset") - pl.col("offset").round())
        .with_columns(
            phase=pl.col("phase")
            + pl.col("wrapped").filter(pl.col("wrapped").abs() <= 0.25).median().over("fit").fill_null(0.0)
        )
        .with_columns(offset=pl.col("at") - pl.col("phase"))
        .with_columns(slot=pl.col("offset").round())
        .with_columns(late_days=(pl.col("offset") - pl.col("slot")) * pl.col("period") * pl.col("unit_days"))
        .group_by("fit")
        .agg(
            share=(pl.col("late_days").abs() <= pl.col("tolerance_days")).mean(),
            filled=pl.col("slot").n_unique(),
            slots=pl.col("slot").max() - pl.col("slot").min() + 1,
            spread_days=pl.col("late_days")
            .sort_by(pl.col("late_days").abs())
            .head((pl.len() * 0.9).ceil().cast(pl.UInt32))
            .std()
            .fill_null(0.0),
            near_n=(pl.col("late_days").abs() <= NEAR_DAYS).sum(),
            near_filled=pl.col("slot").filter(pl.col("late_days").abs() <= NEAR_DAYS).n_unique(),
            near_slots=pl.col("slot").max() - pl.col("slot").min() + 1,
            worst_days=pl.col("late_days").abs().max(),
            phase=pl.col("phase").first(),
        )
        .with_columns(coverage=pl.col("filled") / pl.col("slots"))
    )
    return (
        likely.lazy()
        .join(measured, on="fit")
        .with_columns(repeats=pl.col("n") / pl.col("filled"))
        .drop("first_day", "last_day", "n")
        .collect()
    )
