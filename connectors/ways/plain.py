"""Text that receivers make nothing of but letters."""

import re
import unicodedata


def plain(text: str) -> str:
    """The text with nothing to open, no mention and no tag: mail programs and messengers make links of addresses and of
    names with a dot, mentions of @, and more of brackets."""
    kept = "".join(each for each in text if each == "\n" or unicodedata.category(each)[0] != "C")
    kept = kept.translate({ord("@"): "(at)", ord("<"): "‹", ord(">"): "›", ord("["): "(", ord("]"): ")", ord("`"): "'"})
    kept = re.sub(r"(?<=[^\W\d_])://|(?<=[^\W\d_]):(?=[^\s\d])", ": ", kept)
    return re.sub(r"(?<=\w)[.。．｡](?=[^\W\d_])", ". ", kept)
