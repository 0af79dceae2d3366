"""What the record and the checks of grants cost a request of an app that may see everything.

    python tests/benchmarks/unrestricted.py [--rounds 60] [--requests 300] [--bound 3]

Three applications over one store of the demo, each behind a socket of its own and all in this process: as it is;
without the record; and without record and checks, where a token is looked up as before there were resources and terms.
Another process asks them, block by block, in another order each round. What is told is the median over the rounds of
the ratio of this process's processor time, with the interval in which it lies by the sign test (95 %). Exits with 1
where that whole interval lies above the bound.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from math import comb
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn

# a script's own folder comes first on the path
sys.path[0] = str(Path(__file__).resolve().parents[2])

from auth.errors import InvalidToken  # noqa: E402 - after the line above
from auth.principal import Principal  # noqa: E402
from auth.scopes import SCOPES  # noqa: E402
from auth.tokens.access_check import AccessCheck  # noqa: E402
from handlers import server  # noqa: E402
from handlers.commands import demo  # noqa: E402
from handlers.settings import load  # noqa: E402
from handlers.web.sockets.http_protocol import HttpProtocol  # noqa: E402
from handlers.web.sockets.listening_socket import listening_socket  # noqa: E402
from handlers.web.sockets.peers import Peers  # noqa: E402
from handlers.work.services import Services, open_services  # noqa: E402
from storage import accounts, users  # noqa: E402

App = Callable[..., Awaitable[None]]
PATHS = ("/accounts", "/transactions?accountIds={}", "/cashflow?months=6&accountIds={}", "/subscriptions?accountIds={}")
CLIENT = """
import http.client, json, sys
for line in sys.stdin:
    port, path, token, requests = json.loads(line)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for _ in range(requests):
        connection.request("GET", path, headers={"Host": "127.0.0.1:8000", "Authorization": "Bearer " + token})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
    connection.close()
    print("done", flush=True)
"""
AS_IT_IS, NO_RECORD, BEFORE = "as it is", "without the record", "without record and checks"


class Silent:
    """A report that nobody reads."""

    def line(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def progress(self, label: str, done: int, total: int) -> None: ...

    def choose(self, question: str, choices: Sequence[str]) -> None: ...


def main() -> int:
    """1 where a request costs more than the bound allows, and that is certain."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--requests", type=int, default=300, help="of one block")
    parser.add_argument("--bound", type=float, default=3.0, help="per cent")
    arguments = parser.parse_args()
    with TemporaryDirectory(prefix="bankdata-unrestricted-") as folder:
        services = open_services(load({"BANKDATA_RATE_LIMIT": "off"}, data_dir=Path(folder) / "data"))
        try:
            demo.prepare(services, Silent())
            return asyncio.run(measured(services, arguments.rounds, arguments.requests, 1 + arguments.bound / 100))
        finally:
            services.close()


async def measured(services: Services, rounds: int, requests: int, bound: float) -> int:
    """Print a line for each path and variant."""
    user = users.get_by_name(services.everybody, "demo")
    token = services.authorization.issue_token(user.id, frozenset(SCOPES), timedelta(hours=12))
    account_id = accounts.of_user(services.everybody, user.id)[0].id
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def block(port: int, path: str, count: int) -> float:
        """Seconds of processor time of this process, in all threads, for one request."""
        assert client.stdin is not None
        assert client.stdout is not None
        began = time.process_time()
        client.stdin.write(json.dumps([port, "/api/v1" + path, token, count]).encode() + b"\n")
        assert await client.stdout.readline() == b"done\n", "the client has ended"
        return (time.process_time() - began) / count

    is_too_much = False
    async with serving(dict(applications(services))) as ports:
        print(f"{'path':<16}{'variant':<28}{'us each':>9}{'more':>8}{'ratio':>9}   95 % of")
        for path in (each.format(account_id) for each in PATHS):
            spent: dict[str, list[float]] = {name: [] for name in ports}
            for port in ports.values():
                await block(port, path, 50)
            for number in range(rounds):
                for name in random.Random(number).sample(sorted(ports), len(ports)):
                    spent[name].append(await block(ports[name], path, requests))
            for name, times in spent.items():
                line = f"{path.partition('?')[0]:<16}{name:<28}{median(times) * 1e6:>9.1f}"
                if name != BEFORE:
                    pairs = list(zip(times, spent[BEFORE], strict=True))
                    ratios = sorted(one / other for one, other in pairs)
                    low, high = interval(ratios)
                    is_too_much |= name == AS_IT_IS and low > bound
                    more = median(one - other for one, other in pairs) * 1e6
                    line += f"{more:>8.1f}{median(ratios):>9.4f}   {low:.4f} to {high:.4f}"
                print(line, flush=True)
        assert client.stdin is not None
        client.stdin.close()
        await client.wait()
    services.authorization.record.write()  # what the blocks have counted
    began = time.process_time()
    for operation in ("listAccounts", "listTransactions", "getCashflow", "listSubscriptions"):
        services.authorization.record.note(user.id, operation, grant_id="g", client_id="c")
    services.authorization.record.write()
    print(f"writing the record: {(time.process_time() - began) * 1e3:.2f} ms, every five seconds at most")
    return int(is_too_much)


