"""What somebody else notices of an attack: how long /healthz takes meanwhile, and how much memory the server needs.

A busy machine makes everybody wait who wants to compute. The kernel counts for how long a thread was ready and had no
processor; what the server and the reader waited like that is told apart, since no server can do anything about it.
"""

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[3]
PAUSE_SECONDS = 0.02
MEDIAN_SECONDS_MAX = 0.05
SECONDS_MAX = 0.5
MEMORY_BYTES_MAX = 400 * 2**20


@dataclass
class Noticed:
    """Of one attack."""

    seen: Counter[str] = field(default_factory=Counter)  # by the attacker
    seconds: list[float] = field(default_factory=list)  # of each reader's request
    waited: list[float] = field(default_factory=list)  # of these, without a processor
    failures: list[str] = field(default_factory=list)
    memory: int = 0  # bytes, at most

    @property
    def median(self) -> float:
        """Seconds of half of the requests at most, the lack of a processor left out."""
        return statistics.median(self._served)

    @property
    def slowest(self) -> float:
        """Seconds of the slowest request, the lack of a processor left out."""
        return max(self._served)

    @property
    def _served(self) -> list[float]:
        return [seconds - waited for seconds, waited in zip(self.seconds, self.waited, strict=True)]

    def __str__(self) -> str:
        felt = f"median {statistics.median(self.seconds) * 1000:.1f} ms, at most {max(self.seconds) * 1000:.0f} ms"
        return (
            f"/healthz {felt} of {len(self.seconds)} ({self.median * 1000:.1f} and {self.slowest * 1000:.0f} ms with a"
            f" processor), {len(self.failures)} failed; {self.memory / 2**20:.0f} MB; attacker saw {dict(self.seen)}"
        )


def attacked(name: str, port: int, server: int, *, is_large: bool = False) -> Noticed:
    """An attack from a process of its own, while two readers ask: one keeps its connection, one opens a new one."""
    noticed = Noticed()
    over = threading.Event()
    watching = [threading.Thread(target=_read, args=(port, server, noticed, over, keeps)) for keeps in (True, False)]
    watching.append(threading.Thread(target=_weigh, args=(server, noticed, over)))
    for thread in watching:
        thread.start()
    try:
        command = [sys.executable, "-m", "tests.attack.http", "--only", name, "--port", str(port)]
        ended = subprocess.run(
            [*command, *(["--large"] if is_large else [])],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        noticed.seen.update(json.loads(ended.stdout))
        time.sleep(PAUSE_SECONDS * 10)
    finally:
        over.set()
        for thread in watching:
            thread.join()
    return noticed


def _read(port: int, server: int, noticed: Noticed, over: threading.Event, keeps: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    while not over.wait(PAUSE_SECONDS):
        waited, began = _waited(server), time.perf_counter()
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                noticed.failures.append(str(answer.status))
        except (OSError, http.client.HTTPException) as error:
            noticed.failures.append(repr(error))
            connection.close()
        seconds = time.perf_counter() - began
        noticed.seconds.append(seconds)
        noticed.waited.append(min(seconds, _waited(server) - waited))
        if not keeps:
            connection.close()
    connection.close()


def _waited(server: int) -> float:
    """Seconds for which the server's loop and this thread have been ready and had no processor."""
    counts = (Path(f"/proc/{who}/schedstat") for who in (server, "thread-self"))
    return sum(int(path.read_text().split()[1]) for path in counts) / 1e9


def _weigh(server: int, noticed: Noticed, over: threading.Event) -> None:
    process = psutil.Process(server)
    while not over.wait(PAUSE_SECONDS):
        noticed.memory = max(noticed.memory, process.memory_info().rss)
