"""What is said about a stream: name, latest amount, last charge, charges in the window, order (decisions 21, 22)."""

import hashlib

import polars as pl

from analytics.frames import SUBSCRIPTIONS

WINDOW_MONTHS = 6
TRUE_UP = 1.9
YEARLY_CHARGES = {"weekly": 52, "biweekly": 26, "monthly": 12, "quarterly": 4, "yearly": 1}
PERIOD = {"weekly": "1w", "biweekly": "2w", "monthly": "1mo", "quarterly": "3mo", "yearly": "1y"}
LIVE = {"weekly": "15d", "biweekly": "29d", "monthly": "2mo1d", "quarterly": "6mo1d", "yearly": "2y1d"}


def reported(rows: pl.DataFrame, streams: pl.DataFrame) -> pl.DataFrame:
    whole = (
        streams.lazy()
        .join(
            rows.lazy().select(
                "row",
                "id",
                "user_id",
                "today",
                "currency",
                "booking_date",
                "amount",
                "price",
                "payee",
                "label",
                "merchant_name",
                "counterpart_iban",
                "brand_key",
                "contract_key",
            ),
            on="row",
        )
        .sort("row")
        .with_columns(typical=pl.col("price").median().over("group"), times=pl.len().over("group", "price"))
        .filter(
            ~((pl.col("price") > TRUE_UP * pl.col("typical")) & (pl.col("times") == 1) & (pl.len().over("group") > 2))
        )
    )
    named = whole.group_by("group").agg(
        pl.col("user_id", "today", "currency", "frequency", "score").last(),
        pl.col("payee").mode().sort().first(),
        contract=pl.when(pl.col("contract_key").is_not_null().all() & (pl.col("contract_key").n_unique() == 1)).then(
            pl.col("contract_key").first()
        ),
        first_charged=pl.col("booking_date").first(),
        amount=-pl.col("amount").last(),
        last_charged=pl.col("booking_date").last(),
        occurrences=(pl.col("booking_date") >= pl.col("today").dt.offset_by(f"-{WINDOW_MONTHS}mo"))
        .sum()
        .cast(pl.Int64),
        charge_ids=pl.col("id"),
        brand=pl.col("merchant_name").filter(pl.col("brand_key").is_not_null()).mode().sort().first(),
        label=pl.col("label").last(),
        iban=pl.col("counterpart_iban").last(),
    )
    alive = named.filter(
        pl.col("last_charged") >= pl.col("today").dt.offset_by(f"-{WINDOW_MONTHS}mo"),
        pl.col("last_charged").dt.offset_by(pl.col("frequency").replace_strict(LIVE)) >= pl.col("today"),
    )
    found = (
        alive.with_columns(
            merchant_name=pl.coalesce("brand", "label", "iban", pl.lit("Unknown")),
            confidence=pl.col("score").clip(0.0, 1.0),
            next_expected=pl.col("last_charged").dt.offset_by(pl.col("frequency").replace_strict(PERIOD)),
            yearly=pl.col("amount") * pl.col("frequency").replace_strict(YEARLY_CHARGES).cast(pl.Decimal(20, 0)),
        )
        .sort("user_id", "yearly", "merchant_name", "group", descending=[False, True, False, False])
        .collect()
    )
    return with_id(found).select(pl.col(name).cast(kind) for name, kind in SUBSCRIPTIONS.items())


def with_id(found: pl.DataFrame) -> pl.DataFrame:
    """Adds `id`: a digest of whose stream it is, to whom, how often, and the how-manieth of its kind, oldest first."""
    ordered = found.with_columns(
        identity=pl.concat_str(
            "user_id",
            "currency",
            pl.coalesce("contract", "payee"),
            "frequency",
            pl.struct("first_charged", "group")
            .rank("ordinal")
            .over("user_id", "currency", pl.coalesce("contract", "payee"), "frequency"),
            separator="\x1f",
        )
    )
    # Polars' own hash may change between its versions; the streams are few, the charges were not looped over
    digests = ["sub_" + hashlib.sha256(identity.encode()).hexdigest()[:20] for identity in ordered["identity"]]
    return ordered.with_columns(id=pl.Series(digests, dtype=pl.String))
