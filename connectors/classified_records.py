"""Records with the type and the categories of each booking, which exports show and imports derive anew, and with what
its owner says of it where that is asked for."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from storage.importing.records import Record


class Said(NamedTuple):
    """What the owner of a booking says of it alone."""

    category: str | None = None
    note: str | None = None
    tags: Sequence[str] = ()

    def cells(self) -> dict[str, str | None]:
        """The same as texts, by the names of the columns that formats of ours have for them."""
        tags = json.dumps(list(self.tags), ensure_ascii=False) if self.tags else None
        return {"note": self.note, "tags": tags, "chosen_category": self.category}


WORDS = tuple(Said().cells())


class Classification(NamedTuple):
    """Type, category and finer category of a booking, and what its owner says of it."""

    type: str | None = None
    category: str | None = None
    detailed_category: str | None = None
    said: Said = Said()


UNCLASSIFIED = Classification()
Pair = tuple[Record, Classification]


def unclassified(records: Iterable[Record]) -> Iterator[Pair]:
    """The records of a source, from which nothing has been derived."""
    return ((record, UNCLASSIFIED) for record in records)
