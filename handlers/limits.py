"""How often a client may ask: sliding windows on the `limits` library, and the step that holds them (decision 32)."""

import logging
import math
import time
from dataclasses import dataclass

from connexion.operations import AbstractOperation
from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers import call
from handlers.errors import TooManyRequests
from handlers.routing import Make
from handlers.windows import Clock, WindowMemory

logger = logging.getLogger("bankdata.limits")

IN_PROCESS = "memory://"


class CountsUnusable(Exception):
    """The address of the counts is wrong, or the client library for it is not installed."""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many requests in any window of so many seconds."""

    requests: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Quota:
    """What is left of a budget after a request."""

    is_granted: bool
    remaining: int
    reset_seconds: int  # until the oldest counted request leaves the window


class Limiter:
    """Counts requests by budget and client, in this process or in Redis (`redis://...`) for several."""

    def __init__(self, storage_url: str = IN_PROCESS, *, clock: Clock = time.time) -> None:
        self._clock = clock
        self._windows = MovingWindowRateLimiter(_storage(storage_url, clock))

    async def take(self, budget: str, rate: Rate, client: str) -> Quota:
        """One request out of a budget. A refused one is not counted, so it does not lengthen the wait.

        A store of counts that cannot be reached refuses nobody: bank data stay readable, and the log says so.
        """
        item = RateLimitItemPerSecond(rate.requests, rate.seconds, namespace=budget)
        try:
            is_granted = await self._windows.hit(item, client)
            resets_at, remaining = await self._windows.get_window_stats(item, client)
        except StorageError as error:
            logger.warning("rate limit not counted: %s", type(error.storage_error).__name__)
            return Quota(is_granted=True, remaining=rate.requests, reset_seconds=rate.seconds)
        reset_seconds = min(max(1, math.ceil(resets_at - self._clock())), rate.seconds)
        return Quota(is_granted, remaining if is_granted else 0, reset_seconds)


def limits(limiter: Limiter, rate: Rate | None) -> Make:
    """The limit of each operation: those whose contract lists 429 share one budget per client address.

    GET /sync/{syncId} lists none (interface 4.9): a client that polls its job is never sent away.
    """

    def limited(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        if rate is None or "429" not in operation.responses:
            return next_app
        policy = (b"ratelimit-policy", b'"default";q=%d;w=%d' % (rate.requests, rate.seconds))

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            asked = call.current(scope)
            quota = await limiter.take("default", rate, asked.client_address)
            asked.headers += (
                policy,
                (b"ratelimit", b'"default";r=%d;t=%d' % (quota.remaining, quota.reset_seconds)),
            )
            asked.retry_not_before = quota.reset_seconds
            if not quota.is_granted:
                raise TooManyRequests(retry_after=quota.reset_seconds)
            await next_app(scope, receive, send)

        return counted

    return limited


def _storage(url: str, clock: Clock) -> Storage:
    if url == IN_PROCESS:
        return WindowMemory(clock)
    try:
        storage = storage_from_string(f"async+{url}", implementation="redispy", wrap_exceptions=True)
    except (ConfigurationError, ValueError) as error:
        raise CountsUnusable(
            f"BANKDATA_RATE_LIMIT_URL: the store of the rate limit cannot be used: {str(error).splitlines()[0]}"
            " Redis needs the extra `redis` of this package."
        ) from error
    assert isinstance(storage, Storage)
    return storage
