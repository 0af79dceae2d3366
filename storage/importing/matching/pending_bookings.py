"""Which pending booking a booked one was, and which are pending still: by id, by content, by likeness within a week."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice

from analytics.records import TransactionRecord
from storage.importing.matching.booking_keys import own_id, squeeze
from storage.importing.matching.evidence import evidence
from storage.importing.matching.likely_matches import CANDIDATES_MAX, Item, Pair
from storage.importing.matching.stored_bookings import NEIGHBOUR_DAYS, StoredRow

SHARED_WORDS_MIN = 0.5  # of the shorter text: card texts gain a place and lose a prefix when they book
WORD = re.compile(r"[^\W\d_]{3,}")
BEFORE, SAME_DAY, AFTER = -1, 0, 1


def pending_matches(items: Iterable[Item], rows: Iterable[StoredRow], *, direction: int) -> list[Pair]:
    """The bookings that are these rows, each once: by the source's id, else by day, amount and words, else by amount
    and likeness on the nearest of the days before or after (`direction`)."""
    free = {row.id: row for row in rows}
    index = _WaitingRows(free)
    pairs: list[Pair] = []
    left = {item.place: item for item in items} if free else {}
    ways: Sequence[Callable[[Item], StoredRow | None]] = (
        index.by_claim,
        index.by_content,
        lambda item: index.nearest(item.record, direction),
    )
    for way in ways if direction else ways[:2]:
        for item in list(left.values()):
            if (row := way(item)) is not None:
                pairs.append((left.pop(item.place), free.pop(row.id)))
    return pairs


class _WaitingRows:
    """Rows by what finds them; lists begin with the oldest, and rows that are taken drop out of them."""

    def __init__(self, free: dict[str, StoredRow]) -> None:
        self._free = free
        self._by_key: dict[Hashable, list[str]] = defaultdict(list)
        self._by_day: dict[Hashable, dict[Hashable, list[str]]] = defaultdict(lambda: defaultdict(list))
        for row in reversed(list(free.values())):
            self._by_key[row.claim].append(row.id)
            self._by_key[_content(row.record)].append(row.id)
            alike = self._by_day[row.record.amount, row.record.currency, row.record.booking_date]
            for key in (*_parties(row.record), _words(row.record)):
                alike[key].append(row.id)

    def by_claim(self, item: Item) -> StoredRow | None:
        """By the id of the source, or by our own in an export that comes back."""
        own = self._free.get(own_id(item.record) or "")
        if own is not None and own.record.amount == item.record.amount:
            return own
        return self._head(self._by_key.get(item.claim)) if item.claim is not None else None

    def by_content(self, item: Item) -> StoredRow | None:
        return self._head(self._by_key.get(_content(item.record)))

    def nearest(self, record: TransactionRecord, direction: int) -> StoredRow | None:
        for number in range(NEIGHBOUR_DAYS + 1):
            day = record.booking_date + direction * timedelta(days=number)
            alike = self._by_day.get((record.amount, record.currency, day))
            for ids in self._alike(record, alike) if alike else ():
                if (row := self._head(ids)) is not None and not _is_other_counterpart(record, row.record):
                    return row
        return None

    def _alike(self, record: TransactionRecord, rows: dict[Hashable, list[str]]) -> Iterator[list[str]]:
        """The rows of the same counterpart, and those that share half of the words of the shorter text."""
        yield from (rows[key] for key in _parties(record) if key in rows)
        ours = _words(record)
        yield rows.get(ours, []) if ours else []
        worded = ((key, ids) for key, ids in list(rows.items()) if isinstance(key, frozenset))
        for theirs, ids in islice(worded, CANDIDATES_MAX):
            if self._head(ids) is None:
                del rows[theirs]
            elif ours and theirs and len(ours & theirs) >= SHARED_WORDS_MIN * min(len(ours), len(theirs)):
                yield ids

    def _head(self, ids: list[str] | None) -> StoredRow | None:
        while ids:
            row = self._free.get(ids[-1])
            if row is not None:
                return row
            ids.pop()
        return None


def _content(what: TransactionRecord) -> Hashable:
    texts = (what.counterpart_iban or what.counterpart_name, what.purpose)
    return what.booking_date, what.amount, what.currency, *map(squeeze, texts)


def _parties(what: TransactionRecord) -> list[Hashable]:
    """The counterpart by account number and by name, as far as they are stated."""
    given = (("iban", what.counterpart_iban), ("name", squeeze(what.counterpart_name)))
    return [(kind, text) for kind, text in given if text]


def _is_other_counterpart(told: TransactionRecord, stored: TransactionRecord) -> bool:
    """Whether both are named, without a common word, and nothing else says that they are one."""
    names = [_words_of(each.counterpart_name) for each in (told, stored)]
    return all(names) and names[0].isdisjoint(names[1]) and evidence(told, stored, is_other_source=True) is None


def _words(what: TransactionRecord) -> frozenset[str]:
    return _words_of(what.counterpart_name) | _words_of(what.purpose)


def _words_of(text: str | None) -> frozenset[str]:
    return frozenset(WORD.findall((text or "").casefold()))
