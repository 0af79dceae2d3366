"""Matches the remaining bookings with stored rows: compared field by field, the surest pairs first, each row once.

Everything here is bounded: bookings of one day and amount are grouped by content, so that many equal ones cost as much
as one; and if there are very many different ones, each is only compared with those that share a text with it.
"""

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from itertools import islice, product
from typing import Any

import polars as pl
from msgspec.structs import replace

from analytics.records import TransactionRecord
from storage.importing.matching.batch_details import (
    CANDIDATES_MAX,
    PAIRS_MAX,
    T,
    details_of_batches,
    grouped,
    is_one_way,
    money_of_whole,
    number_of_batches,
    of_notifications,
    sum_of,
    take_wholes,
)
from storage.importing.matching.evidence import AGREES, evidence, fold_letters, references_contradict, text_agreement
from storage.importing.matching.exact_matches import PAIRS
from storage.importing.matching.stored_bookings import NEIGHBOUR_DAYS, Item, StoredRow
from storage.importing.teller import FILES

SHARED_WORDS_MIN = 0.5  # of the shorter text of what was pending
BEGINNING = 12  # folded characters: no format cuts a text as short as that
WORD = re.compile(r"[^\W\d_]{3,}")
BEFORE, SAME_DAY, AFTER = range(-NEIGHBOUR_DAYS, 1), range(1), range(NEIGHBOUR_DAYS + 1)
"""How many days a row may lie from a booking: a pending one is booked on its day or later."""


Pair = tuple[Item, StoredRow]
FOUND: dict[str, pl.DataType] = {**PAIRS, "is_correction": pl.Boolean(), "is_part": pl.Boolean()}


