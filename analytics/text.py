"""Letters as people type them: one spelling for ü, u and ue, so that search and classification agree (decision 9)."""

import re
import unicodedata

import polars as pl

SPECIAL_LETTERS = {"ß": "ss", "æ": "a", "œ": "o", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ς": "σ"}
UMLAUT_SPELLED_OUT = re.compile("([aou])e+")
_SPECIAL_TABLE = str.maketrans(SPECIAL_LETTERS)


def fold(text: str) -> str:
    """Lower case, no accents, ß as ss, and ä = ae = a, ö = oe = o, ü = ue = u.

    Müller, Mueller and Muller all become "muller". The price is a rare over-match, wanted over a miss: an e that
    really follows a, o or u goes as well ("Manuela" and "Manula" are one, "Poet" is "pot"). Folding twice changes
    nothing.
    """
    return UMLAUT_SPELLED_OUT.sub(r"\1", plain(text))


def plain(text: str) -> str:
    """Lower case, no accents, ß as ss; every e stays where it is."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in decomposed if unicodedata.category(letter)[0] != "M")
    return bare.lower().translate(_SPECIAL_TABLE)


def folded(text: pl.Expr) -> pl.Expr:
    """`fold` on a column of strings; nulls stay null."""
    return plain_text(text).str.replace_all(UMLAUT_SPELLED_OUT.pattern, "${1}")


def plain_text(text: pl.Expr) -> pl.Expr:
    """`plain` on a column of strings; nulls stay null."""
    bare = text.str.normalize("NFKD").str.replace_all(r"\p{M}", "").str.to_lowercase()
    return bare.str.replace_many(list(SPECIAL_LETTERS), list(SPECIAL_LETTERS.values()))


def searchable(text: pl.Expr) -> pl.Expr:
    """What a search looks into: the plain spelling and the folded one, a line each.

    A word is found when `fold(word)` or `plain(word)` occurs in it. The plain line is there for words that begin
    with the very e that folding drops: "ela" is in "manuela", but not in "manula".
    """
    return pl.concat_str(plain_text(text), folded(text), separator="\n")
