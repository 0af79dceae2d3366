"""What others wait for while one person imports a large file, and while one with a long history searches it.

    python -m tests.benchmarks.beside_import [--bookings 200000] [--seconds 30]

starts two servers over stores alike, of a hundred users with a thousand bookings each. Requests for every operation go
to both by turns, so that whatever else the machine does falls on both alike. In one of the two somebody then imports a
camt file, and afterwards asks for searches of these bookings and for figures without a pause. Prints medians and 99th
percentiles of all three phases, and their ratios; fails where one at the 99th percentile is above 1.5.
"""

import argparse
import itertools
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from urllib.parse import quote

import httpx

from handlers.settings import load
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.store import Audience, filled
from tests.benchmarks.bench.workload import WORKS
from tests.benchmarks.readers import camt
from tests.service.conftest import Said, Served, running

OTHERS = Size(rows=100_000, rows_each=1000)
PASSWORD = "Regenturm-4711-quer"
PAUSE_SECONDS = 0.01  # between requests: a person's clients, not a flood
RATIO_MAX = 1.5
QUIET_SECONDS = 60  # how old the file is made: the connector leaves fresh ones alone


class Pair:
    """Both servers, and the requests that go to each of them by turns."""

    def __init__(self, servers: list[Served], audiences: list[Audience]) -> None:
        self._clients = [
            [server.bare(someone.token) for someone in audience.warm]
            for server, audience in zip(servers, audiences, strict=True)
        ]
        self._audience = audiences[0]
        self._draw, self._works = random.Random(1), itertools.cycle(WORKS.values())

    def asked(self, is_over: Callable[[], bool]) -> tuple[list[float], list[float]]:
        """The seconds that the answers of either server took, until it is over."""
        taken: tuple[list[float], list[float]] = ([], [])
        while not is_over():
            number = self._draw.randrange(len(self._audience.warm))
            path = next(self._works).path(self._draw, self._audience.warm[number], self._audience.today)
            for clients, seconds in zip(self._clients, taken, strict=True):
                began = time.perf_counter()
                answer = clients[number].get(path)
                seconds.append(time.perf_counter() - began)
                assert answer.status_code == 200, (path, answer.text)
            time.sleep(PAUSE_SECONDS)
        return taken


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """A thread that does this meanwhile."""
    thread = threading.Thread(target=work)
    thread.start()
    yield thread
    thread.join()


def put(path: Path, bookings: int) -> None:
    """A statement of so many bookings that has lain there for a while."""
    path.parent.mkdir()
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(camt(bookings))
    then = time.time() - QUIET_SECONDS
    os.utime(path, (then, then))


def searching(client: httpx.Client, ends: float) -> None:
    """What looks at each of the bookings, one question after the other until then."""
    for number in itertools.count():
        for path in (f"/transactions?search={quote(f'reference {number}')}", f"/cashflow?months={1 + number % 24}"):
            if time.monotonic() > ends:
                return
            client.get(path, timeout=120).raise_for_status()


def said(name: str, calm: list[float], busy: list[float]) -> float:
    """Print what was measured; how many times as long the 99th percentile is."""
    at = [quantiles(seconds, n=100)[-1] for seconds in (calm, busy)]
    figures = zip(("calm", "busy"), (calm, busy), at, strict=True)
    print(
        f"{name:<28} {len(busy):5} requests"
        + "".join(f"   {which} {median(taken) * 1000:5.1f} ms, p99 {p99 * 1000:6.1f}" for which, taken, p99 in figures)
        + f"   {at[1] / at[0]:.2f} times",
        flush=True,
    )
    return at[1] / at[0]


def measure(bookings: int, seconds: float) -> list[str]:
    """What does not hold; prints the figures."""
    with TemporaryDirectory() as parent:
        stores = [Path(parent) / name for name in ("calm", "busy")]
        audiences = [filled(store, OTHERS, Said()) for store in stores]
        put(Path(parent) / "statements" / "large.xml", bookings)
        how = {"command": "serve", "settings": {"PUBLIC_URL": load({}).public_url}}  # the address that the tokens name
        with running(stores[0], **how) as calm, running(stores[1], **how) as busy:
            pair = Pair([calm, busy], audiences)
            busy.command("users add", name="eva", password=PASSWORD, is_generated=False, has_subscription=True)
            warm_up = time.monotonic() + 3
            pair.asked(lambda: time.monotonic() > warm_up)
            ends = time.monotonic() + seconds
            ratios = {"nothing": said("nothing else", *pair.asked(lambda: time.monotonic() > ends))}

            def imported() -> None:
                folder = str(Path(parent) / "statements")
                print(*busy.command("connect folder", folder=folder, user="eva", bank="Bank")[-1:])

            with beside(imported) as importing:
                ratios["an import"] = said(f"import of {bookings:,}", *pair.asked(lambda: not importing.is_alive()))
            with beside(lambda: searching(busy.client("eva"), time.monotonic() + seconds)) as reading:
                taken = pair.asked(lambda: not reading.is_alive())
            ratios["a long history"] = said("searches of these", *taken)
    return [f"beside {what} p99 is {ratio:.2f} times as long" for what, ratio in ratios.items() if ratio > RATIO_MAX]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bookings", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    if broken := measure(given.bookings, given.seconds):
        raise SystemExit("; ".join(broken))


if __name__ == "__main__":
    main()
