"""The counts of the rate limit in this process, which forget idle clients.

The store in memory of the `limits` library keeps every key it has ever seen and scans them all in a thread, a hundred
times a second (`MemoryStorage` of limits 5.8.0): with many client addresses that is a leak and a brake.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable

from limits import RateLimitItem

Clock = Callable[[], float]


class WindowMemory:
    """What the library's MovingWindowRateLimiter does, and no more of it than is asked for here.

    Per key the times of the requests inside its window; a key without any is dropped by later requests.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # One cache per length of window, its keys in the order of their last use, the longest unused first
        self._shelves: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)

    async def hit(self, item: RateLimitItem, client: str) -> bool:
        """Count a request unless as many as allowed are inside the window."""
        key, now = item.key_for(client), self._clock()
        cache, start = self._shelves[item.get_expiry()], now - item.get_expiry()
        times = self._inside(cache, key, start)
        if len(times) >= item.amount:
            return False
        times.append(now)
        cache[key] = times
        cache.move_to_end(key)
        _forget_idle(cache, start)
        return True

    async def get_window_stats(self, item: RateLimitItem, client: str) -> tuple[float, int]:
        """When the oldest request leaves the window, and how many more are allowed until then."""
        now, seconds = self._clock(), item.get_expiry()
        times = self._inside(self._shelves[seconds], item.key_for(client), now - seconds)
        return (times[0] if times else now) + seconds, item.amount - len(times)

    @staticmethod
    def _inside(cache: OrderedDict[str, deque[float]], key: str, start: float) -> deque[float]:
        times = cache.get(key, deque())
        while times and times[0] <= start:
            times.popleft()
        return times

    def __len__(self) -> int:
        """How many clients are remembered."""
        return sum(len(cache) for cache in self._shelves.values())


def _forget_idle(cache: OrderedDict[str, deque[float]], start: float) -> None:
    """Two looks per counted request at the keys unused for longest keep a cache as long as its active clients."""
    for _ in range(2):
        key, times = next(iter(cache.items()))
        if times[-1] > start:
            return
        del cache[key]
