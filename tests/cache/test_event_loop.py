"""What the event loop does by itself is small and in memory: the store is asked in threads, a user at a time."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Message, Scope

from auth.scopes import SCOPES
from handlers.oauth.endpoints import bearer_check
from handlers.operations import LIGHT_ROWS_MAX, LIGHT_SEARCH_ROWS_MAX, OPERATIONS, Read
from handlers.operations.changes.cursors import RENEWED_AFTER
from handlers.server import application
from handlers.settings import load
from handlers.web import call
from handlers.web.errors import ChangeWaits, TooManyAtOnce
from handlers.web.request import Answer, Request
from handlers.web.steps import dispatch as dispatching
from handlers.web.steps.dispatch import dispatch
from handlers.web.steps.turns import OF_USER_MAX, READS_AT_ONCE, Turns
from handlers.work.cache.user_data import Need, UserData
from handlers.work.services import open_services
from storage import accounts, users
from storage.database import StoreUnavailable
from storage.engines.duckdb_file import DuckDBFile
from tests.cache.conftest import asking
from tests.conftest import empty_folder

PATHS = (
    "/accounts",
    "/transactions?perPage=5&accountIds={account}",
    "/transactions?perPage=5&page=2&category=GROCERIES&dateFrom=2026-01-01&search=re&accountIds={account}",
    "/transactions/{id}",
    "/transactions/{id}/explanation",
    "/cashflow?accountIds={account}",
    "/cashflow/2026-10/transactions?accountIds={account}",
    "/snapshot?accountIds={account}",
    "/snapshot/categories/GROCERIES/transactions?accountIds={account}",
    "/subscriptions?accountIds={account}",
    "/subscriptions/details?accountIds={account}",
)


@pytest.mark.requirement("cache.event-loop")
def test_the_event_loop_never_asks_the_store(copied: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    on_the_loop: list[str] = []
    asked: list[str] = []
    original = DuckDBFile._session

    def look(store: DuckDBFile) -> AbstractContextManager[Any]:
        asked.append("a session")
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # a thread of its own, as it should be
            return original(store)
        on_the_loop.append("a session")
        return original(store)

    monkeypatch.setattr(DuckDBFile, "_session", look)
    services = open_services(load({"BANKDATA_RATE_LIMIT": "off"}, data_dir=copied()))
    user = users.get_by_name(services.everybody, "demo")
    token = services.authorization.issue_token(user.id, frozenset(SCOPES), timedelta(hours=1))
    app = application(services)
    asked.clear()

    async def read() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url="http://127.0.0.1:8000/api/v1",
            headers={"Authorization": f"Bearer {token}"},
        ) as client:
            account = (await client.get("/accounts")).json()["accounts"][0]["id"]
            first = (await client.get(f"/transactions?accountIds={account}")).json()["transactions"][0]["id"]
            for _ in range(2):
                before = len(asked)
                for path in PATHS:
                    answer = await client.get(path.format(id=first, account=account))
                    assert answer.status_code == 200, (path, answer.text)
            assert len(asked) == before, "what was answered once is answered from memory"

    try:
        asyncio.run(read())
    finally:
        services.close()
    assert asked
    assert on_the_loop == []


@pytest.mark.requirement("changes.promise")
@pytest.mark.parametrize("path", ["/transactions/changes", "/accounts/changes"])
def test_a_poll_without_news_takes_no_thread_and_no_statement_and_none_of_the_data(
    copied: Callable[[], Path], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    services = open_services(load({"BANKDATA_RATE_LIMIT": "off"}, data_dir=copied()))
    user = users.get_by_name(services.everybody, "demo")
    token = services.authorization.issue_token(user.id, frozenset(SCOPES), timedelta(days=2))

    async def poll() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=application(services)),
            base_url="http://127.0.0.1:8000/api/v1",
            headers={"Authorization": f"Bearer {token}"},
        ) as client:
            cursor = await read_to_the_end(client, path)
            await client.get(path, params={"cursor": cursor})  # from now on memory knows the state
            with monkeypatch.context() as nothing_else:
                nothing_else.setattr(DuckDBFile, "_session", None)
                nothing_else.setattr(dispatching, "to_thread", None)
                answers = [await client.get(path, params={"cursor": cursor}) for _ in range(2)]
                assert (await client.get(path, params={"cursor": f"{cursor}x"})).status_code == 400
            empty = {"added": [], "modified": [], "removed": [], "hasMore": False, "nextCursor": cursor}
            assert [each.json() for each in answers] == [empty, empty]
            assert services.reader.cache.at_hand(user.id) is None
            services.clock.offset += RENEWED_AFTER
            renewed = (await client.get(path, params={"cursor": cursor})).json()
            assert renewed["nextCursor"] != cursor
            assert renewed | {"nextCursor": cursor} == empty
            account = accounts.every(services.everybody, user.id)[0].id
            renamed = partial(accounts.rename, user_id=user.id, account_id=account, name="Household")
            await asyncio.to_thread(services.everybody.atomically, renamed)
            assert (await client.get(path, params={"cursor": cursor})).json()["modified"]

    try:
        asyncio.run(poll())
    finally:
        services.close()


async def read_to_the_end(client: httpx.AsyncClient, path: str) -> str:
    """The cursor of whoever has read all there is."""
    page = (await client.get(path)).json()
    while page["hasMore"]:
        page = (await client.get(path, params={"cursor": page["nextCursor"]})).json()
    return str(page["nextCursor"])


class Rows:
    """Stands for entries of which only the number matters."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count


