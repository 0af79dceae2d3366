"""One HTTP connection over a real socket: what is too long, too many or too late is refused in an error body."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from handlers.web.sockets.connection_limits import (
    BODY_SECONDS,
    CONTENT_BYTES_MAX,
    DROPPED_BYTES_MAX_UNSTATED,
    DROPPED_BYTES_PER_PERIOD,
    HEAD_BYTES_MAX,
    HEAD_SECONDS,
    HEADERS_MAX,
    IDLE_SECONDS,
    LINGER_SECONDS,
    PIECE_BYTES,
    PIPELINE_MAX,
    PROXY_IDLE_SECONDS,
    SEND_SECONDS,
)
from handlers.web.sockets.http_protocol import HttpProtocol
from handlers.web.sockets.peers import Occupation, Peers, Unread, note_sign_in
from handlers.web.sockets.request_and_answer import RequestAndAnswer

HEAD = b"GET /path HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
REFUSED = b'{"error":"Unauthorized"}'
PIECES_MAX = DROPPED_BYTES_MAX_UNSTATED // 65_536 + 200  # of 64 KB; some lie in buffers of the kernel
PATIENCE_SECONDS = 60


class Meeting:
    """A client and a server on loopback in one event loop; the server is told what time it is."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peers: Peers) -> None:
        self.reader, self.writer, self.peers = reader, writer, peers
        self.first = asyncio.get_running_loop().time()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def status(self) -> int:
        """Of the next answer, whose body has to be an error body when it refuses."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        body = await self.reader.readexactly(length)
        status = int(head.split(b" ")[1])
        if status >= 400:
            assert list(json.loads(body)) == ["error"]
            assert b"connection: close" in head
        return status

    async def rest(self) -> bytes:
        """What comes until the connection ends; b"reset" when it is cut."""
        try:
            return await asyncio.wait_for(self.reader.read(65_536), PATIENCE_SECONDS)
        except ConnectionError:
            return b"reset"

    async def is_cut_off(self, piece: bytes, times: int) -> bool:
        """Whether the server ends the connection while so many pieces are sent."""
        try:
            for _ in range(times):
                await self.send(piece)
                await self.arrived()
        except ConnectionError:
            return True
        return False

    async def arrived(self) -> None:
        """The server has taken what was sent."""
        for _ in range(10):
            await asyncio.sleep(0.002)

    def later(self, seconds: float) -> None:
        """The server looks at its connections now, and once more when so many seconds have gone."""
        self.peers.close_overdue(self.first)
        self.peers.close_overdue(self.first + seconds)


Story = Callable[[Meeting], Awaitable[None]]


async def answered(_scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the request and says how long it was."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    content = b"%d" % size
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(content))]})
    await send({"type": "http.response.body", "body": content})


async def refusing(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answers without a look at the content."""
    length = b"%d" % len(REFUSED)
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": REFUSED})


def meet(
    story: Story,
    app: ASGIApp = answered,
    peers: Peers | None = None,
    protocol: Callable[..., HttpProtocol] = HttpProtocol,
) -> None:
    """Runs a story between a client and this server."""

    async def meeting() -> None:
        others = Peers() if peers is None else peers
        config: Any = uvicorn.Config(app, ws="none", log_level="critical")
        config.load()
        made = partial(protocol, config, ServerState(), {}, peers=others)
        server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            await story(Meeting(reader, writer, others))
        finally:
            writer.transport.abort()
            server.close()
            while len(others):
                await asyncio.sleep(0)

    asyncio.run(meeting())


def headers(size: int) -> bytes:
    """A request whose request line and headers are counted as so many bytes."""
    return HEAD + b"X: " + b"a" * (size - len("/path") - len("Host: x\r\n") - len("X: \r\n")) + b"\r\n\r\n"


