"""Compares two reports of a booking: which fields agree, which contradict, and which say nothing.

Formats leave fields out, cut them, join them, or write them in capitals and without umlauts; a spreadsheet makes of a
long number an approximate one. So what is missing says nothing, and a text agrees with a longer one that begins with it
or contains it as words.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from analytics.records import TransactionRecord

FOLDED_MAX = 500  # characters of a folded text that are compared: banks write 140, a stranger's file writes anything
BEGINNING_MIN = 4  # characters of a text that another one begins with
PART_MIN = 6  # characters of a text that stands in another one
WORD_MIN = 3  # ... as a word or several, with a letter among them: that is no accident
PART_OF_NUMBER_MIN = 16  # ... where it ends within a number: 27 characters of a cut text are about 20 folded ones
UMLAUT = re.compile("([aou])e")
PUNCTUATION = re.compile(r"[\W_]+")
APPROXIMATE = re.compile(r"(?<![\w.,])\d(?:[.,]\d*)?[eE]\+\d{2,3}(?!\w)")  # 2,02600E+13, once a number of 14 digits
EXACT_DIGITS = 15  # of a number in a spreadsheet; further ones are written as zeros

AGREES, SILENT, CONTRADICTS = 1, 0, -1
IDENTIFIER_WEIGHT, TEXT_WEIGHT = 8, 3


@lru_cache(maxsize=20_000)
def fold_words(text: str) -> str:
    """The words of a text, with single spaces between them, without case, accents, approximate numbers, and the e of a
    written-out umlaut: Ö, OE and O are the same. A long text is cut."""
    text = text[: 4 * FOLDED_MAX]
    if not text.isascii():
        text = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
        text = text[: 4 * FOLDED_MAX].casefold()
    return UMLAUT.sub(r"\1", PUNCTUATION.sub(" ", APPROXIMATE.sub("", text).lower())).strip()


@lru_cache(maxsize=20_000)
def fold_letters(text: str) -> str:
    """The first FOLDED_MAX letters and digits of a text, folded (`fold_words`)."""
    return UMLAUT.sub(r"\1", fold_words(text).replace(" ", ""))[:FOLDED_MAX]


def text_agreement(one: str | None, other: str | None) -> int:
    """AGREES if one text, folded, is the other, its beginning, words of it, or a part of it that is long enough (where
    it splits a number, longer still), else CONTRADICTS; SILENT where either is missing."""
    first, second = fold_letters(one or ""), fold_letters(other or "")
    if not first or not second:
        return SILENT
    if first == second or _is_same_number(first, second):
        return AGREES
    shorter, longer = sorted((first, second), key=len)
    place = longer.find(shorter)
    if place < 0:
        return CONTRADICTS
    if len(shorter) >= WORD_MIN and not shorter.isdecimal() and _are_words(one, other):
        return AGREES
    if len(shorter) < (PART_MIN if place else BEGINNING_MIN):
        return CONTRADICTS
    end = place + len(shorter)
    splits_number = (shorter[-1].isdigit() and longer[end : end + 1].isdigit()) or (
        shorter[0].isdigit() and longer[max(place - 1, 0) : place].isdigit()
    )
    return CONTRADICTS if splits_number and len(shorter) < PART_OF_NUMBER_MIN else AGREES


def evidence(reported: TransactionRecord, stored: TransactionRecord, *, is_other_source: bool) -> int | None:
    """A score for two bookings with the same day and amount being one booking, the higher the likelier; None if they
    cannot be. Equal texts score more than those of which one begins like the other.

    They cannot be if an identifier contradicts, or the purpose, or the name while purpose and identifiers do not agree.
    Different sources (`is_other_source`) may word a booking differently, so an equal name or an equal purpose is
    enough. A source without names may have them in the purpose. That a few letters of one purpose stand in the other is
    no contradiction where name or identifiers agree.
    """
    identifiers = (
        _equal(reported.counterpart_iban, stored.counterpart_iban),
        _equal(reported.creditor_id, stored.creditor_id),
        text_agreement(reported.mandate_reference, stored.mandate_reference),
    )
    if CONTRADICTS in identifiers:
        return None
    name = text_agreement(reported.counterpart_name, stored.counterpart_name)
    purpose = text_agreement(reported.purpose, stored.purpose)
    if purpose == CONTRADICTS and name == SILENT:
        purpose = _joined_agreement(reported, stored)
    if purpose == CONTRADICTS and AGREES in (name, *identifiers) and _is_part(reported.purpose, stored.purpose):
        purpose = SILENT
    if purpose == CONTRADICTS and not (is_other_source and name == AGREES):
        return None
    if name == CONTRADICTS and not (purpose == AGREES and (is_other_source or AGREES in identifiers)):
        return None
    score = IDENTIFIER_WEIGHT * sum(identifiers) + TEXT_WEIGHT * (name + purpose)
    score += _equal(reported.counterpart_name, stored.counterpart_name) + _equal(reported.purpose, stored.purpose)
    if reported.value_date is not None and stored.value_date is not None:
        score += 1 if reported.value_date == stored.value_date else -1
    return score


def references_contradict(reported: Sequence[str], stored: Sequence[str]) -> bool:
    """Whether both have references of the same kind, but none in common."""
    if not reported or not stored or not set(reported).isdisjoint(stored):
        return False
    both = [(one, other) for one in map(_kind_and_key, reported) for other in map(_kind_and_key, stored)]
    same_kind = [(one[1], other[1]) for one, other in both if one[0] == other[0]]
    return bool(same_kind) and not any(_is_same_number(*keys) for keys in same_kind)


def is_fuller(text: str | None, than: str | None) -> bool:
    """Whether the text contains the other one, and more. True for any text where the other is missing, False where the
    text itself is."""
    if not text or not than:
        return bool(text)
    return len(fold_letters(text)) > len(fold_letters(than)) and text_agreement(text, than) == AGREES


def _equal(one: str | None, other: str | None) -> int:
    first, second = fold_letters(one or ""), fold_letters(other or "")
    if not first or not second:
        return SILENT
    return AGREES if first == second or _is_same_number(first, second) else CONTRADICTS


def _is_same_number(one: str, other: str) -> bool:
    """Whether both are digits and the same number, as a spreadsheet keeps it: without leading zeros, and with zeros for
    all digits but the first EXACT_DIGITS."""
    if not (one.isdecimal() and other.isdecimal()):
        return False
    first, second = one.lstrip("0"), other.lstrip("0")
    is_rounded = len(first) == len(second) and "" in (first[EXACT_DIGITS:].strip("0"), second[EXACT_DIGITS:].strip("0"))
    return first == second or (is_rounded and first[:EXACT_DIGITS] == second[:EXACT_DIGITS])


def _joined_agreement(one: TransactionRecord, other: TransactionRecord) -> int:
    """The agreement of name and purpose in one text: AGREES also if all words of the booking that has a name are in the
    other one, in whatever order."""
    first, second = (f"{each.counterpart_name or ''} {each.purpose or ''}" for each in (one, other))
    named, unnamed = (first, second) if one.counterpart_name else (second, first)
    if one.counterpart_name != other.counterpart_name and set(fold_words(named).split()) <= set(
        fold_words(unnamed).split()
    ):
        return AGREES
    return text_agreement(first, second)


def _is_part(one: str | None, other: str | None) -> bool:
    """Whether one of the texts, folded, stands in the other one as words, or with BEGINNING_MIN letters."""
    shorter, longer = sorted((fold_letters(one or ""), fold_letters(other or "")), key=len)
    is_long_enough = len(shorter) >= BEGINNING_MIN and shorter.isalpha()
    return _are_words(one, other) or (is_long_enough and shorter in longer)


def _are_words(one: str | None, other: str | None) -> bool:
    """Whether one of the texts is a word of the other one, or several in a row."""
    words, among = sorted((f" {fold_words(each or '')} " for each in (one, other)), key=len)
    return words in among


def _kind_and_key(reference: str) -> tuple[str, str]:
    kind, _, key = reference.partition(":")
    return kind, key
