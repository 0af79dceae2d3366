"""Payees: one key per payee of a user, whatever the bank, the card terminal or an intermediary wrote."""

import polars as pl

from analytics.classification.intermediaries import BEGINNING
from analytics.frames import frame_of
from analytics.recurring.noise_words import BEHIND_INTERMEDIARY, DROPPED_WORDS

WRITTEN_WORDS = r"^(\S+(?:\s+\S+){0,5})"  # six words say who it is; a purpose may go on for lines
KEY_LETTERS = 24  # of a text without meaningful words
KEY_WORDS = 2  # the first two meaningful words; later ones are branches, products, numbers
PREFIX_LETTERS = 9  # "spiegelplus" and "spiegel plus 0481" are one payee
STEM_LETTERS = 4  # if the amounts are equal, too
TEXT = pl.coalesce("name", "brand", "note")
WHOSE = ("user_id", "currency")
SAID = ("text", "asked", "via", "brand", "counterpart_iban", "mandate_reference")


def key_of(text: pl.Expr) -> pl.Expr:
    """The first meaningful words of a text, joined; for a text without any, its letters and digits."""
    words = (
        text.str.replace(r"//.*$", "")
        .str.replace_all(r"\b[a-z]*\d[a-z]*\d[a-z0-9]*\b", " ")
        .str.extract_all(r"[\p{L}\p{N}]{2,}")
    )
    kept = words.list.eval(pl.element().filter(~pl.element().is_in(DROPPED_WORDS)))
    chosen = kept.list.head(KEY_WORDS).list.join("")
    squeezed = text.str.replace_all(r"[^\p{L}\p{N}]", "").str.head(KEY_LETTERS)
    return pl.when(chosen != "").then(chosen).when(squeezed != "").then(squeezed)


def behind_intermediary(text: pl.Expr, note: pl.Expr, *, via: pl.Expr) -> pl.Expr:
    """The payee's text: for payments `via` an intermediary the part after its star, else from the purpose, else the
    intermediary."""
    carried = pl.when(via)
    return pl.coalesce(
        carried.then(text).str.extract(r"^[^*]{2,20}\*\s*([^*]{2,})"),
        carried.then(note).str.extract(BEHIND_INTERMEDIARY),
        carried.then(text).str.extract(BEHIND_INTERMEDIARY),
        text.str.extract(r"^([^*]{2,})"),
        text,
    )


def as_written(name: pl.Expr) -> pl.Expr:
    """The payee's name in the bank's own spelling, without places and reference numbers."""
    short = name.str.replace(r"//.*$", "").str.replace(r"\s+\S*\d{4,}\S*.*$", "")
    short = short.str.extract(WRITTEN_WORDS).str.strip_chars(" .,;:/*-")
    return pl.when(short != "").then(short).otherwise(name)


def with_payee(charges: pl.DataFrame) -> pl.DataFrame:
    """The charges with `payee` (the key), `via` (collected by an intermediary), `brand_key` (of the enriched name, null
    for an intermediary), `contract_key` and `iban_key` (null when via), and without the columns they were read from:
    `name`, `note`, `brand` and `mandate_reference`. What many charges say is read once."""
    via = TEXT.str.contains(BEGINNING).fill_null(False)
    is_told = pl.any_horizontal(pl.col("name", "brand").is_not_null(), "via", pl.col("counterpart_iban").is_null())
    said = (
        charges.lazy()
        .with_columns(via=via)
        .with_columns(text=pl.when(is_told).then(TEXT), asked=pl.when("via").then("note"))
        .with_columns(alike=pl.struct(*WHOSE, *SAID).hash())
        .drop("name", "note")
        .pipe(frame_of)
        .lazy()
    )
    alike = _with_keys(said.group_by("alike").agg(pl.col(*WHOSE, *SAID).first(), n=pl.len()).pipe(frame_of))
    for by, ballot in (("payee", "brand_key"), ("iban_key", "payee"), ("contract_key", "payee")):
        alike = elect_payees(alike, by, ballot)
    alike = unite_payees(alike, pl.col("payee").str.head(PREFIX_LETTERS)).pipe(frame_of).lazy()
    stem = pl.col("payee").str.head(STEM_LETTERS)
    near = alike.filter(pl.col("payee").n_unique().over("whose", stem) > 1).drop("n")
    priced = said.group_by("alike", "price").agg(n=pl.len()).join(near, on="alike")
    united = unite_payees(priced, stem, pl.col("price")).select("alike", united="payee").unique()
    keys = alike.join(united, on="alike", how="left").select(
        "alike", "brand_key", "contract_key", "iban_key", payee=pl.coalesce("united", "payee")
    )
    rest = said.drop("text", "asked", "brand", "mandate_reference")
    return rest.join(keys, on="alike", how="left", maintain_order="left").drop("alike").pipe(frame_of)


def _with_keys(alike: pl.DataFrame) -> pl.LazyFrame:
    """The rows, each of which stands for `n` charges that say the same, with the keys that each has by itself."""
    text = behind_intermediary(pl.col("text"), pl.col("asked"), via=pl.col("via"))
    brand = pl.when(~pl.col("brand").str.contains(BEGINNING)).then("brand")
    # In one column: a pattern of letters takes 0.3 ms to make
    keys = alike.lazy().select(key=text.append(brand)).select(key_of(pl.col("key"))).pipe(frame_of).to_series()
    own = pl.when(~pl.col("via"))
    return (
        alike.lazy()
        .with_columns(text_key=keys.head(alike.height), brand_key=keys.tail(alike.height))
        .with_columns(
            whose=pl.struct(WHOSE).hash(),
            payee=pl.coalesce("text_key", "counterpart_iban", "mandate_reference", pl.lit("?")),
            contract_key=own.then("mandate_reference"),
            iban_key=own.then("counterpart_iban"),
        )
        .drop(*WHOSE, *SAID[:4], "text_key")
    )


def elect_payees(alike: pl.LazyFrame, by: str, ballot: str) -> pl.LazyFrame:
    """The rows, in which all rows of a user with the same `by` get as payee the `ballot` that is most frequent among
    their charges. A row stands for `n` charges."""
    votes = pl.when(pl.col(ballot).is_not_null()).then(pl.col("n").sum().over("whose", by, ballot))
    elected = pl.when(pl.col(by).is_not_null()).then(pl.col(ballot).first().over("whose", by))
    return (
        alike.with_columns(votes=votes)
        .sort("votes", ballot, descending=[True, False], nulls_last=True)
        .with_columns(payee=pl.coalesce(elected, "payee"))
    )


def unite_payees(alike: pl.LazyFrame, *sign: pl.Expr) -> pl.LazyFrame:
    """The rows, each of which stands for `n` charges, with the payee keys of a user that have a sign in common united
    to the commonest of them. Keys that are accounts or mandates are no names, because those of one bank begin alike."""
    payee, own_keys = pl.col("payee"), ("counterpart_iban", "mandate_reference")
    return (
        alike.with_columns(
            is_name=pl.all_horizontal(payee.ne_missing(pl.col(key)) for key in own_keys),
            size=pl.col("n").sum().over("whose", "payee"),
        )
        .sort("is_name", "size", "payee", descending=[True, True, False])
        .with_columns(commonest=pl.when("is_name").then(payee.first().over("whose", *sign)))
        .with_columns(
            payee=pl.coalesce(
                pl.col("commonest").filter(pl.col("commonest") != payee).min().over("whose", "payee"), "payee"
            )
        )
    )
