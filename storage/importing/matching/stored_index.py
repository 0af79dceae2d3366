"""Stored rows, found by what a source says of a booking; each of them explains one incoming booking.

Every way is an index whose lists end with the row that comes first, so that taking it costs the same however many rows
are alike: a hundred thousand equal bookings are as quick as a hundred thousand different ones.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import islice

from storage.importing.matching.booking_keys import own_id
from storage.importing.matching.compared_rows import Item, StoredRow
from storage.importing.matching.similar_texts import Alike, parties
from storage.importing.records import TransactionRecord

FILES = "files"  # the source of all files: their ids are chosen by whoever wrote them
PART = re.compile(r"(.+)/\d+")  # a detail of a batch: the batch's reference and its number
PENDING_DAYS_MAX = 7  # a pending row books within a week or lapses
KIND_SETS_MAX = 100  # of the references under one content; the readers give three kinds, a file of ours may name any


@dataclass(slots=True)
class _Parts:
    """The free details of a batch that was booked in parts."""

    ids: list[str] = field(default_factory=list)
    total: Decimal = Decimal(0)
    debits: int = 0
    credits: int = 0

    def add(self, amount: Decimal, number: int) -> None:
        """Count a detail in (1) or out (-1)."""
        self.total += number * amount
        self.debits += number * (amount < 0)
        self.credits += number * (amount > 0)

    def are(self, amount: Decimal) -> bool:
        """Whether they are this whole: money in and money out that happen to give it are not."""
        return self.total == amount and bool(self.debits) != bool(self.credits)


class Known:
    """Stored rows of one account, as one source sees them."""

    def __init__(self, rows: Iterable[StoredRow], source: str) -> None:
        """`source` is the connection that reports the incoming bookings, or FILES."""
        self._source = source
        ordered = sorted(rows, key=lambda row: (len(row.identity), row.identity), reverse=True)
        self._free = {row.id: row for row in ordered}
        self._place = {row.id: -place for place, row in enumerate(ordered)}
        self._by_base: dict[Hashable, list[str]] = defaultdict(list)
        self._by_claim: dict[Hashable, list[str]] = defaultdict(list)
        self._by_whole: dict[tuple[str, date, str], _Parts] = defaultdict(_Parts)
        for row in ordered:
            base = row.identity.rpartition("#")[0]
            self._by_base[base, row.currency].append(row.id)
            for claim in row.claims:
                self._by_claim[claimed(claim, row, source)].append(row.id)
            for whole in _wholes(row):
                self._by_whole[whole].ids.append(row.id)
                self._by_whole[whole].add(row.amount, 1)

    def by_own_id(self, item: Item) -> StoredRow | None:
        """Our own id inside the source's: an export of ours comes back. A file may name any id: it counts only where
        it names the same money."""
        row = self._free.get(own_id(item.record) or "")
        return self._take(row) if row is not None and _agree(item.record, row) else None

    def by_key(self, item: Item) -> StoredRow | None:
        """The row of the provider's id; else the next row of the same key: the counted merge."""
        if item.claim is not None:
            return self._take(self._first(self._by_claim, claimed(item.claim, item.record, self._source)))
        return self._take(self._first(self._by_base, (item.base, item.record.currency)))

    def by_parts(self, item: Item) -> StoredRow | None:
        """The first of the stored details that together are this whole."""
        record = item.record
        for reference in record.references:
            parts = self._by_whole.get((reference, record.booking_date, record.currency))
            if parts is not None and parts.are(record.amount):
                rows = [row for id_ in reversed(parts.ids) if (row := self._free.get(id_)) is not None]
                for row in rows:
                    self._take(row)
                return rows[0]
        return None

    def take_whole(self, reference: str, day: date, amount: Decimal, currency: str) -> StoredRow | None:
        """The stored booking of a whole batch."""
        return self._take(self._first(self._by_reference, (reference, day, amount, currency)))

    def by_reference(self, item: Item) -> StoredRow | None:
        """For an id that is new: a row that no id of its source has claimed, with one of its weaker references."""
        record = item.record
        if item.claim is None:
            return None
        for reference in record.references:
            key = (reference, record.booking_date, record.amount, record.currency)
            row = self._first(self._unclaimed_by_reference, key)
            if row is not None:
                return self._take(row)
        return None

    def by_content(self, item: Item) -> StoredRow | None:
        """A row that says the same and whose references do not speak against it; for an id that is new, one that no
        id of its source has claimed."""
        references = item.record.references
        kinds = _kinds(references)
        found = []
        for is_claimed in (False, True) if item.claim is None else (False,):
            key = (is_claimed, item.fingerprint)
            for others in islice(self._kinds_of.get(key, ()), KIND_SETS_MAX):
                if not kinds & others:
                    found.append(self._first(self._by_content, (key, others)))
            found += [self._first(self._by_content, (key, reference)) for reference in references]
        return self._take(self._foremost(found))

    def by_counterpart(self, item: Item) -> StoredRow | None:
        """A row unclaimed by its source that has the same day, amount and counterpart: for an id that is new, and for
        a booking without an id among what others have told, who word it in their own way."""
        keys: Iterable[Hashable] = _counterparts(item.record)
        if item.claim is not None:
            return self._take(self._foremost([self._first(self._by_counterpart, key) for key in keys]))
        kinds = _kinds(item.record.references)
        found = [
            self._first(self._by_counterpart_elsewhere, (key, others))
            for key in keys
            for others in islice(self._kinds_elsewhere.get(key, ()), KIND_SETS_MAX)
            if not kinds & others
        ]
        return self._take(self._foremost(found))

    def among(self, ids: Collection[str]) -> Callable[[Item], StoredRow | None]:
        """A way to find one of these rows by day, amount and currency alone."""
        index = _index(
            (row, [(row.booking_date, row.amount, row.currency)]) for row in self._ordered() if row.id in ids
        )

        def way(item: Item) -> StoredRow | None:
            record = item.record
            return self._take(self._first(index, (record.booking_date, record.amount, record.currency)))

        return way

    def by_likeness_before(self, item: Item) -> StoredRow | None:
        """The pending row that this booked record is, under another text perhaps; the nearest one."""
        return self._nearest(item.record, -1)

    def by_likeness_after(self, item: Item) -> StoredRow | None:
        """The booked row that this pending record has become."""
        return self._nearest(item.record, 1)

    @cached_property
    def _by_reference(self) -> dict[Hashable, list[str]]:
        return _index((row, _dated_references(row)) for row in self._ordered())

    @cached_property
    def _unclaimed_by_reference(self) -> dict[Hashable, list[str]]:
        return _index((row, _dated_references(row)) for row in self._ordered() if not self._is_claimed(row))

    @cached_property
    def _by_content(self) -> dict[Hashable, list[str]]:
        return _index(
            (row, [(self._content(row), key) for key in (_kinds(row.references), *row.references)])
            for row in self._ordered()
        )

    @cached_property
    def _kinds_of(self) -> dict[Hashable, dict[frozenset[str], None]]:
        found: dict[Hashable, dict[frozenset[str], None]] = defaultdict(dict)
        for row in self._free.values():
            found[self._content(row)][_kinds(row.references)] = None
        return found

    @cached_property
    def _by_counterpart(self) -> dict[Hashable, list[str]]:
        return _index((row, _counterparts(row)) for row in self._ordered() if not self._is_claimed(row))

    @cached_property
    def _by_counterpart_elsewhere(self) -> dict[Hashable, list[str]]:
        return _index((row, [(key, _kinds(row.references)) for key in _counterparts(row)]) for row in self._elsewhere())

    @cached_property
    def _kinds_elsewhere(self) -> dict[Hashable, dict[frozenset[str], None]]:
        found: dict[Hashable, dict[frozenset[str], None]] = defaultdict(dict)
        for row in self._elsewhere():
            for key in _counterparts(row):
                found[key][_kinds(row.references)] = None
        return found

    @cached_property
    def _by_day(self) -> "dict[Hashable, Alike]":
        """By amount, currency and day, what rows are like."""
        days: dict[Hashable, Alike] = defaultdict(Alike)
        for row in self._ordered():
            days[row.amount, row.currency, row.booking_date].add(row)
        return days

    def _nearest(self, record: TransactionRecord, direction: int) -> StoredRow | None:
        for number in range(PENDING_DAYS_MAX + 1) if self._free else ():
            day = record.booking_date + direction * timedelta(days=number)
            alike = self._by_day.get((record.amount, record.currency, day))
            rows = [self._head(ids) for ids in alike.lists(record, self._head)] if alike is not None else ()
            if (found := self._foremost(rows)) is not None:
                return self._take(found)
        return None

    def _ordered(self) -> Iterator[StoredRow]:
        """The rows that are free still, last ones first."""
        return iter(self._free.values())

    def _elsewhere(self) -> Iterator[StoredRow]:
        """Those of them that another source has told, and this one knows by no id."""
        return (row for row in self._ordered() if row.source != self._source and not self._is_claimed(row))

    def _content(self, row: StoredRow) -> tuple[bool, str]:
        return self._is_claimed(row), row.fingerprint

    def _is_claimed(self, row: StoredRow) -> bool:
        return any(claim.startswith(f"{self._source}:") for claim in row.claims)

    def _first(self, index: Mapping[Hashable, list[str]], key: Hashable) -> StoredRow | None:
        return self._head(index.get(key))

    def _head(self, ids: list[str] | None) -> StoredRow | None:
        while ids:
            row = self._free.get(ids[-1])
            if row is not None:
                return row
            ids.pop()
        return None

    def _foremost(self, rows: Sequence[StoredRow | None]) -> StoredRow | None:
        found = [row for row in rows if row is not None]
        return min(found, key=lambda row: self._place[row.id], default=None)

    def _take(self, row: StoredRow | None) -> StoredRow | None:
        if row is None:
            return None
        del self._free[row.id]
        for whole in _wholes(row):
            self._by_whole[whole].add(row.amount, -1)
        return row


