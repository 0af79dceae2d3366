"""Which charges may be one stream: candidate groups from coarse to fine (docs/recurring.md, "Candidate groups")."""

import polars as pl

BAND_STEP = 1.07  # a new amount band begins where the next larger amount is more than 7 % higher
RECENT_MONTHS = 8  # a contract that changed its price, its day or its name is found by its last charges
DAY_OF_MONTH_STEP = 5  # two collections of one mandate are at least this many days of the month apart

LEVELS = (
    # rank, name, key columns; coarse before fine: what a coarse group explains a finer one cannot claim
    (0, "mandate", ("contract_key",)),
    (0, "payee", ("payee",)),
    (0, "iban", ("iban_key",)),
    (1, "channel", ("payee", "via")),
    (1, "mandate_day", ("contract_key", "day_band")),
    (1, "mandate_amount", ("contract_key", "price")),
    (1, "band", ("payee", "band")),
    (1, "amount", ("payee", "price")),
    (2, "stem_amount", ("stem", "price")),
    (3, "recent", ("payee", "recent")),
    (3, "recent_band", ("payee", "band", "recent")),
    (4, "recent_any", ("price", "recent")),
)


def with_group_keys(charges: pl.DataFrame) -> pl.DataFrame:
    """Adds the columns that groups are made of: amount band, day-of-month band, five letters, recent or not."""
    whose = ["user_id", "currency"]
    return (
        charges.lazy()
        .with_columns(
            stem=pl.col("payee").str.head(5),
            recent=pl.when(pl.col("booking_date") > pl.col("today").dt.offset_by(f"-{RECENT_MONTHS}mo")).then(True),
            month_day=pl.col("booking_date").dt.day().cast(pl.Int32),
        )
        .sort(*whose, "payee", "price", "row")
        .with_columns(
            band=(pl.col("price") > pl.col("price").shift(1) * BAND_STEP)
            .fill_null(False)
            .cum_sum()
            .over(*whose, "payee")
        )
        .sort(*whose, "contract_key", "month_day", "row")
        .with_columns(
            step=(pl.col("month_day") - pl.col("month_day").shift(1).over(*whose, "contract_key")).fill_null(
                31
                + pl.col("month_day").first().over(*whose, "contract_key")
                - pl.col("month_day").last().over(*whose, "contract_key")
            )
        )
        .with_columns(start=pl.col("month_day").sort_by("step").last().over(*whose, "contract_key"))
        .with_columns(turned=(pl.col("month_day") - pl.col("start")) % 31)
        .sort(*whose, "contract_key", "turned", "row")
        .with_columns(
            day_band=pl.when(pl.col("contract_key").is_not_null()).then(
                (pl.col("turned") - pl.col("turned").shift(1) > DAY_OF_MONTH_STEP)
                .fill_null(False)
                .cum_sum()
                .over(*whose, "contract_key")
            )
        )
        .sort("row")
        .collect()
    )


def candidate_groups(charges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(members: group, row), (groups: group, rank, n, first, last ...); groups with the same rows appear once."""
    members = pl.concat(
        [
            charges.lazy()
            .filter(pl.all_horizontal(pl.col(key).is_not_null() for key in keys))
            .select(
                "row",
                group=pl.struct("user_id", "currency", *keys).hash(seed=number),
                level=pl.lit(number, pl.UInt8),
            )
            for number, (_, _, keys) in enumerate(LEVELS)
        ]
    )
    groups = (
        members.with_columns(weight=pl.col("row").hash())
        .group_by("group")
        .agg(pl.col("level").first(), n=pl.len(), rows=pl.col("weight").sum())
        .filter(pl.col("n") >= 2)
        .sort("level")
        .unique(["rows", "n"], keep="first", maintain_order=True)
        .select(
            "group",
            "n",
            rank=pl.col("level").replace_strict({i: r for i, (r, _, _) in enumerate(LEVELS)}, return_dtype=pl.UInt8),
        )
    )
    chosen = groups.collect()
    kept = members.select("group", "row").join(chosen.lazy().select("group"), on="group", how="semi").collect()
    return kept, chosen
