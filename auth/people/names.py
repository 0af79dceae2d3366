"""The names that new users may have."""

import unicodedata

NAME_CHARACTERS_MAX = 64
NAME_PUNCTUATION = "._-+@"  # an email address is a name; nothing that a shell, an address or a list would take apart


def as_stored(name: str) -> str:
    """The name as it is stored: each letter in one sign where there is one (NFC)."""
    return unicodedata.normalize("NFC", name)


def is_good_name(name: str) -> bool:
    """Whether a new user may have this name: letters, digits and some punctuation (decision 67); a combining mark, such
    as a vowel sign, counts with its letter."""
    kinds = [unicodedata.category(letter)[0] for letter in name]
    return (
        0 < len(name) <= NAME_CHARACTERS_MAX
        and kinds[0] in "LN"
        and all(kind in "LMN" or letter in NAME_PUNCTUATION for kind, letter in zip(kinds, name, strict=True))
    )
