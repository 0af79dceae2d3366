"""Serves one client's HTTP connection within bounds: it counts what the client sends as it arrives, and cuts off a
client that keeps the server waiting.

uvicorn reads HTTP and has no such bounds: it keeps headers, trailers and pipelined requests in memory without end, and
waits forever for the rest of a header. Every refusal gets the same error body as other failures (decision 4).
"""

import asyncio
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import unquote

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from handlers.web.errors import Refusal, error_answer
from handlers.web.sockets.connection_limits import (
    BODY_SECONDS,
    DROPPED_BYTES_MAX,
    DROPPED_BYTES_MAX_UNSTATED,
    DROPPED_BYTES_PER_PERIOD,
    FILE_BYTES_PER_PERIOD,
    HEAD_BYTES_MAX,
    HEAD_SECONDS,
    HEADERS_MAX,
    IDLE_SECONDS,
    LATE_SECONDS,
    LINGER_SECONDS,
    PIPELINE_MAX,
    PROXY_IDLE_SECONDS,
    SEND_SECONDS,
    ContentBound,
)
from handlers.web.sockets.peers import Occupation, Peers
from handlers.web.sockets.request_and_answer import RequestAndAnswer

_ANSWER = (
    b"HTTP/1.1 %d %s\r\n"
    b"content-type: application/json\r\n"
    b"cache-control: no-store\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"connection: close\r\n"
    b"content-length: %d\r\n\r\n%s"
)


Phase = Literal["nothing", "head", "content"]
"""Which part of a request is arriving: none, its head, or its content."""


