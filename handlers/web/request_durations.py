"""Measures how many requests of which operation got which status, and how fast; logs slow ones."""

import logging
import time
from collections.abc import Callable, Collection
from functools import cache

from prometheus_client import CollectorRegistry, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from auth.principal import Principal
from handlers.web import call, request_id
from handlers.web.framework import ROUTING_CONTEXT

SLOW_SECONDS = 1.0
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds
NO_OPERATION = "none"  # pages, documents, addresses that do not exist

log = logging.getLogger("bankdata.requests")

OnRequest = Callable[[Principal, str, int, bool], None]
"""Called for each request with a valid token: with the caller, the operation, the status of the answer, and whether
nothing was to be changed (dryRun)."""


def nobody(_caller: Principal, _operation: str, _status: int, _is_dry_run: bool) -> None:
    """Ignore the request: the default for `seen`."""


class RequestDurations:
    """The ASGI application around the whole other one, which measures each request for the metrics.

    A duration begins when the request has arrived with its body, and ends when the answer begins: how fast a client
    sends and reads says nothing about the service. The log names operation, status, duration and id of a slow request
    (1 second or more), never its address or query, which hold search texts.
    """

    def __init__(
        self, app: ASGIApp, registry: CollectorRegistry, *, waiting: Collection[str], seen: OnRequest = nobody
    ) -> None:
        """`waiting` are ids of operations that wait for others on purpose, whose long durations are not logged. `seen`
        is called for each request with a valid token."""
        self._app = app
        self._seen = seen
        self._waiting = frozenset(waiting)
        durations = Histogram(
            "bankdata_request_duration_seconds",
            "Seconds from the end of a request to the beginning of its answer, by operationId and status.",
            ["operation", "status"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._duration = cache(durations.labels)  # which takes a lock and builds a key each time

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()

        async def timed_receive() -> Message:
            nonlocal began
            message = await receive()
            if message.get("body"):
                began = time.perf_counter()
            return message

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._note(scope, message["status"], time.perf_counter() - began)
            await send(message)

        await self._app(scope, timed_receive, timed_send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        found = scope.get("extensions", {}).get(ROUTING_CONTEXT, {})
        operation: str = found.get("operation_id") or NO_OPERATION
        self._duration(operation, str(status)).observe(seconds)
        asked = call.current(scope)
        if asked.caller is not None:
            self._seen(asked.caller, operation, status, bool(asked.arguments.get("dry_run")))
        if seconds >= SLOW_SECONDS and operation not in self._waiting:
            log.warning("slow: %s, %d after %.1f s, request %s", operation, status, seconds, request_id.current())
