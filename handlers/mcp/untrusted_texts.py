"""The fence around texts that others wrote, such as purposes, names and messages of banks: a model reads them as data.

The protection is in the structure and holds for any text: it stands in `bank_text` and nowhere else, on one line,
between marks that it cannot contain, without invisible characters, without addresses that can be opened. Texts that
look like orders are also found by words and flagged, which can never be complete. The store keeps what is visible of a
bank's text as it was written (connectors/text.py); here a text may lose whatever helps a stranger.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache

from msgspec import Struct

from analytics.letters import plain
from handlers.mcp.masked_numbers import masked_numbers
from handlers.mcp.prompt_injections import asks_as_people_do, looks_like_instructions
from handlers.names import Json

LIST_LENGTH_MAX = 120
NEAREST_MAX = 5
DETAIL_LENGTH_MAX = 1000
RAW_LENGTH_MAX = 4000  # characters of a text that are examined; stored texts are shorter
READ_LENGTH_MAX = DETAIL_LENGTH_MAX  # visible characters that are examined: further ones are never shown
MARKS_IN_A_ROW_MAX = 2  # Vietnamese letters carry two
MARKS_SORTED_MAX = 8  # NFKC sorts the marks of a letter, at a cost quadratic in their number

HIDDEN, LINK, INSTRUCTIONS = "hidden_characters", "link", "looks_like_instructions"
CENTS, BANK_NAME = "cents_from_stranger", "bank_name_other_iban"
NEW_PAYEE, FIRST_CENTS = "new_payee", "first_debit_of_cents"
WITHHOLDING = frozenset({INSTRUCTIONS, CENTS, BANK_NAME})

_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs", "Cn"})
_BLANK = frozenset({"Zs", "Zl", "Zp"})
# Invisible letters, marks and symbols: Hangul and Khmer fillers, blanks of Braille and music, variation selectors
_FILLERS = frozenset(
    [*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U0001d159"]
    + [
        chr(code)
        for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
        for code in range(first, last + 1)
    ]
)
# Banks fold lines and hyphenate words with these, so they are no sign of hiding
_LAYOUT = frozenset("\t\n\r\v\f\x85\u2028\u2029\u00ad")
_REPLACED = str.maketrans("<>[]{}|\\~`«»", '()()()//-\'""')
_SCHEME = re.compile(
    r"[a-z][a-z0-9+.\-]{0,30}:(?=\s*/\s*/)|(?:https?|ftps?|javascript|vbscript):(?=\S)|"
    r"\b(?:sftp|file|ssh|wss?|data|mailto|tel|sms|blob|intent|market|bitcoin|facetime|whatsapp|tg):(?=\S)",
    re.IGNORECASE,
)
# Possessive, and anchored at the first w, so that matching takes linear time
_WWW = re.compile(r"(?<!w)w{3,}+\s*+\.", re.IGNORECASE)
_SLASHES = re.compile(r"/(?:\s*+/)+")
# Only an address with a path: many shops are named like a bare host
_ADDRESS = re.compile(
    r"(?:\b\d{1,3}(?:[.。]\d{1,3}){3}|(?<=\w)[.。](?:xn--[a-z0-9-]+|[^\W\d_]{2,24}))(?=(?::\d+)?[/?#]\w)",
    re.IGNORECASE,
)
_POINT = re.compile("[.。]")


class Fenced(Struct, frozen=True, kw_only=True):
    """A fenced text as a model may read it, its flags, and `plain`, the cleaned text on which the flags were
    decided."""

    text: str
    flags: frozenset[str]
    plain: str


@lru_cache(maxsize=2_000)
def fence(text: str, *, limit: int = LIST_LENGTH_MAX, shows_numbers: bool = False) -> Fenced:
    """A stranger's text between « and »: on one line of at most `limit` characters, without invisible characters and
    anything that opens as a link; and its flags. Account numbers are masked, unless `shows_numbers`, as the person
    allowed."""
    raw = text[:RAW_LENGTH_MAX]
    seen = _visible_text(raw)
    plain, has_link = _without_links(seen[:READ_LENGTH_MAX])
    found = {
        HIDDEN: any(_is_hidden(character) for character in raw),
        LINK: has_link,
        INSTRUCTIONS: looks_like_instructions(plain),
    }
    line = " ".join(plain.split())
    shown = line if shows_numbers else masked_numbers(line)
    is_whole = len(shown) <= limit and len(seen) <= READ_LENGTH_MAX
    cut = shown if is_whole else f"{shown[: limit - 1].rstrip()}…"
    return Fenced(
        text=f"«{cut}»",
        flags=frozenset(flag for flag, holds in found.items() if holds),
        plain=plain,
    )


def bank_text(
    texts: Mapping[str, str | None],
    *,
    limit: int = LIST_LENGTH_MAX,
    shows_numbers: bool = False,
    more_flags: frozenset[str] = frozenset(),
    is_known: bool = False,
    withholds: bool = True,
) -> tuple[dict[str, str], list[str]]:
    """The `bank_text` object of a row, with its texts fenced by name (`limit` and `shows_numbers` as in `fence`) and
    empty ones left out; and the row's flags, sorted, `more_flags` included. With `withholds`, as in lists, all texts of
    a row that looks like an attack are replaced by the reasons; but if its counterpart `is_known`, a plain request for
    money is no attack."""
    fenced = {name: fence(text, limit=limit, shows_numbers=shows_numbers) for name, text in texts.items() if text}
    flags = sorted(more_flags.union(*(each.flags for each in fenced.values())))
    ordered = [each for each in fenced.values() if INSTRUCTIONS in each.flags]
    harmless = {INSTRUCTIONS} if is_known and all(asks_as_people_do(each.plain) for each in ordered) else set()
    reasons = [flag for flag in flags if flag in WITHHOLDING - harmless]
    if reasons and withholds:
        return dict.fromkeys(fenced, f"«withheld: {', '.join(reasons)}»"), flags
    return {name: each.text for name, each in fenced.items()}, flags


class NamedTexts:
    """Strangers' texts of a table, each fenced once, in `texts` by keys (`m1`, `m2` and so on) that stand in the
    table's cells."""

    def __init__(self, letter: str) -> None:
        self._letter = letter
        self._keys: dict[str, str] = {}
        self._flags: set[str] = set()
        self.texts: dict[str, str] = {}

    @property
    def flags(self) -> list[str]:
        """The flags that any of the texts added so far has, sorted."""
        return sorted(self._flags)

    def add(self, text: str | None) -> str | None:
        """Fence a text and put it in `texts`, unless it is there, and return the key that stands for it in a table's
        cell; None for None."""
        if text is None:
            return None
        if text not in self._keys:
            key = self._keys[text] = f"{self._letter}{len(self._keys) + 1}"
            fenced, remarkable = bank_text({key: text})
            self.texts.update(fenced)
            self._flags.update(remarkable)
        return self._keys[text]


