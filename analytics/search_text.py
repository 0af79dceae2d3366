"""The letters of `analytics.letters` on columns, and the text in which a search looks."""

import polars as pl

from analytics.letters import PLAIN_LENGTH_MAX, SPECIAL_LETTERS, UMLAUT_SPELLED_OUT


def fold_column(text: pl.Expr) -> pl.Expr:
    """`analytics.letters.fold` on a column of strings; nulls stay null."""
    return plain_text(text).str.replace_all(UMLAUT_SPELLED_OUT.pattern, "${1}")


def plain_text(text: pl.Expr) -> pl.Expr:
    """`analytics.letters.plain` on a column of strings; nulls stay null."""
    text = text.str.head(PLAIN_LENGTH_MAX)
    odd = pl.when(text.str.len_bytes() != text.str.len_chars()).then(text)  # few, and most steps are for them alone
    bare = odd.str.normalize("NFKD").str.head(PLAIN_LENGTH_MAX).str.replace_all(r"\p{M}", "").str.to_lowercase()
    return pl.coalesce(
        bare.str.replace_many(list(SPECIAL_LETTERS), list(SPECIAL_LETTERS.values())), text.str.to_lowercase()
    )


def searchable_text(text: pl.Expr) -> pl.Expr:
    """The text in which a search looks: the plain spelling and the folded one, one line each; one line where they are
    the same.

    A word is found when `fold(word)` or `plain(word)` occurs in the text. The plain line is for words that begin with
    the very e that folding drops: "ela" is in "manuela", but not in "manula".
    """
    plain, fold = plain_text(text), fold_column(text)
    return pl.when(plain == fold).then(plain).otherwise(pl.concat_str(plain, fold, separator="\n"))


def in_ascii(text: pl.Expr) -> pl.Expr:
    """The text, which is folded already, with `_` for each letter or digit outside ASCII, and `~` for any other
    character outside it.

    It is for patterns that contain only words in ASCII and begin with `(?-u)`: they find the ends of words without a
    table of all letters, which costs a hundred times as much on texts with many others.
    """
    return text.str.replace_all(r"[\p{L}\p{N}--[\x00-\x7f]]", "_").str.replace_all(r"[^\x00-\x7f]", "~")
