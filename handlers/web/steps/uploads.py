"""Reads a body that is a file, streamed into a temporary file without a name that is deleted when its last reader
closes it."""

import os
import tempfile
from collections.abc import Mapping
from io import BufferedReader
from typing import Any

from anyio import to_thread
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from handlers.web.errors import BadRequest, ContentTooLarge, UnsupportedMediaType
from handlers.web.sockets.connection_limits import ContentBound
from handlers.web.steps.request_headers import check_length, header

FILE = "application/octet-stream"
PIECE_BYTES = 1_048_576  # written at once, in a thread, because a slow disk must not block the event loop


class Upload:
    """The request body of an operation that takes a file."""

    def __init__(self, described: Mapping[str, Any]) -> None:
        """`described` is the contract's requestBody; the maxLength of its schema is the size of the largest file."""
        self._bytes_max: int = described["content"][FILE]["schema"]["maxLength"]

    async def read(self, scope: Scope, receive: Receive) -> BufferedReader:
        """The received file, open at its beginning and readable by this system user alone (0600); the caller closes it.
        From here on the connection may send content of the largest size. Raises BadRequest for an empty file,
        ContentTooLarge and UnsupportedMediaType."""
        headers = scope["headers"]
        check_length(headers, self._bytes_max)
        if header(headers, b"content-encoding") not in ("", "identity"):
            raise UnsupportedMediaType("The body must not be compressed")
        if header(headers, b"content-type").partition(";")[0].strip() != FILE:
            raise UnsupportedMediaType("The body must be {formats}", formats=FILE)
        bound = scope.get("extensions", {}).get("bankdata.content", {}).get("bound")
        # The guard has admitted the sender, so a large file is allowed from here on
        if isinstance(bound, ContentBound):
            bound.bytes_max = self._bytes_max
        with tempfile.TemporaryFile(prefix="bankdata-", buffering=0) as file:
            size = await self._receive(receive, file.fileno())
            if not size:
                raise BadRequest("body: is required")
            os.lseek(file.fileno(), 0, os.SEEK_SET)
            return os.fdopen(os.dup(file.fileno()), "rb")

    async def _receive(self, receive: Receive, descriptor: int) -> int:
        """Write everything that is sent to the file, in pieces, and return the number of bytes. Raises ContentTooLarge,
        and ClientDisconnect if the client goes away."""
        size, waiting, is_more = 0, bytearray(), True
        while is_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            waiting += message.get("body", b"")
            is_more = message.get("more_body", False)
            size += len(waiting) if not is_more or len(waiting) >= PIECE_BYTES else 0
            if size > self._bytes_max:
                raise ContentTooLarge(self._bytes_max)
            if waiting and (not is_more or len(waiting) >= PIECE_BYTES):
                await to_thread.run_sync(_write, descriptor, bytes(waiting))
                waiting.clear()
        return size


def _write(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