def _visible_text(text: str) -> str:
    """The visible part of the text in Unicode's compatible form (NFKC), with at most two combining marks in a row; cut
    one character beyond READ_LENGTH_MAX, which shows that it was longer."""
    kept = _few_marks(map(_visible_character, text), MARKS_SORTED_MAX)
    for _ in range(3):  # a removed character may have stood between two that now compose
        # Cut before and after: a single letter may stand for a sentence (U+FDFA)
        kept = unicodedata.normalize("NFKC", kept[: READ_LENGTH_MAX + 1])[: READ_LENGTH_MAX + 1]
        kept = "".join(map(_visible_character, kept))
    return _few_marks(kept, MARKS_IN_A_ROW_MAX)


def _visible_character(character: str) -> str:
    if character in _FILLERS:
        return ""
    category = unicodedata.category(character)
    if category in _BLANK or character in "\t\n\r\v\f\x85":
        return " "
    return "" if category in _UNSEEN else character


def _is_hidden(character: str) -> bool:
    return character in _FILLERS or (character not in _LAYOUT and unicodedata.category(character) in _UNSEEN)


def _few_marks(characters: Iterable[str], most: int) -> str:
    kept: list[str] = []
    marks = 0
    for character in characters:
        if character:
            marks = marks + 1 if unicodedata.category(character).startswith("M") else 0
            if marks <= most:
                kept.append(character)
    return "".join(kept)


def _without_links(text: str) -> tuple[str, bool]:
    """The text without anything that a program would open or a page would make a link, and whether a scheme or www was
    among it. A removed part leaves a blank, so that its neighbours do not join. APPLE.COM/BILL loses its point like any
    address but is not flagged, because shops have such names."""
    plain, has_link = text.translate(_REPLACED), False
    while True:
        bare = _WWW.sub(" ", _SCHEME.sub(" ", plain))
        has_link = has_link or bare != plain
        shorter = _SLASHES.sub("/", _ADDRESS.sub(lambda found: _POINT.sub(" ", found[0]), bare))
        if shorter == plain:
            return plain, has_link
        plain = shorter


def names_alike(name: str, known: Sequence[str]) -> Json:
    """The few of the known names that are most like this one, fenced."""
    by_letters = {plain(each): each for each in known}
    wanted = plain(name)
    within = [each for each in by_letters if wanted in each or each in wanted]
    found = [*within, *get_close_matches(wanted, by_letters, n=NEAREST_MAX, cutoff=0.5)]
    names = NamedTexts("m")
    for each in list(dict.fromkeys(found))[:NEAREST_MAX]:
        names.add(by_letters[each])
    return {"flags": names.flags, "bank_text": names.texts}
