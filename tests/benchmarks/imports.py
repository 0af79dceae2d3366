"""How long a statement file takes from the command to the store: seconds, processor time and memory of the process.

    .venv/bin/python tests/benchmarks/imports.py 200000

A camt.053 file with so many bookings, all different, goes into an empty store by `bankdata import`; then again, when
every booking is known.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # runs from a checkout, installed or not

from tests.benchmarks.readers import camt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=int)
    rows: int = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statement.xml"
        with file.open("w", encoding="utf-8") as stream:
            stream.writelines(camt(rows))
        data = ["--data", str(Path(folder) / "data")]
        _measured("empty store", ["users", "add", "eva", "--random", *data])
        for what in (f"{rows} new", f"{rows} known"):
            _measured(what, ["import", str(file), "--user", "eva", *data])
    return 0


def _measured(what: str, arguments: list[str]) -> None:
    command = str(Path(sys.executable).with_name("bankdata"))
    started = time.perf_counter()
    child = os.posix_spawn(command, [command, *arguments], os.environ)
    _, status, used = os.wait4(child, 0)
    took = time.perf_counter() - started
    processor = used.ru_utime + used.ru_stime
    print(f"{what:>14}: {took:.1f} s, {processor:.1f} s of processor, {used.ru_maxrss // 1024} MB, exit {status}")


if __name__ == "__main__":
    sys.exit(main())
