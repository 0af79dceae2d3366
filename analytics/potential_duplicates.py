"""Potential duplicates: bookings that look like one already in the store."""

import polars as pl

from analytics.frames import frame_of
from analytics.search_text import fold_column

DAYS_APART_MAX = 3  # dates of one booking from a file and from an API differ by a weekend at most
NEAR_EQUAL_CHARACTERS_MIN = 12  # a shorter text inside another proves nothing ("Miete" is in many purposes)
PAIRED_AT_ONCE_MAX = 1_000  # new rows compared at a time: limits memory, changes no result
KEYS = ("account_id", "amount", "currency")
TEXTS = ("counterpart_iban", "counterpart_name", "purpose")


def potential_duplicate_ids(new: pl.DataFrame, stored: pl.DataFrame) -> set[str]:
    """The ids of the new rows that are potential duplicates of another row of the account, either stored or earlier in
    `new`.

    Such a pair has the same amount and currency, booking dates at most 3 days apart, an equal counterpart (IBAN or
    name) or purposes of which one contains the other, and comes from different batches or connections: equal rows of
    one batch are real. Both frames are LOOKALIKES; rows of `stored` that are also in `new`, and adjusting entries, are
    ignored. Nothing is ever dropped.
    """
    earlier = stored.lazy().join(new.lazy(), on=KEYS, how="semi").join(new.lazy(), on="id", how="anti")
    position = pl.int_range(pl.len(), dtype=pl.Int64)
    rows = pl.concat([new.lazy().with_columns(position=position), earlier.with_columns(position=pl.lit(-1, pl.Int64))])
    others = frame_of(rows.filter(~pl.col("is_adjusting_entry")).with_columns(_bare_text(name) for name in TEXTS))
    flagged: set[str] = set()
    for piece in others.filter(pl.col("position") >= 0).iter_slices(PAIRED_AT_ONCE_MAX):
        flagged.update(_lookalikes(piece, others))
    return flagged


def _bare_text(text: str) -> pl.Expr:
    """The text's folded letters and digits only, because banks break, capitalise and spell one text in many ways; null
    when none is left."""
    letters = fold_column(pl.col(text)).str.replace_all(r"[^\p{L}\p{N}]", "")
    return pl.when(letters != "").then(letters).alias(text)


def _lookalikes(arrived: pl.DataFrame, others: pl.DataFrame) -> list[str]:
    days = pl.LazyFrame({"days": range(-DAYS_APART_MAX, DAYS_APART_MAX + 1)})
    pairs = (
        arrived.lazy()
        .join(days, how="cross")
        .with_columns(day=pl.col("booking_date") + pl.duration(days="days"))
        .join(others.lazy().rename({"booking_date": "day"}), on=[*KEYS, "day"], suffix="_of_other")
        .filter(
            pl.col("position_of_other") < pl.col("position"),
            (pl.col("batch_id") != pl.col("batch_id_of_other"))
            | (pl.col("connection_id") != pl.col("connection_id_of_other")),
        )
    )
    is_alike = pl.any_horizontal(
        pl.col("counterpart_iban") == pl.col("counterpart_iban_of_other"),
        pl.col("counterpart_name") == pl.col("counterpart_name_of_other"),
        pl.col("purpose") == pl.col("purpose_of_other"),
        _is_inside("purpose", "purpose_of_other"),
        _is_inside("purpose_of_other", "purpose"),
    )
    return frame_of(pairs.filter(is_alike).select("id"))["id"].to_list()


def _is_inside(short: str, long: str) -> pl.Expr:
    """Whether one text, of at least 12 characters, is contained in the other: cut off at the end, or with the bank's
    own words around it."""
    return (pl.col(short).str.len_chars() >= NEAR_EQUAL_CHARACTERS_MIN) & pl.col(long).str.contains(
        pl.col(short), literal=True
    )
