"""One run: stores filled, servers started, every operation asked of all of them by turns."""

import json
import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from handlers.commands.control_socket import CommandError, Report
from tests.benchmarks.bench import peers
from tests.benchmarks.bench.data import Size
from tests.benchmarks.bench.figures import Figures, Plan, Results
from tests.benchmarks.bench.load import Load, LoadFailed, drive
from tests.benchmarks.bench.servers import MeasuredServer, called, free_port, running
from tests.benchmarks.bench.store import WARM_USERS, Someone, filled
from tests.benchmarks.bench.workload import REPEATED, WORKS, Work, first_path

OURS = "bankdata"
STACK = "our stack, constant answers"
STARLETTE = "bare Starlette"
ROUNDS = 3  # in which servers take turns, so that what else the machine does meets all of them
WARM_UP = 1 / 3  # of the seconds of an operation, before they count


def measured(plan: Plan, folder: Path, report: Report, *, now: datetime) -> Results:
    """Do all of it in the folder; raises CommandError. Whatever ends it ends the servers too."""
    results = Results(plan=plan, at=now)
    with ExitStack() as stack:
        servers = []
        for size in plan.sizes:
            name = OURS if len(plan.sizes) == 1 else f"{OURS}, {size.rows:,} bookings"
            servers.append(_store_server(stack, name, size, folder, report))
            results.ours.append(name)
        if plan.with_peers:
            servers += peers.started(stack, plan.sizes[-1], servers[-1], folder, report)
        floors = _floors(stack, servers[len(plan.sizes) - 1], folder, report)
        loader = stack.enter_context(
            ProcessPoolExecutor(
                1,
                multiprocessing.get_context("spawn"),
                initializer=signal.signal,
                initargs=(signal.SIGINT, signal.SIG_IGN),  # it ends with the seconds it was given
            )
        )
        try:
            _ask_all(results, servers, floors, loader, report)
        except LoadFailed as error:
            raise CommandError(str(error)) from error
        results.memory = {server.name: server.memory_bytes() for server in [*servers, *floors]}
    return results


def _store_server(stack: ExitStack, name: str, size: Size, folder: Path, report: Report) -> MeasuredServer:
    place = folder / f"store of {size.rows}"
    audience = filled(place, size, report)
    port = free_port()
    arguments = called("handlers.cli", "serve", "--port", port, "--data", place)
    return stack.enter_context(running(name, arguments, port, audience, folder))


def _floors(stack: ExitStack, real: MeasuredServer, folder: Path, report: Report) -> list[MeasuredServer]:
    """Servers that give everybody what the real one gives somebody."""
    someone = real.audience.warm[0]
    bodies = {
        work.operation_id: real.answer(first_path(work, real.audience), someone.token).decode()
        for work in WORKS.values()
    }
    file = folder / "answers.json"
    file.write_text(json.dumps(bodies))
    users = folder / "store of floors"
    audience = filled(users, Size(rows=2 * WARM_USERS, rows_each=1), report)
    floors = []
    for name, kind in ((STACK, "stack"), (STARLETTE, "starlette")):
        port = free_port()
        arguments = called("tests.benchmarks.bench.floors", kind, port, file, users)
        floors.append(stack.enter_context(running(name, arguments, port, audience, folder)))
    return floors


def _ask_all(
    results: Results,
    servers: Sequence[MeasuredServer],
    floors: Sequence[MeasuredServer],
    loader: ProcessPoolExecutor,
    report: Report,
) -> None:
    plan, every = results.plan, [*servers, *floors]
    steps, done = len(WORKS) * len(every) * (ROUNDS + 1), 0
    for number, work in enumerate(WORKS.values()):
        results.loads.append(os.getloadavg()[0])
        for server in servers:
            users = server.audience.cold[number :: len(WORKS)]
            if users and work.name != REPEATED:
                cold = results.cold[server.name].setdefault(work.name, Figures())
                _ask(cold, server, work, users, loader, connections=1, seconds=None, seed=number)
        for turn in range(ROUNDS + 1):
            for server in every:
                report.progress(f"{work.name}: {server.name}", done, steps)
                done += 1
                warm = results.warm[server.name].setdefault(work.name, Figures()) if turn else Figures()
                seconds = plan.seconds / ROUNDS if turn else plan.seconds * WARM_UP
                _ask(
                    warm,
                    server,
                    work,
                    server.audience.warm,
                    loader,
                    connections=plan.connections,
                    seconds=seconds,
                    seed=number * 1000 + turn,
                )


def _ask(
    figures: Figures,
    server: MeasuredServer,
    work: Work,
    users: list[Someone],
    loader: ProcessPoolExecutor,
    *,
    connections: int,
    seconds: float | None,
    seed: int,
) -> None:
    before = server.processor_seconds()
    load = Load(
        port=server.port,
        work=work.name,
        users=users,
        today=server.audience.today,
        connections=connections,
        seconds=seconds,
        seed=seed,
    )
    answered = loader.submit(drive, load).result()
    figures.add(answered, server.processor_seconds() - before)
