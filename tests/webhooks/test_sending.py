"""The part that sends, in this process: real sockets, real TLS, and a resolver that changes its mind."""

import asyncio
import json
import os
import resource
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from connectors.webhooks import process
from connectors.webhooks.client import SendingProcess, SendingProcessGone
from tests.oauth.rfc7591.test_client_documents import certificate
from tests.webhooks.conftest import Json, Receiver

ADDRESSES = pytest.mark.requirement("webhooks.addresses")
NEAR = [ip_network("127.0.0.0/8")]


def request(url: str, *, seconds: float = 5.0, id_: str = "d1") -> Json:
    return {"id": id_, "url": url, "headers": {"webhook-id": "evt_1"}, "body": '{"a": "ä"}', "seconds": seconds}


def came(*requests: Json, allowed: Any = NEAR, until: int | None = None) -> list[Json]:
    """What is answered to these requests, in the order of the answers."""
    answers: list[Json] = []

    async def work() -> None:
        reader, done = asyncio.StreamReader(), asyncio.Event()

        def answer(line: bytes) -> None:
            answers.append(json.loads(line))
            if len(answers) >= (len(requests) if until is None else until):
                done.set()

        serving = asyncio.create_task(process.serve(reader, answer, allowed))
        for each in requests:
            reader.feed_data(json.dumps(each).encode() + b"\n")
        await asyncio.wait_for(done.wait(), 20)
        reader.feed_eof()
        await serving

    asyncio.run(work())
    return answers


def outcome(url: str, **how: Any) -> tuple[int | None, str | None, int]:
    allowed = how.pop("allowed", NEAR)
    (found,) = came(request(url, **how), allowed=allowed)
    return found["status"], found["error"], found["retryAfter"]


@contextmanager
def saying(said: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a server that takes one connection and says this."""
    import threading

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def work() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                said(connection)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(60)


@ADDRESSES
def test_a_request_arrives_whole_and_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answers["/a?b=c"] = [(302, {"Location": f"{receiver.address}/next"})]
    assert outcome(f"{receiver.address}/a?b=c") == (302, None, 0)
    ((headers, body),) = receiver.heard["/a?b=c"]
    assert body == '{"a": "ä"}'.encode()
    assert (headers["host"], headers["webhook-id"]) == (f"127.0.0.1:{receiver.port}", "evt_1")
    assert receiver.heard["/next"] == []
    assert outcome(f"http://localhost:{receiver.port}") == (204, None, 0)
    assert len(receiver.heard["/"]) == 1


@ADDRESSES
def test_a_receiver_says_how_long_it_wants_rest(receiver: Receiver) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=90), usegmt=True)
    for said, seconds in (("120", {120}), (later, {89, 90, 91}), (past, {0}), ("9" * 30, {86_400}), ("soon", {0})):
        receiver.answers["/a"] = [(503, {"Retry-After": said})]
        status, _, wait = outcome(f"{receiver.address}/a")
        assert (status, wait in seconds) == (503, True), said


@ADDRESSES
def test_the_very_address_is_connected_to_that_was_looked_at(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def rebinding(host: str, port: int, **_: Any) -> list[Any]:
        looked.append(host)
        address = "127.0.0.1" if len(looked) == 1 else "127.0.0.2"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    only_first = [ip_network("127.0.0.1/32")]
    url = f"http://rebinds.example:{receiver.port}/a"
    assert outcome(url, allowed=only_first) == (204, None, 0)
    assert looked == ["rebinds.example"]
    assert receiver.heard["/a"][0][0]["host"] == f"rebinds.example:{receiver.port}"
    assert outcome(url, allowed=only_first) == (None, "address_not_allowed", 0)
    assert len(receiver.heard["/a"]) == 1


@ADDRESSES
def test_one_inner_address_among_several_is_enough_to_refuse_a_name(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_to: list[str] = []

    def found(_: str, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in leads_to]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    for several in (["9.9.9.9", "10.0.0.1"], ["::ffff:192.168.0.1"], ["9.9.9.9", "fe80::1%eth0"]):
        leads_to[:] = several
        assert outcome("https://app.example/", allowed=[])[1] == "address_not_allowed"
    leads_to[:] = ["9.9.9.9"]
    assert outcome("http://app.example/")[1] == "address_not_allowed"  # in clear to allowed networks only
    leads_to[:] = ["127.0.0.3", "127.0.0.1"]  # where the first takes no connection
    assert outcome(f"http://app.example:{receiver.port}/a") == (204, None, 0)


@ADDRESSES
def test_a_certificate_has_to_bear_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = Receiver()
    paths = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    try:
        assert outcome(f"https://localhost:{receiver.port}/a")[1] == "certificate"  # nobody known has signed it
        monkeypatch.setenv("SSL_CERT_FILE", str(paths[0]))
        assert outcome(f"https://localhost:{receiver.port}/a") == (204, None, 0)
        assert outcome(f"https://127.0.0.1:{receiver.port}/a")[1] == "certificate"
        assert len(receiver.heard["/a"]) == 1
    finally:
        receiver.close()


@ADDRESSES
def test_what_does_not_answer_is_told_by_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome("https://name.invalid/")[1] == "name_not_found"
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert outcome(f"http://127.0.0.1:{port}/")[1] == "not_connected"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert outcome(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=0.2)[1] == "timeout"
    for said in (b"", b"220 mail.example ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 40_000):
        with saying(lambda connection, said=said: connection.sendall(said)) as url:  # type: ignore[misc]  # bound at once
            assert outcome(url)[1] == "no_answer", said[:30]
    with saying(lambda connection: connection.sendall(b"HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")) as url:
        assert outcome(url)[0] == 200


@ADDRESSES
def test_all_are_sent_at_once_and_the_end_cuts_off_the_rest(receiver: Receiver) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow = request(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=60, id_="slow")
        quick = [request(f"{receiver.address}/a", id_=f"quick{number}") for number in range(3)]
        answers = came(slow, *quick, until=3)
    assert {each["id"] for each in answers} == {"quick0", "quick1", "quick2"}


@ADDRESSES
def test_the_process_has_nothing_of_ours_and_its_end_is_noticed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BANKDATA_KEYS_SECRET", "x" * 32)
    sender = SendingProcess(NEAR)
    try:
        environment = Path(f"/proc/{sender._process.pid}/environ").read_bytes()
        assert b"BANKDATA" not in environment
        assert sender.outcomes(within=0.01) == []
        sender.send(request(f"{receiver.address}/a"))
        found: list[Any] = []
        while not found:
            found = list(sender.outcomes(within=5))
        assert (found[0]["id"], found[0]["status"]) == ("d1", 204)
        sender._process.kill()
        sender._process.wait()
        with pytest.raises(SendingProcessGone):
            sender.outcomes(within=5)
        with pytest.raises(SendingProcessGone):
            sender.send(request(f"{receiver.address}/a"))
    finally:
        sender.close()


@ADDRESSES
def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    from connectors.webhooks import client

    monkeypatch.setattr(client, "END_SECONDS", 0.1)
    sender = SendingProcess([])
    sender._process.send_signal(signal.SIGSTOP)
    sender.close()
    assert sender._process.returncode == -signal.SIGKILL


@ADDRESSES
def test_a_server_with_more_than_a_thousand_open_streams_hears_it_all_the_same(receiver: Receiver) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    streams = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    sender = SendingProcess(NEAR)
    try:
        sender.send(request(f"{receiver.address}/a"))
        found: list[Any] = []
        while not found:
            found = list(sender.outcomes(within=5))
        assert found[0]["status"] == 204
    finally:
        sender.close()
        for each in streams:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
