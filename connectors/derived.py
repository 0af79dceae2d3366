"""What was derived from a booking, beside it: exports show type and category, and imports derive them anew."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from storage.importing.records import Record


class Derived(NamedTuple):
    """Type and category of a booking."""

    type: str | None = None
    category: str | None = None


NOTHING = Derived()
Pair = tuple[Record, Derived]


def underived(records: Iterable[Record]) -> Iterator[Pair]:
    """The records of a source, from which nothing has been derived."""
    return ((record, NOTHING) for record in records)
