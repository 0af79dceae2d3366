"""One request and its answer, which is sent in pieces no faster than the client reads, so that memory is freed as it
reads.

The head is sent with the first part of the content, which saves a system call. "The protocol server must not start
sending the response to the client until it has received at least one Response Body event." ASGI, HTTP 2.3
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from handlers.web.sockets.connection_limits import CONTENT_BYTES_MAX, PIECE_BYTES
from handlers.web.sockets.peers import Unread

Header = tuple[bytes, bytes]
Content = bytes | memoryview
"""A memoryview shows bytes that several answers share, such as the same file for all who ask for it."""

_WITHOUT_CONTENT = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
# A header with a line feed in it would become two headers
_CONTROLS = bytes(set(range(32)) - {ord("\t")} | {127})


class RequestAndAnswer(RequestResponseCycle):
    """uvicorn's RequestResponseCycle with another way of writing the answer: in pieces, each when the client has read
    those before it."""

    unread: Unread
    _head = b""  # the head that has not been sent yet

    async def send(self, message: Any) -> None:
        """Send one ASGI message of an answer: the head, kept back until the first content, or a part of the content.
        Waits while the client does not read. Does nothing once it is gone; raises RuntimeError out of order."""
        if self.flow.write_paused and not self.disconnected:
            await self._until_read(message.get("body", b""))
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"{message['type']} does not belong here")
        if self.response_started:
            content: Content | None = message.get("body", b"")
            if content and len(content) > PIECE_BYTES and self.scope["method"] != "HEAD":
                content = await self._all_but_the_last_piece(content)
            if content is not None:
                self._write(content, is_last=not message.get("more_body", False))
        else:
            self._begin(message["status"], [*self.default_headers, *message["headers"]])

    def _begin(self, status: int, headers: list[Header]) -> None:
        self.response_started = True
        said = dict(headers)
        length = said.get(b"content-length")
        if self.scope["method"] != "HEAD" and status not in _WITHOUT_CONTENT:
            self.chunked_encoding = length is None
            self.expected_content_length = int(length or 0)
        if self.chunked_encoding:
            headers.append((b"transfer-encoding", b"chunked"))
        if said.get(b"connection") == b"close":
            self.keep_alive = False
        elif not self.keep_alive or (self.more_body and not self._ends_soon):
            self.keep_alive = False
            headers.append((b"connection", b"close"))
        self._head = STATUS_LINE[status] + _lines(headers)

    @property
    def _ends_soon(self) -> bool:
        """Whether the rest of the request is short enough to be read and dropped, so that the connection can take the
        next one. Not for a client that asked first whether to send it (`Expect: 100-continue`): it may leave the rest
        out."""
        stated = next((value for name, value in self.scope["headers"] if name == b"content-length"), None)
        return stated is not None and int(stated) <= CONTENT_BYTES_MAX and not self.waiting_for_100_continue

    async def _all_but_the_last_piece(self, content: Content) -> Content | None:
        """Write all but the last piece of a long content as its reader takes it, and return that piece; None if the
        client is gone."""
        begin = 0
        while len(content) - begin > PIECE_BYTES:
            self._write(content[begin : begin + PIECE_BYTES], is_last=False)
            begin += PIECE_BYTES
            if self.flow.write_paused:
                await self._until_read(content)
            if self.disconnected:
                return None
        return content[begin:]

    async def _until_read(self, content: Content) -> None:
        """Wait until the client has read what was written, and count this content as held in memory meanwhile; a
        memoryview counts as nothing, because its bytes are shared."""
        self.unread.waits(self, 0 if isinstance(content, memoryview) else len(content))
        try:
            await self.flow.drain()
        finally:
            self.unread.goes_on(self)

    def give_way(self) -> None:
        """Cut off the client, because too many bytes are held for all clients and it has waited for longest."""
        self.transport.abort()

    def _write(self, content: Content, *, is_last: bool) -> None:
        if self.scope["method"] == "HEAD":
            content = b""
        elif self.chunked_encoding:
            chunk = b"".join((b"%x\r\n" % len(content), content, b"\r\n")) if content else b""
            content = chunk + b"0\r\n\r\n" if is_last else chunk
        else:
            self.expected_content_length -= len(content)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("the content is not as long as was said")
        head, self._head = self._head, b""
        self.transport.write(head + content if head else content)
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive and not self.more_body:
                self.transport.close()
            self.on_response()


def _lines(headers: Sequence[Header]) -> bytes:
    """The header lines as bytes, with the empty line after them; raises RuntimeError for a control character."""
    lines = b"\r\n".join([b": ".join(header) for header in headers])
    ends = 2 * (len(headers) - 1)
    if len(lines) - len(lines.translate(None, _CONTROLS)) != ends:
        raise RuntimeError("a header of an answer holds a control character")
    return lines + b"\r\n\r\n"
