"""Keeps the table of transactions sorted: a slice at a time between the scheduler's rounds, without locking readers
out."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from handlers.work.sync.concurrency import ImportLane
from storage import compaction
from storage.database import Store

LOOK_EVERY = timedelta(minutes=10)
ROWS_AT_ONCE = 20_000  # half a second of work, for which jobs wait

log = logging.getLogger("bankdata.sync")


class Sorting:
    """Sorts the stored transactions of a file store once too many rows lie unsorted at the end of the table; a crash
    merely leaves the table less sorted."""

    def __init__(self, store: Store, import_lane: ImportLane, *, steady: timedelta) -> None:
        self._database = store.for_everybody()
        self._import_lane = import_lane
        self._is_file = isinstance(store.path, Path)  # PostgreSQL has indexes and needs no sorting
        self._looked_at = steady
        self._steps: Iterator[int] | None = None

    def advance(self, steady: timedelta) -> None:
        """Check every ten minutes whether sorting is needed; if it is, sort one slice of 20,000 rows, unless an import
        runs or waits: both write, and sorting waits for imports."""
        if self._is_file and self._steps is None and steady - self._looked_at >= LOOK_EVERY:
            self._looked_at = steady
            if compaction.is_due(self._database):
                log.info("sorting the stored transactions, a slice at a time")
                self._steps = compaction.steps(self._database, rows_at_once=ROWS_AT_ONCE)
        if self._steps is None or self._import_lane.length:
            return
        with self._import_lane.turn(""):  # a turn that belongs to no user
            if next(self._steps, None) is None:
                self._steps = None
                log.info("the stored transactions are sorted")
