"""What the steps of the loop tell each other about one request, and how an answer is put on the wire."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from typing import Any

import orjson
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Scope, Send

from auth.principal import Principal
from handlers.http.request import Answer, Pieces

PIECE_BYTES = 262_144  # of a file at once: what one slow reader keeps in memory

_KEY = "bankdata.call"
Header = tuple[bytes, bytes]

JSON_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),  # decision 12: bank data stay out of every cache
)


@dataclass(slots=True)
class Call:
    """One request on its way in: each step adds what it found out, the last one calls the operation."""

    client_address: str
    caller: Principal | None = None  # who showed a good token, admitted or not
    arguments: dict[str, Any] = field(default_factory=dict)
    headers: list[Header] = field(default_factory=list)  # of the answer, whatever it will be
    retry_not_before: int = 1  # seconds; no Retry-After of this call is shorter (decision 32)


def begin(scope: Scope, client_address: str) -> Call:
    """The call of a request that has just arrived."""
    call = Call(client_address)
    scope[_KEY] = call
    return call


def current(scope: Scope) -> Call:
    """The call that the outermost application has begun."""
    call: Call = scope[_KEY]
    return call


async def send_answer(send: Send, answer: Answer) -> None:
    """The answer as JSON, or as the bytes, the file or the pieces that it is."""
    body = answer.body
    if not isinstance(body, bytes):
        if isinstance(body, BufferedIOBase):
            await _send_file(send, answer, body)
            return
        if hasattr(body, "__aiter__"):  # whether it is Pieces takes longer to see than to write the rest
            await _send_pieces(send, answer, body)
            return
        body = encoded(body)
    await send(_start(answer, len(body)))
    await send({"type": "http.response.body", "body": body})


async def _send_file(send: Send, answer: Answer, file: BufferedIOBase) -> None:
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        await send(_start(answer, size))
        while piece := await run_in_threadpool(file.read, PIECE_BYTES):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _send_pieces(send: Send, answer: Answer, pieces: Pieces) -> None:
    try:
        await send(_start(answer, None))
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await pieces.aclose()


def _start(answer: Answer, size: int | None) -> Message:
    said = JSON_HEADERS if not answer.headers else _with_own(answer.headers)
    # A 304 would have to say how long the 200 is, and a 204 may say nothing (RFC 9110 8.6)
    length = [] if answer.status in (204, 304) or size is None else [(b"content-length", b"%d" % size)]
    headers = [*said, *length]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


def encoded(body: Any) -> bytes:
    """A body as JSON."""
    try:
        return orjson.dumps(body)
    except TypeError:
        # orjson writes integers of 64 bits only, and a page of 10**30 is answered as it was asked for (decision 2)
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _with_own(own_headers: Mapping[str, str]) -> list[Header]:
    own: dict[bytes, bytes] = {}
    for name, value in own_headers.items():
        if not value.isprintable():
            raise ValueError("a header of an answer holds a control character")  # the server would send it as it is
        own[name.lower().encode("latin-1")] = value.encode("latin-1")
    return [*(header for header in JSON_HEADERS if header[0] not in own), *own.items()]
