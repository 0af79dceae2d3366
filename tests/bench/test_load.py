"""The load counts what was answered, and stops at the first answer that is none."""

import random
import socket
import threading
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from tests.bench.conftest import BEN, EVA, TODAY
from tests.benchmarks.bench import load
from tests.benchmarks.bench.load import Load, LoadFailed, drive
from tests.benchmarks.bench.workload import WORKS

Answering = Callable[..., Any]


def asking(port: int, work: str = "accounts", *, connections: int = 1, seconds: float | None = None) -> Load:
    return Load(port=port, work=work, users=[EVA, BEN], today=TODAY, connections=connections, seconds=seconds, seed=1)


@pytest.mark.requirement("bench.truthful")
def test_it_counts_what_the_server_has_answered(answering: Answering) -> None:
    with answering(lambda _: (200, b"{}")) as (server, asked):
        answered = drive(asking(server.port, connections=4, seconds=0.3))
        assert len(answered.latencies) == len(asked) > 4
    assert answered.seconds >= 0.3
    assert all(0 < latency <= answered.seconds for latency in answered.latencies)
    assert {token for token, _ in asked} == {"eva", "ben"}


@pytest.mark.requirement("bench.truthful")
def test_without_a_time_everybody_asks_once(answering: Answering) -> None:
    with answering(lambda _: (200, b"{}")) as (server, asked):
        answered = drive(asking(server.port, connections=3))
    assert sorted(asked) == [("ben", "/api/v1/accounts"), ("eva", "/api/v1/accounts")]
    assert len(answered.latencies) == 2


@pytest.mark.requirement("bench.truthful")
def test_an_answer_other_than_200_ends_it_and_is_shown(answering: Answering) -> None:
    with (
        answering(lambda path: (429, b"slow down") if "search" in path else (200, b"{}")) as (server, _),
        pytest.raises(LoadFailed, match=r"/api/v1/transactions\?.*search=.* was answered with 429: slow down"),
    ):
        drive(asking(server.port, "search", connections=2, seconds=5))


@pytest.mark.requirement("bench.truthful")
def test_a_server_that_hangs_up_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hanging_up = threading.Thread(target=lambda: listener.accept()[0].close())
        hanging_up.start()
        with pytest.raises(LoadFailed, match="the server hung up"):
            drive(asking(listener.getsockname()[1], seconds=5))
        hanging_up.join()


@pytest.mark.requirement("bench.truthful")
def test_a_server_that_says_nothing_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "PATIENCE_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(LoadFailed, match="does not answer"):
        drive(asking(listener.getsockname()[1]))


@pytest.mark.requirement("bench.truthful")
def test_nobody_there_ends_it() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(LoadFailed, match="does not answer"):
            drive(asking(free.getsockname()[1], connections=2))


@pytest.mark.requirement("bench.truthful")
def test_pages_are_none_that_was_asked_before_and_lie_within_the_list() -> None:

    draw = random.Random(1)
    paths = [WORKS["page"].path(draw, EVA, date(2026, 11, 22)) for _ in range(200)]
    assert len(set(paths)) == 200
    assert {path.rpartition("page=")[2] for path in paths} == {"1", "2"}  # 100 bookings are two pages
