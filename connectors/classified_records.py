"""Records with the type and category of each booking: exports show them, and imports derive them anew."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from storage.importing.records import Record


class Classification(NamedTuple):
    """Type and category of a booking."""

    type: str | None = None
    category: str | None = None


UNCLASSIFIED = Classification()
Pair = tuple[Record, Classification]


def unclassified(records: Iterable[Record]) -> Iterator[Pair]:
    """The records of a source, from which nothing has been derived."""
    return ((record, UNCLASSIFIED) for record in records)
