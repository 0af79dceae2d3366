"""A body that is a file: streamed to the disk, bounded by the contract, and only once its sender is known."""

import os
import stat
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from starlette.requests import ClientDisconnect

from handlers.web.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from handlers.web.sockets.connection_limits import CONTENT_BYTES_MAX, ContentBound
from handlers.web.steps.uploads import PIECE_BYTES, Upload

LIMIT = 3 * PIECE_BYTES
DESCRIBED = {"content": {"application/octet-stream": {"schema": {"maxLength": LIMIT}}}}
TYPED = [(b"content-type", b"application/octet-stream")]


def received(*parts: bytes, headers: list[tuple[bytes, bytes]] | None = None, is_cut_off: bool = False) -> Any:
    """What Upload makes of a body that arrives in these parts."""
    bound = ContentBound()
    scope: dict[str, Any] = {
        "headers": TYPED + (headers or []),
        "extensions": {"bankdata.content": {"bound": bound}},
    }
    messages: Iterator[dict[str, Any]] = iter(
        [
            *(
                {"type": "http.request", "body": part, "more_body": is_cut_off or number < len(parts)}
                for number, part in enumerate(parts, start=1)
            ),
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Any:
        return next(messages)

    async def read() -> Any:
        return await Upload(DESCRIBED).read(scope, receive)

    return anyio.run(read), bound


@pytest.mark.requirement("http.uploads")
def test_a_file_comes_whole_and_lies_nowhere_by_name() -> None:
    parts = [os.urandom(700_000), b"", os.urandom(700_000), b"end"]
    file, bound = received(*parts)
    with file:
        found = os.fstat(file.fileno())
        assert (stat.S_IMODE(found.st_mode), found.st_nlink) == (0o600, 0)
        assert file.read() == b"".join(parts)
    assert (bound.bytes_max, bound.is_raised) == (LIMIT, True)
    assert not ContentBound().is_raised
    assert ContentBound().bytes_max == CONTENT_BYTES_MAX


@pytest.mark.requirement("http.uploads")
def test_the_largest_file_is_taken_and_one_byte_more_is_not() -> None:
    piece = bytes(PIECE_BYTES)
    file, _ = received(piece, piece, piece)
    with file:
        assert os.fstat(file.fileno()).st_size == LIMIT
    for parts in ([piece, piece, piece, b"x"], [piece, piece, piece[:-1], b"xx"], [piece, piece, piece + b"x", b"y"]):
        with pytest.raises(ContentTooLarge, match=str(LIMIT)):
            received(*parts)
    for declared in (str(LIMIT + 1), "9" * 13):
        with pytest.raises(ContentTooLarge):
            received(b"x", headers=[(b"content-length", declared.encode())])
    file, _ = received(b"x", headers=[(b"content-length", b"1")])
    file.close()


@pytest.mark.requirement("http.uploads")
def test_what_is_cut_off_empty_packed_or_of_another_type_is_refused() -> None:
    with pytest.raises(ClientDisconnect):
        received(b"half", is_cut_off=True)
    with pytest.raises(BadRequest, match="body: is required"):
        received(b"")
    with pytest.raises(UnsupportedMediaType, match="compressed"):
        received(b"x", headers=[(b"content-encoding", b"gzip")])
    TYPED.insert(0, (b"content-type", b"text/csv"))
    try:
        with pytest.raises(UnsupportedMediaType, match="application/octet-stream"):
            received(b"x")
    finally:
        del TYPED[0]
