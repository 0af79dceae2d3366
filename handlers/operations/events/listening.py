"""GET /events: the caller's events as a stream of server-sent events, until either side ends it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool

from auth.errors import InvalidToken
from auth.principal import Principal
from handlers.names import Json
from handlers.operations.events.event_shapes import NEEDS, EventIds, data_of, receives, shape
from handlers.web.errors import BadRequest
from handlers.web.request import EVENT_STREAM, Answer, Request
from handlers.work.services import Services
from storage.database import StoreUnavailable
from storage.events import outbox

RETRY = b"retry: 5000\n\n"  # milliseconds after which a client that was cut off comes back
RETRY_LATER = b"retry: 60000\n\n"  # the same for one that gave way, lest it push out others at once
LOOK_EVERY = 0.5  # seconds between looks at the state's number, in memory or read once for all streams of a process
READ_AT_ONCE = 200
HEADERS = {"content-type": EVENT_STREAM, "x-accel-buffering": "no"}


async def listen_to_events(services: Services, request: Request, *, types: str | None) -> Answer:
    """Open the stream of the caller's events of these types (comma-separated), or of all types if none is named, after
    the event that the header Last-Event-ID names, else from now on. Raises BadRequest, and TooManyRequests for a sixth
    stream of a grant."""
    caller, wanted = request.principal, _event_types(types)
    ids = EventIds(incarnation=services.incarnation, user_id=caller.user_id)
    last = request.headers.get("last-event-id", "")
    after = ids.read(last, services.clock.now()) if last else None
    is_reset = bool(last) and after is None
    if after is None:
        after = await run_in_threadpool(outbox.position, services.of(caller.user_id), caller.user_id)
    services.streams.check(caller)
    return Answer(body=EventStream(services, request, ids, wanted, after, is_reset=is_reset), headers=HEADERS)


def _event_types(types: str | None) -> Collection[str]:
    named = {part.strip() for part in (types or "").split(",")} - {""}
    if named - NEEDS.keys():
        raise BadRequest("types: must be some of {allowed}", allowed=", ".join(NEEDS))
    return named or NEEDS.keys()


class EventStream:
    """The pieces of one stream, which counts as open from the start: `aclose` has to be called, even if nothing was
    read of it."""

    def __init__(
        self,
        services: Services,
        request: Request,
        ids: EventIds,
        wanted: Collection[str],
        after: int,
        *,
        is_reset: bool,
    ) -> None:
        """The stream begins after the sequence number `after`; `is_reset` tells the client that it has missed events
        that are lost."""
        self._services = services
        self._request = request
        self._token = request.headers["authorization"].split()[1]
        self._audience: str | None = None  # of the token; None: the data interface
        self._user_id = request.principal.user_id
        self._ids = ids
        self._event_types = wanted
        self._after = after
        self._is_reset = is_reset
        self._leaving: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pieces = self._produce()
        services.streams.add(self, request.principal)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        """End the stream, because nobody reads it any more, and stop counting it; may be called again."""
        await self._pieces.aclose()
        self._services.streams.remove(self)

    def give_way(self) -> None:
        """End the stream as soon as its client reads on, for too many are open; the client is told to come back."""
        if not self._leaving.done():
            self._leaving.set_result(None)

    async def _produce(self) -> AsyncGenerator[bytes, None]:
        yield self._beginning()
        if self._request.method == "HEAD":
            return
        loop, gone = asyncio.get_running_loop(), asyncio.ensure_future(wait_until_gone(self._request))
        silent_since, seen = loop.time(), None
        heartbeat = self._services.settings.events_heartbeat_seconds.total_seconds()
        try:
            while not gone.done() and not self._services.sync_engine.stopped.is_set():
                if self._leaving.done():
                    yield RETRY_LATER
                    return
                if self._ids.incarnation != self._services.incarnation:
                    return  # the client reconnects and hears that it has missed events
                caller = await self._caller()
                if caller is None:
                    return
                state = await self._state()
                if state != seen:
                    lines, is_all = await run_in_threadpool(self._read, caller)
                    if is_all:
                        seen = state
                    if lines:
                        silent_since = loop.time()
                        yield b"".join(lines)
                    if not is_all:
                        continue
                if loop.time() - silent_since >= heartbeat:
                    silent_since = loop.time()
                    yield b":\n\n"
                await asyncio.wait([gone, self._leaving], timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
        except StoreUnavailable:
            return  # the client reconnects and resumes after the last event it has
        finally:
            gone.cancel()

    def _beginning(self) -> bytes:
        """The first piece, with an event that carries the client's position: there it resumes if it is cut off before
        any other."""
        said = [self._of_stream("stream.reset")] if self._is_reset else []
        return b"".join([RETRY, *said, self._of_stream("stream.opened")])

    def _of_stream(self, type_: str) -> bytes:
        now = self._services.clock.now()
        id_ = self._ids.write(self._after, now)
        return _line(shape(id_, type_, now, {}))

    async def _caller(self) -> Principal | None:
        """The principal of the stream's token, checked like that of a request; None if the token or the subscription
        has ended."""
        access = self._services.authorization.access
        try:
            caller = access.principal_in_memory(self._token, self._audience)
            if caller is None:
                caller = await run_in_threadpool(access.principal, self._token, self._audience)
        except InvalidToken:
            return None
        return caller if caller.has_subscription else None

    async def _state(self) -> int:
        store = self._services.store
        known = await store.state_without_thread(self._user_id)
        return known if known is not None else await run_in_threadpool(store.state, self._user_id)

    def _read(self, caller: Principal) -> tuple[list[bytes], bool]:
        """The next events that are for the caller, as lines of the stream, and whether they are the last ones for now;
        moves the stream's position behind them."""
        with self._services.of(self._user_id).transaction() as session:
            recorded = outbox.after(session, self._user_id, self._after, limit=READ_AT_ONCE)
            meant = [each for each in recorded if each.type in self._event_types and receives(caller, each.type)]
            events = [(each, data) for each in meant if (data := data_of(session, caller, each)) is not None]
        self._after = recorded[-1].sequence if recorded else self._after
        ids = self._ids
        lines = [
            _line(shape(ids.write(each.sequence, each.recorded_at), each.type, each.recorded_at, data))
            for each, data in events
        ]
        return lines, len(recorded) < READ_AT_ONCE


def _line(event: Json) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (event["id"].encode(), event["type"].encode(), orjson.dumps(event))


async def wait_until_gone(request: Request) -> None:
    """Wait until the client is gone; messages that it sent before are read and ignored."""
    message: Any = await request.is_gone()
    while message["type"] != "http.disconnect":
        message = await request.is_gone()
