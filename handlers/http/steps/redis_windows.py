"""Counts requests for the rate limit in Redis, for several processes together, by the `limits` library."""

from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string

from handlers.http.steps.rate_limit import CountsAway, CountsUnusable

ANSWER_SECONDS_MAX = 0.5  # every request waits for Redis: one that hangs must not hold them up


class RedisWindows:
    """A sliding window per budget and client, in the Redis of this address; raises CountsUnusable."""

    def __init__(self, url: str) -> None:
        self._windows = MovingWindowRateLimiter(_storage(url))

    async def take(self, budget: str, client: str, *, most: int, seconds: int) -> tuple[bool, float, int]:
        """Count a request, as `WindowMemory.take` does; raises CountsAway."""
        item = RateLimitItemPerSecond(most, seconds, namespace=budget)
        try:
            is_granted = await self._windows.hit(item, client)
            resets_at, remaining = await self._windows.get_window_stats(item, client)
        except StorageError as error:
            raise CountsAway(type(error.storage_error).__name__) from error
        return is_granted, resets_at, remaining


def _storage(url: str) -> Storage:
    try:
        storage = storage_from_string(
            f"async+{url}",
            implementation="redispy",
            wrap_exceptions=True,
            socket_timeout=ANSWER_SECONDS_MAX,
            socket_connect_timeout=ANSWER_SECONDS_MAX,
        )
    except (ConfigurationError, ValueError) as error:
        raise CountsUnusable(
            f"BANKDATA_RATE_LIMIT_URL: the store of the rate limit cannot be used: {str(error).splitlines()[0]}"
            " Redis needs the extra `redis` of this package."
        ) from error
    assert isinstance(storage, Storage)
    return storage
