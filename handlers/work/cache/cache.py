"""Keeps the data of the users seen last in memory, within a number of bytes; one caller at a time reads a user's
data."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait

from handlers.work.cache.user_data import UserData
from storage.database import StoreUnavailable

WAIT_SECONDS = 10.0  # for another caller's read of the same user; any store that answers is faster


class Cache:
    """Keeps the data of users in memory, within `bytes_max`; those least recently used are dropped first. A user counts
    for little more than half of `bytes_max` at most, however large their data are: so one user with a long history
    stays in memory, beside all users that fit into the other half; of two such users, one is dropped.

    `state` returns the number of the present state of a user's data. `at_hand` does not compare it; its callers have
    to.
    """

    def __init__(self, *, bytes_max: int, state: Callable[[str], int]) -> None:
        self._bytes_max = bytes_max
        self._counted_max = bytes_max // 2 + 1  # of one user
        self._counted = 0
        self._state = state
        self._users: OrderedDict[str, UserData] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()
        self._reading: dict[
            str, Future[bool]
        ] = {}  # by user, while somebody reads their data; true if the store answered
        self.bytes = 0
        self.hits = self.misses = self.evictions = 0

    def at_hand(self, user_id: str) -> UserData | None:
        """The user's data in memory, whatever their state; None where there are none. Never waits."""
        return self._users.get(user_id)

    def touch(self, user_id: str) -> None:
        """Count a hit, a request answered from a user's data in memory, and note the user as the one seen last, to be
        dropped last."""
        with self._lock:
            self.hits += 1
            if user_id in self._users:
                self._users.move_to_end(user_id)

    def fetch(self, user_id: str, *, is_enough: Callable[[UserData], bool], read: Callable[[], UserData]) -> UserData:
        """The user's data of the present state, with everything that `is_enough` checks for. Counts a hit or a miss.

        `read` completes the data in memory or loads new ones, and may `take` the former ones; the result is kept if
        `is_whole`. One caller at a time reads; others of the same user wait for that one, then look
        for themselves. They raise StoreUnavailable if it takes longer than ten seconds or the store did not answer it.
        """
        read_now, is_answered = self._next(user_id), True
        try:
            data = self._users.get(user_id)
            if data is not None and data.state == self._state(user_id) and is_enough(data):
                self.hits += 1
                return data
            self.misses += 1
            del data  # so that a long history is let go before it is read anew
            data = read()
            if data.is_whole:
                self._put(user_id, data)
            return data
        except StoreUnavailable:
            is_answered = False
            raise
        finally:
            with self._lock:
                del self._reading[user_id]
            read_now.set_result(is_answered)

    def take(self, user_id: str, state: int | None) -> UserData | None:
        """The user's data in memory, which are dropped unless they are of this state; None where there are none."""
        with self._lock:
            data = self._users.get(user_id)
            if data is not None and data.state != state:
                self._drop(user_id)
            return data

    def _next(self, user_id: str) -> Future[bool]:
        """Wait until nobody reads this user's data, and register and return a new future, for which later callers wait:
        the caller sets whether the store answered. Raises StoreUnavailable if an earlier reader takes longer than ten
        seconds, or got no answer from the store."""
        while True:
            with self._lock:
                others = self._reading.get(user_id)
                if others is None:
                    return self._reading.setdefault(user_id, Future())
            if not wait([others], WAIT_SECONDS).done or not others.result():
                raise StoreUnavailable(StoreUnavailable.__doc__)

    def users(self) -> list[str]:
        """The ids of the users whose data are in memory, the least recently used first."""
        with self._lock:
            return list(self._users)

    def weigh(self, user_id: str, data: UserData) -> None:
        """Measure a user's data again if `data` are those in memory, because they may have grown, and drop those least
        recently used if all are too large now."""
        if self._users.get(user_id) is data and self._sizes.get(user_id) != data.size:
            self._put(user_id, data)

    def clear(self) -> None:
        """Drop everything, because something has changed on which all answers depend, such as the exchange rates."""
        with self._lock:
            self._users.clear()
            self._sizes.clear()
            self.bytes = self._counted = 0

    def _put(self, user_id: str, data: UserData) -> None:
        size = data.size
        with self._lock:
            self._drop(user_id)
            self._users[user_id], self._sizes[user_id] = data, size
            self.bytes += size
            self._counted += min(size, self._counted_max)
            while self._counted > self._bytes_max:
                self._drop(next(iter(self._users)))
                self.evictions += 1

    def _drop(self, user_id: str) -> None:
        if self._users.pop(user_id, None) is not None:
            size = self._sizes.pop(user_id)
            self.bytes -= size
            self._counted -= min(size, self._counted_max)
