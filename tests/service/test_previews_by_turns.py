"""Previews of several people at one server: nobody waits for the many of another, and one that was given up is gone."""

import http.client
import json
import select
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.benchmarks.previews import HEAD, ROW, csv
from tests.service.conftest import Served, running

pytestmark = [pytest.mark.requirement("sync.turns"), pytest.mark.engine("duckdb")]

SCOPES = "read:accounts write:imports"
LONG = 600_000  # bytes: some seconds of work
ENDLESS = 20_000_000  # minutes


@pytest.fixture(scope="module")
def server(copied: Callable[[], Path]) -> Iterator[Served]:
    with running(copied(), is_measured=False) as served:
        served.command(
            "users add", name="eva", password="Regenturm-4711-quer", is_generated=False, has_subscription=True
        )
        yield served


def previewed(client: httpx.Client, content: str) -> dict[str, Any]:
    answer = client.post(
        "/imports",
        params={"filename": "a.csv", "dryRun": "true"},
        content=content.encode(),
        headers={"content-type": "application/octet-stream"},
    )
    return dict(answer.json())


def ended(client: httpx.Client, report: dict[str, Any]) -> dict[str, Any]:
    while report["status"] == "running":
        report = client.get(f"/imports/{report['importId']}").json()
    return report


def begun(server: Served, client: httpx.Client, content: str) -> socket.socket:
    """A connection on which a preview has been sent whole, and of which nothing has been read."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    body = content.encode()
    connection.sendall(
        b"POST /api/v1/imports?filename=a.csv&dryRun=true HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Authorization: " + client.headers["authorization"].encode() + b"\r\n"
        b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    )
    return connection


def answered(connection: socket.socket) -> dict[str, Any]:
    with http.client.HTTPResponse(connection) as answer:
        answer.begin()
        return dict(json.load(answer))


@pytest.mark.long
def test_a_preview_of_one_line_passes_the_four_long_ones_of_another(server: Served) -> None:
    eva, other = server.client("eva", SCOPES), server.client("demo", SCOPES)
    long = [begun(server, eva, csv(LONG)) for _ in range(4)]
    found = ended(other, previewed(other, HEAD + ROW.format(month=1, i=1)))
    assert (found["error"], found["new"]) == (None, 1)
    assert not select.select([long[-1]], [], [], 0)[0], "the last long one is at work, or waits"
    for each in long:
        report = ended(eva, answered(each))
        assert (report["error"], report["new"] > 1000) == (None, True)
        each.close()


@pytest.mark.long
def test_a_preview_whose_client_is_gone_ends_while_it_is_read(server: Served) -> None:
    eva = server.client("eva", SCOPES)
    for _ in range(2):
        begun(server, eva, csv(ENDLESS)).close()
    found = ended(eva, previewed(eva, HEAD + ROW.format(month=1, i=1)))
    assert (found["error"], found["new"]) == (None, 1)
