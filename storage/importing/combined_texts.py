"""Combines two wordings of a booking: the stored one, and the one that is reported now."""

from collections.abc import Sequence

from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.matching.evidence import is_fuller

TEXTS = ("counterpart_name", "counterpart_bank_name", "purpose", "bank_text")
OF_THE_SOURCE = ("provider_id", "status", "detail", "words")
REFERENCES_MAX = 8


def fuller_words(stored: TransactionRecord, reported: TransactionRecord, *, is_correction: bool) -> TransactionRecord:
    """The stored wording, with missing fields filled in and each text in its fuller version: a file that cuts a purpose
    does not shorten it. If the source corrects its own report (`is_correction`), everything that it states replaces
    what was stored, except texts that are merely cut. References are collected (`all_references`); the provider's id,
    status, detail and annotations stay as stored."""
    fields: dict[str, object] = {}
    for name in TransactionRecord.__struct_fields__:
        ours, theirs = getattr(stored, name), getattr(reported, name)
        if name in OF_THE_SOURCE or theirs is None or theirs is False or theirs == () or ours == theirs:
            continue
        if name == "references":
            fields[name] = all_references(ours, theirs)
        elif ours is None or ours is False:
            fields[name] = theirs
        elif is_correction:
            if name not in TEXTS or not is_fuller(ours, than=theirs):
                fields[name] = theirs
        elif name in TEXTS and is_fuller(theirs, than=ours):
            fields[name] = theirs
    return replace(stored, **fields)


def all_references(stored: Sequence[str], reported: Sequence[str]) -> tuple[str, ...]:
    """The stored references of a booking followed by the new ones, each once, the first REFERENCES_MAX of them."""
    return tuple(dict.fromkeys((*stored, *reported)))[:REFERENCES_MAX]
