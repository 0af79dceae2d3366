"""Letters as people type them: one spelling for ü, u and ue, so that search and classification agree (decision 9).

Plain Python on purpose: statement files are parsed in forked processes, which must not have the threads that come with
Polars. `analytics.search_text` does the same on columns.
"""

import re
import unicodedata

SPECIAL_LETTERS = {"ß": "ss", "æ": "a", "œ": "o", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "ς": "σ"}
UMLAUT_SPELLED_OUT = re.compile("([aou])e+")
# One letter of another script may expand to a sentence (U+FDFA to eighteen letters), so the result is cut at a length
# that no text by a person reaches
PLAIN_LENGTH_MAX = 4_000
_SPECIAL_TABLE = str.maketrans(SPECIAL_LETTERS)


def fold(text: str) -> str:
    """The folded text: lower case, no accents, ß as ss, and ä = ae = a, ö = oe = o, ü = ue = u, cut as in `plain`.

    Müller, Mueller and Muller all become "muller". The price is a rare false match, which is better than a miss: an e
    that really follows a, o or u is dropped, too ("Manuela" and "Manula" are one, "Poet" is "pot"). Folding twice
    changes nothing.
    """
    return UMLAUT_SPELLED_OUT.sub(r"\1", plain(text))


def plain(text: str) -> str:
    """The text in lower case, without accents and with ß as ss; every e stays. It is cut at 4,000 letters."""
    if text.isascii():
        return text[:PLAIN_LENGTH_MAX].lower()
    decomposed = unicodedata.normalize("NFKD", text[:PLAIN_LENGTH_MAX])[:PLAIN_LENGTH_MAX]
    bare = "".join(letter for letter in decomposed if unicodedata.category(letter)[0] != "M")
    return bare.lower().translate(_SPECIAL_TABLE)
