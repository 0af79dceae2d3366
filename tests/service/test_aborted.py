"""Clients that are gone before their answer is: nobody is told of it, and nobody has to read about it."""

import socket
import time
from contextlib import suppress

import pytest

from tests.service.conftest import Served, account_ids, get

RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: the connection ends at once, and what was on its way is dropped


@pytest.mark.requirement("attack.http")
@pytest.mark.parametrize("path", ["/transactions", "/snapshot", "/cashflow"])
@pytest.mark.long
def test_an_answer_that_its_client_gives_up_in_the_middle_leaves_no_traceback(service: Served, path: str) -> None:
    client = service.client("demo")
    query = f"accountIds={','.join(account_ids(client))}" + ("&perPage=100" if path == "/transactions" else "")
    token = client.headers["authorization"]
    request = f"GET /api/v1{path}?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n\r\n".encode()
    began = time.monotonic()
    get(client, path, accountIds=",".join(account_ids(client)))
    took = time.monotonic() - began
    for part in range(20):  # before the answer, while it is made, while it is sent
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            connection.sendall(request)
            if part % 4 == 3:
                connection.recv(1000)
            else:
                connection.settimeout(max(0.001, took * part / 20))
                with suppress(TimeoutError):
                    connection.recv(1)
    assert get(client, "/accounts")["accounts"]
    assert "Traceback" not in service.log.read_text()
