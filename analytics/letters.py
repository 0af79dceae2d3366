"""Letters as people type them: one spelling for ü, u and ue, so that search and classification agree (decision 9).

Plain Python on purpose: statement files are parsed in forked processes, which must not have the threads that come with
Polars. The same on columns is `analytics.search_text`.
"""

import re
import unicodedata

SPECIAL_LETTERS = {"ß": "ss", "æ": "a", "œ": "o", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ς": "σ"}
UMLAUT_SPELLED_OUT = re.compile("([aou])e+")
# A letter of another script may stand for a sentence (U+FDFA for eighteen letters): what a text becomes is cut where no
# text that a person writes ends
PLAIN_LENGTH_MAX = 4_000
_SPECIAL_TABLE = str.maketrans(SPECIAL_LETTERS)


def fold(text: str) -> str:
    """Lower case, no accents, ß as ss, and ä = ae = a, ö = oe = o, ü = ue = u.

    Müller, Mueller and Muller all become "muller". The price is a rare over-match, wanted over a miss: an e that
    really follows a, o or u goes as well ("Manuela" and "Manula" are one, "Poet" is "pot"). Folding twice changes
    nothing.
    """
    return UMLAUT_SPELLED_OUT.sub(r"\1", plain(text))


def plain(text: str) -> str:
    """Lower case, no accents, ß as ss; every e stays where it is. What is longer than PLAIN_LENGTH_MAX is cut."""
    if text.isascii():
        return text[:PLAIN_LENGTH_MAX].lower()
    decomposed = unicodedata.normalize("NFKD", text[:PLAIN_LENGTH_MAX])[:PLAIN_LENGTH_MAX]
    bare = "".join(letter for letter in decomposed if unicodedata.category(letter)[0] != "M")
    return bare.lower().translate(_SPECIAL_TABLE)
