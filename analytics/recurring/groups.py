"""Which charges may be one stream: candidate groups from coarse to fine (docs/recurring.md, "Candidate groups")."""

from typing import NamedTuple

import polars as pl

BAND_STEP = 1.07  # a new amount band begins where the next larger amount is more than 7 % higher
RECENT_MONTHS = 8  # a contract that changed its price, its day or its name is found by its last charges
MONTH_DAY_STEP = 5  # two collections of one mandate are more than this many days of the month apart
STEM_LETTERS = 5  # of a payee, beside an equal amount, for names that were cut or varied


class Level(NamedTuple):
    """A way to group charges: what a group of a lower rank explains, one of a higher rank cannot claim."""

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
    Level("band", 1, ("payee", "band")),
    Level("price", 1, ("payee", "price")),
    Level("stem_price", 2, ("stem", "price")),
    Level("recent", 3, ("payee", "recent")),
    Level("recent_band", 3, ("payee", "band", "recent")),
    Level("recent_price", 4, ("price", "recent")),
)
RECENT_RANK = 3  # from here on only the last months were looked at, which is a second try and needs more evidence
WHOSE = ("user_id", "currency")


def with_group_keys(charges: pl.DataFrame) -> pl.DataFrame:
    """Adds what groups are made of: `stem`, `recent` (true or null), `band` of amounts, `day_band` of a mandate."""
    month_day = pl.col("booking_date").dt.day().cast(pl.Int32)
    recently = pl.col("booking_date") > pl.col("today").dt.offset_by(f"-{RECENT_MONTHS}mo")
    rising = pl.col("price") > pl.col("price").shift(1) * BAND_STEP
    bands = (
        charges.select(*WHOSE, "payee", "price")
        .unique()
        .sort(*WHOSE, "payee", "price")
        .with_columns(band=rising.fill_null(False).cum_sum().over(*WHOSE, "payee"))
    )
    days = (
        charges.filter(pl.col("contract_key").is_not_null())
        .select(*WHOSE, "contract_key", month_day=month_day)
        .unique()
        .sort(*WHOSE, "contract_key", "month_day")
    )
    return (
        charges.with_columns(
            stem=pl.col("payee").str.head(STEM_LETTERS), recent=pl.when(recently).then(True), month_day=month_day
        )
        .join(bands, on=[*WHOSE, "payee", "price"], how="left", maintain_order="left")
        .join(day_bands(days), on=[*WHOSE, "contract_key", "month_day"], how="left", maintain_order="left")
    )


def day_bands(days: pl.DataFrame) -> pl.DataFrame:
    """Splits the days of the month on which a mandate was used where they are far apart; the month is a circle that
    is cut open at its widest gap, so that the 30th and the 1st stay together."""
    mandate = [*WHOSE, "contract_key"]
    day = pl.col("month_day")
    around = 31 + day.first() - day.last()
    return (
        days.with_columns(gap=pl.coalesce(day - day.shift(1), around).over(mandate))
        .with_columns(start=day.sort_by("gap").last().over(mandate))
        .with_columns(turned=(day - pl.col("start")) % 31)
        .sort(*mandate, "turned")
        .with_columns(day_band=(pl.col("turned").diff() > MONTH_DAY_STEP).fill_null(False).cum_sum().over(mandate))
        .select(*mandate, "month_day", "day_band")
    )


def candidate_groups(charges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(members: group, row) and (groups: group, level, rank, n, first_day, last_day); of groups with the same rows
    only the coarsest is kept."""
    members = pl.concat(
        [
            charges.filter(pl.all_horizontal(pl.col(key).is_not_null() for key in level.keys)).select(
                "row", "days", group=pl.struct(*WHOSE, *level.keys).hash(seed=number), level=pl.lit(number, pl.UInt8)
            )
            for number, level in enumerate(LEVELS)
        ]
    )
    names = pl.DataFrame(
        {"level": range(len(LEVELS)), "name": [x.name for x in LEVELS], "rank": [x.rank for x in LEVELS]},
        schema_overrides={"level": pl.UInt8},
    )
    groups = (
        members.group_by("group")
        .agg(
            pl.col("level").first(),
            n=pl.len(),
            same=pl.col("row").hash().sum(),
            first_day=pl.col("days").first(),
            last_day=pl.col("days").last(),
        )
        .filter(pl.col("n") >= 2)
        .sort("level")
        .unique(["same", "n"], keep="first", maintain_order=True)
        .drop("same")
        .join(names, on="level", maintain_order="left")
        .drop("level")
    )
    return members.select("group", "row"), groups.rename({"name": "level"})