@pytest.mark.requirement("http.bounds")
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (headers(HEAD_BYTES_MAX), 200),
        (headers(HEAD_BYTES_MAX + 1), 431),
        (HEAD + b"X: y\r\n" * (HEADERS_MAX - 1) + b"\r\n", 200),
        (HEAD + b"X: y\r\n" * HEADERS_MAX + b"\r\n", 431),
        (b"GET /" + b"a" * HEAD_BYTES_MAX + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        (CHUNKED + b"1\r\na\r\n0\r\nX-Trailer: " + b"a" * 1_000 + b"\r\n\r\n", 200),
        (CHUNKED + b"1\r\na\r\n0\r\nX-Trailer: " + b"a" * (HEAD_BYTES_MAX + 1), 431),
        (CHUNKED + b"10000\r\n" + b"a" * 65_536 + b"\r\n0\r\n\r\n", 200),
        (CHUNKED + b"z", 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_a_request_is_read_up_to_its_limits_and_no_further(request_: bytes, status: int) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(request_)
        assert await meeting.status() == status

    meet(story)


@pytest.mark.requirement("http.bounds")
@pytest.mark.parametrize(
    ("begin", "status"), [(b"GET /", 414), (HEAD + b"X: ", 431), (CHUNKED + b"1\r\na\r\n0\r\nX: ", 431)]
)
def test_what_never_ends_is_counted_while_it_arrives(begin: bytes, status: int) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(begin)
        for _ in range(5):
            await meeting.arrived()
            await meeting.send(b"a" * 8_000)
        assert await meeting.status() == status
        await meeting.send(b"a" * 100)  # dropped: a connection that is shut at once is reset, and nobody reads why
        assert await meeting.rest() == b""

    meet(story)


@pytest.mark.requirement("http.bounds")
@pytest.mark.long
def test_a_body_without_end_is_refused_and_dropped_until_the_connection_is_cut() -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(CHUNKED)
        assert await meeting.is_cut_off(b"10000\r\n" + b"a" * 65_536 + b"\r\n", PIECES_MAX)

    meet(story)


@pytest.mark.requirement("http.bounds")
def test_a_body_that_follows_its_refusal_is_dropped_and_answered_no_second_time() -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        await meeting.arrived()
        for _ in range(9):
            await meeting.send(b"a" * 1_000_000)
        assert await meeting.status() == 401
        assert await meeting.rest() == b""

    meet(story, refusing)


@pytest.mark.requirement("http.bounds")
@pytest.mark.parametrize(
    ("framing", "stays"),
    [
        (b"Content-Length: %d" % CONTENT_BYTES_MAX, True),
        (b"Content-Length: %d" % (CONTENT_BYTES_MAX + 1), False),
        (b"Content-Length: 5\r\nExpect: 100-continue", False),
        (b"Transfer-Encoding: chunked", False),
    ],
)
def test_an_answer_before_the_end_of_its_request_says_whether_the_connection_ends(framing: bytes, stays: bool) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")
        head = await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert (b"connection: close" not in head) == stays
        await meeting.reader.readexactly(len(REFUSED))
        if stays:
            await meeting.send(b"a" * CONTENT_BYTES_MAX + HEAD + b"\r\n")
            assert b" 401 " in await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        else:
            assert await meeting.rest() == b""

    meet(story, refusing)


@pytest.mark.requirement("http.bounds")
@pytest.mark.long
def test_what_is_dropped_behind_a_refusal_is_bounded_and_has_to_arrive() -> None:
    async def endless(meeting: Meeting) -> None:
        await meeting.send(CHUNKED)
        assert await meeting.status() == 401
        assert await meeting.is_cut_off(b"10000\r\n" + b"a" * 65_536 + b"\r\n", PIECES_MAX)

    async def slow(meeting: Meeting) -> None:
        await meeting.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n")
        assert await meeting.status() == 401
        meeting.peers.close_overdue(meeting.first)
        await meeting.send(b"a" * DROPPED_BYTES_PER_PERIOD)
        await meeting.arrived()
        meeting.peers.close_overdue(meeting.first + LINGER_SECONDS)
        await meeting.send(b"a")
        await meeting.arrived()
        assert len(meeting.peers) == 1
        meeting.peers.close_overdue(meeting.first + 2 * LINGER_SECONDS)
        await meeting.arrived()
        assert len(meeting.peers) == 0

    meet(endless, refusing)
    meet(slow, refusing)


@pytest.mark.requirement("http.bounds")
def test_requests_may_wait_behind_another_one_but_not_many() -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send((HEAD + b"\r\n") * (PIPELINE_MAX + 1))
        assert [await meeting.status() for _ in range(PIPELINE_MAX + 1)] == [200] * (PIPELINE_MAX + 1)
        await meeting.send((HEAD + b"\r\n") * (PIPELINE_MAX + 2))
        assert await meeting.rest() in (b"", b"reset")

    meet(story)


@pytest.mark.requirement("http.bounds")
def test_the_head_of_a_request_behind_others_is_counted_from_the_next_bytes_on() -> None:
    async def story(meeting: Meeting) -> None:
        first = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n" + b"a" * 40_000
        await meeting.send(first + HEAD + b"X: ")
        assert await meeting.status() == 200
        await meeting.send(b"a\r\n\r\n")
        assert await meeting.status() == 200

    meet(story)


@pytest.mark.requirement("http.bounds")
def test_an_upgrade_is_declined_by_an_ordinary_answer() -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(
            HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n"
        )
        assert await meeting.status() == 200

    meet(story)


@pytest.mark.requirement("http.deadlines")
@pytest.mark.parametrize(("begun", "seconds"), [(HEAD, HEAD_SECONDS), (POST + b"a", BODY_SECONDS)])
def test_a_request_that_does_not_arrive_is_refused_in_time(begun: bytes, seconds: float) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(begun)
        await meeting.arrived()
        meeting.later(seconds - 0.01)
        assert len(meeting.peers) == 1
        meeting.peers.close_overdue(meeting.first + seconds)
        assert await meeting.status() == 408
        meeting.peers.close_overdue(meeting.first + seconds + 1)
        meeting.peers.close_overdue(meeting.first + seconds + 1 + LINGER_SECONDS)
        await meeting.arrived()
        assert len(meeting.peers) == 0

    meet(story)


@pytest.mark.requirement("http.deadlines")
@pytest.mark.parametrize("asks", [False, True])
def test_an_idle_connection_is_closed_without_a_word(asks: bool) -> None:
    async def story(meeting: Meeting) -> None:
        if asks:
            await meeting.send(HEAD + b"\r\n")
            assert await meeting.status() == 200
        await meeting.arrived()
        meeting.later(IDLE_SECONDS - 0.01)
        await meeting.arrived()
        assert len(meeting.peers) == 1
        meeting.peers.close_overdue(meeting.first + IDLE_SECONDS)
        assert await meeting.rest() in (b"", b"reset")

    meet(story)


@pytest.mark.requirement("http.deadlines")
def test_a_proxy_closes_its_idle_connections_itself() -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(HEAD + b"\r\n")
        assert await meeting.status() == 200
        await meeting.arrived()
        meeting.later(PROXY_IDLE_SECONDS - 0.01)
        await meeting.arrived()
        assert len(meeting.peers) == 1
        meeting.peers.close_overdue(meeting.first + PROXY_IDLE_SECONDS)
        assert await meeting.rest() in (b"", b"reset")

    meet(story, peers=Peers(["127.0.0.1"]))


@pytest.mark.requirement("http.deadlines")
@pytest.mark.parametrize(("size", "parts"), [(20_000_000, 3), (50_000, 400)])
def test_an_answer_is_produced_no_faster_than_its_client_reads(size: int, parts: int) -> None:
    produced, part = 0, b"a" * size

    async def much(_scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal produced
        length = b"%d" % (len(part) * parts)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        for produced in range(1, parts + 1):
            await send({"type": "http.response.body", "body": part, "more_body": produced < parts})

    async def story(meeting: Meeting) -> None:
        meeting.writer.transport.pause_reading()  # type: ignore[attr-defined]  # StreamWriter says a write transport
        await meeting.send(HEAD + b"\r\n")
        await meeting.arrived()
        assert 0 < produced < parts, "the next part waits"
        meeting.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        content = await asyncio.wait_for(meeting.reader.readexactly(len(part) * parts), PATIENCE_SECONDS)
        assert content == part * parts

    meet(story, much)


@pytest.mark.requirement("http.unread")
@pytest.mark.parametrize("is_shared", [False, True])
def test_of_a_long_answer_little_waits_in_the_socket_and_the_rest_is_counted(is_shared: bool) -> None:
    part = b"a" * 5_000_000
    peers, unread = Peers(), _Unread()
    peers.unread = unread

    async def long(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5000000")]})
        await send({"type": "http.response.body", "body": memoryview(part) if is_shared else part})

    async def story(meeting: Meeting) -> None:
        meeting.writer.transport.pause_reading()  # type: ignore[attr-defined]  # StreamWriter says a write transport
        await meeting.send(HEAD + b"\r\n")
        await meeting.arrived()
        (answer,) = unread.waiting
        assert isinstance(answer, RequestAndAnswer)
        assert answer.transport.get_write_buffer_size() <= 3 * PIECE_BYTES
        assert unread.waiting[answer] == (0 if is_shared else len(part))
        meeting.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert await asyncio.wait_for(meeting.reader.readexactly(len(part)), PATIENCE_SECONDS) == part
        assert not unread.waiting

    meet(story, long, peers)


@pytest.mark.requirement("http.unread")
def test_a_reader_that_is_gone_waits_no_more() -> None:
    unread = _Unread()
    peers = Peers()
    peers.unread = unread
    ended = asyncio.Event()

    async def long(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5000000")]})
        await send({"type": "http.response.body", "body": b"a" * 5_000_000})
        ended.set()

    async def story(meeting: Meeting) -> None:
        meeting.writer.transport.pause_reading()  # type: ignore[attr-defined]  # StreamWriter says a write transport
        await meeting.send(HEAD + b"\r\n")
        await meeting.arrived()
        assert unread.waiting
        meeting.writer.transport.abort()
        await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
        assert not unread.waiting

    meet(story, long, peers)


class _Unread(Unread):
    """Shows who waits."""

    @property
    def waiting(self) -> dict[Any, int]:
        return self._waiting


@pytest.mark.requirement("http.deadlines")
def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    async def much(_scope: Scope, _receive: Receive, send: Send) -> None:
        content = b"a" * 20_000_000
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"20000000")]}
        await send(start)
        await send({"type": "http.response.body", "body": content})

    async def story(meeting: Meeting) -> None:
        meeting.writer.transport.pause_reading()  # type: ignore[attr-defined]  # StreamWriter says a write transport
        await meeting.send(HEAD + b"\r\n")
        await meeting.arrived()
        meeting.later(SEND_SECONDS - 0.01)
        await meeting.arrived()
        assert len(meeting.peers) == 1
        meeting.peers.close_overdue(meeting.first + SEND_SECONDS)
        await meeting.arrived()
        assert len(meeting.peers) == 0

    meet(story, much)


@pytest.mark.requirement("http.deadlines")
@pytest.mark.parametrize("behind", [b"", b"more", POST])
def test_a_request_that_takes_us_long_is_not_its_clients_fault(behind: bytes) -> None:
    done = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await done.wait()
        await answered(scope, receive, send)

    async def story(meeting: Meeting) -> None:
        await meeting.send(HEAD + b"\r\n" + behind)
        await meeting.arrived()
        meeting.later(3_600)
        await meeting.arrived()
        # What begins behind it and does not go on is late all the same, and would be answered out of turn
        assert len(meeting.peers) == (0 if behind == b"more" else 1)
        done.set()
        if behind != b"more":
            assert await meeting.status() == 200

    meet(story, slow)


@pytest.mark.requirement("http.bounds")
def test_a_client_that_leaves_while_its_first_request_is_answered_ends_all_it_has_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The connection is gone for the first answer as for those that wait behind it: nothing is written into it."""
    goes_on, has_ended = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await goes_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": b"a"})
        has_ended.set()

    async def story(meeting: Meeting) -> None:
        await meeting.send((HEAD + b"\r\n") * 3)
        await meeting.arrived()
        (connection,) = meeting.peers
        connection.give_way()  # as it is when the kernel tells that nobody is there
        await meeting.arrived()
        goes_on.set()
        await asyncio.wait_for(has_ended.wait(), PATIENCE_SECONDS)
        assert len(meeting.peers) == 0

    sent: list[bytes] = []
    meet(story, slow, protocol=partial(Watched, sent=sent))
    assert sent == []
    assert not caplog.records


@pytest.mark.requirement("http.peers")
def test_a_connection_tells_what_happens_on_it_and_whether_its_client_is_signed_in() -> None:
    done = asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        note_sign_in(scope)
        await done.wait()
        await answered(scope, receive, send)

    async def story(meeting: Meeting) -> None:
        await meeting.arrived()
        (peer,) = meeting.peers
        seen = [peer.occupation]
        for seconds in range(2):
            meeting.peers.close_overdue(meeting.first + seconds)
            seen.append(peer.occupation)
        assert seen == [Occupation.NEW, Occupation.NEW, Occupation.IDLE]
        await meeting.send(HEAD)
        await meeting.arrived()
        assert (peer.occupation, peer.is_signed_in) == (Occupation.OWING, False)
        await meeting.send(b"\r\n")
        await meeting.arrived()
        assert (peer.occupation, peer.is_signed_in) == (Occupation.ANSWERED, True)
        done.set()
        assert await meeting.status() == 200
        assert peer.occupation is Occupation.SERVED

    meet(story, slow)


@pytest.mark.requirement("http.peers")
def test_where_nobody_gives_way_the_next_client_is_turned_away() -> None:
    async def story(meeting: Meeting) -> None:
        assert await meeting.status() == 503
        assert await meeting.rest() == b""

    meet(story, peers=Peers(most=0))


@pytest.mark.requirement("http.peers")
@pytest.mark.parametrize(("first", "is_answered"), [(b"", False), (HEAD, False), (POST, False), (HEAD + b"\r\n", True)])
def test_a_new_connection_pushes_out_an_older_one_of_its_address(first: bytes, is_answered: bool) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(first)
        await meeting.arrived()
        address = meeting.writer.get_extra_info("peername")
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEAD + b"\r\n")
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
        assert (await meeting.rest() not in (b"", b"reset")) == is_answered
        writer.close()

    meet(story, peers=Peers(most_per_address=1))


class Watched(HttpProtocol):
    """Keeps what the system is given to send, each time it is given something."""

    def __init__(self, *arguments: Any, sent: list[bytes], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.sent = sent

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_Watching(transport, self.sent))


class _Watching:
    def __init__(self, transport: asyncio.Transport, sent: list[bytes]) -> None:
        self._transport, self._sent = transport, sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._sent.append(data)
        self._transport.write(data)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))


def test_head_and_content_of_an_answer_go_out_together() -> None:
    sent: list[bytes] = []

    async def story(meeting: Meeting) -> None:
        for _ in range(2):
            await meeting.send(HEAD + b"\r\n")
            assert await meeting.status() == 200

    meet(story, protocol=partial(Watched, sent=sent))
    assert [each.endswith(b"\r\n\r\n0") for each in sent] == [True, True]


def test_a_head_goes_out_with_the_first_part_of_content_that_takes_its_time() -> None:
    """ "The protocol server must not start sending the response to the client until it has received at least one
    Response Body event." ASGI, HTTP 2.3"""
    sent: list[bytes] = []
    has_come = asyncio.Event()

    async def slowly(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await asyncio.sleep(0)
        assert sent == []
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        await has_come.wait()
        await send({"type": "http.response.body", "body": b"k"})

    async def story(meeting: Meeting) -> None:
        await meeting.send(HEAD + b"\r\n")
        head = await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert head.startswith(b"HTTP/1.1 200")
        assert await meeting.reader.readexactly(1) == b"o"
        has_come.set()
        assert await meeting.reader.readexactly(1) == b"k"

    meet(story, slowly, protocol=partial(Watched, sent=sent))
    assert sent[0].endswith(b"\r\n\r\no")


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"])
def test_an_answer_without_content_is_not_kept_back(ending: bytes) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(b"HEAD / HTTP/1.1\r\nHost: x\r\n" + ending + b"\r\n")
        head = await asyncio.wait_for(meeting.reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert head.startswith(b"HTTP/1.1 200")
        if ending:
            assert await meeting.rest() == b""

    meet(story)


def answering(*messages: dict[str, Any]) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)

    return app


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def content(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


LENGTH = (b"content-length", b"2")
CHUNKS = b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n4\r\nmore\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "messages", "answer"),
    [
        (b"GET / HTTP/1.1", [start(LENGTH), content(b"ok")], b"content-length: 2\r\nconnection: close\r\n\r\nok"),
        (b"GET / HTTP/1.0", [start(LENGTH), content(b"ok")], b"content-length: 2\r\nconnection: close\r\n\r\nok"),
        (b"HEAD / HTTP/1.1", [start(LENGTH), content(b"")], b"content-length: 2\r\nconnection: close\r\n\r\n"),
        (b"HEAD / HTTP/1.1", [start(), content(b"ok")], b"\r\nconnection: close\r\n\r\n"),
        (b"GET / HTTP/1.1", [start(status=204), content(b"")], b" 204 No Content\r\nconnection: close\r\n\r\n"),
        (b"GET / HTTP/1.1", [start((b"connection", b"close")), content(b"")], b"chunked\r\n\r\n0\r\n\r\n"),
        (
            b"GET / HTTP/1.1",
            [start((b"connection", b"close")), content(b"ok", more=True), content(b"more")],
            b"connection: close\r\n" + CHUNKS,
        ),
    ],
)
def test_an_answer_is_framed_as_its_head_says(request_: bytes, messages: list[dict[str, Any]], answer: bytes) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(request_ + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
        said = await meeting.rest()
        assert said.startswith(b"HTTP/1.1 ")
        assert said.endswith(answer)

    meet(story, answering(*messages))


@pytest.mark.parametrize(
    "messages",
    [
        [start(LENGTH), content(b"o")],
        [start(LENGTH), content(b"oks")],
        [start(LENGTH), content(b"ok", more=True), content(b"s")],
        [start(LENGTH), start(LENGTH)],
        [start(LENGTH)],
    ],
)
def test_an_answer_that_is_not_what_it_says_ends_the_connection(messages: list[dict[str, Any]]) -> None:
    async def story(meeting: Meeting) -> None:
        await meeting.send(HEAD + b"\r\n")
        said = await meeting.rest()
        assert said in (b"", b"reset") or said.endswith(b"\r\n\r\nok")

    meet(story, answering(*messages))


@pytest.mark.parametrize("control", [b"\r\n", b"\n", b"\r", b"\0", b"\x7f"])
@pytest.mark.parametrize("where", ["name", "value"])
def test_a_header_with_a_control_character_is_never_sent(control: bytes, where: str) -> None:
    name, value = (b"x-a" + control, b"b") if where == "name" else (b"x-a", b"b" + control + b"set-cookie: c")

    async def story(meeting: Meeting) -> None:
        await meeting.send(HEAD + b"\r\n")
        assert b"x-a" not in await meeting.rest()

    meet(story, answering(start((name, value), LENGTH), content(b"ok")))
