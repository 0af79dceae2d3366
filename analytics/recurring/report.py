"""The report on streams: name, latest amount, last charge, charges in the window, order (decisions 21, 22)."""

from functools import cache

import polars as pl

from analytics.classification.intermediaries import are_intermediaries
from analytics.frames import SUBSCRIPTIONS, frame_of
from analytics.recurring.contract_ids import IDENTITY, digest
from analytics.recurring.frequencies import CHARGES_A_YEAR, OVER_AFTER
from analytics.recurring.payees import as_written, behind_intermediary
from analytics.recurring.rhythm import LATTICES

WINDOW_MONTHS = 6  # interface 4.7
TODAY = pl.col("today")
TRUE_UP = 1.9  # a single amount this many times the median is the yearly settlement of an instalment
NEXT_AFTER = dict(LATTICES.select("lattice", "next_after").iter_rows())


def window_start(today: pl.Expr = TODAY) -> pl.Expr:
    """The first day of the report's window: the same day of the month six months before `today`, or the last one of a
    shorter month (decision 10)."""
    return today.dt.offset_by(f"-{WINDOW_MONTHS}mo")


@cache
def over_on() -> pl.Expr:
    """The first day on which a stream is over: more than two periods and a day after its latest charge."""
    after = {frequency: f"{months}mo{days}d" for frequency, (months, days) in OVER_AFTER.items()}
    return pl.col("last_charged").dt.offset_by(pl.col("frequency").replace_strict(after)).dt.offset_by("1d")


def is_listed(today: pl.Expr = TODAY) -> pl.Expr:
    """Whether a stream goes on and was charged in the last six months, and so is listed by the interface (4.7)."""
    return (pl.col("last_charged") >= window_start(today)) & (over_on() > today)


LONE = pl.len().over("group", "price") == 1
# A single amount far above the others of its stream
IS_TRUE_UP = LONE & (pl.col("price") > TRUE_UP * pl.col("price").median().over("group")) & (pl.len().over("group") > 2)

BOOKED = pl.col("booking_date")
IS_NAMED = pl.col("counterpart_name").is_not_null()
TELLING = IS_NAMED | ~IS_NAMED.any()  # the rows with a name, or all when none has one
DESCRIPTION = {
    **{name: pl.col(name).last() for name in ("user_id", "today", "currency", "frequency", "lattice", "score")},
    "payee": pl.col("payee").mode().min(),
    "mandate": pl.col("contract_key").drop_nulls().first(),
    "month_day": BOOKED.dt.day().median(),
    "first_charged": BOOKED.first(),
    "last_charged": BOOKED.last(),
    "amount": -pl.col("amount").last(),
    "occurrences": (pl.col("booking_date") >= window_start()).sum(),
    "charge_ids": pl.col("id"),
    "charge_days": BOOKED,
    "brand": pl.col("merchant_name").filter(pl.col("brand_key").is_not_null()).mode().min(),
    "written": pl.coalesce("counterpart_name", "merchant_name", "purpose").filter(TELLING).last(),
    "written_note": pl.col("purpose").filter(TELLING).last(),
    **{name: pl.col(name).last() for name in ("creditor_id", "counterpart_iban", "account_id")},
}
VIA = are_intermediaries(pl.col("written")).alias("via")
BEHIND = behind_intermediary(pl.col("written"), pl.col("written_note"), via=pl.col("via")).alias("behind")
# The commonest enriched name that is no intermediary's; else the bank's latest text, without the intermediary and
# reference numbers; else the creditor id or the IBAN. People understand a purpose and not a creditor id, so the purpose
# comes first, unlike in decision 21
NAME = pl.coalesce("brand", as_written(pl.col("behind")), "creditor_id", "counterpart_iban", pl.lit("Unknown"))
YEARLY = pl.col("amount") * pl.col("frequency").replace_strict(CHARGES_A_YEAR, return_dtype=pl.Decimal(20, 0))
OUTLOOK = {
    "confidence": pl.col("score").clip(0.0, 1.0),
    "next_expected": pl.col("last_charged").dt.offset_by(pl.col("lattice").replace_strict(NEXT_AFTER)),
    "yearly": YEARLY,
}


def report_streams(rows: pl.DataFrame, streams: pl.DataFrame, *, with_ended: bool = False) -> pl.DataFrame:
    """The listed streams, or all of them with `with_ended`, as `analytics.frames.SUBSCRIPTIONS`; `streams` has (group,
    row, frequency, lattice, score). A single amount of more than 1.9 times the median of its stream is taken for a
    yearly settlement and left out of the charges, if the stream has at least three."""
    charges = (
        streams.lazy()
        .join(rows.lazy(), on="row")
        .sort("booking_date", "id")
        .filter(~IS_TRUE_UP)
        .group_by("group")
        .agg(**DESCRIPTION)
        .with_columns(VIA, identity=IDENTITY)
        .with_columns(BEHIND)
        .with_columns(merchant_name=NAME)
        .pipe(frame_of)
    )
    named = charges.lazy().with_columns(id=pl.Series(map(digest, charges["identity"]), dtype=pl.String))
    listed = (named if with_ended else named.filter(is_listed())).with_columns(**OUTLOOK)
    ordered = listed.sort("user_id", "yearly", "merchant_name", "id", descending=[False, True, False, False])
    return ordered.select(pl.col(name).cast(kind) for name, kind in SUBSCRIPTIONS.items()).pipe(frame_of)
