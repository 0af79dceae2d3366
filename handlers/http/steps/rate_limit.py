"""Limits how often a client may ask: sliding windows, and the step that applies them (decision 32)."""

import logging
import math
import time
from typing import TYPE_CHECKING

from connexion.operations import AbstractOperation
from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from handlers.http import call
from handlers.http.errors import TooManyRequests
from handlers.http.routing import Make
from handlers.http.steps.sliding_windows import Clock, WindowMemory

if TYPE_CHECKING:
    from handlers.http.steps.redis_windows import RedisWindows

logger = logging.getLogger("bankdata.limits")

IN_PROCESS = "memory://"
ASK_AGAIN_SECONDS = 1.0


class CountsUnusable(Exception):
    """The address of the request counts is wrong, or the client library for it is not installed."""


class CountsAway(Exception):
    """The store of the request counts does not answer; the message names the failure."""


class Rate(Struct, frozen=True):
    """A limit of so many requests in any window of so many seconds."""

    requests: int
    seconds: int


# Of one address, over all operations that list 429 (interface section 8)
DEFAULT_RATE = Rate(requests=60, seconds=60)


class Quota(Struct, frozen=True):
    """What is left of a budget after a request."""

    is_granted: bool
    remaining: int
    reset_seconds: int  # until the oldest counted request leaves the window


class Limiter:
    """Counts requests by budget and client, in this process or, for several processes, in Redis (`redis://...`).

    While Redis does not answer, each process counts for itself: bank data stay readable, and nobody may flood.
    """

    def __init__(self, storage_url: str = IN_PROCESS, *, clock: Clock = time.time, is_on: bool = True) -> None:
        """Unless it `is_on`, whoever spends may."""
        self._is_on = is_on
        self._clock = clock
        self._own = WindowMemory(clock)
        self._shared = None if storage_url == IN_PROCESS else _in_redis(storage_url)
        self._failed_at: float | None = None

    async def take(self, budget: str, rate: Rate, client: str) -> Quota:
        """Take one request out of a client's budget, and return what is left. A refused request is not counted, so it
        does not lengthen the wait."""
        if self._shared is not None and self._may_ask():
            try:
                taken = await self._shared.take(budget, client, most=rate.requests, seconds=rate.seconds)
            except CountsAway as away:
                self._note_failure(away)
            else:
                self._note_success()
                return self._quota(rate, *taken)
        return self._quota(rate, *self._own.take(budget, client, most=rate.requests, seconds=rate.seconds))

    async def spend(self, budget: str, rate: Rate | None, client: str, *, refusal: str | None = None) -> None:
        """Take one request out of a budget whose rest the client is not told; raises TooManyRequests, with the sentence
        `refusal` if it is given. Without a rate nothing is counted."""
        quota = await self.take(budget, rate, client) if rate is not None and self._is_on else None
        if quota is not None and not quota.is_granted:
            raise TooManyRequests(refusal, retry_after=quota.reset_seconds)

    def _quota(self, rate: Rate, is_granted: bool, resets_at: float, remaining: int) -> Quota:
        reset_seconds = min(max(1, math.ceil(resets_at - self._clock())), rate.seconds)
        return Quota(is_granted, remaining if is_granted else 0, reset_seconds)

    def _may_ask(self) -> bool:
        """Whether this request may ask Redis: every request while Redis answers, one a second while it does not."""
        now, asked_at = self._clock(), self._failed_at
        if asked_at is None:
            return True
        if 0 <= now - asked_at < ASK_AGAIN_SECONDS:
            return False
        self._failed_at = now
        return True

    def _note_failure(self, away: CountsAway) -> None:
        if self._failed_at is None:
            logger.warning("Redis does not count requests (%s): this process counts for itself", away)
        self._failed_at = self._clock()

    def _note_success(self) -> None:
        if self._failed_at is not None:
            logger.warning("Redis counts requests again")
        self._failed_at = None


def limits(limiter: Limiter, rate: Rate | None) -> Make:
    """The step that limits each operation: those whose contract lists 429 share one budget per client address.

    GET /sync/{syncId} lists none (interface 4.9): a client that polls its job is never refused.
    """

    def make_limit(operation: AbstractOperation, next_app: ASGIApp) -> ASGIApp:
        if rate is None or "429" not in operation.responses:
            return next_app
        policy = (b"ratelimit-policy", b'"default";q=%d;w=%d' % (rate.requests, rate.seconds))

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
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

        return count

    return make_limit


def _in_redis(url: str) -> "RedisWindows":
    from handlers.http.steps.redis_windows import RedisWindows  # loads a library that few servers need

    return RedisWindows(url)
