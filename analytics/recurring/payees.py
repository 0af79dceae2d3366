"""Payees: one key per payee of a user, whatever the bank, the card terminal or an intermediary wrote."""

from functools import cache

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
SIZE = pl.col("n").sum().over("whose", "payee").alias("size")
SAID = ("text", "asked", "via", "brand", "counterpart_iban", "mandate_reference")


def key_of(text: pl.Expr) -> pl.Expr:
    """An expression for the key of a payee: the first two meaningful words of a folded text, without a space between;
    for a text without any, its first 24 letters and digits; null without these, too. What follows "//", and words with
    two digits, do not count as meaningful."""
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
    """An expression for the text that names the payee: the text up to a star, or all of it; for payments `via` an
    intermediary rather the part after the star, or a shop that the purpose (`note`) or the text names."""
    carried = pl.when(via)
    return pl.coalesce(
        carried.then(text).str.extract(r"^[^*]{2,20}\*\s*([^*]{2,})"),
        carried.then(note).str.extract(BEHIND_INTERMEDIARY),
        carried.then(text).str.extract(BEHIND_INTERMEDIARY),
        text.str.extract(r"^([^*]{2,})"),
        text,
    )


def as_written(name: pl.Expr) -> pl.Expr:
    """An expression for the payee's name in the bank's own spelling: at most six words, without what follows "//" or
    begins with a reference number of four digits or more; the whole name where nothing else would be left."""
    short = name.str.replace(r"//.*$", "").str.replace(r"\s+\S*\d{4,}\S*.*$", "")
    short = short.str.extract(WRITTEN_WORDS).str.strip_chars(" .,;:/*-")
    return pl.when(short != "").then(short).otherwise(name)


VIA = TEXT.str.contains(BEGINNING).fill_null(False).alias("via")
IS_NAMED = pl.any_horizontal(pl.col("name", "brand").is_not_null(), "via", pl.col("counterpart_iban").is_null())
# A purpose says nothing of the payee where there is an account
TOLD = [pl.when(IS_NAMED).then(TEXT).alias("text"), pl.when("via").then("note").alias("asked")]
ALIKE = pl.struct(*WHOSE, *SAID).hash().alias("alike")
BRAND = pl.when(~pl.col("brand").str.contains(BEGINNING)).then("brand")
# All texts and then all brands, because a pattern of letters takes 0.3 ms to make
SPELLED = behind_intermediary(pl.col("text"), pl.col("asked"), via=pl.col("via")).append(BRAND).alias("spelled")
KEYS = key_of(pl.col("spelled"))


def with_payee(charges: pl.DataFrame) -> pl.DataFrame:
    """The charges with `payee` (the key), `via` (collected by an intermediary), `brand_key` (of the enriched name, null
    for an intermediary), `contract_key` and `iban_key` (mandate and IBAN, null when via), and without the columns they
    were read from: `name`, `note`, `brand` and `mandate_reference`. What many charges say is read once."""
    told = (
        charges.lazy().with_columns(VIA).with_columns(TOLD).with_columns(ALIKE).with_columns(n=pl.len().over("alike"))
    )
    said = told.drop("name", "note").pipe(frame_of).lazy()
    alike = said.select("alike", "n", *WHOSE, *SAID).unique("alike").pipe(frame_of).pipe(_with_keys)
    for by, ballot in (("payee", "brand_key"), ("iban_key", "payee"), ("contract_key", "payee")):
        alike = elect_payees(alike, by, ballot)
    alike = unite_payees(alike.with_columns(SIZE), PREFIX_LETTERS).with_columns(SIZE).pipe(frame_of).lazy()
    near = alike.filter(pl.col("size") < pl.col("n").sum().over("whose", pl.col("payee").str.head(STEM_LETTERS)))
    united = unite_payees(said.select("alike", "price").join(near, on="alike"), STEM_LETTERS, "price")
    keys = alike.join(united.select("alike", united="payee").unique(), on="alike", how="left").select(
        "alike", "brand_key", "contract_key", "iban_key", payee=pl.coalesce("united", "payee")
    )
    rest = said.drop("text", "asked", "brand", "mandate_reference", "n")
    return rest.join(keys, on="alike", how="left", maintain_order="left").drop("alike").pipe(frame_of)


def _with_keys(alike: pl.DataFrame) -> pl.LazyFrame:
    """The rows, each of which stands for `n` charges that say the same, with the keys that each has by itself."""
    keys = alike.lazy().select(SPELLED).select(KEYS).pipe(frame_of).to_series()
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
    """The rows with a common `payee`: all rows of a user and currency with the same value in the column `by` get the
    value of the column `ballot` that is most frequent among their charges, of equally frequent ones the first by
    letters. Rows without a value in `by`, or without any ballot, keep theirs. A row stands for `n` charges."""
    votes, payee = _election(by, ballot)
    ranked = alike.with_columns(votes).sort("votes", ballot, descending=[True, False], nulls_last=True)
    return ranked.with_columns(payee)


@cache
def _election(by: str, ballot: str) -> tuple[pl.Expr, pl.Expr]:
    votes = pl.when(pl.col(ballot).is_not_null()).then(pl.col("n").sum().over("whose", by, ballot))
    elected = pl.when(pl.col(by).is_not_null()).then(pl.col(ballot).first().over("whose", by))
    return votes.alias("votes"), pl.coalesce(elected, "payee").alias("payee")


def unite_payees(alike: pl.LazyFrame, letters: int, *others: str) -> pl.LazyFrame:
    """The rows, with payees of a user and currency united where the first `letters` letters of their keys are the same,
    and so are the columns `others`: all get the key with the most charges (`size`). Keys that are account numbers or
    mandates are not united, because those of one bank begin alike."""
    is_name, commonest, payee = _union(letters, *others)
    ranked = alike.with_columns(is_name).sort("is_name", "size", "payee", descending=[True, True, False])
    return ranked.with_columns(commonest).with_columns(payee)


@cache
def _union(letters: int, *others: str) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    payee, commonest = pl.col("payee"), pl.col("commonest")
    is_name = pl.all_horizontal(payee.ne_missing(pl.col(key)) for key in ("counterpart_iban", "mandate_reference"))
    alike = payee.first().over("whose", payee.str.head(letters), *others)
    another = commonest.filter(commonest != payee).min().over("whose", "payee")
    return (
        is_name.alias("is_name"),
        pl.when("is_name").then(alike).alias("commonest"),
        pl.coalesce(another, "payee").alias("payee"),
    )
