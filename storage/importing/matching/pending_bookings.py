"""Finds the pending booking that a booked one was, and those that are still pending: by words, by id, by likeness
within a week."""

import re
from collections import defaultdict, deque
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import chain, islice

from analytics.records import TransactionRecord
from storage.importing.matching.booking_keys import own_id, squeeze
from storage.importing.matching.evidence import evidence
from storage.importing.matching.likely_matches import CANDIDATES_MAX, Item, Pair
from storage.importing.matching.stored_bookings import NEIGHBOUR_DAYS, StoredRow

SHARED_WORDS_MIN = 0.5  # of the shorter text: card texts gain a place and lose a prefix when they book
WORD = re.compile(r"[^\W\d_]{3,}")
BEFORE, SAME_DAY, AFTER = -1, 0, 1


def pending_matches(items: Iterable[Item], rows: Iterable[StoredRow], *, direction: int) -> list[Pair]:
    """The pairs of bookings and rows that are the same, each used once. Tried in this order: our own id; day, amount
    and words (first those with the source's id); the source's id with the amount, or alone if the booking is still
    pending; and at last amount and likeness, on the nearest day before or after (`direction`)."""
    free = {row.id: row for row in rows}
    pairs: list[Pair] = []
    left = {item.place: item for item in items} if free else {}
    for key in (_own_key, _claimed_words, _words_key, _claimed_amount, _claim_alone):
        waiting: dict[Hashable, deque[StoredRow]] = defaultdict(deque)
        for row in free.values():
            waiting[key(row)].append(row)
        for item in list(left.values()):
            if (found := key(item)) is not None and waiting.get(found):
                pairs.append((left.pop(item.place), free.pop(waiting[found].popleft().id)))
    by_day: dict[Hashable, dict[Hashable, list[StoredRow]]] = defaultdict(lambda: defaultdict(list))
    for row in reversed(free.values()) if direction and left else ():
        for text in (*_parties(row.record), _words(row.record)):
            by_day[row.record.amount, row.record.currency, row.record.booking_date][text].append(row)
    for item in left.values():
        if (nearest := _nearest(item.record, by_day, free, direction)) is not None:
            pairs.append((item, free.pop(nearest.id)))
    return pairs


def _own_key(one: Item | StoredRow) -> Hashable:
    own = one.id if isinstance(one, StoredRow) else own_id(one.record)
    return own and (own, one.record.amount)


def _claimed_words(one: Item | StoredRow) -> Hashable:
    return one.claim and (one.claim, _words_key(one))


def _words_key(one: Item | StoredRow) -> Hashable:
    what = one.record
    texts = (what.counterpart_iban or what.counterpart_name, what.purpose)
    return (what.booking_date, what.amount, what.currency, *map(squeeze, texts))


def _claimed_amount(one: Item | StoredRow) -> Hashable:
    return one.claim and (one.claim, one.record.amount, one.record.currency)


def _claim_alone(one: Item | StoredRow) -> Hashable:
    return one.claim if isinstance(one, StoredRow) or one.record.status == "pending" else None


def _nearest(
    record: TransactionRecord,
    by_day: Mapping[Hashable, dict[Hashable, list[StoredRow]]],
    free: Container[str],
    direction: int,
) -> StoredRow | None:
    for number in range(NEIGHBOUR_DAYS + 1):
        day = record.booking_date + direction * timedelta(days=number)
        for row in _alike(record, by_day.get((record.amount, record.currency, day), {}), free):
            if not _is_other_counterpart(record, row.record):
                return row
    return None


def _alike(
    record: TransactionRecord, rows: dict[Hashable, list[StoredRow]], free: Container[str]
) -> Iterator[StoredRow]:
    """For each text that they share, the oldest free row: rows of the same counterpart first, then those that share
    half of the words of the shorter text."""
    ours = _words(record)
    worded = (key for key in list(rows) if isinstance(key, frozenset))
    for key in chain(_parties(record), [ours], islice(worded, CANDIDATES_MAX)):
        waiting = rows.get(key, [])
        while waiting and waiting[-1].id not in free:
            waiting.pop()
        if not waiting:
            rows.pop(key, None)
        elif not isinstance(key, frozenset) or len(ours & key) >= max(1, SHARED_WORDS_MIN * min(len(ours), len(key))):
            yield waiting[-1]


def _parties(what: TransactionRecord) -> list[Hashable]:
    """The counterpart by account number and by name, as far as they are stated."""
    given = (("iban", what.counterpart_iban), ("name", squeeze(what.counterpart_name)))
    return [(kind, text) for kind, text in given if text]


def _is_other_counterpart(told: TransactionRecord, stored: TransactionRecord) -> bool:
    """Whether both counterparts are named without a common word, and no evidence says that they are the same."""
    names = [_words_of(each.counterpart_name) for each in (told, stored)]
    return all(names) and names[0].isdisjoint(names[1]) and evidence(told, stored, is_other_source=True) is None


def _words(what: TransactionRecord) -> frozenset[str]:
    return _words_of(what.counterpart_name) | _words_of(what.purpose)


def _words_of(text: str | None) -> frozenset[str]:
    return frozenset(WORD.findall((text or "").casefold()))
