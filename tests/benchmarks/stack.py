"""What the HTTP loop costs: a constant answer through the whole stack against a bare Starlette route.

    .venv/bin/python tests/benchmarks/stack.py [--rounds 5] [--seconds 3]

Both servers run under uvicorn in the same run, in rounds that take turns. The stack is what every request passes:
routing by the contract, bearer token (a real signed one, verified by `AccessTokens`, then remembered), scope and
subscription, validation, orjson. The rate limit is off, as nothing could be measured at 60 requests a minute.
Prints the best round of each (what else runs on the machine only ever slows one down) and the ratio; the bar is 70 %.
"""

import argparse
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from auth.principal import Principal
from auth.tokens.access_tokens import AccessTokens, Claims
from auth.tokens.keys import KeyRing
from handlers.web.app import CONTRACT_FILE, create_app
from handlers.web.request import Request
from handlers.web.steps.guard import guard
from handlers.web.steps.rate_limit import Limiter
from handlers.work.clock import Clock
from storage.boundary import is_failure

PUBLIC_URL = "http://127.0.0.1:8000"
PATH = "/api/v1/accounts"
CONNECTIONS = 16
BAR = 0.70

BODY: dict[str, Any] = {
    "accounts": [
        {
            "id": f"acc_{number:032x}",
            "accountName": "Girokonto",
            "iban": "DE89370400440532013000",
            "accountType": "checking",
            "balance": 1523.07,
            "currency": "EUR",
            "lastSyncedAt": "2026-11-01T06:00:00.000Z",
            "bankConnection": {"bankName": "Bank", "status": "ACTIVE"},
        }
        for number in range(3)
    ]
}


async def bare_answer(_request: StarletteRequest) -> Response:
    return Response(orjson.dumps(BODY), media_type="application/json")


async def list_accounts(_request: Request) -> dict[str, Any]:
    return BODY


async def unused(_request: Request, **_arguments: Any) -> dict[str, Any]:
    return {}


class Tokens:
    """The token check of the service without its store: signature once, expiry every time."""

    def __init__(self, folder: Path) -> None:
        self._clock = Clock(ZoneInfo("UTC"))
        ring = KeyRing(folder, now=self._clock.now())
        self._tokens = AccessTokens(ring, issuer=PUBLIC_URL, audience=f"{PUBLIC_URL}/api/v1")
        self._known: dict[str, Claims] = {}

    def issue(self) -> str:
        return self._tokens.issue(
            user_id="u1", client_id="c1", scopes=["read:accounts"], grant_id="g1", now=self._clock.now()
        )

    async def principal(self, token: str) -> Principal:
        now = self._clock.now()
        claims = self._known.get(token)
        if claims is None or claims.expires_at.replace(tzinfo=None) <= now:
            claims = self._known[token] = self._tokens.verify(token, now)
        return Principal(
            user_id=claims.user_id,
            client_id=claims.client_id,
            scopes=claims.scopes,
            grant_id=claims.grant_id,
            has_subscription=True,
        )


def bare(_keys: Path) -> ASGIApp:
    return Starlette(routes=[Route(PATH, bare_answer)])


def whole(keys: Path) -> ASGIApp:
    contract = CONTRACT_FILE.read_bytes()
    described = orjson.loads(contract)["paths"].values()
    ids = [operation["operationId"] for methods in described for operation in methods.values()]
    return create_app(
        is_failure=is_failure,
        contract=contract,
        operations={**dict.fromkeys(ids, unused), "listAccounts": list_accounts},
        guard=guard(Tokens(keys).principal, public_url=PUBLIC_URL, billing_url=f"{PUBLIC_URL}/billing"),
        public_url=PUBLIC_URL,
        limiter=Limiter(rate=None),
    )


APPS = {"bare": bare, "whole": whole}


@contextmanager
def server(name: str, keys: Path) -> Iterator[tuple[int, psutil.Process]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, "--serve", name, str(port), str(keys)])
    try:
        for _ in range(200):
            with socket.socket() as attempt:
                if attempt.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(10)


def requests_per_second(port: int, token: str, seconds: float) -> float:
    """Keep-alive connections with one request under way on each, driven by one thread without a parser."""
    wanted = f"GET {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    waiting = selectors.DefaultSelector()
    sockets = []
    for _ in range(CONNECTIONS):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sockets.append(connection)
    sockets[0].sendall(wanted)
    first = b""
    while not first.endswith(orjson.dumps(BODY)):
        first += sockets[0].recv(65536)
    assert first.startswith(b"HTTP/1.1 200"), first
    size = len(first)
    missing = dict.fromkeys(sockets, size)
    for connection in sockets:
        waiting.register(connection, selectors.EVENT_READ, connection)
        connection.sendall(wanted)
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for key, _ in waiting.select(1):
            connection = key.data
            missing[connection] -= len(connection.recv(65536))
            if missing[connection] <= 0:
                missing[connection] = size
                done += 1
                connection.sendall(wanted)
    elapsed = time.perf_counter() - began
    for connection in sockets:
        connection.close()
    return done / elapsed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--serve", nargs=3, metavar=("APP", "PORT", "KEYS"))
    arguments = parser.parse_args()
    if arguments.serve:
        name, port, keys = arguments.serve
        uvicorn.run(APPS[name](Path(keys)), port=int(port), log_level="warning", access_log=False, proxy_headers=False)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        token = Tokens(Path(folder)).issue()
        measured: dict[str, list[float]] = {"bare": [], "whole": []}
        spent: dict[str, list[float]] = {"bare": [], "whole": []}
        with server("bare", Path(folder)) as bare_server, server("whole", Path(folder)) as whole_server:
            servers = {"bare": bare_server, "whole": whole_server}
            for port, _ in servers.values():
                requests_per_second(port, token, 0.5)
            for _ in range(arguments.rounds):
                for name, (port, process) in servers.items():
                    before = sum(process.cpu_times()[:2])
                    rate = requests_per_second(port, token, arguments.seconds)
                    used = sum(process.cpu_times()[:2]) - before
                    measured[name].append(rate)
                    spent[name].append(used / (rate * arguments.seconds) * 1e6)
    for name, rates in measured.items():
        print(f"{name:5}  {max(rates):8,.0f} requests/s   {min(spent[name]):6.1f} us CPU each")
    ratio = max(measured["whole"]) / max(measured["bare"])
    print(f"ratio  {ratio:.0%} (bar {BAR:.0%}); by CPU time {min(spent['bare']) / min(spent['whole']):.0%}")
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
