"""The counted merge: which incoming bookings are known, which are new, which pending ones are booked now.

Pure, one account and one batch at a time. For every key, f = how often it stands in the batch and d = how often it is
stored; max(0, f - d) rows are new. So importing a file twice, in pieces, or with overlaps changes nothing, and two
identical purchases on one day stay two.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from storage.importing.identity import base_keys, fingerprint, own_id, squeezed
from storage.importing.records import TransactionRecord

PART = re.compile(r"(.+)/\d+")  # a detail of a batch: the batch's reference and its number
PENDING_DAYS_MAX = 7  # a pending row books within a week or lapses
SHARED_WORDS_MIN = 0.5  # of the shorter text: card texts gain a place and lose a prefix when they book


@dataclass(frozen=True, slots=True)
class StoredRow:
    """What is known of a stored booking for matching."""

    id: str
    identity: str
    fingerprint: str
    references: tuple[str, ...]
    booking_date: date
    amount: Decimal
    currency: str
    counterpart_iban: str | None
    counterpart_name: str | None
    purpose: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Match:
    """One incoming record with the row it is (None: new), and the identity under which it is stored.

    `takes_over` marks a booked record whose stored row was pending until now.
    """

    record: TransactionRecord
    stored: StoredRow | None
    identity: str
    fingerprint: str
    takes_over: bool = False


def match_booked(
    records: Sequence[TransactionRecord], stored: Sequence[StoredRow], pending: Sequence[StoredRow]
) -> list[Match]:
    """One match per record, in order; rows of `pending` are offered to records that `stored` does not explain."""
    keyed = _keyed(records)
    known, waiting = _Known(stored), _Known(pending)
    found = _explain(keyed, (known.by_own_id, known.by_key))
    if stored:
        _explain_parts(keyed, found, known)
    found = _explain(keyed, (known.by_content,), found)
    left = [None if row else item for row, item in zip(found, keyed, strict=True)]
    booked_now = _explain(left, (waiting.by_own_id, waiting.by_key, waiting.by_content, waiting.by_likeness_before))
    matches = []
    for item, row, was_pending in zip(keyed, found, booked_now, strict=True):
        if row is not None:
            matches.append(Match(item.record, row, row.identity, item.fingerprint))
        else:
            identity = known.next_identity(item.base)
            matches.append(
                Match(item.record, was_pending, identity, item.fingerprint, takes_over=was_pending is not None)
            )
    return matches


def match_pending(
    records: Sequence[TransactionRecord], pending: Sequence[StoredRow], booked: Sequence[StoredRow]
) -> list[Match]:
    """One match per record that is still pending; one whose booked row is stored already is left out."""
    keyed = _keyed(records)
    known, done = _Known(pending), _Known(booked)
    found = _explain(keyed, (known.by_own_id, known.by_key, known.by_content))
    left = [None if row else item for row, item in zip(found, keyed, strict=True)]
    booked_since = _explain(left, (done.by_own_id, done.by_key, done.by_content, done.by_likeness_after))
    matches = []
    for item, row, has_booked in zip(keyed, found, booked_since, strict=True):
        if row is not None:
            matches.append(Match(item.record, row, row.identity, item.fingerprint))
        elif has_booked is None:
            matches.append(Match(item.record, None, known.next_identity(item.base), item.fingerprint))
    return matches


@dataclass(frozen=True, slots=True)
class _Item:
    """A record with its keys."""

    record: TransactionRecord
    base: str
    fingerprint: str


def _keyed(records: Sequence[TransactionRecord]) -> list[_Item]:
    return [_Item(record, base, fingerprint(record)) for record, base in zip(records, base_keys(records), strict=True)]


def _explain(
    items: Sequence[_Item | None],
    ways: Sequence[Callable[[_Item], StoredRow | None]],
    found: Sequence[StoredRow | None] = (),
) -> list[StoredRow | None]:
    """For each item the stored row it is: every item is tried by the surest way before any by the next."""
    rows = list(found) or [None] * len(items)
    for way in ways:
        for index, item in enumerate(items):
            if item is not None and rows[index] is None:
                rows[index] = way(item)
    return rows


def _explain_parts(items: Sequence[_Item], found: list[StoredRow | None], known: "_Known") -> None:
    """A batch that one source books as a whole ("servicer:7") and another by its details ("servicer:7/0", "/1") is
    the same money: parts that add up to a stored whole are known, and so is a whole that stored parts add up to."""
    parts: dict[tuple[str, date], list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        if found[index] is not None:
            continue
        for reference in item.record.references:
            if part := PART.fullmatch(reference):
                parts[part[1], item.record.booking_date].append(index)
                break
        else:
            found[index] = known.by_parts(item)
    for (whole, day), indexes in parts.items():
        total = sum((items[index].record.amount for index in indexes), Decimal(0))
        row = known.take_whole(whole, day, total)
        for index in indexes if row else ():
            found[index] = row


class _Known:
    """Stored rows, each of which can explain one record of the batch."""

    def __init__(self, rows: Iterable[StoredRow]) -> None:
        self._free: dict[str, StoredRow] = {}
        self._by_base: dict[str, deque[str]] = defaultdict(deque)
        self._by_print: dict[str, list[str]] = defaultdict(list)
        self._by_amount: dict[Decimal, list[str]] = defaultdict(list)
        self._by_whole: dict[tuple[str, date], list[str]] = defaultdict(list)
        self._ordinals: dict[str, int] = defaultdict(int)
        for row in sorted(rows, key=lambda row: (len(row.identity), row.identity)):
            base, _, ordinal = row.identity.rpartition("#")
            self._free[row.id] = row
            self._by_base[base].append(row.id)
            self._by_print[row.fingerprint].append(row.id)
            self._by_amount[row.amount].append(row.id)
            for reference in row.references:
                if part := PART.fullmatch(reference):
                    self._by_whole[part[1], row.booking_date].append(row.id)
            self._ordinals[base] = max(self._ordinals[base], int(ordinal))

    def by_own_id(self, item: _Item) -> StoredRow | None:
        """Our own id inside the source's: an export of ours comes back."""
        return self._free.pop(own_id(item.record) or "", None)

    def by_key(self, item: _Item) -> StoredRow | None:
        """The next row of the same key: the counted merge."""
        queue = self._by_base.get(item.base)
        while queue:
            row = self._free.pop(queue.popleft(), None)
            if row is not None:
                return row
        return None

    def by_parts(self, item: _Item) -> StoredRow | None:
        """The first of the stored details that together are this whole."""
        for reference in item.record.references:
            rows = [
                row
                for id_ in self._by_whole.get((reference, item.record.booking_date), ())
                if (row := self._free.get(id_)) is not None
            ]
            if rows and sum((row.amount for row in rows), Decimal(0)) == item.record.amount:
                for row in rows:
                    del self._free[row.id]
                return rows[0]
        return None

    def take_whole(self, reference: str, day: date, amount: Decimal) -> StoredRow | None:
        """The stored booking of a whole batch."""
        for id_ in self._by_amount.get(amount, ()):
            row = self._free.get(id_)
            if row is not None and row.booking_date == day and reference in row.references:
                return self._free.pop(id_)
        return None

    def by_content(self, item: _Item) -> StoredRow | None:
        """A row that says the same and whose references do not speak against it."""
        if item.record.provider_id is not None:
            return None
        for id_ in self._by_print.get(item.fingerprint, ()):
            row = self._free.get(id_)
            if row is not None and not _contradict(item.record.references, row.references):
                return self._free.pop(id_)
        return None

    def by_likeness_before(self, item: _Item) -> StoredRow | None:
        """The pending row that this booked record is, under another text perhaps; the nearest one."""
        return self._nearest(item.record, lambda row: (item.record.booking_date - row.booking_date).days)

    def by_likeness_after(self, item: _Item) -> StoredRow | None:
        """The booked row that this pending record has become."""
        return self._nearest(item.record, lambda row: (row.booking_date - item.record.booking_date).days)

    def next_identity(self, base: str) -> str:
        """The identity of one more row under this key."""
        self._ordinals[base] += 1
        return f"{base}#{self._ordinals[base]}"

    def _nearest(self, record: TransactionRecord, days: Callable[[StoredRow], int]) -> StoredRow | None:
        best: StoredRow | None = None
        for id_ in self._by_amount.get(record.amount, ()):
            row = self._free.get(id_)
            if row is None or row.currency != record.currency or not 0 <= days(row) <= PENDING_DAYS_MAX:
                continue
            if _same_counterpart(record, row) and (best is None or days(row) < days(best)):
                best = row
        return self._free.pop(best.id) if best is not None else None


def _contradict(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Whether both carry references of one kind and none is shared: then equal content is two bookings."""
    if not ours or not theirs or set(ours) & set(theirs):
        return False
    kinds = {reference.partition(":")[0] for reference in ours}
    return any(reference.partition(":")[0] in kinds for reference in theirs)


def _same_counterpart(record: TransactionRecord, row: StoredRow) -> bool:
    if record.counterpart_iban and record.counterpart_iban == row.counterpart_iban:
        return True
    if record.counterpart_name and squeezed(record.counterpart_name) == squeezed(row.counterpart_name):
        return True
    ours = _words(record.counterpart_name, record.purpose)
    theirs = _words(row.counterpart_name, row.purpose)
    shorter = min(len(ours), len(theirs))
    return shorter > 0 and len(ours & theirs) / shorter >= SHARED_WORDS_MIN


def _words(*texts: str | None) -> set[str]:
    return {word for text in texts if text for word in re.findall(r"[^\W\d_]{3,}", text.casefold())}
