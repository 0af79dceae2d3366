"""Whoever is refused before their body is read still reads why, however long it is, and asks again."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.attack.http.attacks import connected
from tests.service.conftest import Served, running

BODY_BYTES = 5_000_000
FORM = b"application/x-www-form-urlencoded"
FILE = b"application/octet-stream"


@pytest.fixture(scope="module")
def server(copied: Callable[[], Path]) -> Iterator[Served]:
    with running(copied()) as served:
        yield served


def refused(server: Served, path: bytes, headers: bytes, *, is_chunked: bool) -> tuple[int, bytes]:
    """Status and head of the answer to a request whose body is sent to its end before anything is read."""
    framing = b"Transfer-Encoding: chunked" if is_chunked else b"Content-Length: %d" % BODY_BYTES
    body = b"a" * BODY_BYTES
    with connected(server.port) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"POST " + path + b" HTTP/1.1\r\n" + headers + framing + b"\r\n\r\n")
        connection.sendall(b"%x\r\n" % BODY_BYTES + body + b"\r\n0\r\n\r\n" if is_chunked else body)
        received = b""
        while piece := connection.recv(65_536):
            received += piece
    head = received.partition(b"\r\n\r\n")[0].lower()
    assert received.endswith(b"}"), "the sentence is whole"
    return int(head.split(b" ")[1]), head


@pytest.mark.requirement("http.bounds")
@pytest.mark.parametrize("is_chunked", [False, True], ids=["stated", "chunked"])
@pytest.mark.parametrize(
    ("status", "path", "scope", "host", "kind"),
    [
        (400, b"/api/v1/imports?filename=a.csv&dryRun=maybe", "write:imports", b"127.0.0.1", FILE),
        (401, b"/api/v1/imports", "", b"127.0.0.1", FILE),
        (403, b"/api/v1/imports", "read:accounts", b"127.0.0.1", FILE),
        (404, b"/nowhere", "", b"127.0.0.1", FILE),
        (405, b"/api/v1/accounts", "", b"127.0.0.1", FILE),
        (413, b"/oauth/token", "", b"127.0.0.1", FORM),
        (415, b"/api/v1/imports?filename=a.csv", "write:imports", b"127.0.0.1", FORM),
        (421, b"/api/v1/imports", "", b"elsewhere.example", FILE),
    ],
)
def test_a_refusal_before_the_body_is_read_to_its_end(
    server: Served, status: int, path: bytes, scope: str, host: bytes, kind: bytes, is_chunked: bool
) -> None:
    token = b"Authorization: Bearer " + server.token("demo", scope).encode() + b"\r\n" if scope else b""
    headers = b"Host: " + host + b"\r\nContent-Type: " + kind + b"\r\n" + token
    said, head = refused(server, path, headers, is_chunked=is_chunked)
    assert said == status
    assert b"connection: close" in head


@pytest.mark.requirement("http.bounds")
@pytest.mark.long
def test_who_has_asked_too_often_reads_so_behind_a_long_body(copied: Callable[[], Path]) -> None:
    with running(copied(), settings={"RATE_LIMIT": "1/60s"}) as served:
        seen = [
            refused(served, b"/api/v1/sync", b"Host: 127.0.0.1\r\n", is_chunked=is_chunked)[0]
            for is_chunked in (False, True)
        ]
    assert seen == [401, 429]


@pytest.mark.requirement("http.peers")
def test_idle_connections_of_four_addresses_end_no_signed_in_upload(server: Served) -> None:
    statement = b"a" * 100_000
    token = b"Authorization: Bearer " + server.token("demo", "write:imports").encode()
    head = b"POST /api/v1/imports?filename=a.csv HTTP/1.1\r\nHost: 127.0.0.1\r\n" + token
    framing = b"\r\nContent-Type: " + FILE + b"\r\nContent-Length: %d\r\n\r\n" % len(statement)
    with ExitStack() as stack:
        upload = stack.enter_context(connected(server.port))
        upload.sendall(head + framing + statement[:1000])
        for number in range(1_000):
            stack.enter_context(connected(server.port, f"127.0.0.{2 + number % 4}"))
        upload.sendall(statement[1000:])
        assert upload.recv(65_536).startswith(b"HTTP/1.1 20"), "the file has arrived"
