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
SAID = ["payee", "brand_key", "contract_key", "iban_key", "counterpart_iban", "mandate_reference"]


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
    `name`, `note`, `brand` and `mandate_reference`."""
    keyed = _with_keys(charges).with_columns(
        alike=pl.struct(*WHOSE, *SAID, "price").hash(), whose=pl.struct(WHOSE).hash()
    )
    keyed = keyed.pipe(frame_of).lazy()
    alike = keyed.group_by("alike").agg(pl.col("whose", *SAID, "price").first(), n=pl.len())
    for by, ballot in (("payee", "brand_key"), ("iban_key", "payee"), ("contract_key", "payee")):
        alike = elect_payees(alike, by, ballot)
    alike = unite_payees(alike, pl.col("payee").str.head(PREFIX_LETTERS))
    alike = unite_payees(alike, pl.col("payee").str.head(STEM_LETTERS), pl.col("price"))
    elected = alike.select("alike", "payee")
    return (
        keyed.drop("payee", "mandate_reference")
        .join(elected, on="alike", how="left", maintain_order="left")
        .drop("alike", "whose")
        .pipe(frame_of)
    )


def _with_keys(charges: pl.DataFrame) -> pl.LazyFrame:
    """The charges with the keys that each has by itself. Each text is read once, however many rows have it."""
    text, asked, brand = pl.col("text"), pl.col("asked"), pl.col("brand")
    via = text.str.contains(BEGINNING).fill_null(False)
    texted = charges.lazy().with_columns(text=TEXT).with_columns(via=via, asked=pl.when(via).then("note"))
    texted = texted.pipe(frame_of).lazy()
    keys = ["text", "asked", "via"]
    texts = texted.select(keys).unique().with_columns(said=behind_intermediary(text, asked, via=pl.col("via")))
    brands = texted.filter(~brand.str.contains(BEGINNING)).select(text=brand, said=brand).unique()
    said = pl.concat([texts, brands], how="diagonal").with_columns(key=key_of(pl.col("said"))).pipe(frame_of).lazy()
    raw_keys = said.select(*keys, raw_key="key")
    brand_keys = said.filter(pl.col("via").is_null()).select(brand="text", brand_key="key")
    mandate = pl.when(~pl.col("via")).then("mandate_reference")
    iban = pl.when(~pl.col("via")).then("counterpart_iban")
    is_nameless = pl.col("name").is_null() & brand.is_null()
    payee = pl.coalesce(
        pl.when(~is_nameless | iban.is_null()).then("raw_key"), "counterpart_iban", "mandate_reference", pl.lit("?")
    )
    return (
        texted.join(raw_keys, on=keys, how="left", nulls_equal=True, maintain_order="left")
        .join(brand_keys, on="brand", how="left", maintain_order="left")
        .with_columns(contract_key=mandate, iban_key=iban, payee=payee)
        .drop("name", "note", "brand", "text", "asked", "raw_key")
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
