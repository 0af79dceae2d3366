"""Counts requests for the rate limit in this process, and forgets idle clients.

The in-memory store of the `limits` library keeps every key it has ever seen and scans them all in a thread, a hundred
times a second (`MemoryStorage` of limits 5.8.0): with many client addresses that is a leak and a brake.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable

Clock = Callable[[], float]
_Shelf = OrderedDict[tuple[str, str, int], deque[float]]


class WindowMemory:
    """A sliding window per budget and client, with only those parts of the library's MovingWindowRateLimiter that are
    used here.

    Keeps the times of each client's requests inside the window; later requests drop clients that have none left.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # One shelf per length of window, its keys in the order of their last use, the longest unused first
        self._shelves: defaultdict[int, _Shelf] = defaultdict(OrderedDict)

    def take(self, budget: str, client: str, *, most: int, seconds: int) -> tuple[bool, float, int]:
        """Count a request unless `most` were counted in the last `seconds`. Returns whether it was counted, the time
        (by the clock) when the oldest one leaves the window, and how many more are allowed until then."""
        key, now, shelf = (budget, client, most), self._clock(), self._shelves[seconds]
        times, start = shelf.get(key) or deque(), now - seconds
        while times and times[0] <= start:
            times.popleft()
        is_granted = len(times) < most
        if is_granted:
            times.append(now)
            shelf[key] = times
            shelf.move_to_end(key)
            _forget_idle(shelf, start)
        return is_granted, times[0] + seconds, most - len(times)

    def __len__(self) -> int:
        """The number of windows that are remembered: a client has one for each budget."""
        return sum(len(shelf) for shelf in self._shelves.values())


def _forget_idle(shelf: _Shelf, start: float) -> None:
    """Drop up to two clients whose last request was not after `start`; done for each counted request, this keeps the
    shelf as long as its active clients."""
    for _ in range(2):
        key, times = next(iter(shelf.items()))
        if times[-1] > start:
            return
        del shelf[key]
