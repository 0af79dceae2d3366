"""Payees: one key per payee of a user, whatever the bank, the card terminal or an intermediary wrote."""

import polars as pl

from analytics.classification.intermediaries import BEGINNING, are_intermediaries
from analytics.frames import frame_of
from analytics.recurring.noise_words import BEHIND_INTERMEDIARY, DROPPED_WORDS

WRITTEN_WORDS = r"^(\S+(?:\s+\S+){0,5})"  # six words say who it is; a purpose may go on for lines
KEY_LETTERS = 24  # of a text without meaningful words
KEY_WORDS = 2  # the first two meaningful words; later ones are branches, products, numbers
PREFIX_LETTERS = 9  # "spiegelplus" and "spiegel plus 0481" are one payee
STEM_LETTERS = 4  # if the amounts are equal, too
READ = ("user_id", "currency", "price", "note", "brand", "mandate_reference", "counterpart_iban")
TEXT = pl.coalesce("name", "brand", "note")
ADDED = ("payee", "via", "brand_key", "contract_key", "iban_key")


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


def behind_intermediary_as_written(text: pl.Expr, note: pl.Expr) -> pl.Expr:
    """The payee's text as from `behind_intermediary`, in the bank's own spelling, without places and reference
    numbers."""
    via = are_intermediaries(text)
    name = behind_intermediary(text, note, via=via)
    short = name.str.replace(r"//.*$", "").str.replace(r"\s+\S*\d{4,}\S*.*$", "")
    short = short.str.extract(WRITTEN_WORDS).str.strip_chars(" .,;:/*-")
    return pl.when(short != "").then(short).otherwise(name)


def with_payee(charges: pl.DataFrame) -> pl.DataFrame:
    """The charges with `payee` (the key), `via` (collected by an intermediary), `brand_key` (of the enriched name, null
    for an intermediary), `contract_key` and `iban_key` (null when via), and without the columns they were read from:
    `name`, `note`, `brand` and `mandate_reference`."""
    payees = _payees(charges.select(*READ, pl.col("name").is_null().alias("is_nameless"), text=TEXT))
    return charges.drop("name", "note", "brand", "mandate_reference").with_columns(payees.select(ADDED))


def _payees(charges: pl.DataFrame) -> pl.DataFrame:
    """The ADDED columns of each row, in the same order."""
    text, asked = pl.col("text"), pl.col("asked")
    via = text.str.contains(BEGINNING).fill_null(False)
    texted = charges.with_columns(via=via, asked=pl.when(via).then("note")).lazy()
    keys = ["text", "asked", "via"]
    texts = (
        texted.select(keys).unique().with_columns(raw_key=key_of(behind_intermediary(text, asked, via=pl.col("via"))))
    )
    brands = (
        texted.select("brand")
        .unique()
        .with_columns(brand_key=pl.when(~pl.col("brand").str.contains(BEGINNING)).then(key_of(pl.col("brand"))))
    )
    texted = texted.join(brands, on="brand", how="left", nulls_equal=True, maintain_order="left")
    mandate = pl.when(~pl.col("via")).then(pl.col("mandate_reference"))
    iban = pl.when(~pl.col("via")).then(pl.col("counterpart_iban"))
    nameless = pl.col("is_nameless") & pl.col("brand").is_null()
    keyed = texted.join(texts, on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(
        contract_key=mandate,
        iban_key=iban,
        payee=pl.coalesce(
            pl.when(~nameless | iban.is_null()).then("raw_key"),
            "counterpart_iban",
            "mandate_reference",
            pl.lit("?"),
        ),
    )
    named = keyed.drop("text", "note", "asked", "brand", "raw_key", "is_nameless").pipe(frame_of)
    for by, ballot in (("payee", "brand_key"), ("iban_key", "payee"), ("contract_key", "payee")):
        named = elect_payees(named, by, ballot)
    return unite_payees(named)


def unite_payees(charges: pl.DataFrame) -> pl.DataFrame:
    """The charges with similar payee keys of a user united: two keys are one payee when nine letters agree, or four and
    an amount; the commoner key wins. Keys that are accounts or mandates are no names, because those of one bank begin
    alike."""
    named = pl.col("payee").ne_missing(pl.col("counterpart_iban")) & pl.col("payee").ne_missing(
        pl.col("mandate_reference")
    )
    keyed = charges.lazy().with_columns(
        prefix=pl.col("payee").str.head(PREFIX_LETTERS), stem=pl.col("payee").str.head(STEM_LETTERS)
    )
    for alike in (["prefix"], ["stem", "price"]):
        keyed = keyed.with_columns(size=pl.len().over("user_id", "currency", "payee")).pipe(frame_of).lazy()
        winners = (
            keyed.filter(named)
            .select("user_id", "currency", "payee", "size", *alike)
            .unique()
            .with_columns(
                elected=pl.col("payee")
                .sort_by("size", "payee", descending=[True, False])
                .first()
                .over("user_id", "currency", *alike)
            )
            .filter(pl.col("elected") != pl.col("payee"))
            .select("user_id", "currency", "payee", "elected")
            .sort("elected")
            .unique(["user_id", "currency", "payee"], keep="first", maintain_order=True)
        )
        keyed = keyed.join(winners, on=["user_id", "currency", "payee"], how="left", maintain_order="left")
        keyed = keyed.with_columns(payee=pl.coalesce("elected", "payee")).drop("elected")
    return keyed.drop("prefix", "stem", "size").pipe(frame_of)


def elect_payees(charges: pl.DataFrame, by: str, ballot: str) -> pl.DataFrame:
    """The rows, in which all rows of a user with the same `by` get as payee the `ballot` that is most frequent among
    them."""
    keys = ["user_id", "currency", by]
    winners = (
        charges.lazy()
        .filter(pl.col(by).is_not_null(), pl.col(ballot).is_not_null())
        .group_by(*keys, ballot)
        .len()
        .sort("len", ballot, descending=[True, False])
        .unique(keys, keep="first", maintain_order=True)
        .select(*keys, elected=pl.col(ballot))
    )
    return (
        charges.lazy()
        .join(winners, on=keys, how="left", maintain_order="left")
        .with_columns(payee=pl.coalesce("elected", "payee"))
        .drop("elected")
        .pipe(frame_of)
    )
