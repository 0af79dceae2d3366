"""Sixty users wait for a bank that takes half a minute: what that costs everybody who does not.

    python -m tests.benchmarks.slow_source [--users 60] [--seconds 30] [--requests 400]

starts two servers with a bank that answers every question after so many seconds, and in one of them a sync of every
user, each read by its user all the time. GET /accounts is read from both by turns, so that whatever else the machine
does falls on both alike. Then the busy server is ended by SIGTERM in the middle and started again. Prints both, their
ratio, how long the end took, and what became of the syncs. It fails when the ratio at the 95th percentile is above 1.5,
an answer took more than two seconds, the server needed more than ten seconds to end, or a sync was not completed.
"""

# ruff: noqa: ARG002 - the protocol of connectors names the arguments

import argparse
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from statistics import median, quantiles

import httpx

from analytics.records import AccountRecord, Batch, Record, StatementRecord, TransactionRecord
from connectors.connector import Connection, Json, Ready, Waiting

SCOPE = "read:accounts read:transactions read:cashflow"
RATIO_MAX = 1.5
WORST_SECONDS_MAX = 2.0
END_SECONDS_MAX = 10.0
COMPLETE_SECONDS_MAX = 900.0
WARM_UP = 100  # requests
BEGIN_SECONDS = 3  # until all syncs have been asked for


class SlowBank:
    """Implements `Connector`: whatever it is asked, it takes its time, as a bank on the other side of a network."""

    name = "slow"
    is_local = False
    unattended_syncs_max = None

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def start_refresh(self, connection: Connection, *, now: datetime) -> Json:
        """At once."""
        return {}

    def poll_refresh(self, connection: Connection, handle: Json, *, now: datetime) -> Waiting | Ready:
        """After its time."""
        time.sleep(self._seconds)
        return Ready()

    def fetch(self, connection: Connection, handle: Json, *, cursor: Json | None, today: date) -> Iterator[Batch]:
        """One booking of today."""
        records: list[Record] = [
            AccountRecord(stable_key=connection.id, currency="EUR", name="Giro"),
            TransactionRecord(amount=Decimal("-2.80"), currency="EUR", booking_date=today, counterpart_name="Café"),
            StatementRecord(closing=Decimal(100), closing_date=today),
        ]
        yield Batch(id=f"slow:{connection.id}:{today}", records=iter(records))

    def settle(self, connection: Connection, handle: Json, *, batch: Batch, refusal: str | None) -> None:
        """Nothing to tidy up."""


def serve(folder: Path, port: int, users_: int, seconds: float) -> None:
    """The process of the server: the product's own, with one bank more; the tokens go to standard output."""
    from handlers.server import run
    from handlers.settings import load
    from handlers.web.sockets.listening_socket import listening_socket
    from handlers.work.services import open_services
    from storage import connections, users

    address = f"http://127.0.0.1:{port}"
    settings = load({"BANKDATA_RATE_LIMIT": "off", "BANKDATA_LOG_LEVEL": "warning"}, data_dir=folder, address=address)
    services = open_services(settings, more_connectors={SlowBank.name: SlowBank(seconds)})
    tokens = []
    for number in range(users_ + 1):
        name = f"user{number}"
        user = users.find_by_name(services.everybody, name) or users.add(
            services.everybody,
            name=name,
            password_hash=None,
            has_subscription=True,
            home_currency="EUR",
            now=services.clock.now(),
        )
        services.everybody.atomically(
            lambda session, user=user: connections.add(  # type: ignore[misc]  # mypy cannot infer a default's type here
                session,
                user_id=user.id,
                user_name=user.name,
                connector=SlowBank.name,
                bank_name="Slow bank",
                settings={},
                now=services.clock.now(),
            )
        )
        tokens.append(services.authorization.issue_token(user.id, frozenset(SCOPE.split()), timedelta(days=1)))
    with listening_socket("127.0.0.1", port) as listener:
        run(services, listener=listener, ready=lambda: print(*tokens, sep="\n", end="\n\n", flush=True))


def measured(clients: Sequence[httpx.Client], count: int, pause: float) -> list[list[float]]:
    """Seconds of so many reads of GET /accounts by each client, one after the other, by turns."""
    taken: list[list[float]] = [[] for _ in clients]
    for _ in range(count):
        for client, seconds in zip(clients, taken, strict=True):
            began = time.perf_counter()
            answer = client.get("/accounts")
            seconds.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.text
            time.sleep(pause)
    return taken


