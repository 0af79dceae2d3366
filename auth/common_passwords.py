"""Passwords that many people choose: everything that is made of a few common words, runs, years and repetitions.

A plain list of long common passwords is mostly the same few hundred words with digits, doubled or joined; so the
words are the list (common_words.txt) and the password is taken apart. ASVS 5.0 6.2.4 asks for the 3,000 most common
ones that satisfy the length rule; the words and rules here stand for several millions.
"""

import re
from functools import lru_cache
from importlib import resources

PARTS_MAX = 3  # of words: "correct horse battery staple" may pass even if its words were listed
_LEET = str.maketrans(
    {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "@": "a", "$": "s", "!": "i", "€": "e"}
)
_ROWS = (
    "1234567890",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
    "abcdefghijklmnopqrstuvwxyz",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "1a2b3c4d5e6f7g8h9i0j",
    "a1b2c3d4e5f6g7h8i9j0",
    "q1w2e3r4t5y6u7i8o9p0",
    "qazwsxedcrfvtgbyhnujmikolp",
    "1z2x3c4v5b6n7m",
    "147258369",
    "159357456",
    "13579",
    "24680",
)
RUN_MIN = 3
_FILLER = re.compile(r"[^\w]|_")
_OUTER = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def is_common(password: str) -> bool:
    """Whether a password is among those that guessers try first; case, spaces and punctuation do not help it."""
    folded = password.casefold()
    if len(set(folded)) <= 3 or _is_repetition(folded):
        return True
    plain = _FILLER.sub("", folded)
    unleet = _FILLER.sub("", _OUTER.sub("", folded).translate(_LEET))
    return not plain or any(_word_count(text) <= PARTS_MAX for text in {plain, unleet})


def _is_repetition(text: str) -> bool:
    """One short piece again and again: abcabcabcabc."""
    return any(
        len(text) % size == 0 and text[:size] * (len(text) // size) == text
        for size in range(1, min(len(text) // 3, 5) + 1)
    )


def _word_count(text: str) -> int:
    """How few common words a text can be cut into; digits, years and keyboard runs around them are free."""
    endless = PARTS_MAX + 1
    fewest = [0] + [endless] * len(text)
    for end in range(1, len(text) + 1):
        for start in range(end):
            if fewest[start] < endless:
                cost = _cost(text, start, end)
                if cost is not None:
                    fewest[end] = min(fewest[end], fewest[start] + cost)
    return fewest[-1]


def _cost(text: str, start: int, end: int) -> int | None:
    piece = text[start:end]
    if piece in _words():
        return 1
    if len(piece) >= RUN_MIN and _is_run(piece):
        return 0
    is_outer = start == 0 or end == len(text)
    return 0 if is_outer and piece.isdigit() and len(piece) <= 8 else None


def _is_run(piece: str) -> bool:
    if len(set(piece)) == 1:
        return True
    return any(piece in row or piece in row[::-1] or piece in row + row for row in _ROWS)


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    text = (resources.files("auth") / "common_words.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())
