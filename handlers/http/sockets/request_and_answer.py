"""One request and its answer, whose head goes out with the first part of its content: one call of the system for both.

"The protocol server must not start sending the response to the client until it has received at least one Response Body
event." ASGI, HTTP 2.3
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

Header = tuple[bytes, bytes]

_WITHOUT_CONTENT = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
# With a line feed in it a header would become two
_CONTROLS = bytes(set(range(32)) - {ord("\t")} | {127})


class RequestAndAnswer(RequestResponseCycle):
    """uvicorn's, but for how an answer is written."""

    _head = b""  # which has not gone out yet

    async def send(self, message: Any) -> None:
        """The head of an answer, then its content."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"{message['type']} does not belong here")
        if self.response_started:
            self._write(message.get("body", b""), is_last=not message.get("more_body", False))
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
        elif not self.keep_alive:
            headers.append((b"connection", b"close"))
        self._head = STATUS_LINE[status] + _lines(headers)

    def _write(self, content: bytes, *, is_last: bool) -> None:
        if self.scope["method"] == "HEAD":
            content = b""
        elif self.chunked_encoding:
            content = b"%x\r\n%b\r\n" % (len(content), content) if content else b""
            content += b"0\r\n\r\n" if is_last else b""
        else:
            self.expected_content_length -= len(content)
            if self.expected_content_length < 0 or (is_last and self.expected_content_length):
                raise RuntimeError("the content is not as long as was said")
        head, self._head = self._head, b""
        self.transport.write(head + content)
        if is_last:
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()


def _lines(headers: Sequence[Header]) -> bytes:
    """The lines of these headers and the empty one after them."""
    lines = b"\r\n".join([b": ".join(header) for header in headers])
    ends = 2 * (len(headers) - 1)
    if len(lines) - len(lines.translate(None, _CONTROLS)) != ends:
        raise RuntimeError("a header of an answer holds a control character")
    return lines + b"\r\n\r\n"
