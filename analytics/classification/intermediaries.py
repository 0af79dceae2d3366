"""Intermediaries, who only carry payments for others (PayPal, Klarna, card terminals), recognised by the beginning of a
name."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from analytics.classification.facts import table
from analytics.classification.phrases import words_of
from analytics.letters import fold
from analytics.search_text import fold_column


class Intermediary(NamedTuple):
    """A company that only carries payments; `category` is what is mostly paid through it."""

    name: str
    category: str


STARRED_LENGTH_MAX = 4  # "SP", "ZTL", "VIVA" are also words of other names, and count only with a star

INTERMEDIARIES = {
    words_of(alias): Intermediary(name, category)
    for name, category, aliases in table("intermediaries.tsv")
    for alias in aliases.split(", ")
}
_WORDS_MAX = max(map(len, INTERMEDIARIES))


def _beginning() -> str:
    """A pattern for Python and Polars that finds intermediaries at the beginning of a folded name. SQ *, TST*, CCV* are
    codes of two or three letters and a star, whose owners need not be in the table."""
    by_length: dict[bool, list[str]] = {True: [], False: []}
    for alias in INTERMEDIARIES:
        by_length[sum(map(len, alias)) > STARRED_LENGTH_MAX].append(r"[\W_]+".join(alias))
    return rf"^\W*(?:(?:{'|'.join(by_length[True])})\b|(?:{'|'.join(by_length[False])}|[a-z]{{2,3}}) ?\*)"


BEGINNING = _beginning()
_BEGINNING = re.compile(BEGINNING)


def is_intermediary(name: str | None) -> bool:
    """Whether a counterpart's name begins like that of a company that only carries payments for others, so that its ids
    and IBANs say nothing about a merchant; False for None."""
    return name is not None and _BEGINNING.search(fold(name)) is not None


def are_intermediaries(names: pl.Expr) -> pl.Expr:
    """`is_intermediary` on a column; nulls stay null."""
    return fold_column(names).str.contains(BEGINNING)


def intermediary_of(label_words: Sequence[str], *, has_star: bool) -> tuple[Intermediary, int] | None:
    """The known intermediary whose words begin a label, and the number of these words; None for none. Those of up to
    four letters need a star (SQ *)."""
    for size in range(min(_WORDS_MAX, len(label_words)), 0, -1):
        start = tuple(label_words[:size])
        if start in INTERMEDIARIES and (has_star or sum(map(len, start)) > STARRED_LENGTH_MAX):
            return INTERMEDIARIES[start], size
    return None
