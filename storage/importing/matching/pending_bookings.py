"""Which pending bookings of a batch are stored as pending already, which have booked since, and which are new.

The other way, a booked one whose row was pending until now, is the last step of `match_booked`.
"""

from collections.abc import Sequence

from storage.importing.matching.compared_rows import Item, StoredRow
from storage.importing.matching.counted_merge import Match, explained
from storage.importing.matching.stored_index import Known


def match_pending(
    items: Sequence[Item], pending: Sequence[StoredRow], booked: Sequence[StoredRow], *, source: str
) -> list[Match]:
    """One match per booking that is still pending; one whose booked row is stored already is left out."""
    known, done = Known(pending, source), Known(booked, source)
    found = explained(items, (known.by_own_id, known.by_key, known.by_content), any_stored=bool(pending))
    left = [None if row else item for row, item in zip(found, items, strict=True)]
    booked_since = explained(
        left, (done.by_own_id, done.by_key, done.by_content, done.by_likeness_after), any_stored=bool(booked)
    )
    return [
        Match(item, row) for item, row, has_booked in zip(items, found, booked_since, strict=True) if has_booked is None
    ]
