"""The demo's store opened in this process, and its operations with and without what is kept in memory."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from auth.principal import Principal
from handlers.operations import operations
from handlers.settings import load
from handlers.web import call
from handlers.web.errors import Refusal
from handlers.web.request import Answer, Request
from handlers.work.cache.reader import Reader
from handlers.work.services import Services, open_services
from storage import users
from tests.cache.from_store import FromStoreReader
from tests.service.conftest import copied, demo_store

__all__ = ["copied", "demo_store"]

T = TypeVar("T")
Said = tuple[int, bytes, Mapping[str, str]]


@dataclass
class Operations:
    """The operations of one open service, called as the loop calls them, without the loop."""

    services: Services

    def __post_init__(self) -> None:
        self.table = operations(self.services)

    def ask(self, name: str, user_id: str, *, query: str = "", **arguments: Any) -> Said:
        """Status, body and headers, from memory at once where that is possible."""
        request = asking(user_id, name, query)
        function: Any = self.table[name]
        try:
            answer = at_once(function.at_once(request, **arguments)) or function(request, **arguments)
        except Refusal as refusal:
            return refusal.status, str(refusal).encode(), {}
        return said(answer)


def at_once(asked: Coroutine[Any, Any, T]) -> T:
    """What the event loop is told without waiting, as the embedded store promises it."""
    try:
        asked.send(None)
    except StopIteration as ended:
        told: T = ended.value
        return told
    raise AssertionError("it waits")


def asking(user_id: str, name: str, query: str) -> Request:
    """A request of this user."""
    principal = Principal(user_id=user_id, client_id="test", scopes=frozenset(), grant_id="test", has_subscription=True)
    return Request(
        caller=principal, method="GET", path=f"/api/v1/{name}", query=query, headers={}, client_address="127.0.0.1"
    )


def said(answer: Answer) -> Said:
    """What would be on the wire."""
    return (
        answer.status,
        call.json_bytes(answer.body) if not isinstance(answer.body, bytes) else answer.body,
        answer.headers,
    )


@pytest.fixture(scope="module")
def opened(copied: Callable[[], Path]) -> Iterator[Services]:
    """The demo's services, for the tests of one module."""
    services = open_services(load({}, data_dir=copied()))
    yield services
    services.close()


@pytest.fixture(scope="module")
def kept(opened: Services) -> Operations:
    """Answers come from memory where they can."""
    return Operations(opened)


@pytest.fixture(scope="module")
def slow(opened: Services) -> Operations:
    """Every answer is read from the store by SQL."""
    return Operations(replace(opened, reader=FromStoreReader(opened.store, opened.reader.render)))


@pytest.fixture(scope="module")
def forgetful(opened: Services) -> Operations:
    """Everything is read anew, for nothing is kept in memory."""
    return Operations(replace(opened, reader=Reader(opened.store, bytes_max=0, render=opened.reader.render)))


@pytest.fixture(scope="module")
def user_ids(opened: Services) -> dict[str, str]:
    """The demo's users by name."""
    return {user.name: user.id for user in users.everyone(opened.everybody)}
