"""Two servers count in one Redis, a real one; and what happens while it is gone or hangs (decision 32)."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import Served, free_port, running

pytestmark = pytest.mark.engine("duckdb")  # the engine has no part in it

FIVE = {"RATE_LIMIT": "5/60s", "TRUSTED_PROXIES": "127.0.0.1"}  # a test's requests come from addresses of its own
SECONDS_MAX = 60.0


@dataclass
class Redis:
    """A redis-server on loopback that stores nothing on disk and answers nobody without the password."""

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=secrets.token_hex)
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.fail("redis-server is missing: apt-get install redis-server (docs/testing.md)")
        self.process = subprocess.Popen(
            [
                *(program, "--bind", "127.0.0.1", "--port", str(self.port), "--requirepass", self.password),
                *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            umask=0o077,
        )
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            assert self.process.poll() is None, "redis-server ended at its start"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise AssertionError("redis-server did not start")

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            self.process.wait(SECONDS_MAX)


@dataclass(frozen=True)
class Pair:
    """Two servers, each with a store of its own, over one Redis."""

    redis: Redis
    servers: tuple[Served, Served]

    def ask(self, server: int, address: str) -> httpx.Response:
        """One request of a client with this address to one of the servers."""
        return self.servers[server].client("solo").get("/accounts", headers={"X-Forwarded-For": address})

    def codes(self, servers: list[int], address: str) -> list[int]:
        return [self.ask(server, address).status_code for server in servers]

    def counts_together(self, address: str) -> bool:
        """Whether the second server sees what the first has counted; the address is used up a little."""
        left = [self.ask(server, address).headers["ratelimit"].split(";")[1] for server in (0, 1)]
        return left == ["r=4", "r=3"]

    def log(self, server: int) -> list[str]:
        """What a server said of its counts."""
        lines = self.servers[server].log.read_text().splitlines()
        return [line.partition(" bankdata.limits ")[2] for line in lines if " bankdata.limits " in line]


@pytest.fixture(scope="module")
def pair(copied: Callable[[], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    redis = Redis(tmp_path_factory.mktemp("redis"))
    with ExitStack() as stack:
        stack.callback(redis.stop)
        redis.start()
        settings = {**FIVE, "RATE_LIMIT_URL": redis.url}
        first, second = (stack.enter_context(running(copied(), settings=settings)) for _ in range(2))
        yield Pair(redis, (first, second))
    for served in (first, second):
        assert "Traceback" not in served.log.read_text()
        assert redis.password not in served.log.read_text()
    assert list(redis.folder.iterdir()) == []


@pytest.mark.requirement("decision.32.storage")
@pytest.mark.long
def test_the_sixth_request_over_both_servers_together_is_refused_by_either(pair: Pair) -> None:
    answers = [pair.ask(server, "198.51.100.1") for server in (0, 1, 0, 1, 1)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert [answer.headers["ratelimit"].split(";")[1] for answer in answers] == ["r=4", "r=3", "r=2", "r=1", "r=0"]
    for server in (0, 1):
        refused = pair.ask(server, "198.51.100.1")
        assert (refused.status_code, refused.json()) == (429, {"error": "Rate limit exceeded"})
        seconds = int(refused.headers["retry-after"])
        assert 40 <= seconds <= 60
        assert refused.headers["ratelimit"] == f'"default";r=0;t={seconds}'
        assert refused.headers["ratelimit-policy"] == '"default";q=5;w=60'
    assert pair.codes([0, 1], "198.51.100.2") == [200, 200], "another client's count is another one"


@pytest.mark.requirement("decision.32.storage")
def test_of_twenty_requests_at_once_over_both_servers_five_are_served(pair: Pair) -> None:
    for server in (0, 1):
        pair.servers[server].client("solo")  # its token is issued before the race
    with ThreadPoolExecutor(8) as pool:
        codes = [answer.status_code for answer in pool.map(lambda n: pair.ask(n % 2, "198.51.100.3"), range(20))]
    assert sorted(codes) == [200] * 5 + [429] * 15


@pytest.mark.requirement("decision.32.outage")
@pytest.mark.parametrize("outage", ["is gone", "hangs"])
@pytest.mark.sampled
def test_without_redis_each_server_counts_for_itself_until_it_is_back(pair: Pair, outage: str) -> None:
    network = {"is gone": "203.0.113", "hangs": "192.0.2"}[outage]
    before = [pair.log(server) for server in (0, 1)]
    assert pair.counts_together(f"{network}.1")
    if outage == "is gone":
        pair.redis.stop()
    else:
        pair.redis.signal(signal.SIGSTOP)

    for server in (0, 1):
        assert pair.codes([server] * 6, f"{network}.1") == [200] * 5 + [429]

    if outage == "is gone":
        pair.redis.start()
    else:
        pair.redis.signal(signal.SIGCONT)
    deadline = time.monotonic() + SECONDS_MAX
    numbers = iter(range(2, 250))
    while not pair.counts_together(f"{network}.{next(numbers)}"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert pair.codes([0, 1, 0, 1, 0, 1], f"{network}.250") == [200] * 5 + [429]

    reason = {"is gone": "ConnectionError", "hangs": "TimeoutError"}[outage]
    for server in (0, 1):
        assert pair.log(server)[len(before[server]) :] == [
            f"Redis does not count requests ({reason}): this process counts for itself",
            "Redis counts requests again",
        ]
