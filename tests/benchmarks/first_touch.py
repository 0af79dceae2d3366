"""What the first request of each user costs, asked without sockets: the processor time of this process in all threads.

    python tests/benchmarks/first_touch.py [--rows 1000000] [--rows-each 1000] [--rounds 15] [--beside] [--postgresql]

Every user asks one thing once, after two others have asked everything; then the same again, which is kept. One of those
two asks it as often, too, with everything in memory but the answers. Where there are too few users, as with long
histories, each is forgotten before they ask, but for their tokens. Below each operation stand the statements that its
first request put to the store, with the processor time of each. `--beside` asks the same of FastAPI over SQLite, with
the same rows, after each of these requests; that needs `pip install fastapi sqlalchemy`. With `--postgresql`, both ask
a PostgreSQL of their own, whose processor time is not counted; that needs `pip install 'psycopg[binary]'`, too.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import cycle, product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

# a script's own folder comes first on the path
sys.path[0] = str(Path(__file__).resolve().parents[2])

from handlers import server  # noqa: E402 - after the line above
from handlers.settings import load  # noqa: E402
from handlers.work.services import open_services  # noqa: E402
from storage.engines.duckdb_session import Cursor  # noqa: E402
from storage.engines.postgresql_session import Statements  # noqa: E402
from tests.benchmarks.bench.data import Size  # noqa: E402
from tests.benchmarks.bench.servers import called  # noqa: E402
from tests.benchmarks.bench.store import Audience, Someone, filled  # noqa: E402
from tests.benchmarks.peers import postgresql  # noqa: E402
from tests.benchmarks.unrestricted import Silent  # noqa: E402

PATHS = {
    "page": "/transactions",
    "category filter": "/transactions?category=GROCERIES",
    "search": "/transactions?search=rewe",
    "one transaction": "/transactions/{}",
    "accounts": "/accounts",
    "cashflow": "/cashflow?months=12",
    "snapshot": "/snapshot",
    "subscriptions": "/subscriptions",
}
WARM_UP = 2  # users who ask everything before anything is measured

asked: list[tuple[str, float]] = []  # statements of one request and the milliseconds of each


def main() -> None:
    """Print a line for each operation, and one for each of its statements."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rows-each", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--postgresql", action="store_true")
    arguments = parser.parse_args()
    for name, session in product(("rows", "execute", "frame"), (Cursor, Statements)):
        setattr(session, name, _timed(getattr(session, name)))
    with TemporaryDirectory(prefix="bankdata-first-touch-") as name, ExitStack() as stack:
        folder, size = Path(name), Size(rows=arguments.rows, rows_each=arguments.rows_each)
        audience = filled(folder / "duckdb", size, Silent())
        data = _moved(stack, folder) if arguments.postgresql else folder / "duckdb"
        store = "postgresql" if arguments.postgresql else "sqlite"
        rival = rival_of(stack, folder / "fastapi", size, audience, store) if arguments.beside else None
        asyncio.run(measured(data, audience, arguments.rounds, rival))


def _moved(stack: ExitStack, folder: Path) -> Path:
    """The data folder of a service over a PostgreSQL that runs from now on and has the rows of the DuckDB store."""
    folder.chmod(0o711)  # the user as whom PostgreSQL runs has to get there
    postgresql.make(folder)
    place = stack.enter_context(postgresql.running(folder)).split()[0].removeprefix("host=")
    os.environ["BANKDATA_DATABASE_URL"] = f"postgresql://bench@/postgres?host={place}"
    os.environ["BANKDATA_KEYS_SECRET"] = "a secret of this measurement alone"
    moving = called("handlers.cli", "migrate-store", "--from", folder / "duckdb", "--data", folder / "moved")
    subprocess.run([sys.executable, *moving], check=True, stdout=subprocess.DEVNULL)
    return folder / "moved"


def rival_of(stack: ExitStack, folder: Path, size: Size, audience: Audience, store: str) -> Any:
    """FastAPI over SQLite or PostgreSQL with the same rows, for the same people."""
    from tests.benchmarks.peers import fastapi_service, fill

    folder.mkdir(mode=0o711)
    {"sqlite": fill.fill_sqlite, "postgresql": fill.fill_postgresql}[store](folder, size, audience.today)
    people = {each.token: each.user_id for each in [*audience.warm, *audience.cold]}
    engine = fastapi_service.opened(store, folder, stack)
    return fastapi_service.service(engine, people, today=audience.today, in_threads=store == "postgresql")


async def measured(folder: Path, audience: Audience, rounds: int, rival: Any) -> None:
    """Ask, each round with users who have not asked yet, as many rounds as there are such users."""
    everybody = [*audience.warm, *audience.cold]
    are_enough = len(everybody) - WARM_UP >= len(PATHS)
    others = iter(everybody[WARM_UP:]) if are_enough else cycle(everybody)
    if are_enough:
        rounds = min(rounds, (len(everybody) - WARM_UP) // len(PATHS))
    first, again, warm, beside = (defaultdict[str, list[float]](list) for _ in range(4))
    statements: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with closing(open_services(load({**os.environ, "BANKDATA_RATE_LIMIT": "off"}, data_dir=folder))) as services:
        app = server.application(services)
        for person in everybody[WARM_UP - 1 :: -1]:
            for path in (*PATHS.values(), *PATHS.values()):  # a single booking brings the others only after the list
                await spent(app, person, path)
        for _ in range(rounds):
            for name, path in PATHS.items():
                data = services.reader.cache.at_hand(everybody[0].user_id)
                assert data is not None
                data._answers.clear()
                warm[name].append(await spent(app, everybody[0], path))
        for _ in range(rounds):
            for (name, path), person in zip(PATHS.items(), others, strict=False):
                asked.clear()
                if not are_enough:
                    services.reader.cache.clear()
                first[name].append(await spent(app, person, path))
                for sql, took in asked:
                    statements[name][sql].append(took)
                again[name].append(await spent(app, person, path))
                if rival is not None:
                    beside[name].append(await spent(rival, person, path))
    for name, times in first.items():
        print(f"{name:<20}{median(times):8.2f} ms, at least {min(times):.2f};", end="")
        print(f" from memory {median(warm[name]):.2f}, again {median(again[name]):.2f}", end="")
        print(f"; FastAPI {median(beside[name]):.2f}" if beside else "")
        for sql, each in statements[name].items():
            print(f"{median(each):28.2f} ms  {sql[:100]}")


async def spent(app: Any, person: Someone, path: str) -> float:
    """Ask, and say how many milliseconds of processor time it took."""
    path, _, query = path.format(person.transaction_ids[0]).partition("?")
    answer: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        answer.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": f"/api/v1{path}",
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1:8000"), (b"authorization", b"Bearer " + person.token.encode())],
        "client": ("127.0.0.1", 5000),
    }
    began = time.process_time()
    await app(scope, receive, send)
    took = time.process_time() - began
    assert answer[0]["status"] == 200, answer
    return took * 1000


def _timed(statement: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Cursor | Statements, sql: str, *parameters: Any, **more: Any) -> Any:
        began = time.thread_time()
        try:
            return statement(self, sql, *parameters, **more)
        finally:
            asked.append((sql, (time.thread_time() - began) * 1000))

    return timed


if __name__ == "__main__":
    main()
