"""The memory of a running server while it syncs a folder: one large file, and a thousand small ones.

    python -m tests.benchmarks.sync_memory [--bookings 200000] [--files 1000]

Each of the two has a server and a store of its own; what is printed is the most memory that the process ever held.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.readers import camt
from tests.service.conftest import running

PASSWORD = "Regenturm-4711-quer"
QUIET_SECONDS = 60  # how old the files are made: the connector leaves fresh ones alone


def peak(process_id: int) -> float:
    """MB that the process held at most."""
    status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def put(path: Path, rows: int) -> None:
    """A statement of so many bookings that has lain there for a while."""
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(camt(rows))
    then = time.time() - QUIET_SECONDS
    os.utime(path, (then, then))


def measure(label: str, fill: Callable[[Path], None]) -> None:
    """Serve, connect the filled folder, and say what that took."""
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "statements"
        folder.mkdir()
        fill(folder)
        with running(Path(parent) / "data", command="serve") as served:
            served.command("users add", name="eva", password=PASSWORD, is_generated=False, has_subscription=True)
            before = peak(served.process.pid)
            began = time.monotonic()
            said = served.command("connect folder", folder=str(folder), user="eva", bank="Bank")
            took = time.monotonic() - began
            after = peak(served.process.pid)
    print(f"{label:<24} {took:6.1f} s   {before:4.0f} MB before, {after:5.0f} MB at most   {said[-1]}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bookings", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=1000)
    given = parser.parse_args()

    def small(folder: Path) -> None:
        for number in range(given.files):
            put(folder / f"{number:04}.xml", number % 50 + 1)

    measure(f"{given.files} small files", small)
    measure(f"{given.bookings} bookings", lambda folder: put(folder / "large.xml", given.bookings))


if __name__ == "__main__":
    main()
