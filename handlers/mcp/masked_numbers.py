"""Masks IBANs and card numbers inside texts and in their own fields: the country and the last four characters stay.

The store keeps more of a card number than this, because it recognises a statement by the first six digits too
(connectors/card_numbers.py).
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from schwifty import registry
from schwifty.exceptions import InvalidCountryCode

SHOWN = 4  # characters at the end
ELLIPSIS = "…"

# First digits and lengths of card numbers (ISO/IEC 7812)
_CARDS = (
    (re.compile(r"4"), (19, 16, 13)),
    (re.compile(r"5[1-5]|2[2-7]"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"3[0689]"), (19, 16, 14)),
    (re.compile(r"35"), (19, 18, 17, 16)),
    (re.compile(r"6|5[0678]"), (19, 18, 17, 16, 15, 14, 13)),
)
_IBAN_START = re.compile(r"[A-Z]{2}[0-9]{2}")
# Letters of other alphabets that look like those of an IBAN
_LOOKALIKES = dict(
    zip(
        map(ord, "АВЕЅІЈКМНОРСТХаеѕіјорсухΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"),
        "ABESIJKMHOPCTXaesijopcyxABEZHIKMNOPTYXo",
        strict=True,
    )
)


def masked_field(value: str) -> str:
    """The value of an account number field, masked, whatever it looks like: of an IBAN the country, an ellipsis, and
    the last four letters or digits; of up to eight only the ellipsis."""
    compact = "".join(plain_letter(character) for character in value if character.isalnum()).upper()
    country = compact[:2] if _iban_length(compact[:2]) and _IBAN_START.match(compact) else ""
    return f"{country}{ELLIPSIS}{compact[-SHOWN:]}" if len(compact) > 2 * SHOWN else ELLIPSIS


def whole_field(value: str) -> str:
    """The letters and digits of an account number field, in ASCII where they can be, at most 34, the length that an
    IBAN may have."""
    return "".join(plain_letter(character) for character in value if character.isalnum())[:34]


def masked_numbers(text: str) -> str:
    """The text with every IBAN of a correct checksum and every card number masked down to the last four characters (and
    the IBAN's country), whatever groups, digits and letters it is written in, and whatever separates these."""
    places = [at for at, character in enumerate(text) if character.isalnum()]
    letters = "".join(plain_letter(text[at]).upper()[:1] for at in places)
    shown, done, at, free = "", 0, 0, 0
    while at < len(places):
        length = _iban_at(letters, at) or _card_at(letters, places, at, is_free=at == free)
        if length:
            number = letters[at : at + length]
            country = number[:2] if number[0].isalpha() else ""
            shown += f"{text[done : places[at]]}{country}{ELLIPSIS}{number[-SHOWN:]}"
            done = places[at + length - 1] + 1
            free = at + length
        at += length or 1
    return shown + text[done:]


def plain_letter(character: str) -> str:
    """The ASCII letter or digit that a character stands for, be it of another alphabet or with combining marks; where
    it stands for none, the character without its marks."""
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    parts = unicodedata.normalize("NFD", character)
    is_marked = all(map(unicodedata.combining, parts[1:]))
    return (parts[0] if is_marked else character).translate(_LOOKALIKES)


def _iban_at(letters: str, at: int) -> int:
    """The length of the IBAN of correct checksum that begins at this position; 0 if none does."""
    length = _iban_length(letters[at : at + 2])
    compact = letters[at : at + length]
    if not length or len(compact) < length or not _IBAN_START.match(compact) or not compact.isascii():
        return 0
    digits = "".join(str(int(character, 36)) for character in compact[4:] + compact[:4])
    return length if int(digits) % 97 == 1 else 0


def _card_at(letters: str, places: Sequence[int], at: int, *, is_free: bool) -> int:
    """The length of the card number of correct checksum that begins at this position; 0 if none does. It must not be a
    part of longer unseparated digits, unless it is written in groups or follows another number directly (`is_free`)."""
    if not letters[at].isdigit() or (_is_glued(letters, places, at) and not is_free):
        return 0
    for prefix, lengths in _CARDS:
        if prefix.match(letters, at):
            for length in lengths:
                digits = letters[at : at + length]
                is_whole = len(digits) == length and digits.isascii() and digits.isdigit()
                if not is_whole:
                    continue
                is_grouped = places[at + length - 1] - places[at] >= length
                is_apart = is_grouped or not _is_glued(letters, places, at + length)
                if is_apart and _luhn(digits):
                    return length
    return 0


def _is_glued(letters: str, places: Sequence[int], at: int) -> bool:
    """Whether the characters before and at this position are digits with nothing between them."""
    if not 0 < at < len(places):
        return False
    return letters[at - 1].isdigit() and letters[at].isdigit() and places[at] - places[at - 1] == 1


def _luhn(digits: str) -> bool:
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


@lru_cache(maxsize=4096)
def _iban_length(country: str) -> int:
    """How many characters the IBANs of a country have; 0 where they have none."""
    try:
        return registry.get_iban_spec(country).iban_length
    except InvalidCountryCode:
        return 0
