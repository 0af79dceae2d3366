"""The counted merge: which incoming bookings are known, which are new, which pending ones are booked now.

Pure, one account and one batch at a time. For every key, f = how often it stands in the batch and d = how often it is
stored; max(0, f - d) rows are new. So importing a file twice, in pieces, or with overlaps changes nothing, and two
identical purchases on one day stay two.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from storage.importing.matching.compared_rows import Item, StoredRow
from storage.importing.matching.stored_index import PART, Known


class Match(NamedTuple):
    """One incoming booking with the row it is (None: new); `takes_over` marks a booked one whose stored row was pending
    until now."""

    item: Item
    stored: StoredRow | None
    takes_over: bool = False


def match_booked(
    items: Sequence[Item],
    stored: Sequence[StoredRow],
    pending: Sequence[StoredRow],
    *,
    source: str,
    reworded: Collection[str] = (),
) -> list[Match]:
    """One match per booking, in order; rows of `pending` are offered to those that `stored` does not explain. Rows
    whose ids are `reworded` may be told in other words, by another source of the account or by the same one again:
    their day and amount are enough, once everything else has been tried."""
    known, waiting = Known(stored, source), Known(pending, source)
    found = explained(items, (known.by_own_id, known.by_key), any_stored=bool(stored))
    if stored:
        _explain_parts(items, found, known)
    found = explained(
        items, (known.by_reference, known.by_content, known.by_counterpart), found, any_stored=bool(stored)
    )
    if reworded:
        found = explained(items, (known.among(reworded),), found, any_stored=bool(stored))
    left = [None if row else item for row, item in zip(found, items, strict=True)]
    booked_now = explained(
        left,
        (waiting.by_own_id, waiting.by_key, waiting.by_content, waiting.by_likeness_before),
        any_stored=bool(pending),
    )
    return [
        Match(item, row or was_pending, takes_over=row is None and was_pending is not None)
        for item, row, was_pending in zip(items, found, booked_now, strict=True)
    ]


def explained(
    items: Sequence[Item | None],
    ways: Sequence[Callable[[Item], StoredRow | None]],
    found: Sequence[StoredRow | None] = (),
    *,
    any_stored: bool,
) -> list[StoredRow | None]:
    """For each item the stored row it is: every item is tried by the surest way before any by the next. Where nothing
    is stored, nothing is tried: the first import of a long history would ask six questions of each booking."""
    rows = list(found) or [None] * len(items)
    for way in ways if any_stored else ():
        for index, item in enumerate(items):
            if item is not None and rows[index] is None:
                rows[index] = way(item)
    return rows


def _explain_parts(items: Sequence[Item], found: list[StoredRow | None], known: Known) -> None:
    """A batch that one source books as a whole ("servicer:7") and another by its details ("servicer:7/0", "/1") is
    the same money: parts that add up to a stored whole are known, and so is a whole that stored parts add up to."""
    parts: dict[tuple[str, date, str], list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if found[index] is not None:
            continue
        for reference in item.record.references:
            if part := PART.fullmatch(reference):
                parts[part[1], item.record.booking_date, item.record.currency].append(index)
                break
        else:
            found[index] = known.by_parts(item)
    for (whole, day, currency), indexes in parts.items():
        amounts = [items[index].record.amount for index in indexes]
        if min(amounts) < 0 < max(amounts):
            continue  # money in and money out that happen to give the whole are not its details
        row = known.take_whole(whole, day, sum(amounts, Decimal(0)), currency)
        for index in indexes if row else ():
            found[index] = row