@asynccontextmanager
async def serving(apps: Mapping[str, App]) -> AsyncIterator[dict[str, int]]:
    """The ports at which these applications answer, each by its own server on this loop."""
    ports, servers, running = {}, [], []
    for name, app in apps.items():
        listener = listening_socket("127.0.0.1", 0)
        ports[name] = listener.getsockname()[1]
        protocol: Any = partial(HttpProtocol, peers=Peers(()))
        config = uvicorn.Config(
            app, http=protocol, ws="none", lifespan="off", access_log=False, server_header=False, log_level="warning"
        )
        servers.append(uvicorn.Server(config))
        running.append(asyncio.create_task(servers[-1].serve(sockets=[listener])))
    while not all(each.started for each in servers):
        await asyncio.sleep(0.01)
    yield ports
    for each in servers:
        each.should_exit = True
    await asyncio.gather(*running)


def applications(services: Services) -> Iterator[tuple[str, App]]:
    """Each variant by its name."""
    yield AS_IT_IS, server.application(services)
    with replaced(server, _record_request=lambda *_: None):
        yield NO_RECORD, server.application(services)
        with replaced(server, SHOWS_BOOKINGS=frozenset(), KNOWS_COVERAGE=None, bearer_check=earlier_check):
            yield BEFORE, server.application(services)


def earlier_check(authorization: Any, _resource: str = "data") -> Callable[[str], Awaitable[Principal]]:
    """What a token says, whether it or its grant was revoked, and nothing of resources and terms."""
    access: AccessCheck = authorization.access

    def remembered(token: str) -> Principal | None:
        now, claims = access._now(), access._claims.get(token)
        if claims is None:
            return None
        if not access._tokens.still_holds(claims, now):
            raise InvalidToken("expired")
        revoked, known = access._revoked, access._standing.get(claims.grant_id)
        if revoked is None or known is None or access._is_stale(revoked[1], now) or access._is_stale(known[1], now):
            return None
        standing = known[0]
        if claims.token_id in revoked[0] or not standing.is_live or standing.user_id != claims.user_id:
            raise InvalidToken("revoked")
        return Principal(
            user_id=claims.user_id,
            client_id=claims.client_id,
            scopes=claims.scopes,
            grant_id=claims.grant_id,
            has_subscription=standing.has_subscription,
        )

    async def authenticate(token: str) -> Principal:
        return remembered(token) or access.principal(token)

    return authenticate


@contextmanager
def replaced(module: Any, **values: Any) -> Iterator[None]:
    """Other values in a module for a while."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def interval(ordered: list[float]) -> tuple[float, float]:
    """Where the median lies with 95 % (sign test): the largest k of which both tails together stay below 5 %."""
    count, tail, k = len(ordered), 0.0, 0
    while k < count // 2 and tail + 2 * comb(count, k) / 2**count <= 0.05:
        tail += 2 * comb(count, k) / 2**count
        k += 1
    return ordered[max(k - 1, 0)], ordered[count - max(k, 1)]


if __name__ == "__main__":
    sys.exit(main())
