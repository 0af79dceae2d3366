"""Records with the type and the categories of each booking, which exports show and imports derive anew, and with what
its owner says of it where that is asked for."""

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from storage.importing.records import Record


class SaidPart(NamedTuple):
    """What of a booking's amount went where."""

    amount: Decimal
    category: str  # or a finer one
    note: str | None = None
    tags: Sequence[str] = ()
    own: str | None = None  # the name of the own category below `category`

    def json(self) -> dict[str, object]:
        """The same as formats of ours have it, without what is not said."""
        place = {"category": self.category, "ownCategory": self.own}
        told = {"amount": f"{self.amount:f}", **place, "note": self.note, "tags": list(self.tags)}
        return {name: value for name, value in told.items() if value}


class Said(NamedTuple):
    """What the owner of a booking says of it alone; `splits` add up to it, each with its coarse category. `own` is the
    name of the own category that they chose, which lies below `category`."""

    category: str | None = None
    note: str | None = None
    tags: Sequence[str] = ()
    splits: Sequence[tuple[str, SaidPart]] = ()
    own: str | None = None

    def cells(self) -> dict[str, str | None]:
        """The same as texts, by the names of the columns that formats of ours have for them."""
        tags = json.dumps(list(self.tags), ensure_ascii=False) if self.tags else None
        splits = json.dumps([part.json() for _, part in self.splits], ensure_ascii=False) if self.splits else None
        return {
            "note": self.note,
            "tags": tags,
            "chosen_category": self.category,
            "splits": splits,
            "own_category": self.own,
        }


WORDS = tuple(Said().cells())


class Classification(NamedTuple):
    """Type, category and finer category of a booking, and what its owner says of it."""

    type: str | None = None
    category: str | None = None
    detailed_category: str | None = None
    said: Said = Said()


UNCLASSIFIED = Classification()
Pair = tuple[Record, Classification]


def without_classes(records: Iterable[Record]) -> Iterator[Pair]:
    """The records of a source, from which nothing has been derived."""
    return ((record, UNCLASSIFIED) for record in records)
