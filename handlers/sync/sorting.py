"""Keeps the table of transactions sorted: a slice at a time between the rounds of the scheduler, beside all readers."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from handlers.sync.concurrency import ImportLane
from storage import compaction
from storage.database import Store

LOOK_EVERY = timedelta(minutes=10)
ROWS_AT_ONCE = 20_000  # half a second of work: jobs wait no longer for their scheduler

log = logging.getLogger("bankdata.sync")


class Sorting:
    """Begins when too many rows lie unsorted at the end of the table; a crash leaves a table that is sorted less."""

    def __init__(self, store: Store, import_lane: ImportLane, *, now: datetime) -> None:
        self._database = store.for_everybody()
        self._import_lane = import_lane
        self._is_file = isinstance(store.path, Path)  # a server with indexes keeps its own order
        self._looked_at = now
        self._steps: Iterator[int] | None = None

    def advance(self, now: datetime) -> None:
        """Sort one slice, if there is need and no import at work: both write, and the import is waited for."""
        if self._is_file and self._steps is None and now - self._looked_at >= LOOK_EVERY:
            self._looked_at = now
            if compaction.is_due(self._database):
                log.info("sorting the stored transactions, a slice at a time")
                self._steps = compaction.steps(self._database, rows_at_once=ROWS_AT_ONCE)
        if self._steps is None or self._import_lane.length:
            return
        with self._import_lane.turn(""):  # nobody's
            if next(self._steps, None) is None:
                self._steps = None
                log.info("the stored transactions are sorted")
