"""The question to a person whose client shook hands: it is asked on the stream that answers the call, and the answer
comes as a message of its own, to whichever process."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import orjson
from starlette.concurrency import run_in_threadpool

from auth.principal import Principal
from auth.secret_text import new_secret
from handlers.mcp.annotating import CONFIRMATION
from handlers.mcp.messages import exact_number
from handlers.names import Json
from handlers.operations.events.event_shapes import EventIds
from handlers.operations.events.listening import LOOK_EVERY, EventStream, wait_until_gone
from handlers.web.request import EVENT_STREAM, Request
from handlers.work.services import Services
from storage.database import StoreUnavailable

ANSWERED_WITHIN = 300.0  # seconds


def is_possible(request: Request) -> bool:
    """Whether the client takes a stream in answer to a call."""
    return EVENT_STREAM in request.headers.get("accept", "")


def asked_by(caller: Principal) -> str:
    """Through whom a question is asked: the answer has to come by the same grant."""
    return f"ask {caller.user_id} {caller.grant_id or ''}"


class PersonAsked(EventStream):
    """The stream with a question, and then with the result that `go_on` makes of the person's answer: accept, decline
    or cancel, which is also said where none comes within five minutes; and of the access as it is by then. Nothing is
    gone on with for a client that has left, or whose access has ended."""

    def __init__(
        self, services: Services, request: Request, question: Json, go_on: Callable[[str, Principal], Awaitable[Json]]
    ) -> None:
        ids = EventIds(incarnation=services.incarnation, user_id=request.principal.user_id)
        self._question, self._go_on = question, go_on
        super().__init__(services, request, ids, (), 0, is_reset=False)
        self._audience = services.authorization.policy.address_of("mcp")

    async def _produce(self) -> AsyncGenerator[bytes, None]:
        asker, secret = asked_by(self._request.principal), new_secret()
        errands, loop = self._services.authorization.errands, asyncio.get_running_loop()
        told = self._question["inputRequests"][CONFIRMATION]
        params = {name: value for name, value in told["params"].items() if name != "mode"}  # unknown before 2025-11-25
        gone = asyncio.ensure_future(wait_until_gone(self._request))
        heartbeat = self._services.settings.events_heartbeat_seconds.total_seconds()
        silent_since = begun = loop.time()
        try:
            await run_in_threadpool(errands.ask, secret, asker, self._user_id)
            yield _frame({"jsonrpc": "2.0", "id": secret, "method": told["method"], "params": params})
            while True:
                await asyncio.wait([gone, self._leaving], timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED)
                if gone.done() or self._services.sync_engine.stopped.is_set():
                    return
                answer = await run_in_threadpool(errands.answer_to, secret, asker)
                caller = await self._caller()
                if caller is None:
                    return
                if answer is not None or self._leaving.done() or loop.time() >= begun + ANSWERED_WITHIN:
                    break
                if loop.time() - silent_since >= heartbeat:
                    silent_since = loop.time()
                    yield b":\n\n"
            yield _frame(await self._go_on(answer or "cancel", caller))
        except StoreUnavailable:
            return  # without a result: the client asks again
        finally:
            gone.cancel()


def _frame(message: Json) -> bytes:
    return b"event: message\ndata: %b\n\n" % orjson.dumps(message, default=exact_number)
