"""How long another client waits for /healthz while the worst texts that a bank may bring are imported and searched.

    BANKDATA_RATE_LIMIT=off bankdata demo &
    python -m tests.soak.worst_texts --token "$(bankdata token --user empty --scope "$SCOPES")" \
        --assistants "$(bankdata token --user empty --assistants)" [--port 8000] [--seconds 8] [--at-once 1]

SCOPES are read:accounts read:transactions read:cashflow write:imports write:rules. Fails where a median is more than
ten times as long as those of the calm before and after it.
"""

import argparse
import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import Any

WORST = ("\ufdfa" * 2000, "w" * 4000)  # a letter that stands for eighteen, and what begins like an address
ROWS = 50
TIMES_MAX = 10
PAUSE_SECONDS = 0.003


@dataclass(frozen=True)
class Asking:
    """Clients of one user."""

    port: int
    token: str
    assistants: str

    numbers: Iterator[int] = field(default_factory=count)

    def send(self, method: str, path: str, body: bytes, kind: str = "application/json") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        token = self.assistants if path == "/mcp" else self.token
        accepts = {"Accept": "application/json, text/event-stream", "Content-Type": kind}
        connection.request(method, path, body, {"Authorization": f"Bearer {token}", **accepts})
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        assert answer.status in (200, 202), (path, answer.status, said[:300])
        return json.loads(said)

    @property
    def other_day(self) -> str:
        """A day of the future that nobody asked for before, so that nothing is answered by heart."""
        number = next(self.numbers)
        return f"{2030 + number // 336}-{1 + number // 28 % 12:02}-{1 + number % 28:02}"

    def bring(self) -> None:
        """Import fifty bookings with each of the texts."""
        for text in WORST:
            day = self.other_day.replace("203", "202", 1)  # what lies far ahead is no booking
            cells = (f"{day};{day};Shop {row};{text};-{row + 1},00;EUR" for row in range(ROWS))
            rows = "".join(f"{each};DE02120300000000202051\n" for each in cells)
            header = "Buchungstag;Valuta;Auftraggeber/Empfänger;Verwendungszweck;Betrag;Währung;IBAN\n"
            path = f"/api/v1/imports?filename={day}.csv"
            report = self.send("POST", path, (header + rows).encode(), "application/octet-stream")
            while report["status"] == "running":
                report = self.send("GET", f"/api/v1/imports/{report['importId']}", b"")
            assert report["error"] is None, report["error"]

    def search_as_assistant(self) -> None:
        asked = {"name": "search_transactions", "arguments": {"words": "shop", "dateTo": self.other_day}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        assert not self.send("POST", "/mcp", json.dumps(body).encode())["result"]["isError"]

    def search(self) -> None:
        self.send("GET", f"/api/v1/transactions/search?words=shop&perPage=100&dateTo={self.other_day}", b"")

    def try_rule(self) -> None:
        rule = {"field": "purpose", "operator": "contains", "value": self.other_day, "category": "GROCERIES"}
        self.send("POST", "/api/v1/rules?dryRun=true", json.dumps(rule).encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--token", required=True)
    parser.add_argument("--assistants", required=True)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args()
    asking = Asking(options.port, options.token, options.assistants)
    asking.bring()
    is_wrong = False
    works = (asking.search_as_assistant, asking.search, asking.try_rule, asking.bring)
    calm = _waited(options.port, lambda: time.sleep(options.seconds))
    for work in works:
        waited = _waited(options.port, lambda work=work: _at_once(options.at_once, work, options.seconds))  # type: ignore[misc]  # bound at once
        after = _waited(options.port, lambda: time.sleep(options.seconds))
        times = 2 * waited / (calm + after)
        is_wrong, calm = is_wrong or times > TIMES_MAX, after
        told = f"median {1000 * waited:.1f} ms, {times:.1f} times the calm one, load {os.getloadavg()[0]:.0f}"
        print(f"{work.__name__}: {told}", flush=True)
    sys.exit(is_wrong)


def _at_once(clients: int, work: Callable[[], None], seconds: float) -> None:
    until = time.monotonic() + seconds

    def again() -> None:
        while time.monotonic() < until:
            work()

    threads = [threading.Thread(target=again) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _waited(port: int, work: Callable[[], None]) -> float:
    """The median of the seconds that another client waits meanwhile."""
    over, seconds = threading.Event(), list[float]()

    def watch() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not over.wait(PAUSE_SECONDS):
            began = time.perf_counter()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            seconds.append(time.perf_counter() - began)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        work()
    finally:
        over.set()
        watching.join()
    return median(seconds)


if __name__ == "__main__":
    main()
