"""Decides what comes next among work that waits for a shared resource: users take turns, short work before long."""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

COST_LEAST = 64 * 1024  # bytes of a file; a smaller one takes no longer to read than to begin
COST_MOST = 4 * 1024 * 1024  # bytes; longer work is overtaken no more often than this


class Work(Struct, eq=False, kw_only=True):
    """A piece of work that waits; `cost` is how long it may take, in bytes of a file, the unit of the order's clock."""

    user_id: str
    cost: int
    begins: int = 0  # on the clock of the order

    @property
    def ends(self) -> int:
        """When on the order's clock the work would end if every user had a machine of their own; its cost counts
        between COST_LEAST and COST_MOST."""
        return self.begins + min(max(self.cost, COST_LEAST), COST_MOST)


W = TypeVar("W", bound=Work)


class FairOrder(Generic[W]):
    """Waiting work, ordered by when it would end if each user had a machine of their own, all equally fast (fair
    queueing with the clock of Goyal, Vin and Cheng 1996).

    A user with much waiting work gets one turn, then others do. Short work overtakes long work, but each other user
    overtakes a long piece with no more work than that piece costs, COST_MOST at most. Not thread-safe.
    """

    def __init__(self) -> None:
        self._waiting: list[W] = []  # in the order of arrival
        self._now = 0
        self._had: dict[str, int] = {}  # by user: when their latest work ends on the clock, if that is still to come

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, work: W) -> None:
        """Add a piece of work to the end of the line, and set when it begins on the order's clock."""
        work.begins = max(self._now, self._had.get(work.user_id, 0))
        self._waiting.append(work)

    def take(self, may_begin: Callable[[W], bool]) -> W | None:
        """Take that piece of work out of the line which would end first of those that may begin, of two equal ones the
        earlier, and return it; None if none may begin."""
        work = min(filter(may_begin, self._waiting), key=lambda work: work.ends, default=None)
        if work is None:
            return None
        self._waiting.remove(work)
        self._now = max(self._now, work.begins)
        self._had = {user_id: ends for user_id, ends in self._had.items() if ends > self._now}
        self._had[work.user_id] = work.ends
        for other in self._waiting:
            if other.user_id == work.user_id:
                other.begins = max(other.begins, work.ends)
        return work

    def leave(self, work: W) -> None:
        """Remove a piece of work from the line before it has had its turn. Raises ValueError where it is not in it."""
        self._waiting.remove(work)
