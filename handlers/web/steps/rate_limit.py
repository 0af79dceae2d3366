"""Limits how often a client may ask: sliding windows on the `limits` library, and the step that applies them (decision
32)."""

import logging
import math
import time
from collections.abc import Callable

from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import ConfigurationError, StorageError
from limits.storage import storage_from_string
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.web import call
from handlers.web.errors import TooManyRequests
from handlers.web.framework import AbstractOperation
from handlers.web.routing import Make
from handlers.web.steps.sliding_windows import Clock, WindowMemory

logger = logging.getLogger("bankdata.limits")

IN_PROCESS = "memory://"
ANSWER_SECONDS_MAX = 0.5  # every request waits for Redis: one that hangs must not hold them up
ASK_AGAIN_SECONDS = 1.0


class CountsUnusable(Exception):
    """The address of the store that counts requests is wrong, or the client library for it is not installed."""


class Rate(Struct, frozen=True):
    """A limit of so many requests in any window of so many seconds."""

    requests: int
    seconds: int


# Of one address, over all operations that list 429 (interface section 8), where BANKDATA_RATE_LIMIT says no other
DEFAULT_RATE = Rate(requests=60, seconds=60)


class Quota(Struct, frozen=True):
    """What is left of a client's budget after a request, and whether that request was granted."""

    is_granted: bool
    remaining: int
    reset_seconds: int  # until the oldest counted request leaves the window


class Limiter:
    """Counts requests by budget and client, in this process or, for several processes, in Redis (`redis://...`).
    `rate` is that of the contract's operations, None for no limit, there or elsewhere.

    While Redis does not answer, each process counts for itself: bank data stay readable, and nobody may flood.
    """

    def __init__(
        self, storage_url: str = IN_PROCESS, *, rate: Rate | None = DEFAULT_RATE, clock: Clock = time.monotonic
    ) -> None:
        """`clock` is in seconds. Raises CountsUnusable for a `storage_url` that is no usable
        address."""
        self.rate = rate
        self._clock = clock
        self._own = WindowMemory(clock)
        self._shared = None if storage_url == IN_PROCESS else MovingWindowRateLimiter(_redis(storage_url))
        self._failed_at: float | None = None

    async def take(self, budget: str, rate: Rate, client: str) -> Quota:
        """Take one request out of a client's budget, and return whether it was granted and what is left. A refused
        request is not counted, so it does not lengthen the wait."""
        if self._shared is not None and self._may_ask():
            try:
                quota = await self._shared_quota(self._shared, budget, rate, client)
            except StorageError as error:
                self._note_failure(error)
            else:
                self._note_success()
                return quota
        is_granted, resets_at, remaining = self._own.take(budget, client, most=rate.requests, seconds=rate.seconds)
        return _quota(rate, is_granted, resets_at - self._clock(), remaining)

    async def spend(self, budget: str, client: str, *, rate: Rate | None = None, refusal: str | None = None) -> None:
        """Take one request out of a client's budget, which has this rate, or without one that of the contract's
        operations; raises TooManyRequests if none is left, with the message `refusal` if it is given. Where nothing is
        limited, nothing is counted."""
        if self.rate is not None:
            quota = await self.take(budget, rate or self.rate, client)
            if not quota.is_granted:
                raise TooManyRequests(refusal, retry_after=quota.reset_seconds)

    async def _shared_quota(self, windows: MovingWindowRateLimiter, budget: str, rate: Rate, client: str) -> Quota:
        item = RateLimitItemPerSecond(rate.requests, rate.seconds, namespace=budget)
        is_granted = await windows.hit(item, client)
        resets_at, remaining = await windows.get_window_stats(item, client)
        return _quota(rate, is_granted, resets_at - time.time(), remaining)

    def _may_ask(self) -> bool:
        """Whether this request may ask Redis: every request while Redis answers, one a second while it does not; that
        one's time is noted."""
        now, asked_at = self._clock(), self._failed_at
        if asked_at is None:
            return True
        if 0 <= now - asked_at < ASK_AGAIN_SECONDS:
            return False
        self._failed_at = now
        return True

    def _note_failure(self, error: StorageError) -> None:
        if self._failed_at is None:
            reason = type(error.storage_error).__name__
            logger.warning("Redis does not count requests (%s): this process counts for itself", reason)
        self._failed_at = self._clock()

    def _note_success(self) -> None:
        if self._failed_at is not None:
            logger.warning("Redis counts requests again")
        self._failed_at = None


def limits(limiter: Limiter, person_of: Callable[[Scope], str | None]) -> Make:
    """The step that limits requests: operations whose contract lists 429 share one budget per client address, those
    in browser sessions one per person whom `person_of` knows. Their answers state the rest in RateLimit headers;
    TooManyRequests is raised when none is left.

    GET /sync/{syncId} lists none (interface 4.9): a client that polls its job is never refused.
    """
    rate = limiter.rate

    def make_limit(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        if rate is None or "429" not in operation.responses:
            return next_app
        policy = (b"ratelimit-policy", b'"default";q=%d;w=%d' % (rate.requests, rate.seconds))

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            asked = call.current(scope)
            quota = await limiter.take("default", rate, person_of(scope) or asked.client_address)
            asked.headers += (
                policy,
                (b"ratelimit", b'"default";r=%d;t=%d' % (quota.remaining, quota.reset_seconds)),
            )
            asked.retry_not_before = quota.reset_seconds
            if not quota.is_granted:
                raise TooManyRequests(retry_after=quota.reset_seconds)
            await next_app(scope, receive, send)

        return count

    return make_limit


def _quota(rate: Rate, is_granted: bool, left: float, remaining: int) -> Quota:
    reset_seconds = min(max(1, math.ceil(left)), rate.seconds)
    return Quota(is_granted, remaining if is_granted else 0, reset_seconds)


def _redis(url: str) -> Storage:
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