class Remaining:
    """The bookings (`items`) and stored `rows` that are not matched yet, and the matches found among them, which each
    method moves into `pairs`; `counted` are the ids of rows of which no more than the number was compared. Of a batch
    and its details the details are kept: a whole that is told is one of `parts` with each of them; a stored whole is
    moved into `replaced`, each detail with it, while they stay among the bookings."""

    def __init__(self, items: Iterable[Item], rows: Iterable[StoredRow], *, are_references_lasting: bool) -> None:
        self.items = {item.place: item for item in items}
        self.rows = {row.id: row for row in rows}
        self.pairs: list[Pair] = []
        self.parts: list[Pair] = []
        self.replaced: list[Pair] = []
        self.counted: set[str] = set()
        self._are_references_lasting = are_references_lasting

    def put_on(self, day: date) -> None:
        """Take all bookings and rows for ones of this day."""
        self.items = {place: replace(item, record=on_day(item.record, day)) for place, item in self.items.items()}
        self.rows = {id_: replace(row, record=on_day(row.record, day)) for id_, row in self.rows.items()}

    def match_by_day(self, reported_elsewhere: Collection[str] = ()) -> None:
        """Match bookings and rows of one day and amount: the details of a batch with the whole, then by equal
        references, then by the evidence of the fields; then one to one the rest of days that are reported completely,
        and of the rows that another source of the account reported (`reported_elsewhere`). A person has said that both
        sources have the same account, so day and amount are enough. Last come batches whose whole has no reference."""
        self._match_parts()
        if self._are_references_lasting:
            self._match_references()
        self._match_fields(self.rows.values())
        left = [row for row in self.rows.values() if row.is_whole or row.id in reported_elsewhere]
        for items, rows in self._buckets(_money, left):
            for item, row in zip(items, rows, strict=False):
                self._take(item, row)
                self.counted.add(row.id)
        self._match_notified()
        self._match_sums()

    def match_waiting(self, known: Iterable[tuple[int, str]], days: range) -> None:
        """Match bookings and rows of which one is pending or taken back, beside the pairs that are `known` by place and
        id: by the evidence of the fields on one day, then by id, then by amount and similar words, the nearest of
        `days` first."""
        for place, id_ in known:
            self._take(self.items[place], self.rows[id_])
        self._match_fields(self.rows.values())
        self._match_ids(has_words=True)
        self._match_ids(has_words=False)
        for items, rows in self._buckets(_amount, self.rows.values()):
            self._match_bucket(items, rows, partial(_distance, days))

    def match_other_words(self, words: Mapping[str, Sequence[TransactionRecord]]) -> None:
        """Match bookings and rows of one day and amount where the row was reported in similar words before, or by
        another source; `words` has these wordings by the row's id."""
        reported = [(row, each) for row in self.rows.values() for each in words.get(row.id, ())]
        said = ((row, replace(each, references=row.record.references)) for row, each in reported)
        self._match_fields(replace(row, record=each, is_other_source=False) for row, each in said)

    def match_corrections(self, whole: Collection[int]) -> None:
        """Match bookings and rows that differ in day or amount: by the same id or the same words, if the row itself is
        no longer reported by a source that reports everything. `whole` are the places of the bookings on days reported
        completely."""
        self._match_ids(has_words=True)
        gone = [row for row in self.rows.values() if row.is_whole]
        self._match_bucket([item for item in self.items.values() if item.place in whole], gone, _correction)
        self._match_ids(has_words=False)

    def match_moved(self) -> None:
        """Match bookings and rows, all with an id of a file, that differ in the day alone."""
        for items, rows in self._buckets(_id_and_amount, self.rows.values()):
            self._match_bucket(items, rows, _correction)

    def _match_ids(self, *, has_words: bool) -> None:
        """Match bookings and rows with the same id. With the same words (`has_words`): on the row's day, or a few days
        away if the row is gone from its day. With other words: only if the row is gone, and day or amount is the same.
        If both differ it is another booking, because banks reuse ids."""
        known = {row.claim: row for row in self.rows.values() if row.claim is not None}
        for item in [item for item in self.items.values() if item.claim in known]:
            row = known[item.claim or ""]
            reported, stored = item.record, row.record
            days = abs((reported.booking_date - stored.booking_date).days)
            if has_words:
                is_near = days == 0 or (row.is_whole and days <= NEIGHBOUR_DAYS)
                is_it = is_near and evidence(reported, stored, is_other_source=days == 0) is not None
            else:
                is_it = row.is_whole and (days == 0 or _amount(item) == _amount(row))
            if is_it and row.id in self.rows:
                self._take(item, row)

    def _match_fields(self, rows: Iterable[StoredRow]) -> None:
        """Match the remaining bookings with these rows of the same day and amount, by the evidence of the fields."""
        for items, of_money in self._buckets(_money, rows):
            self._match_bucket(items, of_money, self._difference)

    def _buckets(
        self, key: Callable[[Item | StoredRow], Hashable], rows: Iterable[StoredRow]
    ) -> list[tuple[list[Item], list[StoredRow]]]:
        """The remaining bookings together with those of the rows that have the same key."""
        reported, stored = grouped(key, self.items.values()), grouped(key, rows)
        return [(items, stored[each]) for each, items in reported.items() if each in stored]

    def _match_bucket(
        self, items: Sequence[Item], rows: Sequence[StoredRow], difference: Callable[[Item, StoredRow], Any]
    ) -> None:
        """Match bookings and rows of one bucket, those with the least `difference` first; None means that they are not
        the same."""
        reported, stored = _by_content(items), _by_content(rows)
        scored = [
            (found, place, number)
            for place, number in self._candidates(reported, stored)
            if (found := difference(reported[place][0], stored[number][0])) is not None
        ]
        for _, place, number in sorted(scored):
            while reported[place] and stored[number]:
                row = stored[number].popleft()
                if row.id in self.rows:  # and was not matched in other words
                    self._take(reported[place].popleft(), row)

    def _candidates(
        self, reported: Sequence[deque[Item]], stored: Sequence[deque[StoredRow]]
    ) -> Iterator[tuple[int, int]]:
        if len(reported) * len(stored) <= PAIRS_MAX:
            yield from ((place, number) for place in range(len(reported)) for number in range(len(stored)))
            return
        by_text: dict[Hashable, list[int]] = defaultdict(list)
        for number, rows in enumerate(stored):
            for text in _texts_and_beginnings(rows[0].record):
                by_text[text].append(number)
        for place, items in enumerate(reported):
            numbers = (number for text in _texts_and_beginnings(items[0].record) for number in by_text.get(text, ()))
            yield from ((place, number) for number in dict.fromkeys(islice(numbers, CANDIDATES_MAX)))

    def _difference(self, item: Item, row: StoredRow) -> int | None:
        if self._is_another(item, row):
            return None
        is_other_source = row.is_other_source and not self._has_another_reference(item, row)
        said, names = item.record, (item.record.counterpart_name, row.record.counterpart_name)
        if item.is_notified != row.is_notified and text_agreement(*names) == AGREES:
            said = replace(said, purpose=None)  # a statement may name its own kind of booking there
        score = evidence(said, row.record, is_other_source=is_other_source)
        return None if score is None else -score

    def _is_another(self, item: Item, row: StoredRow) -> bool:
        """Whether lasting ids or references say that the booking is not this row."""
        if not self._are_references_lasting or row.is_whole or item.is_notified != row.is_notified:
            return False  # a notification has references of its own
        is_other_id = item.claim is not None and row.claim is not None and not row.claim.startswith(f"{FILES}:")
        return is_other_id or (row.has_its_references and self._has_another_reference(item, row))

    def _has_another_reference(self, item: Item, row: StoredRow) -> bool:
        is_lasting = self._are_references_lasting and not row.is_whole and item.is_notified == row.is_notified
        return is_lasting and references_contradict(item.record.references, row.record.references)

    def _match_references(self) -> None:
        """Match bookings and rows of the same day and amount with a common reference that no other booking has."""
        uses: dict[Hashable, list[Item]] = defaultdict(list)
        for item in self.items.values():
            for reference in item.record.references:
                uses[reference].append(item)
        for row in list(self.rows.values()):
            for reference in row.record.references:
                named = uses.get(reference, ())
                if len(named) == 1 and named[0].place in self.items and _money(named[0]) == _money(row):
                    self._take(named[0], row)
                    break

    def _match_parts(self) -> None:
        """Match a batch that one source books as a whole ("servicer:7") with its details from another source
        ("servicer:7/0", "/1"): parts that add up to a stored whole are known, and so is a whole to which stored parts
        add up."""
        wholes = {
            (each, row.record.booking_date, row.record.currency, row.record.amount): row
            for row in self.rows.values()
            for each in row.record.references
        }
        for key, items in details_of_batches(self.items.values()).items():
            whole = wholes.get((*key, sum_of(items)))
            if whole is not None and whole.id in self.rows and is_one_way(items):
                self._replace([whole], items)
        stored = details_of_batches(self.rows.values())
        for item in list(self.items.values()) if stored else ():
            for reference in item.record.references:
                rows = stored.pop((reference, item.record.booking_date, item.record.currency), None)
                if rows and is_one_way(rows) and sum_of(rows) == item.record.amount:
                    self._explain([item], rows)
                    break

    def _match_sums(self) -> None:
        """Match the details of a batch with a whole that has no reference in common with them, as in CSV, OFX and most
        MT940: the same day and sum are enough, unless the whole states what none of the details does. Equal batches
        are matched with as many wholes. A row that a complete statement has by its details is left to that statement:
        they replace it."""
        items_of = grouped(_money, self.items.values())
        for rows in details_of_batches(self.rows.values()).values():
            if wholes := take_wholes(rows, items_of[money_of_whole(rows)]):
                self._explain(wholes, rows)
        rows_of = grouped(_money, (each for each in self.rows.values() if not each.is_whole))
        for items in details_of_batches(self.items.values()).values():
            if batches := take_wholes(items, rows_of[money_of_whole(items)]):
                details = len(items) // number_of_batches(items) * len(batches)
                self._explain(sorted(items, key=lambda item: item.place)[:details], batches)

    def _match_notified(self) -> None:
        """Match what notifications tell with wholes that name no counterpart: details of one day and sign that add up
        to one, or to several."""
        for wholes, details in of_notifications(self.items.values(), self.rows.values()):
            if len(wholes) == len(details) == 1:
                self._take(details[0], wholes[0])
            else:
                self._replace(wholes, details)
        for told, known in of_notifications(self.rows.values(), self.items.values()):
            if len(told) == len(known) == 1:
                self._take(told[0], known[0])
            else:
                self._explain(told, known)

    def _replace(self, wholes: Sequence[StoredRow], details: Sequence[Item]) -> None:
        self.replaced += product(details, wholes)
        for row in wholes:
            del self.rows[row.id]

    def _explain(self, items: Sequence[Item], rows: Sequence[StoredRow]) -> None:
        """Note that these bookings together are these rows: each with each is one of `parts`."""
        self.parts += product(items, rows)
        for item in items:
            del self.items[item.place]
        for row in rows:
            del self.rows[row.id]

    def _take(self, item: Item, row: StoredRow) -> None:
        del self.items[item.place]
        del self.rows[row.id]
        self.pairs.append((item, row))


