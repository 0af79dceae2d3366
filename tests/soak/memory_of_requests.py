"""The memory of one server over a million requests: it stays where it was after the first tenth of them.

    python -m tests.soak.memory_of_requests [--requests 1000000] [--users 260]

Users of 1,000 bookings each, some more than find room in the cache, ask for everything. Prints the memory of
the process ten times; fails when the last figure is more than a tenth above the first.
"""

import argparse
import itertools
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.load import Load, drive
from tests.benchmarks.bench.servers import called, free_port, running
from tests.benchmarks.bench.store import filled
from tests.benchmarks.bench.workload import WORKS
from tests.service.conftest import Said

TIMES = 10
SECONDS = 2.0  # of one operation at a stretch
CONNECTIONS = 8
GROWTH_MAX = 1.1


def measure(requests: int, users: int) -> float:
    """How many times as much memory the process takes at the end as after the first tenth; prints how it goes."""
    memory: list[float] = []
    with TemporaryDirectory() as parent, ExitStack() as stack:
        store, port = Path(parent) / "data", free_port()
        audience = filled(store, Size(rows=1000 * users, rows_each=1000), Said())
        arguments = called("handlers.cli", "serve", "--port", port, "--data", store)
        server = stack.enter_context(running("server", arguments, port, audience, Path(parent)))
        print(f"{server.memory_bytes() / 2**20:6.0f} MB at the start", flush=True)
        began, done = time.monotonic(), 0
        for seed, work in enumerate(itertools.cycle(WORKS)):
            load = Load(
                port=port,
                work=work,
                users=[*audience.warm, *audience.cold],
                today=audience.today,
                connections=CONNECTIONS,
                seconds=SECONDS,
                seed=seed,
            )
            done += len(drive(load).latencies)
            if done >= requests * (len(memory) + 1) / TIMES and (seed + 1) % len(WORKS) == 0:  # each as often
                memory.append(server.memory_bytes() / 2**20)
                print(
                    f"{memory[-1]:6.0f} MB after {done:,} requests, {time.monotonic() - began:,.0f} s,"
                    f" {server.processor_seconds():,.0f} s of processor time",
                    flush=True,
                )
                if done >= requests:
                    return memory[-1] / memory[0]
    raise AssertionError("the operations do not come to an end")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--users", type=int, default=260)
    given = parser.parse_args()
    growth = measure(given.requests, given.users)
    if growth > GROWTH_MAX:
        sys.exit(f"it grew {growth:.2f} times")


if __name__ == "__main__":
    main()
