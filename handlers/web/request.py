"""The plain values that an operation receives and returns, without objects of a web framework."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct, field

from auth.principal import Principal
from handlers.names import Json


class Request(Struct, kw_only=True):
    """What an operation may know of an HTTP request besides its arguments: who calls, method and address, headers, and
    whether the client is still there."""

    caller: Principal | None
    method: str
    path: str  # as the client sees it, for links in answers
    query: str
    headers: Mapping[str, str]  # names are looked up without regard to case
    client_address: str  # of the client, behind trusted proxies too; IPv6 addresses as their /64
    is_gone: Callable[[], Awaitable[object]] = field(default_factory=lambda: asyncio.Event().wait)
    """Returns once the client is gone (a caller within this process never is); call it only after reading the body."""

    language: str = "en"  # for the sentences of the answer

    @property
    def principal(self) -> Principal:
        """The caller, whom every operation that the contract secures has; raises AssertionError where there is none."""
        assert self.caller is not None, "an operation without security in the contract asked who calls"
        return self.caller

    def knows(self, etag: str) -> bool:
        """Whether the client has the answer with this entity tag already: whether If-None-Match names the tag, be it as
        a weak one, or `*` (RFC 9110 13.1.2)."""
        named = self.headers.get("if-none-match", "").split(",")
        return any(each.strip().removeprefix("W/") in (etag, "*") for each in named)


EVENT_STREAM = "text/event-stream"
"""The content-type of an answer that goes on for as long as its client listens."""


class Pieces(Protocol):
    """The body of an answer that is produced while it is sent; its length is not known beforehand."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces of the body, in order."""
        ...

    async def aclose(self) -> None:
        """Stop producing pieces, because nobody reads them any more."""
        ...


class Answer(Struct, frozen=True, kw_only=True):
    """What an operation answers if nothing fails. `body` becomes JSON, except that bytes, files and pieces are sent as
    they are (`headers` must then name their content-type). Answers are `no-store` unless `headers` says otherwise.

    A file is sent from its beginning, piece by piece, and closed. `Pieces` are sent as they come, and closed when they
    end or nobody reads them any more.
    """

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Operation = Callable[..., "Answer | Json | Awaitable[Answer | Json]"]
"""`def name(request: Request, **arguments) -> Answer | dict`, by operationId.

Arguments are the contract's parameters in snake_case, every one of them, None where there is neither value nor
default, and `body` where the contract has a requestBody (None when the client sent none). A plain function runs in a
worker thread, an `async def` directly. Failures are raised as the classes of `handlers.web.errors`.
"""