def client_of(port: int, token: str) -> httpx.Client:
    """A client with connections of its own."""
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}/api/v1",
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        verify=False,  # plain HTTP; reading certificates takes this process longer than the answers
        trust_env=False,
    )


def wait_for_sync(port: int, token: str, ended: threading.Event, begun: list[str]) -> None:
    """A user who starts a sync and reads it again and again, as an app does; its id joins `begun`."""
    with suppress(httpx.TransportError), client_of(port, token) as client:
        (job,) = client.post("/sync").json()["syncJobs"]
        begun.append(job["syncId"])
        while not ended.is_set():
            answer = client.get(f"/sync/{job['syncId']}")
            if answer.json()["status"] in ("completed", "failed"):
                return
            time.sleep(float(answer.headers.get("retry-after", 1)))


def outcomes(port: int, tokens: Sequence[str], begun: Collection[str]) -> Counter[str]:
    """How many of the syncs ended how; one that has not ended after 15 minutes is still under way."""
    found: Counter[str] = Counter()
    until = time.monotonic() + COMPLETE_SECONDS_MAX
    for token in tokens:
        with client_of(port, token) as client:
            last = client.get("/connections").json()["connections"][0]["lastSync"]
            while last["syncId"] in begun and last["finishedAt"] is None and time.monotonic() < until:
                time.sleep(1)
                last = client.get("/connections").json()["connections"][0]["lastSync"]
            found[last["status"] if last["syncId"] in begun else "another one"] += 1
    return found


def said(name: str, seconds: list[float]) -> float:
    """Print what was measured; the 95th percentile."""
    p95 = quantiles(seconds, n=20)[-1]
    figures = {"median": median(seconds), "p95": p95, "max": max(seconds)}
    print(f"{name:<16}" + "".join(f" {what} {value * 1000:7.1f} ms " for what, value in figures.items()))
    return p95


@dataclass
class Started:
    """A server of this module with the tokens of its users."""

    process: "subprocess.Popen[str]"
    port: int
    tokens: Sequence[str]
    folder: Path


@contextmanager
def started(users_: int, seconds: float, folder: Path | None = None) -> Iterator[Started]:
    """A server over a store of its own, or over that of the folder, killed at the end if it still runs."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as own:
        parent = str(folder or own)
        asked = ["--serve", parent, "--port", str(port), "--users", str(users_), "--seconds", str(seconds)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.slow_source", *asked], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            lines = (line.strip() for line in process.stdout)
            yield Started(process, port, list(takewhile(bool, lines)), Path(parent))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def measure(users_: int, seconds: float, requests: int) -> list[str]:
    """What does not hold; prints the figures."""
    ended = threading.Event()
    begun: list[str] = []
    with (
        started(users_, seconds) as quiet,
        started(users_, seconds) as slow,
        client_of(quiet.port, quiet.tokens[0]) as calm_client,
        client_of(slow.port, slow.tokens[0]) as busy_client,
    ):
        clients = (calm_client, busy_client)
        measured(clients, WARM_UP, 0)
        for token in slow.tokens[1:]:
            threading.Thread(target=wait_for_sync, args=(slow.port, token, ended, begun), daemon=True).start()
        time.sleep(BEGIN_SECONDS)
        calm, busy = measured(clients, requests, 0.01)
        ended.set()
        began = time.monotonic()
        slow.process.send_signal(signal.SIGTERM)
        code = slow.process.wait(120)
        took = time.monotonic() - began
        with started(users_, seconds, slow.folder) as again:
            done = outcomes(again.port, again.tokens[1:], set(begun))
    ratio = said(f"{users_} syncs", busy) / said("without a sync", calm)
    print(f"ratio of p95     {ratio:.2f}")
    print(f"SIGTERM          {took:.1f} s, exit code {code}")
    print(f"syncs            {', '.join(f'{count} {status}' for status, count in done.items())}")
    checks = {
        f"p95 is {ratio:.2f} times its calm value": ratio <= RATIO_MAX,
        f"an answer took {max(busy):.1f} s": max(busy) <= WORST_SECONDS_MAX,
        f"the server ended after {took:.1f} s with {code}": took <= END_SECONDS_MAX and code == 0,
        f"of {users_} syncs {done['completed']} were completed": done["completed"] == users_,
    }
    return [what for what, holds in checks.items() if not holds]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.port, given.users, given.seconds)
    elif broken := measure(given.users, given.seconds, given.requests):
        raise SystemExit("; ".join(broken))


if __name__ == "__main__":
    main()
