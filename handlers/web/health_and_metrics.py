"""Routes for monitors: whether the service can answer (/readyz), and its figures (/metrics)."""

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from handlers.web.addresses import Network, is_in
from handlers.web.errors import Unavailable

READY_WITHIN = 2.0  # seconds; load balancers ask every few seconds
_BY_A_PROXY = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def health_and_metrics(
    figures: Callable[[], bytes], *, is_ready: Callable[[], bool], metrics_for: Sequence[Network]
) -> list[Route]:
    """The GET routes of /readyz for everybody, and of /metrics for requests straight from these networks; others get a
    404.

    `is_ready` and `figures`, the text of /metrics, ask the store and may take long. /readyz answers 503 unless
    `is_ready` returns True within 2 seconds.
    """
    asking: asyncio.Task[bool] | None = None  # shared by all who ask: a store that hangs costs one thread only

    async def ready(_request: Request) -> Response:
        nonlocal asking
        if asking is None or asking.done():
            asking = asyncio.create_task(run_in_threadpool(is_ready))
        await asyncio.wait([asking], timeout=READY_WITHIN)
        is_up = asking.done() and asking.result()
        if not is_up:
            raise Unavailable("The store does not answer")
        return JSONResponse({"status": "ok"}, headers={"cache-control": "no-store"})

    async def metrics(request: Request) -> Response:
        if not is_from(request, metrics_for):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        text = await run_in_threadpool(figures)
        return Response(text, headers={"content-type": CONTENT_TYPE_LATEST, "cache-control": "no-store"})

    return [Route("/readyz", ready, methods=["GET"]), Route("/metrics", metrics, methods=["GET"])]


def is_from(request: Request, networks: Sequence[Network]) -> bool:
    """Whether a request comes directly from a machine in these networks; one with a header of a proxy (such as Via or
    X-Forwarded-For) does not count."""
    if any(name in request.headers for name in _BY_A_PROXY):
        return False
    return request.client is not None and is_in(request.client.host, networks)
