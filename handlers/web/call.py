"""The state of one request, which the steps of the HTTP loop pass on, and the sending of its answer."""

import json
import os
from collections.abc import Callable, Mapping
from io import BufferedIOBase
from typing import Any

import orjson
from msgspec import Struct, field
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Scope, Send

from auth.principal import Principal
from handlers.languages import ENGLISH, preferred, translated
from handlers.web.request import Answer, Pieces
from handlers.web.steps.request_headers import header

PIECE_BYTES = 262_144  # of a file that are read at once: a slow reader keeps no more than this in memory

_KEY = "bankdata.call"
Header = tuple[bytes, bytes]

JSON_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),  # decision 12: bank data stay out of every cache
)


FailureAnswer = Callable[[BaseException], Answer | None]
"""Gives the answer to a failure in the words of a protocol; None for one that the protocol does not know. It is then
asked again with the failure as a Refusal, and after a second None the data interface's error body is sent."""


def no_own_words(_failure: BaseException) -> None:
    """Always None: the failure is answered in the words of the data interface."""


class Call(Struct):
    """The state of one incoming request: each step adds what it has found out, and the last one calls the operation
    with `arguments`."""

    client_address: str
    caller: Principal | None = None  # whose valid token was sent, admitted or not
    arguments: dict[str, Any] = field(default_factory=dict)
    headers: list[Header] = field(default_factory=list)  # for the answer, be it a success or a failure
    failure_answer: FailureAnswer = no_own_words
    retry_not_before: int = 1  # seconds; no Retry-After of this call is shorter (decision 32)


def begin(scope: Scope, client_address: str) -> Call:
    """Store a new call in the scope of a request that has just arrived, and return it."""
    call = Call(client_address)
    scope[_KEY] = call
    return call


def current(scope: Scope) -> Call:
    """The call of this request, which the outermost application stored in its scope."""
    call: Call = scope[_KEY]
    return call


def language_of(scope: Scope) -> str:
    """The language for the sentences of the answer, which the client prefers; English where a protocol has words of its
    own."""
    if current(scope).failure_answer is not no_own_words:
        return ENGLISH
    accepted = header(scope["headers"], b"accept-language")
    return preferred(accepted) if accepted else ENGLISH


async def send_answer(send: Send, answer: Answer, language: str = ENGLISH) -> None:
    """Send the answer with its status and headers: a file or pieces as they come, closed at the end, bytes as they are,
    anything else as JSON, with its messages in this language. Raises ValueError for a control character in a header."""
    body = answer.body
    if not isinstance(body, bytes):
        if isinstance(body, BufferedIOBase):
            await _send_file(send, answer, body)
            return
        if hasattr(body, "__aiter__"):  # isinstance(body, Pieces) would take longer than writing the rest
            await _send_pieces(send, answer, body)
            return
        answer = in_language(answer, language)
        body = answer.body
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
    said = JSON_HEADERS if not answer.headers else _merge_headers(answer.headers)
    # A 304 would have to say how long the 200 is, and a 204 may say nothing (RFC 9110 8.6)
    length = [] if answer.status in (204, 304) or size is None else [(b"content-length", b"%d" % size)]
    headers = [*said, *length]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


def in_language(answer: Answer, language: str) -> Answer:
    """The answer with its body as JSON, its messages in this language. Content-Language says so where there were any
    that the language has (RFC 9110 8.5)."""
    content = translated(answer.body, language) if language != ENGLISH else None
    if content is None:
        return replace(answer, body=json_bytes(answer.body))
    return replace(
        answer, body=content, headers={**answer.headers, "content-language": language, "vary": "accept-language"}
    )


def json_bytes(body: Any) -> bytes:
    """The body as compact JSON in UTF-8, with integers of any size; raises TypeError for what cannot be written."""
    try:
        return orjson.dumps(body)
    except TypeError:
        # orjson writes integers of 64 bits only, and a page of 10**30 is answered as it was asked for (decision 2)
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _merge_headers(own_headers: Mapping[str, str]) -> list[Header]:
    own: dict[bytes, bytes] = {}
    for name, value in own_headers.items():
        if not value.isprintable():
            raise ValueError("a header of an answer holds a control character")  # uvicorn would send it unchecked
        own[name.lower().encode("latin-1")] = value.encode("latin-1")
    return [*(header for header in JSON_HEADERS if header[0] not in own), *own.items()]
