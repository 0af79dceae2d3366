"""What somebody else notices of an attack: how long /healthz takes meanwhile, and how much memory the server needs."""

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
    failures: list[str] = field(default_factory=list)
    memory: int = 0  # bytes, at most

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        return (
            f"/healthz median {self.median * 1000:.1f} ms, at most {max(self.seconds) * 1000:.0f} ms of"
            f" {len(self.seconds)}, {len(self.failures)} failed; {self.memory / 2**20:.0f} MB; attacker saw"
            f" {dict(self.seen)}"
        )


def attacked(name: str, port: int, server: int, *, is_large: bool = False) -> Noticed:
    """An attack from a process of its own, while two readers ask: one keeps its connection, one opens a new one."""
    noticed = Noticed()
    over = threading.Event()
    watching = [threading.Thread(target=_read, args=(port, noticed, over, keeps)) for keeps in (True, False)]
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


def _read(port: int, noticed: Noticed, over: threading.Event, keeps: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    while not over.wait(PAUSE_SECONDS):
        began = time.perf_counter()
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                noticed.failures.append(str(answer.status))
        except (OSError, http.client.HTTPException) as error:
            noticed.failures.append(repr(error))
            connection.close()
        noticed.seconds.append(time.perf_counter() - began)
        if not keeps:
            connection.close()
    connection.close()


def _weigh(server: int, noticed: Noticed, over: threading.Event) -> None:
    process = psutil.Process(server)
    while not over.wait(PAUSE_SECONDS):
        noticed.memory = max(noticed.memory, process.memory_info().rss)
