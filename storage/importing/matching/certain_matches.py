"""Which stored row each booking of a batch is, as far as keys alone decide it: joins of frames, however many there are.

What is left over is looked at one by one (storage.importing.matching.counted_merge), and only where it may be a row
still.
"""

import json
from collections.abc import Sequence

import polars as pl

from storage.importing.matching.booking_keys import PROVIDER
from storage.importing.matching.stored_bookings import base_of
from storage.importing.matching.stored_index import FILES
from storage.importing.spool import PARTING

MONEY = ("booking_date", "amount", "currency")
PIECE_ROWS = 25_000  # compared in one go: bounds memory, changes no result
PART = r"/\d+$"  # the end of a reference to a detail of a batch (storage.importing.matching.stored_index.PART)

TOLD = ("place", *MONEY, "amount_text", "provider_id", "own_id", "references", "fingerprint")  # of spool.KEYS
COMPARED = ("place", *MONEY, "own_id", "fingerprint", "claim", "base", "is_part")


def prepared(told: pl.DataFrame, source: str) -> pl.DataFrame:
    """Bookings (spool.KEYS) of one account in one batch as COMPARED: with `claim`, their provider's id in the name
    space of the source, `base`, the key that identifies each, still without its ordinal, and `is_part`, whether one is
    a detail of a batch.

    The key is the provider's id where it is guaranteed; else the strongest reference that is unique within the batch,
    together with day and amount, so that a bank that numbers anew every day loses nothing; else the content. An id of
    a provider stands for one booking: rows repeat where a page ends, and what is reported last holds."""
    claimed = told.select(TOLD).with_columns(claim=pl.lit(f"{source}:") + pl.col("provider_id"))
    if claimed["claim"].null_count() < claimed.height:
        claimed = _each_claim_once(claimed, source)
    references = claimed.select("place", _references()).explode("references")["references"]
    repeated = references.filter(references.is_duplicated()).unique().implode()
    return pl.concat([_named(piece, repeated) for piece in [*claimed.iter_slices(PIECE_ROWS)] or [claimed]])


def _references() -> pl.Expr:
    return pl.when(pl.col("references") != "").then(pl.col("references").str.split(PARTING)).alias("references")


def _named(claimed: pl.DataFrame, repeated: pl.Series) -> pl.DataFrame:
    """The bookings as COMPARED; `repeated` are the references that stand in the batch more than once."""
    references = claimed.select("place", _references()).explode("references").drop_nulls()
    parts = references.filter(pl.col("references").str.contains(PART))["place"].implode()
    unique = references.filter(~pl.col("references").is_in(repeated)).unique("place", keep="first", maintain_order=True)
    dated = pl.concat_str("references", pl.col("booking_date").dt.to_string("%Y-%m-%d"), "amount_text", separator="|")
    base = pl.coalesce(pl.lit(PROVIDER) + pl.col("provider_id"), dated, pl.lit("content:") + pl.col("fingerprint"))
    named = claimed.drop("references").join(unique, on="place", how="left", maintain_order="left")
    return named.with_columns(base=base, is_part=pl.col("place").is_in(parts)).select(COMPARED)


def certain(told: pl.DataFrame, stored: pl.DataFrame, source: str) -> pl.DataFrame:
    """`place` and `stored_id` of the bookings (as `prepared`) that are rows (STORED) by our own id inside the source's,
    else by the provider's id, else by their key, the n-th of a kind being the n-th: the counted merge."""
    own = (
        told.filter(pl.col("own_id").is_not_null())
        .join(stored, left_on=["own_id", *MONEY], right_on=["id", *MONEY], maintain_order="left")
        .unique("own_id", keep="first", maintain_order=True)
        .select("place", stored_id="own_id")
    )
    told, stored = left_over(told, stored, own)
    claims = claims_of(stored, source)
    has_claim = pl.col("claim").is_not_null()
    claiming, others = told.filter(has_claim), told.filter(~has_claim)
    is_mixed = not claiming.is_empty() and not others.is_empty()
    if claims["id"].is_duplicated().any() or (is_mixed and stored["claims"].null_count() < stored.height):
        return own  # one row may be meant in two ways: one by one
    by_base = stored.select("id", "currency", base=base_of("identity")).filter(
        ~pl.col("base").str.starts_with(PROVIDER)
    )
    return pl.concat(
        [own, _paired(claiming, claims, claimed_by(source)), _paired(others, by_base, ("base", "currency"))]
    )


