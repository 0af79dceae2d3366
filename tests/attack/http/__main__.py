"""Attacks a server of our own with full force, and prints what others noticed of it.

    .venv/bin/python -m tests.attack.http [--only NAME]

It starts `bankdata serve` on a free port in an empty folder, runs every attack of `attacks.py` in its large form, and
ends with 1 when the server is dead, needed more than 400 MB, or kept somebody else's /healthz waiting for more than
50 ms at the median or 500 ms at most. With `--port` it only attacks what listens there, as the
tests do, and prints what it saw.
"""

import argparse
import json
import resource
import sys
import tempfile
from pathlib import Path

from tests.attack.http.attacks import ATTACKS
from tests.attack.http.readers import MEDIAN_SECONDS_MAX, MEMORY_BYTES_MAX, SECONDS_MAX, attacked


def main() -> int:
    parser = argparse.ArgumentParser(description="attack a server of our own over HTTP")
    parser.add_argument("--only", choices=ATTACKS)
    parser.add_argument("--port", type=int)
    parser.add_argument("--large", action="store_true")
    arguments = parser.parse_args()
    if arguments.port:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # `ulimit -Sn 1024` is meant for the server
        attack, small, large = ATTACKS[arguments.only]
        print(json.dumps(attack(arguments.port, large if arguments.large else small)))
        return 0

    from tests.service.conftest import running

    are_bearable = True
    with tempfile.TemporaryDirectory() as folder, running(Path(folder) / "data", command="serve") as served:
        for name in [arguments.only] if arguments.only else ATTACKS:
            noticed = attacked(name, served.port, served.process.pid, is_large=True)
            is_bearable = (
                served.process.poll() is None
                and not noticed.failures
                and noticed.median < MEDIAN_SECONDS_MAX
                and max(noticed.seconds) < SECONDS_MAX
                and noticed.memory < MEMORY_BYTES_MAX
            )
            are_bearable = are_bearable and is_bearable
            print(f"{'ok' if is_bearable else 'TOO MUCH':8} {name:20} {noticed}", flush=True)
        said = [line for line in served.log.read_text().splitlines() if "Traceback" in line]
        print(f"{len(said)} tracebacks in the log")
    return 0 if are_bearable and not said else 1


if __name__ == "__main__":
    sys.exit(main())
