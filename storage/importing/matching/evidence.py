"""Compares two reports of a booking: which fields agree, which contradict, and which say nothing.

Formats leave fields out, cut them, or write them in capitals and without umlauts. So a missing field says nothing, and
a text agrees with a longer one that begins with it.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from analytics.records import TransactionRecord

FOLDED_MAX = 500  # characters of a folded text that are compared: banks write 140, a stranger's file writes anything
BEGINNING_MIN = 4  # characters of a text that another one begins with
PART_MIN = 6  # characters of a text that stands in another one
PART_OF_NUMBER_MIN = 16  # ... where it ends within a number: 27 characters of a cut text are about 20 folded ones
UMLAUT = re.compile("([aou])e")
PUNCTUATION = re.compile(r"[\W_]+")

AGREES, SILENT, CONTRADICTS = 1, 0, -1
IDENTIFIER_WEIGHT, TEXT_WEIGHT = 8, 3


@lru_cache(maxsize=20_000)
def fold_letters(text: str) -> str:
    """The first FOLDED_MAX letters and digits of a text, without case, accents and the e of a written-out umlaut: Ö, OE
    and O are the same."""
    text = text[: 4 * FOLDED_MAX]
    if not text.isascii():
        text = "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))
        text = text[: 4 * FOLDED_MAX].casefold()
    return UMLAUT.sub(r"\1", PUNCTUATION.sub("", text.lower()))[:FOLDED_MAX]


def text_agreement(one: str | None, other: str | None) -> int:
    """AGREES if one text, folded, is the other, its beginning or a part of it that is long enough (where it splits a
    number, longer still), else CONTRADICTS; SILENT where either is missing."""
    first, second = fold_letters(one or ""), fold_letters(other or "")
    if not first or not second:
        return SILENT
    if first == second:
        return AGREES
    shorter, longer = sorted((first, second), key=len)
    place = longer.find(shorter)
    if place < 0 or len(shorter) < (PART_MIN if place else BEGINNING_MIN):
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
    enough.
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
    return not {each.partition(":")[0] for each in reported}.isdisjoint(each.partition(":")[0] for each in stored)


def is_fuller(text: str | None, than: str | None) -> bool:
    """Whether the text contains the other one, and more. True for any text where the other is missing, False where the
    text itself is."""
    if not text or not than:
        return bool(text)
    return len(fold_letters(text)) > len(fold_letters(than)) and text_agreement(text, than) == AGREES


def _equal(one: str | None, other: str | None) -> int:
    if not one or not other:
        return SILENT
    return AGREES if fold_letters(one) == fold_letters(other) else CONTRADICTS