def claimed(claim: str, what: StoredRow | TransactionRecord, source: str) -> Hashable:
    """What an id stands for: one that a file has chosen counts only together with day, amount and currency."""
    return claim if source != FILES else (claim, what.booking_date, what.amount, what.currency)


def _agree(record: TransactionRecord, row: StoredRow) -> bool:
    return (record.booking_date, record.amount, record.currency) == (row.booking_date, row.amount, row.currency)


def _index(rows: Iterable[tuple[StoredRow, Iterable[Hashable]]]) -> dict[Hashable, list[str]]:
    found: dict[Hashable, list[str]] = defaultdict(list)
    for row, keys in rows:
        for key in keys:
            found[key].append(row.id)
    return found


def _kinds(references: Sequence[str]) -> frozenset[str]:
    return frozenset(reference.partition(":")[0] for reference in references)


def _wholes(row: StoredRow) -> set[tuple[str, date, str]]:
    """The batches that the row is a detail of."""
    parts = [PART.fullmatch(reference) for reference in row.references]
    return {(part[1], row.booking_date, row.currency) for part in parts if part}


def _dated_references(row: StoredRow) -> list[Hashable]:
    return [(reference, row.booking_date, row.amount, row.currency) for reference in row.references]


def _counterparts(what: StoredRow | TransactionRecord) -> list[Hashable]:
    return [(what.booking_date, what.amount, what.currency, party) for party in parties(what)]
