"""The load: so many connections with one request under way on each, from a process of its own."""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import cast

import httptools
import uvloop

from tests.benchmarks.bench.store import Someone
from tests.benchmarks.bench.workload import WORKS

PATIENCE_SECONDS = 60  # beyond the time that was asked for


class LoadFailed(Exception):
    """Something else than 200 was answered, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is asked of whom: for so many `seconds`, or, where that is None, of each of them once."""

    port: int
    work: str  # a name of WORKS
    users: list[Someone]
    today: date
    connections: int
    seconds: float | None
    seed: int


@dataclass(slots=True)
class Answered:
    """What came of it; latencies in seconds, one per answer."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)


def drive(load: Load) -> Answered:
    """Ask all of it and measure; every answer was 200. Raises LoadFailed."""
    return uvloop.run(_driven(load))


async def _driven(load: Load) -> Answered:
    loop = asyncio.get_running_loop()
    answered = Answered()
    began = time.perf_counter()
    requests = _requests(load, ends=None if load.seconds is None else began + load.seconds)
    clients = [_AskingConnection(requests, answered, loop.create_future()) for _ in range(load.connections)]
    try:
        async with asyncio.timeout((load.seconds or 0) + PATIENCE_SECONDS):
            for client in clients:
                await loop.create_connection(lambda client=client: client, "127.0.0.1", load.port)  # type: ignore[misc]  # a lambda's default has no type
            await asyncio.gather(*(client.done for client in clients))
    except (OSError, TimeoutError) as error:
        raise LoadFailed(f"{load.work}: the server does not answer ({str(error) or 'not in time'})") from error
    finally:
        for client in clients:
            client.close()
    answered.seconds = time.perf_counter() - began
    return answered


def _requests(load: Load, *, ends: float | None) -> Iterator[bytes]:
    draw = random.Random(load.seed)
    path = WORKS[load.work].path
    users = iter(load.users) if ends is None else iter(lambda: draw.choice(load.users), None)
    for someone in users:
        if ends is not None and time.perf_counter() >= ends:
            return
        yield (
            f"GET /api/v1{path(draw, someone, load.today)} HTTP/1.1\r\nHost: 127.0.0.1:{load.port}\r\n"
            f"Authorization: Bearer {someone.token}\r\n\r\n"
        ).encode()


class _AskingConnection(asyncio.Protocol):
    """One connection; asks the next thing as soon as the last one is answered."""

    def __init__(self, requests: Iterator[bytes], answered: Answered, done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._answered = answered
        self.done = done
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._request = self._body = b""
        self._asked_at = 0.0

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's looks like one and is none
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Called by the parser with a part of the answer."""
        self._body = body

    def on_message_complete(self) -> None:
        """Called by the parser at the end of an answer."""
        status = self._parser.get_status_code()
        if status != 200:
            path = self._request.split(b" ", 2)[1].decode()
            self._end(LoadFailed(f"{path} was answered with {status}: {self._body[:200].decode(errors='replace')}"))
            return
        self._answered.latencies.append(time.perf_counter() - self._asked_at)
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(LoadFailed(f"the server hung up: {exc or 'no reason given'}"))

    def _ask(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._end(None)
            return
        assert self._transport is not None, "asked before it was connected"
        self._request = request
        self._asked_at = time.perf_counter()
        self._transport.write(request)

    def _end(self, failure: LoadFailed | None) -> None:
        if self.done.done():
            return
        if failure is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(failure)