def on_day(record: TransactionRecord, day: date | None) -> TransactionRecord:
    """The record, booked on this day; None stands for its own."""
    return record if day is None else replace(record, booking_date=day)


def as_found(
    pairs: pl.DataFrame | Sequence[Pair], *, is_correction: bool = False, is_part: bool = False
) -> pl.DataFrame:
    """The pairs as FOUND."""
    if not isinstance(pairs, pl.DataFrame):
        pairs = pl.DataFrame([(item.place, row.id) for item, row in pairs], schema=PAIRS, orient="row")
    return pairs.with_columns(is_correction=pl.lit(is_correction), is_part=pl.lit(is_part))


def _money(one: Item | StoredRow) -> Hashable:
    return one.record.booking_date, one.record.amount, one.record.currency


def _amount(one: Item | StoredRow) -> Hashable:
    return one.record.amount, one.record.currency


def _id_and_amount(one: Item | StoredRow) -> Hashable:
    return (one.claim or "").partition("|")[0], _amount(one)


def _correction(item: Item, row: StoredRow) -> tuple[int, int, int] | None:
    """The difference between a booking and the row that it may correct, to be sorted by (least first): days apart, lack
    of evidence, lack of equal texts. None if no text begins alike, or if day and amount both differ."""
    reported, stored = item.record, row.record
    days = abs((stored.booking_date - reported.booking_date).days)
    is_near = days == 0 or (days <= NEIGHBOUR_DAYS and _amount(item) == _amount(row))
    shared = set(_texts_and_beginnings(reported)).intersection(_texts_and_beginnings(stored)) if is_near else ()
    score = evidence(reported, stored, is_other_source=False) if shared else None
    return None if score is None else (days, -score, -len(set(_texts(reported)).intersection(_texts(stored))))


