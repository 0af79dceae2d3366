"""Whether the clock of this machine is that of the database: tokens and leases of several machines are compared."""

import logging
from datetime import timedelta

from handlers.clock import Clock
from storage import store_facts
from storage.database import Database

APART_MAX = timedelta(seconds=2)
NONE = timedelta(0)

log = logging.getLogger("bankdata")


class ClockWatch:
    """Compares the two and says in the log when they part, and when they agree again."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._was_off = False

    def apart(self) -> timedelta:
        """How far this machine is ahead, or behind where that is negative. How long the answer took is no difference,
        and a store on this machine has no other clock."""
        before = self._clock.now() - self._clock.offset
        there = store_facts.clock(self._database)
        if there is None:
            return NONE
        after = self._clock.now() - self._clock.offset
        return max(before - there, NONE) + min(after - there, NONE)

    def look(self) -> None:
        """Say once that they are apart, and once that this is over."""
        wrong = self.wrong()
        if (wrong is not None) != self._was_off:
            self._was_off = wrong is not None
            log.warning("%s", wrong or "This machine's clock is that of the database again.")

    def wrong(self) -> str | None:
        """A sentence for the operator where the clocks are too far apart; None where they agree."""
        apart = self.apart()
        if abs(apart) <= APART_MAX:
            return None
        return (
            f"This machine's clock is {apart.total_seconds():+.0f} s off the database's: have NTP set both. Until then"
            " machines may refuse each other's tokens."
        )
