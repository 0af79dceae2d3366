"""Words that tell a category, by where they may be believed."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from analytics.classification.facts import CACHED_TEXTS_MAX, CATEGORIES, table
from analytics.classification.phrases import Found, Phrases

STREETS = ("strasse", "str", "platz", "weg", "gasse", "allee", "ring", "straat", "laan", "plein", "gracht")
DIGITS = "0123456789"


class Keyword(NamedTuple):
    """What a word tells, and where it counts (the head of `keywords.tsv` says what the scopes are)."""

    category: str
    scope: str


@lru_cache(maxsize=CACHED_TEXTS_MAX)
def keywords_of(words: tuple[str, ...]) -> tuple[Found[Keyword], ...]:
    """The keywords of a text; a street is named after the museum, it is none, and MIETE04 is a Miete."""
    bare = [word.rstrip(DIGITS) or word for word in words]
    found = KEYWORDS.all(bare)
    return tuple(hit for hit in found if not ("*" in hit.phrase and bare[hit.position].endswith(STREETS)))


def trades_of(label_words: tuple[str, ...]) -> Iterator[Found[Keyword]]:
    """The words of a shop's name that say what it sells."""
    return (hit for hit in keywords_of(label_words) if hit.meaning.scope in ("name", "card"))


def _entries() -> Iterator[tuple[str, Keyword]]:
    for value, scope, phrases in table("keywords.tsv"):
        keyword = Keyword(value, scope)
        yield from ((phrase, keyword) for phrase in phrases.split(", "))


KEYWORDS = Phrases(_entries)
assert {keyword_category for keyword_category, _, _ in table("keywords.tsv")} <= set(CATEGORIES)
