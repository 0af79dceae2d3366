"""The same rows behind what people would use instead; their programs are in tests/benchmarks/peers."""

import importlib.util
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from handlers.commands.control_socket import CommandError, Report
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.servers import ROOT, MeasuredServer, free_port, running
from tests.benchmarks.bench.store import Audience
from tests.benchmarks.bench.workload import WORKS, first_path

PROGRAMS = ROOT / "tests" / "benchmarks" / "peers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """One of them: its program, the packages that it needs, and the store that it serves."""

    name: str
    program: str
    packages: tuple[str, ...]
    store: str
    has_our_shapes: bool = True  # the JSON of the contract, which can be compared


SQLITE = Rival(
    name="FastAPI + SQLAlchemy, SQLite",
    program="fastapi_service.py",
    packages=("fastapi", "sqlalchemy"),
    store="sqlite",
)
PEERS = (
    SQLITE,
    Rival(
        name="FastAPI + SQLAlchemy, PostgreSQL",
        program="fastapi_service.py",
        packages=("fastapi", "sqlalchemy", "psycopg"),
        store="postgresql",
    ),
    Rival(
        name="Datasette", program="datasette_service.py", packages=("datasette",), store="sqlite", has_our_shapes=False
    ),
)


def check() -> None:
    """Raises CommandError, in one sentence, where something is missing for them."""
    packages = {name for peer in PEERS for name in peer.packages}
    missing = sorted(name for name in packages if importlib.util.find_spec(name) is None)
    if missing:
        raise CommandError(f"--peers needs packages: pip install {' '.join(missing)}")


def started(stack: ExitStack, size: Size, ours: MeasuredServer, folder: Path, report: Report) -> list[MeasuredServer]:
    """Servers over the rows of our own, for the same people; raises CommandError, also when they answer otherwise."""
    audience = ours.audience
    people = {each.token: each.user_id for each in [*audience.warm, *audience.cold]}
    (folder / "people.json").write_text(json.dumps(people))
    for store in sorted({peer.store for peer in PEERS}):
        _fill(store, size, audience, folder, report)
    servers = []
    for peer in PEERS:
        port = free_port()
        arguments = [str(PROGRAMS / peer.program), peer.store, str(folder), str(port), audience.today.isoformat()]
        server = stack.enter_context(running(peer.name, arguments, port, audience, folder))
        if peer.has_our_shapes:
            _compare(server, ours)
        servers.append(server)
    return servers


def _compare(server: MeasuredServer, ours: MeasuredServer) -> None:
    """It is no comparison if they answer something else."""
    token = ours.audience.warm[0].token
    for work in WORKS.values():
        path = first_path(work, ours.audience)
        if json.loads(server.answer(path, token)) != json.loads(ours.answer(path, token)):
            raise CommandError(f"{server.name} answers {path} differently from {ours.name}.")


def _fill(store: str, size: Size, audience: Audience, folder: Path, report: Report) -> None:
    """Run the program that fills it, which says after each piece how many users it has filled."""
    program = [sys.executable, str(PROGRAMS / "fill.py"), store, str(folder), str(size.rows), str(size.rows_each)]
    with subprocess.Popen(
        [*program, audience.today.isoformat()],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as filling:
        assert filling.stdout is not None, "asked for above"
        for line in filling.stdout:
            report.progress(f"Filling {store} with {size.rows:,} bookings", int(line), size.users)
    if filling.returncode:
        raise CommandError(f"{store} could not be filled.")
