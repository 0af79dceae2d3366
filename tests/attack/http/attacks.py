"""What strangers do to a server over raw sockets; each attack says what it saw, by status or by how it ended."""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

SECONDS_MAX = 60.0
LARGE = 500  # connections; fewer are held for a second only, which is enough for others to notice
PIECE = 65_536
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LOGIN = b"GET /oauth/login HTTP/1.1\r\nHost: 127.0.0.1\r\n"

Seen = Counter[str]
Attack = Callable[[int, int], Seen]
"""Port of the server, and how hard to try; what was seen how often."""


def connected(port: int, source: str = "127.0.0.1") -> socket.socket:
    """A connection on which nothing waits for ever."""
    return socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX, source_address=(source, 0))


def answer(connection: socket.socket) -> str:
    """The status of what comes back, or how the connection ended."""
    try:
        received = connection.recv(PIECE)
    except TimeoutError:
        return "silence"
    except OSError:
        return "reset"
    return received.split(b" ", 2)[1].decode() if received.startswith(b"HTTP/1.1 ") else "closed"


def asked(port: int, request: bytes) -> str:
    """One request on a connection of its own."""
    with connected(port) as connection:
        try:
            connection.sendall(request)
        except OSError:
            return answer(connection)
        return answer(connection)


def poured(port: int, begin: bytes, piece: bytes, pieces: int) -> Seen:
    """A request without end, until the server has had enough or everything is sent."""
    with connected(port) as connection:
        sent = 0
        try:
            connection.sendall(begin)
            for _ in range(pieces):
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        return Counter({answer(connection): 1, "bytes sent": sent})


def cookies_to_unquote(port: int, size: int) -> Seen:
    """CVE-2024-7592: Python before 3.11.10 unquotes a cookie in the square of its length."""
    cookie = b'Cookie: bds_session="' + b'\\"' * 3_950 + b'"\r\n\r\n'
    longer = b'Cookie: bds_session="' + b'\\"' * 15_000 + b'"\r\n\r\n'
    seen = Counter(asked(port, LOGIN + cookie) for _ in range(size))
    return seen + Counter([asked(port, LOGIN + longer)])


