"""Keywords: words that imply a category, each with the places where it counts."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from analytics.classification.facts import CACHED_TEXTS_MAX, CATEGORIES, table
from analytics.classification.phrases import Found, Phrases

STREETS = ("strasse", "str", "platz", "weg", "gasse", "allee", "ring", "straat", "laan", "plein", "gracht")
DIGITS = "0123456789"


class Keyword(NamedTuple):
    """The category that a word implies, and where it counts (the head of `keywords.tsv` explains the scopes)."""

    category: str
    scope: str


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def keywords_of(words: tuple[str, ...]) -> tuple[Found[Keyword], ...]:
    """The keywords in these folded words of a text; a street named after a museum is no keyword, and MIETE04 counts as
    Miete."""
    bare = [word.rstrip(DIGITS) or word for word in words]
    hits = KEYWORDS.all(bare)
    return tuple(hit for hit in hits if not ("*" in hit.phrase and bare[hit.position].endswith(STREETS)))


def trades_of(label_words: tuple[str, ...]) -> Iterator[Found[Keyword]]:
    """The keywords in a shop's name that say what it sells: those that count in names or on card slips."""
    return (hit for hit in keywords_of(label_words) if hit.meaning.scope in ("name", "card"))


def _entries() -> Iterator[tuple[str, Keyword]]:
    for value, scope, phrases in table("keywords.tsv"):
        keyword = Keyword(value, scope)
        yield from ((phrase, keyword) for phrase in phrases.split(", "))


KEYWORDS = Phrases(_entries)
assert {keyword_category for keyword_category, _, _ in table("keywords.tsv")} <= set(CATEGORIES)
