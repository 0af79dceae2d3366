"""The letters of `analytics.letters` on columns, and the text that a search looks into."""

import polars as pl

from analytics.letters import PLAIN_LENGTH_MAX, SPECIAL_LETTERS, UMLAUT_SPELLED_OUT


def folded(text: pl.Expr) -> pl.Expr:
    """`fold` on a column of strings; nulls stay null."""
    return plain_text(text).str.replace_all(UMLAUT_SPELLED_OUT.pattern, "${1}")


def plain_text(text: pl.Expr) -> pl.Expr:
    """`plain` on a column of strings; nulls stay null."""
    decomposed = text.str.head(PLAIN_LENGTH_MAX).str.normalize("NFKD").str.head(PLAIN_LENGTH_MAX)
    bare = decomposed.str.replace_all(r"\p{M}", "").str.to_lowercase()
    return bare.str.replace_many(list(SPECIAL_LETTERS), list(SPECIAL_LETTERS.values()))


def searchable(text: pl.Expr) -> pl.Expr:
    """What a search looks into: the plain spelling and the folded one, a line each; one where they are the same.

    A word is found when `fold(word)` or `plain(word)` occurs in it. The plain line is there for words that begin
    with the very e that folding drops: "ela" is in "manuela", but not in "manula".
    """
    plain, fold = plain_text(text), folded(text)
    return pl.when(plain == fold).then(plain).otherwise(pl.concat_str(plain, fold, separator="\n"))


def in_ascii(text: pl.Expr) -> pl.Expr:
    """A folded text with `_` for each letter outside ASCII, and `~` for what else is. For patterns that name words of
    ASCII only and begin with `(?-u)`: they know where a word ends, and need no table of all letters for it, which costs
    a hundred times as much where a text is full of others."""
    return text.str.replace_all(r"[\p{L}\p{N}--[\x00-\x7f]]", "_").str.replace_all(r"[^\x00-\x7f]", "~")
