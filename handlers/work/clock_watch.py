"""Watches whether this machine's clock agrees with the database's, because several machines compare times of tokens and
leases, and whether it was set."""

import logging
from collections.abc import Callable
from datetime import date, datetime, timedelta

from handlers.work.clock import Clock
from storage import store_facts
from storage.database import Database

APART_MAX = timedelta(seconds=2)
NONE = timedelta(0)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - without a zone, as the clock's moments

log = logging.getLogger("bankdata")


class ClockWatch:
    """Compares this machine's clock with the database's, and logs when the two drift apart and when they agree
    again."""

    def __init__(self, database: Database, clock: Clock, *, on_set: Callable[[], None] = lambda: None) -> None:
        """`on_set` is called after this machine's clock was set to what is not known to be wrong."""
        self._database = database
        self._clock = clock
        self._on_set = on_set
        self._was_off = False
        self._apart = NONE
        self._ahead = self._ahead_of_steady()

    def is_off(self) -> bool:
        """Whether this machine's clock is known to be wrong: then it does no housekeeping and tells no news. Compares
        the clocks at once if this machine's was set; else what `look` found stands."""
        if abs(self._ahead_of_steady() - self._ahead) > APART_MAX:
            self._ahead = self._ahead_of_steady()
            self.look()
            if not self._was_off:
                self._on_set()
        return self._was_off

    def today(self) -> date:
        """Today's calendar day by the database's clock, as far as this machine's is known to be off."""
        off = self._apart if self.is_off() else NONE
        return self._clock.in_zone(self._clock.now() - off).date()

    def _ahead_of_steady(self) -> timedelta:
        return self._clock.now() - EPOCH - self._clock.steady()

    def apart(self) -> timedelta:
        """How far this machine's clock is ahead of the database's; negative where it is behind. The time that the query
        took is not counted as a difference. Zero for a store on this machine, which has no other clock."""
        before = self._clock.now() - self._clock.offset
        there = store_facts.clock(self._database)
        if there is None:
            return NONE
        after = self._clock.now() - self._clock.offset
        return max(before - there, NONE) + min(after - there, NONE)

    def look(self) -> None:
        """Compare the clocks, and log a warning once when they have drifted apart and once when they agree again."""
        wrong = self.wrong()
        if (wrong is not None) != self._was_off:
            self._was_off = wrong is not None
            log.warning("%s", wrong or "This machine's clock is that of the database again.")

    def wrong(self) -> str | None:
        """A sentence for the operator where the clocks differ by more than two seconds; None where they agree."""
        apart = self._apart = self.apart()
        if abs(apart) <= APART_MAX:
            return None
        return (
            f"This machine's clock is {apart.total_seconds():+.0f} s off the database's: have NTP set both. Until then"
            " machines may refuse each other's tokens."
        )
