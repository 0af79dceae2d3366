"""Text that receivers make nothing of but letters."""

import re
import unicodedata

SCHEME = re.compile(r"(?<=[^\W\d_])://|(?<=[^\W\d_]):(?=[^\s\d])")
DOT = re.compile(r"(?<=\w)[.。．｡](?=[^\W\d_])")


def plain(text: str) -> str:
    """The text with nothing to open, no mention and no tag: mail programs and messengers make links of addresses and of
    names with a dot, mentions of @, and more of brackets."""
    kept = "".join(each for each in text if each == "\n" or unicodedata.category(each)[0] != "C")
    kept = kept.translate({ord("@"): "(at)", ord("<"): "‹", ord(">"): "›", ord("["): "(", ord("]"): ")", ord("`"): "'"})
    return DOT.sub(". ", SCHEME.sub(": ", kept))
