"""What a booking is like: the rows of one amount and day by counterpart, and by the words of their texts."""

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Set
from itertools import islice

from storage.importing.matching.booking_keys import squeezed
from storage.importing.matching.compared_rows import StoredRow
from storage.importing.records import TransactionRecord

SHARED_WORDS_MIN = 0.5  # of the shorter text: card texts gain a place and lose a prefix when they book
WORD = re.compile(r"[^\W\d_]{3,}")
ALIKE_COMPARED_MAX = 100  # texts of one amount and day that are compared word by word; a real day has a few


class Alike:
    """Rows of one amount and day by counterpart and by words."""

    def __init__(self) -> None:
        self._exact: dict[Hashable, list[str]] = defaultdict(list)
        self._worded: dict[frozenset[str], list[str]] = defaultdict(list)

    def add(self, row: StoredRow) -> None:
        """One more row, before those added so far."""
        for key in parties(row):
            self._exact[key].append(row.id)
        self._worded[_words(row)].append(row.id)

    def lists(self, record: TransactionRecord, head: Callable[[list[str]], StoredRow | None]) -> Iterator[list[str]]:
        """The rows of the same counterpart, and those that share half of the words of the shorter text."""
        yield from (self._exact[key] for key in parties(record) if key in self._exact)
        ours = _words(record)
        if ours and ours in self._worded:
            yield self._worded[ours]
        for theirs, ids in list(islice(self._worded.items(), ALIKE_COMPARED_MAX)):
            if head(ids) is None:
                del self._worded[theirs]
            elif is_alike(ours, theirs):
                yield ids


def is_alike(ours: Set[str], theirs: Set[str]) -> bool:
    """Whether two texts share half of the words of the shorter one."""
    shorter = min(len(ours), len(theirs))
    return shorter > 0 and len(ours & theirs) / shorter >= SHARED_WORDS_MIN


def parties(what: StoredRow | TransactionRecord) -> list[Hashable]:
    """The counterpart by account number and by name, as far as they are stated."""
    given = (("iban", what.counterpart_iban), ("name", squeezed(what.counterpart_name)))
    return [(kind, text) for kind, text in given if text]


def _words(what: StoredRow | TransactionRecord) -> frozenset[str]:
    texts = (what.counterpart_name, what.purpose)
    return frozenset(word for text in texts if text for word in WORD.findall(text.casefold()))
