"""Watches whether this machine's clock agrees with the database's, because several machines compare times of tokens and
leases."""

import logging
from datetime import timedelta

from handlers.clock import Clock
from storage import store_facts
from storage.database import Database

APART_MAX = timedelta(seconds=2)
NONE = timedelta(0)

log = logging.getLogger("bankdata")


class ClockWatch:
    """Compares this machine's clock with the database's, and logs when the two drift apart and when they agree
    again."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._was_off = False

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
        apart = self.apart()
        if abs(apart) <= APART_MAX:
            return None
        return (
            f"This machine's clock is {apart.total_seconds():+.0f} s off the database's: have NTP set both. Until then"
            " machines may refuse each other's tokens."
        )
