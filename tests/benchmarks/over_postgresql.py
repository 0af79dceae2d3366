"""Pages over PostgreSQL: by one process, by two, behind a second wall, and by FastAPI with SQLAlchemy.

    python tests/benchmarks/over_postgresql.py [--rows 100000] [--rounds 6] [--seconds 1]

A DuckDB store is filled and moved by `bankdata migrate-store` into a PostgreSQL of its own, which all servers of ours
ask; the FastAPI service of `bankdata bench --peers` asks another one, with the same settings and the same bookings.
All of them run, and one after the other is asked for pages that nobody has asked for before, in another order each
round. Told are the medians over the rounds: requests a second, and the processor time of one request in the server, in
PostgreSQL, and in whoever asks. The last two need the cores, too: with two of them, two processes can answer
at most twice what one process has of a core, divided by what a request takes of all three.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import psutil

# a script's own folder comes first on the path
sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.benchmarks.bench import peers  # noqa: E402 - after the line above
from tests.benchmarks.bench.data import Size  # noqa: E402
from tests.benchmarks.bench.load import Load, drive  # noqa: E402
from tests.benchmarks.bench.servers import MeasuredServer, called, free_port, running  # noqa: E402
from tests.benchmarks.bench.store import filled  # noqa: E402
from tests.benchmarks.peers import postgresql  # noqa: E402
from tests.benchmarks.unrestricted import Silent  # noqa: E402

ONE, TWO, WALL, FASTAPI = "one process", "two processes", "one, second wall", "FastAPI + SQLAlchemy"
CONNECTIONS = 16
ROWS_EACH = 1_000
FIGURES = ("requests a second", "server, ms", "PostgreSQL, ms", "load, ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of one server in one round")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        Path(folder).chmod(0o711)  # the user as whom PostgreSQL runs has to get there
        servers = _started(stack, Path(folder), Size(rows=options.rows, rows_each=ROWS_EACH))
        found = _measured(stack, servers, options.rounds, options.seconds)
    _told(found)


def _started(stack: ExitStack, folder: Path, size: Size) -> list[MeasuredServer]:
    audience = filled(folder / "duckdb", size, Silent())
    postgresql.make(folder)
    place = stack.enter_context(postgresql.running(folder)).split()[0].removeprefix("host=")
    plain, walled = _settings(place)
    moving = called("handlers.cli", "migrate-store", "--from", folder / "duckdb", "--data", folder / "moved")
    subprocess.run([sys.executable, *moving], env={**os.environ, **plain}, check=True, stdout=subprocess.DEVNULL)
    servers = []
    for name, workers, environment in ((ONE, 1, plain), (TWO, 2, plain), (WALL, 1, walled)):
        port = free_port()
        said = f"import os; os.environ.update({environment!r}); from handlers.cli import main; main()"
        arguments = ["-c", said, "serve", "--port", str(port), "--workers", str(workers), "--data", str(folder / name)]
        servers.append(stack.enter_context(running(name, arguments, port, audience, folder)))
    (folder / "fastapi").mkdir()
    (folder / "fastapi").chmod(0o711)
    people = {each.token: each.user_id for each in [*audience.warm, *audience.cold]}
    (folder / "fastapi" / "people.json").write_text(json.dumps(people))
    peers._fill("postgresql", size, audience, folder / "fastapi", Silent())
    port = free_port()
    program = str(peers.PROGRAMS / "fastapi_service.py")
    arguments = [program, "postgresql", str(folder / "fastapi"), str(port), audience.today.isoformat()]
    servers.append(stack.enter_context(running(FASTAPI, arguments, port, audience, folder)))
    for server in servers[1:]:
        peers._compare(server, servers[0])
    return servers


def _settings(place: str) -> tuple[dict[str, str], dict[str, str]]:
    """Those of our servers over the PostgreSQL in this folder, without and with a second wall."""
    import psycopg

    with psycopg.connect(f"host={place} user=bench dbname=postgres", autocommit=True) as connection:
        connection.execute("CREATE ROLE app LOGIN")
    plain = {
        "BANKDATA_DATABASE_URL": f"postgresql://bench@/postgres?host={place}",
        "BANKDATA_KEYS_SECRET": "a secret of this measurement alone",
        "BANKDATA_RATE_LIMIT": "off",
    }
    return plain, {**plain, "BANKDATA_DATABASE_APP_URL": f"postgresql://app@/postgres?host={place}"}


def _measured(
    stack: ExitStack, servers: list[MeasuredServer], rounds: int, seconds: float
) -> dict[str, list[tuple[float, ...]]]:
    """Of each server the figures of each round; the first round is not counted."""
    loader = stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    order = list(servers)
    print(f"{len(servers)} servers are asked, load {os.getloadavg()[0]:.1f}", flush=True)
    for number in range(rounds + 1):
        random.Random(number).shuffle(order)
        for server in order:
            load = Load(
                port=server.port,
                work="page",
                users=server.audience.warm,
                today=server.audience.today,
                connections=CONNECTIONS,
                seconds=seconds,
                seed=number,
            )
            before = _processor_seconds(server)
            answers, took, asking = loader.submit(_driven, load).result()
            used = [after - earlier for after, earlier in zip(_processor_seconds(server), before, strict=True)]
            if number:
                found[server.name].append((answers / took, *(1000 * each / answers for each in (*used, asking))))
    return found


def _driven(load: Load) -> tuple[int, float, float]:
    """Answers, the seconds that they took, and the processor time of asking."""
    began = time.process_time()
    answered = drive(load)
    return len(answered.latencies), answered.seconds, time.process_time() - began


def _processor_seconds(server: MeasuredServer) -> tuple[float, float]:
    """Of the server, and of the PostgreSQL servers of this program, of which one is asked at a time."""
    stores = [each for each in psutil.Process().children(recursive=True) if _seconds(each)[0] == "postgres"]
    own = [each for each in [server.process, *server.process.children(recursive=True)] if each not in stores]
    return sum(_seconds(each)[1] for each in own), sum(_seconds(each)[1] for each in stores)


def _seconds(process: psutil.Process) -> tuple[str, float]:
    try:
        times = process.cpu_times()
        return process.name(), times.user + times.system
    except psutil.NoSuchProcess:
        return "", 0.0


def _told(found: dict[str, list[tuple[float, ...]]]) -> None:
    print("| pages | " + " | ".join(FIGURES) + " |\n|" + "---|" * (len(FIGURES) + 1))
    for name, rounds in found.items():
        middle = [median(each[place] for each in rounds) for place in range(len(FIGURES))]
        print(f"| {name} | {middle[0]:,.0f} | " + " | ".join(f"{each:.2f}" for each in middle[1:]) + " |")

    def times(one: str, other: str, place: int) -> float:
        return median(here[place] / there[place] for here, there in zip(found[one], found[other], strict=True))

    print(f"two processes answer {times(TWO, ONE, 0):.2f} times as much as one")
    print(
        f"FastAPI takes {times(FASTAPI, ONE, 1):.1f} times the processor time, and answers {times(ONE, FASTAPI, 0):.1f}"
    )
    print(f"a second wall takes {times(WALL, ONE, 1):.2f} times the processor time of a server without")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
