"""The rules for a new password: long enough, not the name, and hard to guess for somebody who knows common choices.

zxcvbn knows English words; the German ones are in `german_words.txt`.
"""

from importlib.resources import files
from typing import Literal

from zxcvbn_rs_py import zxcvbn

from auth.people.password_hashing import is_usable

Weakness = Literal["short", "long", "common", "name"]

LENGTH_MIN = 12
GUESSES_LOG10_MIN = 8.5  # 300 million: half a day for somebody who has the hash and tries 10^4 a second
CHARACTERS_MAX = 32  # judged; the search slows down fast with length, and more only makes a password harder

GERMAN_WORDS = files("auth.people").joinpath("german_words.txt").read_text("utf-8").split()


def weakness(password: str, *, user_name: str) -> Weakness | None:
    """Why a new password is refused, the first that holds: `short` (under 12 characters), `long` (over 1024 bytes, or
    no valid Unicode), `name` (the user's name with only digits or signs around it), `common` (easy to guess); None for
    a good one. There are no composition rules (ASVS 5.0 6.2.5)."""
    if len(password) < LENGTH_MIN:
        return "short"
    if not is_usable(password):
        return "long"
    if _is_name(password.casefold(), user_name.casefold()):
        return "name"
    return "common" if is_guessable(password, user_name=user_name) else None


def _is_name(password: str, name: str) -> bool:
    return len(name) >= 3 and name in password and not password.replace(name, "").strip("0123456789!?.-_ ")


def is_guessable(password: str, *, user_name: str) -> bool:
    """Whether zxcvbn, knowing the name and usual words, finds the first 32 characters within 10^8.5 guesses."""
    estimate = zxcvbn(password[:CHARACTERS_MAX], [user_name, "bankdata", *GERMAN_WORDS])
    return float(estimate.guesses_log10) < GUESSES_LOG10_MIN
