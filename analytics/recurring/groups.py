"""Candidate groups of charges that may be one stream, from coarse to fine (docs/recurring.md, "Candidate groups")."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from analytics.frames import frame_of
from analytics.recurring.payees import WHOSE
from analytics.recurring.rhythm import DENSITY_MAX, with_axes

RECENT_MONTHS = 8  # a contract that changed its price, its day or its name is found by its last charges
MEMBERS_AT_ONCE = 450_000  # of groups, kept or not: bounds memory, changes no result
MONTH_DAY_STEP = 5  # two collections of one mandate are more than this many days of the month apart


class Level(NamedTuple):
    """A way to group charges of a user and currency: all that agree in the columns `keys`. A lower `rank` is a coarser
    level, which is tried first: charges that one of its groups explains cannot be claimed by a group of a higher
    rank."""

    name: str
    rank: int
    keys: tuple[str, ...]


LEVELS = (
    Level("mandate", 0, ("contract_key",)),
    Level("payee", 0, ("payee",)),
    Level("iban", 0, ("iban_key",)),
    Level("channel", 1, ("payee", "via")),  # through an intermediary and directly are two arrangements
    Level("mandate_day", 1, ("contract_key", "day_band")),
    Level("mandate_price", 1, ("contract_key", "price")),
    Level("price", 1, ("payee", "price")),
    Level("recent", 2, ("payee", "recent")),
    Level("recent_price", 3, ("price", "recent")),
)
RANKS = {level.name: level.rank for level in LEVELS}
LEVEL_NAMES = pl.Enum(list(RANKS))  # sorted from coarse to fine
RECENT_RANK = 2  # levels from this rank on use only the last months, which is a second try and needs more evidence


def with_group_keys(charges: pl.DataFrame) -> pl.DataFrame:
    """The charges with their date on each axis (`days`, `business`, `months`), and with keys to group them by: `recent`
    (true in the last eight months, else null), `day_band` (the number of the band of `day_bands`, null without a
    contract), and `payee_id`, a hash of user, currency and payee."""
    recently = pl.col("booking_date") > pl.col("today").dt.offset_by(f"-{RECENT_MONTHS}mo")
    return (
        with_axes(charges.lazy())
        .with_columns(recent=pl.when(recently).then(True), payee_id=pl.struct(*WHOSE, "payee").hash())
        .join(day_bands(charges.lazy()), on="row", how="left", maintain_order="left")
        .pipe(frame_of)
    )


def day_bands(charges: pl.LazyFrame) -> pl.LazyFrame:
    """The `day_band` of each `row` with a contract, from 0: the days of the month on which a mandate was used are
    divided where they are more than five apart. The month is a circle cut open at its widest gap, so that the 30th and
    the 1st stay together."""
    day = pl.col("month_day")
    around = 31 + day.first() - day.last()
    return (
        charges.filter(pl.col("contract_key").is_not_null())
        .select(
            "row",
            month_day=pl.col("booking_date").dt.day().cast(pl.Int32),
            mandate=pl.struct(*WHOSE, "contract_key").hash(),
        )
        .sort("mandate", "month_day")
        .with_columns(gap=pl.coalesce(day - day.shift(1), around).over("mandate"))
        .with_columns(start=day.sort_by("gap", "month_day").last().over("mandate"))
        .with_columns(turned=(day - pl.col("start")) % 31)
        .sort("mandate", "turned")
        .select("row", day_band=(pl.col("turned").diff() > MONTH_DAY_STEP).fill_null(False).cum_sum().over("mandate"))
    )


def candidate_groups(charges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two frames: the members (group, row) of candidate groups, and these (group, level, n, first_day, last_day). They
    have at least two charges and are not charged too often for a weekly payment; of groups with the same rows, only the
    coarsest is kept, and members of the others are there, too. Of many charges, a few levels are looked at together."""
    keys, at_once = _group_at_each_level(), max(1, MEMBERS_AT_ONCE // max(1, charges.height))
    some = [_candidates(charges, keys[first : first + at_once]) for first in range(0, len(keys), at_once)]
    groups = pl.concat(each for _, each in some).sort("level", maintain_order=True)
    groups = groups.unique(["same", "n"], keep="first", maintain_order=True).drop("same")
    return pl.concat(each for each, _ in some), groups


def _candidates(charges: pl.DataFrame, keys: Sequence[pl.Expr]) -> tuple[pl.DataFrame, pl.DataFrame]:
    members = (
        charges.lazy()
        .select("row", "days", *keys)
        .unpivot(index=["row", "days"], variable_name="level", value_name="group")
        .drop_nulls("group")
        .with_columns(pl.col("level").cast(LEVEL_NAMES))
        .pipe(frame_of)
    )
    weeks = (pl.col("last_day") - pl.col("first_day")) / 7 + 1
    groups = (
        members.lazy()
        .group_by("group")
        .agg(
            pl.col("level").first(),
            n=pl.len(),
            same=pl.col("row").hash().sum(),
            first_day=pl.col("days").first(),
            last_day=pl.col("days").last(),
        )
        .filter(pl.col("n") >= 2, pl.col("n") / weeks <= DENSITY_MAX)
        .pipe(frame_of)
    )
    return members.lazy().select("group", "row").join(groups.lazy(), on="group", how="semi").pipe(frame_of), groups


@cache
def _group_at_each_level() -> list[pl.Expr]:
    """For each level an expression for a charge's group, as a hash of its keys; null where the charge lacks a key."""
    return [
        pl.when(pl.all_horizontal(pl.col(key).is_not_null() for key in level.keys))
        .then(pl.struct(*WHOSE, *level.keys).hash(seed=number))
        .alias(level.name)
        for number, level in enumerate(LEVELS)
    ]
