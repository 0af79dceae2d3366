"""Whether many bookings that say the same under other references cost more than as many different ones.

    python -m tests.benchmarks.equal_bookings [--rows 100000]

imports as many bookings of each kind into stores of their own, by turns, then all of them once more under new
references, which is what a source does whose ids change. Prints CPU seconds, the most memory, and the ratio of equal
ones to different ones; fails where one is above 1.2. Each kind runs in a process of its own: its memory is its own.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from analytics.records import TransactionRecord
from tests.conftest import empty_store
from tests.storage.conftest import make_bank

KINDS = ("equal", "different")
RATIO_MAX = 1.2
NOW = datetime(2026, 11, 20, 12)  # noqa: DTZ001 - the store keeps UTC without zone
DAYS = 365


def bookings(kind: str, rows: int, round_: int) -> Iterator[TransactionRecord]:
    """So many, under references of this round; those that are equal are so on one day."""
    for number in range(rows):
        is_equal = kind == "equal"
        yield TransactionRecord(
            booking_date=date(2026, 11, 10) if is_equal else date(2025, 11, 10) + timedelta(days=number % DAYS),
            amount=Decimal("-2.80") if is_equal else Decimal(-100 - number) / 100,
            currency="EUR",
            counterpart_name="Cafe" if is_equal else f"Cafe {number}",
            purpose="Kaffee" if is_equal else f"Kaffee {number}",
            references=(f"servicer:{round_}-{number}",),
        )


def measure(kind: str, rows: int) -> None:
    """Both imports of one kind: CPU seconds of each, and the most memory, in one line."""
    with TemporaryDirectory() as folder:
        database = empty_store(Path(folder) / "bankdata.duckdb")
        bank = make_bank(database, NOW)
        taken = []
        for round_ in (1, 2):
            began = process_time()
            bank.bring(bookings(kind, rows, round_))
            taken.append(process_time() - began)
        assert len(bank.ids()) == rows
        database.close()
    peak = int(Path("/proc/self/status").read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) / 1024
    print(*(f"{each:.2f}" for each in taken), f"{peak:.0f}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kind", choices=KINDS, help="this kind only, in this process")
    given = parser.parse_args()
    if given.kind:
        measure(given.kind, given.rows)
        return
    figures = {}
    for kind in KINDS:
        asked = [sys.executable, "-m", "tests.benchmarks.equal_bookings", "--rows", str(given.rows), "--kind", kind]
        figures[kind] = [float(each) for each in subprocess.check_output(asked, text=True).split()]
    ratios = [equal / different for equal, different in zip(*(figures[kind] for kind in KINDS), strict=True)]
    for what, place in (("import, s CPU", 0), ("once more, s CPU", 1), ("memory, MB", 2)):
        values = "  ".join(f"{kind} {figures[kind][place]:8.2f}" for kind in KINDS)
        print(f"{given.rows} bookings, {what:<18} {values}  ratio {ratios[place]:.2f}", flush=True)
    sys.exit(max(ratios) > RATIO_MAX)


if __name__ == "__main__":
    main()
