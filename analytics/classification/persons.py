"""Telling private people from companies by name, so that no person is ever shown as a merchant."""

import re
from collections.abc import Iterator, Sequence

from analytics.classification.facts import table, words
from analytics.classification.phrases import Phrases
from analytics.letters import fold

PERSON_WORDS_MAX = 4
TELEPHONE = re.compile(r"\+\d[\d ]{7,18}")  # E.164: how Swish, Bizum, BLIK and others identify people
SURE_LENGTH_MIN = 7
PARTICLES = {"van", "von", "der", "den", "de", "ter", "ten", "zu", "zum", "la", "le", "du", "di", "del", "da", "dos"}


def is_person(label: str, label_words: Sequence[str]) -> bool | None:
    """True for what looks like a private person's name, False for a company's, None when it could be either."""
    if not label_words:
        return None
    if any(word in TITLES for word in label_words) or TELEPHONE.fullmatch(label):
        return True
    if COMPANY.best(label_words) is not None or any(sign in label for sign in "*/@&") or ".com" in label.lower():
        return False
    if len(label_words) > 1 and any(word in FIRST_NAMES for word in label_words[:PERSON_WORDS_MAX]):
        return True  # whatever follows, because many banks print the address after the name
    if any(any(letter.isdigit() for letter in word) for word in label_words):
        return False
    names = [word for word in label_words if word not in PARTICLES]
    if len(names) > PERSON_WORDS_MAX:
        return None
    if len(names) > 1 and len(names[0]) == 1 and any(len(word) > 2 for word in names):
        return True  # W. KOELEWIJN, J.P. van der Meulen: Dutch and British statements abbreviate first names
    return False if MAYBE_TRADES.best(label_words) is not None else None


def _trades() -> list[str]:
    """The keywords that are looked up in names: words for the trades of shops."""
    return [phrase for _, scope, listed in table("keywords.tsv") if scope == "name" for phrase in listed.split(", ")]


def _is_sure(phrase: str) -> bool:
    """Whether a trade word is long enough to be no surname (as Burger, Bucher, Grill are); shorter ones count only
    after first names were checked."""
    return len(phrase.strip("*")) >= SURE_LENGTH_MIN


def _companies() -> Iterator[tuple[str, bool]]:
    yield from ((word.replace("_", " "), True) for word in words("company_words.txt"))
    yield from ((phrase, True) for phrase in _trades() if _is_sure(phrase))


COMPANY = Phrases(_companies)
MAYBE_TRADES = Phrases(lambda: ((phrase, True) for phrase in _trades() if not _is_sure(phrase)))
INVOICE = Phrases(lambda: ((phrase, True) for [phrase] in table("invoice_words.txt")))
TITLES = frozenset(fold(word) for word in words("titles.txt"))
FIRST_NAMES = frozenset(fold(word) for word in words("first_names.txt"))