def _distance(days: range, item: Item, row: StoredRow) -> tuple[int, bool, float] | None:
    """The distance between a booking and a waiting row of the same amount, in days and then in words. None if it is not
    one of `days`, or if they share neither a text nor half of the words of the shorter one: card texts gain a place and
    lose a prefix when they book. None too if both name a counterpart without a common word, unless other fields are
    evidence that they are the same."""
    reported, stored = item.record, row.record
    apart = (stored.booking_date - reported.booking_date).days
    ours, theirs = (_words(each.counterpart_name) | _words(each.purpose) for each in (reported, stored))
    shared = len(ours & theirs) / max(1, min(len(ours), len(theirs)))
    has_text = not set(_texts(reported)).isdisjoint(_texts(stored))
    if apart not in days or not (has_text or shared >= SHARED_WORDS_MIN):
        return None
    names = [_words(each.counterpart_name) for each in (reported, stored)]
    if all(names) and names[0].isdisjoint(names[1]) and evidence(reported, stored, is_other_source=True) is None:
        return None
    return abs(apart), not has_text, -shared


@lru_cache(maxsize=20_000)
def _words(text: str | None) -> frozenset[str]:
    return frozenset(WORD.findall((text or "").casefold()))


def _by_content(each: Iterable[T]) -> list[deque[T]]:
    """Groups of bookings or rows that are alike in all that is compared, references only in their kinds; one of a group
    stands for all."""
    found: dict[Hashable, deque[T]] = defaultdict(deque)
    for one in each:
        said: TransactionRecord = one.record
        fields: tuple[Hashable, ...] = (
            said.counterpart_iban,
            said.creditor_id,
            said.mandate_reference,
            said.value_date,
            _money(one),
        )
        kinds = frozenset(reference.partition(":")[0] for reference in said.references)
        teller = (one.is_other_source, one.has_its_references, one.is_whole) if isinstance(one, StoredRow) else None
        found[(*_texts(said), *fields, kinds, one.claim is None, teller)].append(one)
    return list(found.values())


def _texts(what: TransactionRecord) -> list[Hashable]:
    """The texts that a booking may share with another one: name, purpose, account, mandate."""
    given = (
        ("name", fold_letters(what.counterpart_name or "")),
        ("purpose", fold_letters(what.purpose or "")),
        ("iban", what.counterpart_iban),
        ("mandate", what.mandate_reference),
    )
    return [(kind, text) for kind, text in given if text]


def _texts_and_beginnings(what: TransactionRecord) -> list[Hashable]:
    """The texts of a booking (`_texts`), and the beginnings of name and purpose, which stay the same when a text is
    cut."""
    given = (("cut name", what.counterpart_name), ("cut purpose", what.purpose))
    beginnings = ((kind, fold_letters(whole or "")[:BEGINNING]) for kind, whole in given)
    return [*_texts(what), *(each for each in beginnings if each[1])]
