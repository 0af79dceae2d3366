"""The report on streams: name, latest amount, last charge, charges in the window, order (decisions 21, 22)."""

from functools import cache

import polars as pl

from analytics.classification.intermediaries import are_intermediaries
from analytics.frames import SUBSCRIPTIONS, frame_of
from analytics.recurring.contract_ids import digest, identity
from analytics.recurring.frequencies import CHARGES_A_YEAR, OVER_AFTER
from analytics.recurring.payees import as_written, behind_intermediary
from analytics.recurring.rhythm import LATTICES

WINDOW_MONTHS = 6  # interface 4.7
TODAY = pl.col("today")
TRUE_UP = 1.9  # a single amount this many times the median is the yearly settlement of an instalment
_SUBSCRIPTION = [pl.col(name).cast(kind) for name, kind in SUBSCRIPTIONS.items()]
NEXT_AFTER = dict(LATTICES.select("lattice", "next_after").iter_rows())


def report_streams(rows: pl.DataFrame, streams: pl.DataFrame, *, with_ended: bool = False) -> pl.DataFrame:
    """The listed streams, or all of them with `with_ended`, as `analytics.frames.SUBSCRIPTIONS`; `streams` has (group,
    row, frequency, lattice, score)."""
    described, named = _descriptions()
    charges = (
        streams.lazy()
        .join(rows.lazy(), on="row")
        .sort("booking_date", "id")
        .filter(~is_true_up())
        .group_by("group")
        .agg(**described)
    )
    for step in named:
        charges = charges.with_columns(**step)
    known = charges.pipe(frame_of)
    ids = pl.Series("id", map(digest, known["identity"]), dtype=pl.String)
    listed = known.lazy().with_columns(ids) if with_ended else known.lazy().with_columns(ids).filter(is_listed())
    ordered = listed.with_columns(**_outlook()).sort(
        "user_id", "yearly", "merchant_name", "id", descending=[False, True, False, False]
    )
    return ordered.select(_SUBSCRIPTION).pipe(frame_of)


@cache
def _descriptions() -> tuple[dict[str, pl.Expr], list[dict[str, pl.Expr]]]:
    """What a stream's charges say of it, and the steps from there to its name."""
    booked = pl.col("booking_date")
    described = {
        **{name: pl.col(name).last() for name in ("user_id", "today", "currency", "frequency", "lattice", "score")},
        "payee": pl.col("payee").mode().min(),
        "mandate": pl.col("contract_key").drop_nulls().first(),
        "month_day": booked.dt.day().median(),
        "first_charged": booked.first(),
        "last_charged": booked.last(),
        "amount": -pl.col("amount").last(),
        "occurrences": (booked >= window_start()).sum(),
        "charge_ids": pl.col("id"),
        **names(),
    }
    named = [
        {"via": are_intermediaries(pl.col("written")), "identity": identity()},
        {"behind": behind_intermediary(pl.col("written"), pl.col("written_note"), via=pl.col("via"))},
        {"merchant_name": stream_name()},
    ]
    return described, named


@cache
def _outlook() -> dict[str, pl.Expr]:
    yearly = pl.col("amount") * pl.col("frequency").replace_strict(CHARGES_A_YEAR, return_dtype=pl.Decimal(20, 0))
    next_after = pl.col("lattice").replace_strict(NEXT_AFTER)
    return {
        "confidence": pl.col("score").clip(0.0, 1.0),
        "next_expected": pl.col("last_charged").dt.offset_by(next_after),
        "yearly": yearly,
    }


def window_start(today: pl.Expr = TODAY) -> pl.Expr:
    """The first day of the report's window: the same day of the month six months earlier (decision 10)."""
    return today.dt.offset_by(f"-{WINDOW_MONTHS}mo")


def is_over(today: pl.Expr = TODAY) -> pl.Expr:
    """Whether two periods and a day have passed since the latest charge (decision 21)."""
    return over_on() <= today


@cache
def over_on() -> pl.Expr:
    """The first day on which a stream is over."""
    return pl.col("last_charged").dt.offset_by(pl.col("frequency").replace_strict(OVER_AFTER)).dt.offset_by("1d")


def is_listed(today: pl.Expr = TODAY) -> pl.Expr:
    """Whether a stream continues and was charged in the six months, and so is listed by the interface (4.7)."""
    return (pl.col("last_charged") >= window_start(today)) & ~is_over(today)


@cache
def is_true_up() -> pl.Expr:
    """Whether a charge is a single amount far above the others of its stream."""
    lone = pl.len().over("group", "price") == 1
    return lone & (pl.col("price") > TRUE_UP * pl.col("price").median().over("group")) & (pl.len().over("group") > 2)


def names() -> dict[str, pl.Expr]:
    """The columns from which `stream_name` chooses the name of a stream, taken from its charges."""
    named = pl.col("counterpart_name").is_not_null()
    telling = named | ~named.any()  # the rows with a name, or all when none has one
    return {
        "brand": pl.col("merchant_name").filter(pl.col("brand_key").is_not_null()).mode().min(),
        "written": pl.coalesce("counterpart_name", "merchant_name", "purpose").filter(telling).last(),
        "written_note": pl.col("purpose").filter(telling).last(),
        "creditor_id": pl.col("creditor_id").last(),
        "counterpart_iban": pl.col("counterpart_iban").last(),
    }


def stream_name() -> pl.Expr:
    """The name of a stream: the commonest enriched name that is no intermediary's; else the bank's latest text, without
    the intermediary and reference numbers; else the creditor id or the IBAN.

    People understand a purpose and not a creditor id, so the purpose comes first, unlike in decision 21.
    """
    return pl.coalesce("brand", as_written(pl.col("behind")), "creditor_id", "counterpart_iban", pl.lit("Unknown"))
