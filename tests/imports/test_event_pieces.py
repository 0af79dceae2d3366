"""The pieces of a stream of events, read without a network."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from auth.scopes import ALL_SCOPES
from handlers.commands.table import perform
from handlers.operations.events import listening
from handlers.operations.events.listening import EventStream, listen_to_events
from handlers.web.errors import BadRequest, TooManyRequests
from handlers.web.request import Request
from storage.database import StoreUnavailable
from tests.imports.household import Household
from tests.imports.test_change_feed import GIRO, Life, booked


class Side:
    """The client of a stream."""

    def __init__(self, eva: Household, token: str, *, method: str = "GET", last: str | None = None) -> None:
        self.eva = eva
        self.left = asyncio.Event()
        self.messages = [{"type": "http.request"}]
        headers: Mapping[str, str] = {"authorization": f"Bearer {token}", **({"last-event-id": last} if last else {})}
        self.request = Request(
            caller=eva.services.authorization.access.principal(token),
            method=method,
            path="/api/v1/events",
            query="",
            headers=headers,
            client_address="127.0.0.1",
            is_gone=self.heard,
        )

    async def heard(self) -> object:
        if self.messages:
            return self.messages.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def open(self, types: str | None = None) -> EventStream:
        answer = await listen_to_events(self.eva.services, self.request, types=types)
        assert isinstance(answer.body, EventStream)
        return answer.body


def token_of(eva: Household, **terms: Any) -> str:
    made = eva.services.authorization.issue_token(eva.user.id, frozenset(ALL_SCOPES), timedelta(days=1), **terms)
    return str(made)


def id_in(piece: bytes) -> str:
    return piece.decode().rpartition("id: ")[2].partition("\n")[0]


@pytest.mark.requirement("events.stream")
def test_what_happened_meanwhile_comes_page_by_page_and_a_client_that_leaves_ends_it(
    eva: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "READ_AT_ONCE", 2)
    life, token = Life(eva), token_of(eva)

    async def work() -> None:
        first = await Side(eva, token).open()
        begun = await anext(aiter(first))
        assert begun.startswith(b"retry: 5000\n\nid: ")
        await first.aclose()
        for day in range(1, 4):
            life.bring(GIRO, booked(f"2026-03-0{day}", f"-{day}.00", "Rewe", f"{day}"))
        side = Side(eva, token, last=id_in(begun))
        stream = await side.open()
        pieces = [await anext(aiter(stream)) for _ in range(4)]
        assert [piece.count(b"event: ") for piece in pieces] == [1, 2, 2, 2]
        assert pieces[1].count(b"event: transactions.changed") == 1
        side.left.set()
        assert [piece async for piece in stream] == []
        await stream.aclose()
        reset = await Side(eva, token, last="evt_1").open(types="balance.low")
        assert (await anext(aiter(reset))).count(b"event: stream.reset\n") == 1
        await reset.aclose()
        with pytest.raises(BadRequest, match="types: must be some of"):
            await Side(eva, token).open(types="nothing")

    asyncio.run(work())


@pytest.mark.requirement("events.stream")
def test_a_head_is_its_beginning_and_a_store_that_is_away_its_end(
    eva: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(eva)

    async def work() -> None:
        head = await Side(eva, token, method="HEAD").open()
        assert len([piece async for piece in head]) == 1
        await head.aclose()
        stream = await Side(eva, token).open()
        assert await anext(aiter(stream))

        async def away(*_: object) -> None:
            raise StoreUnavailable

        with monkeypatch.context() as patched:
            patched.setattr(type(eva.services.store), "state_without_thread", away)
            assert [piece async for piece in stream] == []
        await stream.aclose()

    asyncio.run(work())


@pytest.mark.requirement("events.stream")
def test_one_that_is_closed_unread_makes_room_and_beats_come_in_silence(
    eva: Household, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = token_of(eva)
    monkeypatch.setattr(listening, "LOOK_EVERY", 0.01)
    object.__setattr__(eva.services.settings, "events_heartbeat_seconds", timedelta(seconds=0.02))

    async def work() -> None:
        streams = [await Side(eva, token).open() for _ in range(5)]
        with pytest.raises(TooManyRequests, match="At most 5 streams"):
            await Side(eva, token).open()
        await streams[0].aclose()
        await streams[0].aclose()
        last = await Side(eva, token).open()
        pieces = aiter(last)
        assert await anext(pieces)
        assert await anext(pieces) == b":\n\n"
        eva.services.sync_engine.stop()
        assert [piece async for piece in pieces if piece != b":\n\n"] == []
        for each in [*streams, last]:
            await each.aclose()

    asyncio.run(work())


@pytest.mark.requirement("events.stream")
def test_a_stream_ends_with_its_grant_and_with_the_subscription(eva: Household) -> None:
    tokens = [token_of(eva), token_of(eva)]
    services = eva.services

    async def work() -> None:
        unpaid, revoked = [await Side(eva, token).open() for token in tokens]
        assert [await anext(aiter(each)) for each in (unpaid, revoked)]
        perform(services, "users subscription", {"name": "eva", "active": False}, eva)
        assert [piece async for piece in unpaid] == []
        perform(services, "users subscription", {"name": "eva", "active": True}, eva)
        services.clock.offset += timedelta(days=2)
        assert [piece async for piece in revoked] == []
        for each in (unpaid, revoked):
            await each.aclose()

    asyncio.run(work())
