"""Annotations in a file that this service has exported: taken over where the user has none here."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from analytics.classification.facts import CATEGORIES, LEAVES, category_of
from analytics.classification.rules import TAGS_MAX, ChosenCategory, is_tag
from analytics.records import Record, TransactionRecord
from analytics.searching.parts import fit
from storage.annotations import anchors, annotations, own_categories
from storage.annotations.anchors import Anchor
from storage.annotations.annotation import (
    SPLITS_MAX,
    SPLITS_MIN,
    Annotation,
    OwnCategory,
    Split,
    Tag,
    fold_tag,
    is_note,
)
from storage.database import Row, Transaction, set_values
from storage.importing.matching.booking_keys import own_id

Named = Callable[[str, str, str | None], OwnCategory | None]
"""A function that returns the own category with a name, below a category and finer category; cached for one file."""


def without_words(records: Iterable[Record], *, on_words: Callable[[], None]) -> Iterator[Record]:
    """The records of a file, without the words on its bookings; `on_words` is called for each that had some."""
    for record in records:
        if isinstance(record, TransactionRecord) and record.words is not None:
            on_words()
            yield replace(record, words=None)
        else:
            yield record


def take_over(
    session: Transaction, user_id: str, account_id: str, reported: Sequence[TransactionRecord], *, now: datetime
) -> list[str]:
    """Give bookings of this account the annotations that an exported file has for them, with their own categories,
    which are added where missing; what fits no booking is dropped. Words that wait for such a booking find it by its
    id. Returns the ids of the bookings to be derived anew.

    `reported` are the file's annotated bookings, and all that may be equal to one of these.
    """
    stored = anchors.of_user(session, user_id)
    waiting = stored.keys() - annotations.of_user(session, user_id).by_id.keys()
    whose = anchors.accounts_of(session, user_id)
    taken = {each._replace(account_id=whose.get(each.account_id, each.account_id)) for each in stored.values()}
    named: Named = cache(partial(own_categories.find_or_add, session, user_id))
    brought: list[str] = []
    for record, anchor in _anchors_of(account_id, reported):
        said = _read_words(record, now=now)
        if said is not None and said.transaction_id in waiting:
            of_booking = {"user_id": user_id, "transaction_id": said.transaction_id}
            set_values(session, "annotations", of_booking, **anchor._asdict())
        elif said is not None and said.transaction_id not in stored and anchor not in taken:
            annotations.sleep(session, user_id, _with_own_categories(named, said, record), anchor, now=now)
            stored[said.transaction_id] = anchor
            brought.append(said.transaction_id)
    moved = anchors.settle(session, user_id)
    there = annotations.of_user(session, user_id).by_id
    annotations.forget(session, user_id, [id_ for id_ in brought if id_ not in there])
    return [*moved, *(id_ for id_ in brought if id_ in there)]


def _anchors_of(account_id: str, reported: Iterable[TransactionRecord]) -> Iterable[tuple[TransactionRecord, Anchor]]:
    """Each annotated booking and its anchor, with its place among equal bookings of the file."""
    groups: dict[tuple[date, Decimal, str, str], list[tuple[TransactionRecord, Row]]] = defaultdict(list)
    for record in reported:
        row = _row(record)
        groups[record.booking_date, record.amount, record.currency, anchors.counterpart(row)].append((record, row))
    for (day, amount, currency, side), group in groups.items():
        ordered = sorted(group, key=lambda pair: anchors.order(pair[1]))
        for place, (record, _) in enumerate(ordered, start=1):
            if record.words is not None:
                yield record, Anchor(account_id, day, amount, currency, side, place, len(ordered))


def _row(record: TransactionRecord) -> Row:
    return {
        "id": own_id(record) or "",
        "counterpart_iban": record.counterpart_iban,
        "counterpart_name": record.counterpart_name,
        "purpose": record.purpose,
        "value_date": record.value_date,
    }


def _read_words(record: TransactionRecord, *, now: datetime) -> Annotation | None:
    """The annotation that a file has for the booking, without what is invalid in it and without own categories; None
    where nothing is left, it cannot be read, or the booking has no id of this service."""
    id_ = own_id(record)
    try:
        words = json.loads(record.words or "{}")
        note, tags = words.get("note"), _tags(words.get("tags", []), now=now)
        place = _place(words.get("category"))
        parts = [_part(each, now=now) for each in words.get("splits", [])]
        fits = fit([part.amount for part in parts], amount=record.amount, currency=record.currency)
    except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError, RecursionError):
        return None
    said = Annotation(
        id_ or "",
        place,
        note if note and is_note(note) else None,
        tags,
        parts if fits and SPLITS_MIN <= len(parts) <= SPLITS_MAX else (),
    )
    return None if id_ is None or said.is_empty else said


def _with_own_categories(named: Named, said: Annotation, record: TransactionRecord) -> Annotation:
    """The annotation with the own categories that the file names, found or made below its categories."""
    words = json.loads(record.words or "")
    parts = [
        replace(part, place=_own_place(named, part.place, each) or part.place)
        for part, each in zip(said.parts, words.get("splits", []), strict=False)  # no parts where they do not add up
    ]
    return replace(said, place=_own_place(named, said.place, words), parts=parts)


def _own_place(named: Named, place: ChosenCategory | None, words: Mapping[str, Any]) -> ChosenCategory | None:
    name: Any = words.get("ownCategory")
    if place is None or not is_tag(name):
        return place
    own = named(name, place.category, place.detailed_category)
    return place._replace(own_category_id=own.id) if own else place


def _place(code: str | None) -> ChosenCategory | None:
    if code is not None and code in LEAVES:
        return ChosenCategory(category_of(code), code)
    return ChosenCategory(code, None) if code is not None and code in CATEGORIES else None


def _part(words: Mapping[str, Any], *, now: datetime) -> Split:
    """The part that a file describes. Raises ValueError, TypeError, KeyError or ArithmeticError where it is invalid."""
    place, note = _place(words["category"]), words.get("note")
    if place is None:
        raise ValueError("no category")
    said = note if note and is_note(note) else None
    tags = _tags(words.get("tags", []), now=now)
    return Split(Decimal(words["amount"]), place, said, tags)


def _tags(names: object, *, now: datetime) -> Mapping[str, Tag]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError("no list of texts")
    tags = {fold_tag(name): Tag(name, now) for name in names if is_tag(name)}
    return dict(list(tags.items())[:TAGS_MAX])