def headers_to_parse(port: int, size: int) -> Seen:
    """Long values for everything that reads a header, each built to be split, repeated or matched for long."""
    values = [
        b"Accept-Language: " + b"en;q=0.1," * 3_000,
        b"X-Forwarded-For: " + b"127.0.0.1," * 3_000,
        b"X-Forwarded-For: " + b":" * 30_000,
        b"Forwarded: " + b'for="' * 5_000,
        b"Authorization: Bearer " + b" " * 30_000 + b"!",
        b"Authorization: Bearer " + b"=" * 30_000 + b"!",
        b"Authorization: Bearer " + b"a." * 15_000,
        b"Accept: " + b"text/html," * 3_000,
        b"Accept-Encoding: " + b"gzip;q=0," * 3_000,
        b"Content-Type: application/json" + b";a=b" * 7_000,
        b"If-None-Match: " + b'W/"a",' * 5_000,
        b"Range: bytes=" + b"0-1," * 7_000,
        b"Origin: " + b"a" * 30_000,
        b"Host: " + b"[" * 30_000,
    ]
    paths = (b"/api/v1/accounts", b"/docs/swagger-ui.css", b"/oauth/login", b"/nowhere")
    return Counter(
        asked(port, b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n" % (path, value))
        for _ in range(size)
        for value in values
        for path in paths
    )


def endless_address(port: int, size: int) -> Seen:
    """A request line that never ends."""
    return poured(port, b"GET /", b"a" * PIECE, size)


def endless_header(port: int, size: int) -> Seen:
    """One header line that never ends."""
    return poured(port, HEAD + b"X: ", b"a" * PIECE, size)


def endless_headers(port: int, size: int) -> Seen:
    """Header lines without end."""
    return poured(port, HEAD, b"X-Header: value\r\n" * 4_096, size)


def endless_trailers(port: int, size: int) -> Seen:
    """Trailers without end behind a body of one byte."""
    begin = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    return poured(port, begin, b"X-Trailer: value\r\n" * 4_096, size)


def endless_body(port: int, size: int) -> Seen:
    """A body without end, of which everything beyond the limit is dropped."""
    begin = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    return poured(port, begin, b"8000\r\n" + b"a" * 32_768 + b"\r\n", size)


def endless_chunks(port: int, size: int) -> Seen:
    """A body in chunks of one byte, each with an extension."""
    begin = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    return poured(port, begin, b"1;abcdefgh=ijklmnop\r\na\r\n" * 2_048, size)


def pipelines(port: int, size: int) -> Seen:
    """Twenty connections that send requests and read no answer."""
    seen: Seen = Counter()
    with ExitStack() as stack:
        connections = [stack.enter_context(connected(port)) for _ in range(20)]
        for connection in connections:
            try:
                connection.sendall((HEAD + b"\r\n") * size)
            except OSError:
                seen["cut while sending"] += 1
        for connection in connections:
            seen[answer(connection)] += 1
    return seen


def half_heads(port: int, size: int) -> Seen:
    """Requests that begin and do not go on, all at once."""
    return held(port, size, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-")


def silent_connections(port: int, size: int) -> Seen:
    """Connections on which nothing is sent."""
    return held(port, size, b"")


def slow_bodies(port: int, size: int) -> Seen:
    """Forms of which one byte is sent."""
    form = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\na"
    return held(port, size, b"POST /oauth/login HTTP/1.1\r\nHost: 127.0.0.1\r\n" + form)


def unread_downloads(port: int, size: int) -> Seen:
    """Large files that are asked for from six addresses and never read."""
    asked = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    return held(port, size, asked, reads=False, addresses=6)


def held(port: int, size: int, begin: bytes, *, reads: bool = True, addresses: int = 1) -> Seen:
    """So many connections at once, each with the same beginning; many of them until the server has ended them all."""
    seen: Seen = Counter()
    with ExitStack() as stack, selectors.DefaultSelector() as open_ones:
        for number in range(size):
            connection = stack.enter_context(connected(port, f"127.0.0.{1 + number % addresses}"))
            try:
                connection.sendall(begin)
            except OSError:
                seen["cut while sending"] += 1
                continue
            open_ones.register(connection, selectors.EVENT_READ)
        deadline = time.monotonic() + SECONDS_MAX
        if not reads or size < LARGE:
            time.sleep(1)
            return seen + Counter({"held": size})
        while open_ones.get_map() and time.monotonic() < deadline:
            for key, _ in open_ones.select(1):
                ended = key.fileobj
                assert isinstance(ended, socket.socket)
                open_ones.unregister(ended)
                seen[answer(ended)] += 1
        seen["still open"] = len(open_ones.get_map())
    return +seen


def aborted(port: int, size: int) -> Seen:
    """Forms and downloads, alone and one behind the other, that the client gives up in the middle, by resetting the
    connection."""
    for number in range(size):
        for request in abandoned():
            with connected(port) as connection:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.sendall(request)
                if number % 2 and request.startswith(b"GET"):
                    connection.recv(1_000)
    return Counter({"given up": size * 6})


def abandoned() -> Iterator[bytes]:
    """The beginnings of four requests, and some that wait behind one another."""
    form = (
        b"Host: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nusername=a"
    )
    for path in (b"/oauth/login", b"/account/password", b"/oauth/token"):
        yield b"POST " + path + b" HTTP/1.1\r\n" + form + (b"" if path == b"/oauth/token" else b"&b=c")
    file = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    yield from (file, 3 * file, 4 * (HEAD + b"\r\n"))


ATTACKS: dict[str, tuple[Attack, int, int]] = {
    "cookies to unquote": (cookies_to_unquote, 20, 300),
    "headers to parse": (headers_to_parse, 1, 20),
    "an endless address": (endless_address, 1_000, 16_000),
    "an endless header": (endless_header, 1_000, 16_000),
    "endless headers": (endless_headers, 1_000, 16_000),
    "endless trailers": (endless_trailers, 1_000, 16_000),
    "an endless body": (endless_body, 2_000, 32_000),
    "endless chunks": (endless_chunks, 1_000, 16_000),
    "pipelines": (pipelines, 400, 4_000),
    "half heads": (half_heads, 300, 1_100),
    "silent connections": (silent_connections, 300, 1_100),
    "slow bodies": (slow_bodies, 300, 1_100),
    "unread downloads": (unread_downloads, 300, 1_000),
    "aborted requests": (aborted, 5, 100),
}
"""Name, attack, size in the gate, size as a command."""
