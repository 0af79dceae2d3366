"""The counts of the rate limit in this process, which forget idle clients.

The store in memory of the `limits` library keeps every key it has ever seen and scans them all in a thread, a hundred
times a second (`MemoryStorage` of limits 5.8.0): with many client addresses that is a leak and a brake.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable

Clock = Callable[[], float]
_Shelf = OrderedDict[tuple[str, str, int], deque[float]]


class WindowMemory:
    """What the library's MovingWindowRateLimiter does, and no more of it than is asked for here.

    Per budget and client the times of the requests inside its window; who has none is dropped by later requests.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # One shelf per length of window, its keys in the order of their last use, the longest unused first
        self._shelves: defaultdict[int, _Shelf] = defaultdict(OrderedDict)

    def take(self, budget: str, client: str, *, most: int, seconds: int) -> tuple[bool, float, int]:
        """Count a request unless `most` are inside the window. Whether it was counted, when the oldest one leaves the
        window, and how many more are allowed until then."""
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
        """How many clients are remembered."""
        return sum(len(shelf) for shelf in self._shelves.values())


def _forget_idle(shelf: _Shelf, start: float) -> None:
    """Two looks per counted request at the keys unused for longest keep a shelf as long as its active clients."""
    for _ in range(2):
        key, times = next(iter(shelf.items()))
        if times[-1] > start:
            return
        del shelf[key]