def left_over(told: pl.DataFrame, stored: pl.DataFrame, known: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The bookings and the rows that are not among these pairs."""
    if known.is_empty():
        return told, stored
    return (
        told.filter(~pl.col("place").is_in(known["place"].implode())),
        stored.filter(~pl.col("id").is_in(known["stored_id"].implode())),
    )


def undecided(told: pl.DataFrame, stored: pl.DataFrame, source: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Those bookings and rows that may be each other's: every way to be a row asks for its amount, but for a claim,
    and for details of a batch that add up."""
    if told.is_empty() or stored.is_empty():
        return told.clear(), stored.clear()
    if told["is_part"].any() or stored["is_part"].any():
        return told, stored
    claims = claims_of(stored, source).join(told, on="claim", how="semi")
    amount = ["amount", "currency"]
    may_be_told = pl.col("place").is_in(told.join(stored, on=amount, how="semi")["place"].implode())
    may_be_stored = pl.col("id").is_in(stored.join(told, on=amount, how="semi")["id"].implode())
    return (
        told.filter(may_be_told | pl.col("claim").is_in(claims["claim"].implode())),
        stored.filter(may_be_stored | pl.col("id").is_in(claims["id"].implode())),
    )


def numbered(told: pl.DataFrame, stored: pl.DataFrame) -> pl.Series:
    """For each booking the identity of one more row under its base."""
    if told.is_empty():
        return told["base"].alias("identity")
    number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    bases = told.select("base", number=number.over("base") if told["base"].is_duplicated().any() else pl.lit(1))
    if not stored.is_empty():
        ordinal = pl.col("identity").str.extract(r"(\d+)$").cast(pl.Int64)
        highest = stored.group_by(base=base_of("identity")).agg(highest=ordinal.max())
        bases = bases.join(highest, on="base", how="left", maintain_order="left").select(
            "base", number=pl.col("number") + pl.col("highest").fill_null(0)
        )
    return bases.select(identity=pl.concat_str("base", "number", separator="#"))["identity"]


def claims_of(stored: pl.DataFrame, source: str) -> pl.DataFrame:
    """By which ids of this source the rows are known (`id`, `claim`), with what it last reported of each (`told_print`)
    and the row's day, amount and currency."""
    columns = ["id", "claim", "told_print", *MONEY]
    several = [
        (row[0], claim, told_print, *row[2:])
        for row in stored.filter(pl.col("claims").is_not_null()).select("id", "claims", *MONEY).iter_rows()
        for claim, told_print in json.loads(row[1]).items()
    ]
    schema = {name: stored.schema[name] for name in columns}
    found = pl.concat([stored.select(columns), pl.DataFrame(several, schema=schema, orient="row")])
    return found.filter(pl.col("claim").str.starts_with(f"{source}:"))


def claimed_by(source: str) -> Sequence[str]:
    """What an id stands for: one that a file has chosen counts only together with day, amount and currency."""
    return ("claim", *MONEY) if source == FILES else ("claim",)


def _each_claim_once(told: pl.DataFrame, source: str) -> pl.DataFrame:
    keys = claimed_by(source)
    ordered = told.with_row_index("order")
    claimed = ordered.filter(pl.col("claim").is_not_null())
    last = claimed.unique(keys, keep="last").drop("order")
    first = claimed.unique(keys, keep="first").select("order", *keys)
    once = last.join(first, on=keys).select(ordered.columns)
    return pl.concat([ordered.filter(pl.col("claim").is_null()), once]).sort("order").drop("order")


def _paired(told: pl.DataFrame, rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The n-th booking of a key and the n-th row of it; `place` and `stored_id`."""
    shares = max(told.height, rows.height) // PIECE_ROWS + 1
    share = (pl.col(keys[0]).hash() % shares).alias("share")
    ours = told.select("place", *keys, share).partition_by("share", as_dict=True, include_key=False)
    theirs = rows.select(pl.col("id").alias("stored_id"), *keys, share).partition_by(
        "share", as_dict=True, include_key=False
    )
    number = pl.int_range(pl.len()).over(keys).alias("number")
    pairs = [
        ours[each].with_columns(number).join(theirs[each].with_columns(number), on=[*keys, "number"])
        for each in ours.keys() & theirs.keys()
    ]
    empty = pl.DataFrame(schema={"place": told.schema["place"], "stored_id": pl.String()})
    return pl.concat([empty, *(pair.select("place", "stored_id") for pair in pairs)])