class _ParserStopped(Exception):
    """Raised inside the parser to stop it in the middle of a refused request."""


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with bounds on bytes, time and number of requests.

    Time is measured by comparison: once a second `close_if_overdue` compares the state with what it saw before, so a
    request that is answered at once costs no look at the clock.
    """

    def __init__(self, *arguments: Any, peers: Peers, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._peers = peers
        self._phase: Phase = "nothing"
        self._begun = 0  # requests
        self._head_bytes = 0  # received bytes of the arriving request that are not content
        self._head_bytes_at_most = 0  # `_head_bytes` plus all bytes that are just being read
        self._content_bytes = 0
        self._bound = ContentBound()  # of the request that is arriving
        self._refusal: tuple[HTTPStatus, str] | None = None
        self._has_ended = False  # we ended the connection: bytes that still arrive are dropped
        self._dropped_bytes = 0
        self._dropped_bytes_max = DROPPED_BYTES_MAX_UNSTATED
        self.is_signed_in = self.is_listening = False
        # The request being answered; `cycle` is a later one where requests wait behind it
        self._answering: RequestAndAnswer | None = None
        self._idle_seconds = IDLE_SECONDS
        self._seen: object = None
        self.unchanged_since = self._looked_at = self.loop.time()

    def connection_made(self, transport: Any) -> None:
        """Admit a new connection; if there are too many and none gives way, answer it with 503 and close it."""
        super().connection_made(transport)
        if self.client is not None and self._peers.is_proxy(self.client[0]):
            self._idle_seconds = PROXY_IDLE_SECONDS
        if not self._peers.admit(self, self.client[0] if self.client else None):
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "Too many connections")
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, which makes room for another one, and tell the request being answered that its client
        is gone."""
        self._peers.forget(self)
        if self._answering is not None:  # uvicorn itself notifies `cycle` only
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse received bytes as far as the bounds allow. Once we have ended the connection, drop them instead, and
        cut it off when they are too many."""
        if self._has_ended:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > self._dropped_bytes_max:
                self.transport.abort()
            return
        begun, is_first = self._begun, self._phase == "nothing"
        self._head_bytes_at_most = self._head_bytes + len(data)
        super().data_received(data)
        if self._phase == "nothing":
            self._head_bytes = 0
        elif self._begun > begun + is_first:
            # It is unknown where in these bytes the last request begins: count from the next bytes on
            self._head_bytes = 0
        else:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX and self._refusal is None:
                self._refuse(*self._too_long())

    def on_message_begin(self) -> None:
        """Handle the first byte of a request: reset its counts."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._begun += 1
        self._phase = "head"
        self._head_bytes = self._content_bytes = 0
        self._bound = ContentBound()

    def on_headers_complete(self) -> None:
        """Start answering the request, or have it wait for those before it on the connection; refuse it if its head is
        too long (414, 431) or too many wait (429)."""
        if len(self.headers) > HEADERS_MAX:
            self._leave(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"There must be at most {HEADERS_MAX} headers")
        if self._head_bytes_at_most > HEAD_BYTES_MAX and self._size() > HEAD_BYTES_MAX:
            self._leave(*self._too_long())
        if len(self.pipeline) >= PIPELINE_MAX:
            self._leave(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests wait on this connection")
        before, self.cycle = self.cycle, self._next_request()
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
        self._phase = "content"
        self.headers = []  # collects trailers, which nobody reads; uvicorn would add them to the request's headers

    def _next_request(self) -> RequestAndAnswer:
        """The request whose head has arrived, with its answer to be; uvicorn's own class would send the answer's head
        and content in two writes."""
        address, version = httptools.parse_url(self.url), self.parser.get_http_version()
        path = address.path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme or "http",
            "method": self.parser.get_method().decode("ascii"),
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": address.path,
            "query_string": address.query or b"",
            "headers": self.headers,
            "state": self.app_state.copy(),
            "extensions": {"bankdata.content": {"bound": self._bound}, "bankdata.connection": {"peer": self}},
        }
        answer = RequestAndAnswer(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        answer.unread = self._peers.unread
        return answer

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """Handle a part of the content: pass it on, or refuse the request with 413 if the content gets too long."""
        self._head_bytes -= len(body)
        self._content_bytes += len(body)
        if self._content_bytes > self._bound.bytes_max:
            self._leave(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is too large")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Handle the last byte of a request: pass its end on, and note that none is arriving any more."""
        super().on_message_complete()
        self._phase = "nothing"

    def on_response_complete(self) -> None:
        """Handle the end of an answer: begin the next waiting request, or end a connection that is not kept. uvicorn
        starts and stops an idle timer here; `close_if_overdue` finds idle connections instead."""
        self.server_state.total_requests += 1
        self.is_listening = False
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif not self.cycle.keep_alive:  # and the rest of the request has not arrived yet
            self._end()

    def send_400_response(self, msg: str) -> None:
        """Refuse the request: with the refusal that `_leave` noted before it stopped the parser, else, at malformed
        HTTP, with 400 and this message. uvicorn calls this."""
        self._refuse(*(self._refusal or (HTTPStatus.BAD_REQUEST, msg.removesuffix("."))))

    @property
    def occupation(self) -> Occupation:
        """What this connection is doing, which decides how soon it gives way to others."""
        if self._phase != "nothing" or self._is_blocked:
            return Occupation.OWING
        if self.cycle is not None and not self.cycle.response_complete:
            if self.is_listening:
                return Occupation.LISTENING
            is_late = self._looked_at - self.unchanged_since >= LATE_SECONDS
            return Occupation.LATE if is_late else Occupation.ANSWERED
        if self._seen == ("idle", self._begun) and self._looked_at > self.unchanged_since:
            return Occupation.IDLE
        return Occupation.NEW if self.cycle is None else Occupation.SERVED

    def give_way(self) -> None:
        """Close the connection at once, to make room for another client."""
        self.transport.abort()

    def close_if_overdue(self, now: float) -> None:
        """Refuse the arriving request with 408, or else cut the connection off, if the client has been owing something
        for too long. Called once a second; `now` is in seconds of the event loop's clock."""
        self._looked_at = now
        seen, seconds = self._state()
        if seen != self._seen:
            self._seen, self.unchanged_since = seen, now
        elif seconds is None or now - self.unchanged_since < seconds:
            pass
        elif self._phase != "nothing" and not self._has_ended:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time")
        else:
            self.transport.abort()

    @property
    def _is_blocked(self) -> bool:
        return self.flow.write_paused or self.transport.is_closing() or self._has_ended

    def _state(self) -> tuple[object, float | None]:
        """A value that has to change within so many seconds, else the client is overdue; None instead of seconds where
        the client owes nothing."""
        unread = self.transport.get_write_buffer_size()
        if unread:
            return unread, SEND_SECONDS
        if self._has_ended or self.transport.is_closing():
            return ("closing", self._dropped_bytes // DROPPED_BYTES_PER_PERIOD), LINGER_SECONDS
        if self.flow.read_paused:
            return ("we do not read", self._begun), None
        if self._phase == "head":
            return ("head", self._begun), HEAD_SECONDS
        if self._phase == "content":
            arrived = self._content_bytes // FILE_BYTES_PER_PERIOD if self._bound.is_raised else 0
            return ("body", self._begun, arrived), BODY_SECONDS
        if self.cycle is not None and not self.cycle.response_complete:
            return ("we work", self._begun), None
        return ("idle", self._begun), self._idle_seconds

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _too_long(self) -> tuple[HTTPStatus, str]:
        if len(self.url) > HEAD_BYTES_MAX // 2:
            return HTTPStatus.REQUEST_URI_TOO_LONG, "The address is too long"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"The headers are larger than {HEAD_BYTES_MAX} bytes"

    def _leave(self, status: HTTPStatus, sentence: str) -> None:
        """Note the refusal and stop the parser, whereupon uvicorn calls `send_400_response`."""
        self._refusal = (status, sentence)
        raise _ParserStopped

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Send the refusal and end the connection, because it is unknown where the next request begins; only cut it off
        if the refusal would be taken for the answer to another request."""
        if not self._is_answer_due:
            self._has_ended = True
            self.transport.abort()
            return
        self._answer(status, sentence)
        if self._phase == "content":
            # An operation that waits for the rest of the body learns that none will come
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._end()

    def _end(self) -> None:
        """Send nothing more, and from now on drop what the client still sends, so that it can read the answer."""
        self._has_ended = True
        if self._phase == "content":
            stated = next((int(value) for name, value in self.cycle.scope["headers"] if name == b"content-length"), 0)
            self._dropped_bytes_max = max(self._dropped_bytes_max, min(stated, DROPPED_BYTES_MAX))
        self.transport.write_eof()

    @property
    def _is_answer_due(self) -> bool:
        """Whether bytes written now would be the answer to the arriving request, and not to one before it."""
        if self._phase == "content":
            return not self.pipeline and not self.cycle.response_started
        return self.cycle is None or self.cycle.response_complete

    def _answer(self, status: HTTPStatus, sentence: str) -> None:
        content = orjson.dumps(error_answer(Refusal(sentence)).body)
        self.transport.write(_ANSWER % (status, status.phrase.encode(), len(content), content))
