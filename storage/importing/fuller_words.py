"""One wording of a booking out of two: what is stored, and what is told of the same booking now."""

from collections.abc import Sequence

from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.matching.evidence import is_fuller

TEXTS = ("counterpart_name", "counterpart_bank_name", "purpose", "bank_text")
OF_THE_SOURCE = ("provider_id", "status", "detail", "words")
REFERENCES_MAX = 8


def fuller_words(stored: TransactionRecord, told: TransactionRecord, *, is_correction: bool) -> TransactionRecord:
    """The stored wording with what it lacks, and of each text the fuller one: a file that cuts a purpose does not
    shorten it. A correction (`is_correction`), by the source that had told the booking, holds in everything it states,
    but for texts that it merely cuts."""
    fields: dict[str, object] = {}
    for name in TransactionRecord.__struct_fields__:
        ours, theirs = getattr(stored, name), getattr(told, name)
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


def all_references(stored: Sequence[str], told: Sequence[str]) -> tuple[str, ...]:
    """The references that a booking is known by, and those under which it is told now, as far as there is room."""
    return tuple(dict.fromkeys((*stored, *told)))[:REFERENCES_MAX]
