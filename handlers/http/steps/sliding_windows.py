"""The counts of the rate limit in this process: a store for the `limits` library that forgets idle clients.

The library's own memory store keeps every key it has ever seen and scans them all in a thread, a hundred times a
second (`MemoryStorage` of limits 5.8.0): with many client addresses that is a leak and a brake.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable

from limits.aio.storage import MovingWindowSupport, Storage

Clock = Callable[[], float]


class WindowMemory(Storage, MovingWindowSupport):
    """Per key the times of the requests inside its window; a key without any is dropped by later requests."""

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock) -> None:
        super().__init__(wrap_exceptions=True)
        self._clock = clock
        # One cache per length of window, its keys in the order of their last use, the longest unused first
        self._shelves: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)

    @property
    def base_exceptions(self) -> type[Exception]:
        return OSError

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a request unless `limit` of them are inside the last `expiry` seconds."""
        now = self._clock()
        cache = self._shelves[expiry]
        times = self._inside(cache, key, now - expiry)
        if len(times) + amount > limit:
            return False
        times.extend([now] * amount)
        cache[key] = times
        cache.move_to_end(key)
        _forget_idle(cache, now - expiry)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002 the library's
        """When the oldest request inside the window came, and how many there are."""
        now = self._clock()
        times = self._inside(self._shelves[expiry], key, now - expiry)
        return (times[0], len(times)) if times else (now, 0)

    @staticmethod
    def _inside(cache: OrderedDict[str, deque[float]], key: str, start: float) -> deque[float]:
        times = cache.get(key, deque())
        while times and times[0] <= start:
            times.popleft()
        return times

    def __len__(self) -> int:
        """How many clients are remembered."""
        return sum(len(cache) for cache in self._shelves.values())

    # The base class demands these of windows that do not move; nobody asks for one.
    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        raise NotImplementedError("only moving windows are counted here")

    async def get(self, key: str) -> int:
        raise NotImplementedError("only moving windows are counted here")

    async def get_expiry(self, key: str) -> float:
        raise NotImplementedError("only moving windows are counted here")

    async def check(self) -> bool:
        return True

    async def reset(self) -> int | None:
        count = len(self)
        self._shelves.clear()
        return count

    async def clear(self, key: str) -> None:
        for cache in self._shelves.values():
            cache.pop(key, None)


def _forget_idle(cache: OrderedDict[str, deque[float]], start: float) -> None:
    """Two looks per counted request at the keys unused for longest keep a cache as long as its active clients."""
    for _ in range(2):
        key, times = next(iter(cache.items()))
        if times[-1] > start:
            return
        del cache[key]