@pytest.mark.requirement("cache.event-loop")
@pytest.mark.parametrize(
    ("search", "rows", "is_light"),
    [
        (None, LIGHT_ROWS_MAX, True),
        (None, LIGHT_ROWS_MAX + 1, False),
        ("rewe", LIGHT_SEARCH_ROWS_MAX, True),
        ("rewe", LIGHT_SEARCH_ROWS_MAX + 1, False),
    ],
)
def test_pages_of_large_users_are_made_in_threads(search: str | None, rows: int, is_light: bool) -> None:
    data = UserData(state=1, home_currency="EUR", accounts=[])
    listing = OPERATIONS["listTransactions"]
    assert isinstance(listing, Read)
    data.entries = Rows(rows)  # type: ignore[assignment]  # only its length is read
    data.loaded |= Need.LIST
    assert listing.is_light(data, {"search": search}) is is_light


class Slow:
    """An operation that takes its time, and has in memory what it was asked for once."""

    operation_id = "slow"

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.calls: list[str] = []
        self.running = self.running_at_most = 0
        self._lock = threading.Lock()
        self.go_on = threading.Event()

    @property
    def function(self) -> "Slow":
        return self

    async def at_once(self, request: Request) -> Answer | None:
        return Answer(body={}) if request.principal.user_id in self.kept else None

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.calls.append(request.principal.user_id)
            self.running += 1
            self.running_at_most = max(self.running, self.running_at_most)
        assert self.go_on.wait(60)
        with self._lock:
            self.running -= 1
            self.kept.add(request.principal.user_id)
        return Answer(body={})


@pytest.mark.requirement("postgresql.silence")
def test_who_waits_behind_a_reader_for_whom_the_store_was_away_hears_it_without_trying() -> None:
    tried: list[str] = []

    async def read(turns: Turns, user_id: str, name: str) -> None:
        async with turns.of(user_id):
            tried.append(name)
            await asyncio.sleep(0)  # others come
            if name == "first":
                raise StoreUnavailable

    async def everybody() -> list[BaseException | None]:
        turns = Turns(StoreUnavailable)
        readers = [read(turns, "ada", "first"), read(turns, "ada", "second"), read(turns, "eva", "other")]
        told = await asyncio.gather(*readers, read(turns, "ada", "third"), return_exceptions=True)
        await read(turns, "ada", "next")
        return told

    assert [type(each) for each in asyncio.run(everybody())] == [
        StoreUnavailable, StoreUnavailable, type(None), StoreUnavailable,
    ]  # fmt: skip
    assert tried == ["first", "other", "next"]


@pytest.mark.requirement("store.held")
def test_a_change_that_waits_for_too_long_behind_another_of_its_user_is_told_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("handlers.web.steps.turns.CHANGE_SECONDS", 0.05)

    async def everybody() -> None:
        turns = Turns(StoreUnavailable)
        async with turns.to_change("ada"), turns.to_change("eva"), turns.of("ada"):
            with pytest.raises(ChangeWaits, match="still being stored"):
                async with turns.to_change("ada"):
                    raise AssertionError("two changes of one user at once")
        async with turns.to_change("ada"):
            pass

    asyncio.run(everybody())


@pytest.mark.requirement("cache.event-loop")
def test_of_one_user_so_many_requests_are_answered_at_once_and_one_more_is_told_to_come_again() -> None:
    turns = Turns()
    with ExitStack() as answered:
        for _ in range(OF_USER_MAX):
            answered.enter_context(turns.answering("ada"))
        with pytest.raises(TooManyAtOnce), turns.answering("ada"):
            pass
        answered.enter_context(turns.answering("eva"))
    with turns.answering("ada"):
        pass


@pytest.mark.requirement("postgresql.silence")
def test_whether_a_token_is_valid_is_asked_once_for_all_requests_that_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(token: str, _audience: str) -> None:
        asked.append(token)
        raise StoreUnavailable

    async def everybody(authenticate: Callable[[str], Awaitable[object]]) -> list[object]:
        return await asyncio.gather(*map(authenticate, ("a", "a", "b", "a")), return_exceptions=True)

    with closing(open_services(load({}, data_dir=empty_folder(tmp_path / "data")))) as services:
        monkeypatch.setattr(services.authorization.access, "principal", ask)
        told = asyncio.run(everybody(bearer_check(services.authorization)))
    assert [type(each) for each in told] == [StoreUnavailable] * 4
    assert sorted(asked) == ["a", "b"]


@pytest.mark.requirement("cache.event-loop")
def test_a_user_waits_in_line_with_himself_and_few_are_served_at_once() -> None:
    slow, answered = Slow(), []
    names = [f"user{number}" for number in range(READS_AT_ONCE + 2)]

    async def receive() -> Message:
        raise AssertionError("nothing is read of the request")

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answered.append(message["status"])

    async def ask(app: ASGIApp, name: str) -> None:
        scope: Scope = {"type": "http", "method": "GET", "path": "/slow", "query_string": b"", "headers": []}
        call.begin(scope, "127.0.0.1").caller = asking(name, "slow", "").caller
        await app(scope, receive, send)

    async def everybody() -> None:
        operation: Any = slow  # all that the step reads of an operation is its function
        app = dispatch(operation, ask, public_path="", turns=Turns())  # type: ignore[arg-type]  # nothing comes after it
        requests = [asyncio.create_task(ask(app, name)) for name in names for _ in range(3)]
        while len(slow.calls) < READS_AT_ONCE:
            await asyncio.sleep(0)
        slow.go_on.set()
        await asyncio.gather(*requests)

    asyncio.run(everybody())
    assert answered == [200] * 3 * len(names)
    assert sorted(slow.calls) == names
    assert slow.running_at_most <= READS_AT_ONCE
