"""What a poll of the feeds without news costs beside a page that the server makes from memory, of any running server.

    BANKDATA_RATE_LIMIT=off bankdata demo &
    python tests/benchmarks/polls.py --pid $! --token "$(bankdata token --user demo)" [--port 8000] [--rounds 30]

All kinds of requests are asked over one connection, in another order each round. Told are the medians of the processor
time of the server with its children, by the kernel's clock, and of the time until the answer.
"""

import argparse
import http.client
import json
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import date, timedelta
from itertools import count
from pathlib import Path
from statistics import median

import psutil

EACH = 200  # requests of a kind in a round
FIRST_DAY = date(2100, 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    connection = http.client.HTTPConnection("127.0.0.1", options.port)

    def ask(path: str) -> bytes:
        connection.request("GET", f"/api/v1{path}", headers={"Authorization": f"Bearer {options.token}"})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, (path, answer.status, body)
        return body

    kinds = _kinds(ask)
    processor, clock = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for number in range(options.rounds + 1):
        for kind in random.sample(list(kinds), len(kinds)):
            paths = [kinds[kind]() for _ in range(EACH)]
            busy, began = _processor_seconds(options.pid), time.perf_counter()
            for path in paths:
                ask(path)
            if number:  # the first round is not counted
                clock[kind].append((time.perf_counter() - began) / EACH)
                processor[kind].append((_processor_seconds(options.pid) - busy) / EACH)
    print(f"load {os.getloadavg()[0]:.1f}")
    for kind in kinds:
        print(f"{kind}: {1000 * median(processor[kind]):.3f} ms, until the answer {1000 * median(clock[kind]):.3f} ms")


def _kinds(ask: Callable[[str], bytes]) -> dict[str, Callable[[], str]]:
    """What draws the next request of each kind."""
    named = ",".join(each["id"] for each in json.loads(ask("/accounts"))["accounts"])
    numbers = count()
    page = f"/transactions?perPage=50&accountIds={named}"
    kinds: dict[str, Callable[[], str]] = {
        "page from memory": lambda: f"{page}&dateTo={FIRST_DAY + timedelta(days=next(numbers))}",
        "page asked before": lambda: page,
    }
    for feed in ("/transactions/changes", "/accounts/changes"):
        told = {"hasMore": True, "nextCursor": ""}
        while told["hasMore"]:
            after = f"&cursor={told['nextCursor']}" if told["nextCursor"] else ""
            told = json.loads(ask(f"{feed}?limit=500{after}"))
        kinds[f"poll of {feed}"] = lambda path=f"{feed}?cursor={told['nextCursor']}": path  # type: ignore[misc]  # bound at once
    return kinds


def _processor_seconds(pid: int) -> float:
    """The processor time so far of a process with its children, to the nanosecond."""
    server = psutil.Process(pid)
    folders = (Path(f"/proc/{each.pid}/task") for each in (server, *server.children(recursive=True)))
    spent = [int((task / "schedstat").read_text().split()[0]) for folder in folders for task in folder.iterdir()]
    return sum(spent) / 1e9


if __name__ == "__main__":
    main()
