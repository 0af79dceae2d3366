"""Records with the type and categories of each booking, which exports show and imports derive anew, and where requested
with the owner's words on it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from analytics.records import Record


class PartWords(NamedTuple):
    """A part of a booking's amount, with its category (or a finer one), note and tags; `own` is the name of the own
    category below that."""

    amount: Decimal
    category: str  # a category or a finer one
    note: str | None = None
    tags: Sequence[str] = ()
    own: str | None = None  # the name of the own category below `category`

    def json(self) -> dict[str, object]:
        """The part as in our own formats, without empty members."""
        place = {"category": self.category, "ownCategory": self.own}
        members = {"amount": f"{self.amount:f}", **place, "note": self.note, "tags": list(self.tags)}
        return {name: value for name, value in members.items() if value}


class OwnerWords(NamedTuple):
    """The owner's words on one booking. `category` is the category that they chose, or a finer one, and `own` the name
    of the own category below it. `splits` are the parts into which they divided the amount, which add up to it, each
    with its main category."""

    category: str | None = None
    note: str | None = None
    tags: Sequence[str] = ()
    splits: Sequence[tuple[str, PartWords]] = ()
    own: str | None = None

    def cells(self) -> dict[str, str | None]:
        """The words as texts by column name, for our own formats; tags and splits as JSON, None for what is not
        said."""
        tags = json.dumps(list(self.tags), ensure_ascii=False) if self.tags else None
        splits = json.dumps([part.json() for _, part in self.splits], ensure_ascii=False) if self.splits else None
        return {
            "note": self.note,
            "tags": tags,
            "chosen_category": self.category,
            "splits": splits,
            "own_category": self.own,
        }


WORDS = tuple(OwnerWords().cells())


class Classification(NamedTuple):
    """Type, category and finer category of a booking, and its owner's words on it."""

    type: str | None = None
    category: str | None = None
    detailed_category: str | None = None
    said: OwnerWords = OwnerWords()


UNCLASSIFIED = Classification()
Pair = tuple[Record, Classification]


def without_classes(records: Iterable[Record]) -> Iterator[Pair]:
    """The records of a source, paired with an empty classification."""
    return ((record, UNCLASSIFIED) for record in records)
